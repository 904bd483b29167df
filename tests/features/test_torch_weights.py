"""The reader of torch's files, against a writer made by hand from the format (torch itself reads what it writes)."""

import os
import pickle
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from saccade._core.errors import ModelFileError
from saccade.features.efficientnet import weights_file
from saccade.features.torch_weights import DTYPES, MAGIC, read_state_dict

KINDS = {np.dtype(code): name.split()[1] for name, code in DTYPES.items()}
ORDERED_DICT = b"ccollections\nOrderedDict\n"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def whole(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def row(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"t"


def tensor(key: str, kind: str, length: int, offset: int, shape: Any, strides: Any) -> bytes:
    """The call that makes a tensor, as torch writes it."""
    parts = [text("storage"), f"ctorch\n{kind}\n".encode(), text(key), text("cpu"), whole(length)]
    storage = row(*parts, b"N") + b"Q"
    sizes, steps = (row(*(whole(n) for n in numbers)) for numbers in (shape, strides))
    return REBUILD + row(storage, whole(offset), sizes, steps, b"\x89", ORDERED_DICT + b")R") + b"R"


def state_dict(members: dict[str, bytes]) -> bytes:
    pairs = b"".join(text(name) + value for name, value in members.items())
    return b"\x80\x02" + ORDERED_DICT + b")R(" + pairs + b"u."


def file_of(program: bytes, storages: dict[str, np.ndarray]) -> bytes:
    """A whole file."""
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
    head = [pickle.dumps(part, 2) for part in (MAGIC, 1001, machine)]
    keys = pickle.dumps(list(storages), 2)
    return b"".join([*head, program, keys, *(struct.pack("<q", a.size) + a.tobytes() for a in storages.values())])


def small_file() -> bytes:
    numbers = np.arange(12, dtype=np.float32)
    member = tensor("0", "FloatStorage", 12, 0, (3, 4), (4, 1))
    return file_of(state_dict({"weight": member}), {"0": numbers})


def refused(tmp_path: Any, content: bytes, words: str) -> None:
    (tmp_path / "net.pth").write_bytes(content)
    with pytest.raises(ModelFileError, match=words):
        read_state_dict(tmp_path / "net.pth")


@given(
    array=hnp.arrays(st.sampled_from(list(KINDS)), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)),
    order=st.randoms(use_true_random=False),
    offset=st.integers(0, 5),
)
def test_a_strided_view_of_a_shared_storage_comes_back(
    tmp_path_factory: Any, array: np.ndarray, order: Any, offset: int
) -> None:
    axes = list(range(array.ndim))
    order.shuffle(axes)
    storage = np.concatenate([np.ones(offset, array.dtype), array.ravel(), np.ones(2, array.dtype)])
    strides = [array.strides[axis] // array.itemsize for axis in axes]
    shape = [array.shape[axis] for axis in axes]
    kind = KINDS[array.dtype]
    members = {
        "ä.weight": tensor("s", kind, storage.size, offset, shape, strides),
        "whole": tensor("s", kind, storage.size, 0, storage.shape, (1,)),
    }
    path = tmp_path_factory.mktemp("weights") / "net.pth"
    path.write_bytes(file_of(state_dict(members), {"s": storage}))
    read = read_state_dict(path)
    assert list(read) == ["ä.weight", "whole"]
    assert read["ä.weight"].dtype == array.dtype
    np.testing.assert_array_equal(read["ä.weight"], array.transpose(axes))
    np.testing.assert_array_equal(read["whole"], storage)


def test_the_real_weights_are_read() -> None:
    """Counted with torch 2.13: torch.load(file, weights_only=True)."""
    weights = read_state_dict(weights_file())
    assert len(weights) == 296
    trained = [v for k, v in weights.items() if "running" not in k and "tracked" not in k]
    assert sum(v.size for v in trained) == 4_652_008
    assert weights["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert weights["_fc.weight"].shape == (1000, 1280)
    assert weights["_bn0.num_batches_tracked"].shape == ()


def test_a_program_in_the_file_is_refused_and_not_run(tmp_path: Any) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "ran"),)

    for program in (pickle.dumps({"weight": Evil()}, 2), state_dict({"weight": pickle.dumps(Evil(), 2)[2:-1]})):
        refused(tmp_path, file_of(program, {}), "asks for posix.mkdir|asks for nt.mkdir")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (tensor("0", "FloatStorage", 4, 1, (4,), (1,)), "outside its storage"),
        (tensor("0", "FloatStorage", 4, 0, (2, 2), (3, 1)), "outside its storage"),
        (tensor("0", "FloatStorage", 4, -1, (2,), (1,)), "storage of 4 numbers"),
        (tensor("0", "FloatStorage", 4, 0, (2,), (-1,)), "storage of 4 numbers"),
        (tensor("0", "FloatStorage", 4, 0, (2**30,), (0,)), "storage of 4 numbers"),
        (tensor("0", "FloatStorage", 5, 0, (4,), (1,)), "should have 5 numbers and has 4"),
        (tensor("9", "FloatStorage", 4, 0, (4,), (1,)), "not a whole one"),
        (tensor("0", "BFloat16Storage", 4, 0, (4,), (1,)), "asks for torch.BFloat16Storage"),
        (whole(3), "'weight' is not the name of a tensor"),
        (REBUILD, "'weight' is not the name of a tensor"),
        (REBUILD + row(whole(1)) + b"R", "makes something that is not a tensor"),
        (ORDERED_DICT + row(row(row(whole(1), whole(2)))) + b"R", "makes something that is not a tensor"),
        (whole(3) + b")R", "makes something that is not a tensor"),
        (row(text("module"), whole(1), whole(1), whole(1), whole(1)) + b"Q", "not a storage"),
        (b"\x82\x01", "instruction EXT1"),
        (b"0000000", "instruction POP"),
    ],
)
def test_what_no_state_dict_holds_is_refused(tmp_path: Any, member: bytes, words: str) -> None:
    refused(tmp_path, file_of(state_dict({"weight": member}), {"0": np.zeros(4, np.float32)}), words)


def test_every_truncation_is_refused(tmp_path: Any) -> None:
    content = small_file()
    (tmp_path / "net.pth").write_bytes(content)
    assert read_state_dict(tmp_path / "net.pth")["weight"][1].tolist() == [4.0, 5.0, 6.0, 7.0]
    for end in range(len(content)):
        refused(tmp_path, content[:end], "not a")


@given(at=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_a_changed_byte_gives_numbers_or_our_error(tmp_path_factory: Any, at: float, byte: int) -> None:
    content = bytearray(small_file())
    content[int(at * len(content))] = byte
    path = tmp_path_factory.mktemp("weights") / "net.pth"
    path.write_bytes(content)
    try:
        assert all(isinstance(array, np.ndarray) for array in read_state_dict(path).values())
    except ModelFileError as error:
        assert "Nothing of it was run" in str(error)  # noqa: PT017


def test_foreign_files_are_refused(tmp_path: Any) -> None:
    refused(tmp_path, b"", "not a file of torch")
    refused(tmp_path, b"GIF89a", "not a")
    refused(tmp_path, pickle.dumps([1, 2]), "not a plain file|not a file of torch")
    refused(tmp_path, b"PK" + bytes(100_000), "not a file of torch")
    with pytest.raises(ModelFileError, match="Cannot read"):
        read_state_dict(tmp_path)
    with pytest.raises(ModelFileError, match="No such file"):
        read_state_dict(tmp_path / "missing.pth")
