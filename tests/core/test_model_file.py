"""The file itself: whole or not there, and nothing in it is believed before the digest is."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from saccade import load
from saccade._core import model_file
from saccade._core.atomic import replacing
from saccade._core.errors import ModelFileError

HEADER = {"name": "café", "numbers": [1, 2.5, None, True]}
TENSORS = {
    "a": np.arange(6, dtype=np.float64).reshape(2, 3),
    "b": np.array([1, -2], np.int64),
    "empty": np.zeros((0, 3), np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.saccade"
    model_file.write(path, HEADER, TENSORS)
    return path


def test_everything_comes_back(path: Path) -> None:
    header, tensors = model_file.read(path)
    assert {key: header[key] for key in HEADER} == HEADER
    assert header["format"] == model_file.FORMAT
    assert set(tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        np.testing.assert_array_equal(tensors[name], tensor)


def test_any_changed_byte_is_noticed(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    changed = tmp_path / "changed"
    for place in range(len(data)):
        for bit in (1, 32):
            changed.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
            with pytest.raises(ModelFileError):
                model_file.read(changed)


def test_any_missing_end_is_noticed(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    short = tmp_path / "short"
    for length in range(len(data)):
        short.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            model_file.read(short)
    short.write_bytes(data + b"x")
    with pytest.raises(ModelFileError):
        model_file.read(short)


def write_foreign(path: Path, metadata: dict[str, str] | None) -> None:
    save_file({"weight": np.ones(3)}, path, metadata)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"format": "pt"},
        {"saccade": "{}"},
        {"saccade": "not json", "digest": "0"},
        {"saccade": "[]", "digest": "0"},
        {"saccade": "[" * 100_000, "digest": "0"},
    ],
)
def test_files_of_others(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    write_foreign(tmp_path / "foreign", metadata)
    with pytest.raises(ModelFileError):
        model_file.read(tmp_path / "foreign")


@pytest.mark.parametrize("text", ["[]", "3", "null", '"format"'])
def test_a_valid_digest_does_not_make_a_header(tmp_path: Path, text: str) -> None:
    tensors = {"weight": np.ones(3)}
    digest = model_file._digest(text, tensors, lambda tensor: [tensor.data])
    save_file(tensors, tmp_path / "odd", {"saccade": text, "digest": digest})
    with pytest.raises(ModelFileError, match="not written by saccade"):
        model_file.read(tmp_path / "odd")


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\xff" * 64, b"PK\x03\x04" + b"0" * 60, np.random.default_rng(0).bytes(4096)],
    ids=["none", "json", "ones", "zip", "random"],
)
def test_bytes_that_mean_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "noise").write_bytes(content)
    with pytest.raises(ModelFileError):
        model_file.read(tmp_path / "noise")


def test_a_format_of_the_future(tmp_path: Path) -> None:
    model_file.write(tmp_path / "new", {"format": 99, "saccade": "9.0"}, TENSORS)
    with pytest.raises(ModelFileError, match=r"format 99.*saccade 9\.0"):
        model_file.read(tmp_path / "new")


@pytest.mark.parametrize("name", ["nothing", "."])
def test_no_such_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFileError, match="no model file"):
        model_file.read(tmp_path / name)


class Stop(BaseException):
    """Like Ctrl-C, no Exception."""


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("boom"), Stop()])
@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_the_old_file_outlives_a_failure(path: Path, monkeypatch: Any, step: str, error: BaseException) -> None:
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(ModelFileError if isinstance(error, OSError) else type(error)):
        model_file.write(path, {"new": True}, TENSORS)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_nothing_is_left_of_a_first_failure(tmp_path: Path) -> None:
    def half() -> None:
        with replacing(tmp_path / "new") as file:
            file.write(b"half")
            raise Stop

    with pytest.raises(Stop):
        half()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="Choose a folder"):
        model_file.write(tmp_path / "none" / "model", HEADER, TENSORS)


def test_others_may_read_it_as_the_umask_says(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        model_file.write(tmp_path / "model", HEADER, TENSORS)
    finally:
        os.umask(old)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o640


def test_the_header_is_plain_json(path: Path) -> None:
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert json.loads(header["__metadata__"]["saccade"])["name"] == "café"


# --- forged files: what they ask for is judged before it is given --------


def forged(path: Path, shape: list[int], dtype: str = "F64", width: int = 8, **metadata: str) -> Path:
    """A file with one tensor of zeros that takes no room on the disk."""
    size = int(np.prod(shape, dtype=object)) * width
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": metadata, "T": entry}).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)
    return path


def peak_of(read: Any) -> int:
    """Bytes that were allocated at once while it was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HEADER_OF_NOW = json.dumps({"format": model_file.FORMAT, "saccade": "1"})


def test_a_large_file_is_judged_before_it_is_read(tmp_path: Path) -> None:
    path = forged(tmp_path / "large", [2**37], saccade=HEADER_OF_NOW, digest="0")
    with pytest.raises(ModelFileError, match="more than any model has"):
        model_file.read(path)


def test_no_tensor_is_made_before_header_and_digest_are_right(tmp_path: Path) -> None:
    foreign = forged(tmp_path / "foreign", [2**25], saccade="{}", digest="0")
    wrong = forged(tmp_path / "wrong", [2**24], saccade=HEADER_OF_NOW, digest="0")
    for path in (foreign, wrong):
        assert peak_of(lambda path=path: model_file.read(path)) < 1 << 23


def test_tables_of_a_foreign_type_are_refused_by_the_header(tmp_path: Path) -> None:
    path = forged(tmp_path / "bytes", [2**26], "U8", 1, saccade=HEADER_OF_NOW, digest="0")
    assert peak_of(lambda: load(path)) < 1 << 22


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64", "shape": [2**70], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [True], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]},
        {"dtype": "F64", "shape": [1], "data_offsets": [0, 16]},
        {"dtype": "O", "shape": [1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": "1", "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1]},
        {},
        [],
        "F64",
    ],
    ids=repr,
)
def test_a_tensor_that_does_not_fill_the_file(tmp_path: Path, entry: Any) -> None:
    header = json.dumps({"__metadata__": {"saccade": HEADER_OF_NOW, "digest": "0"}, "T": entry}).encode()
    (tmp_path / "odd").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ModelFileError, match="not a whole one"):
        model_file.read(tmp_path / "odd")


def test_tensors_that_share_bytes(tmp_path: Path) -> None:
    """Each is in the file, but all of them together would be many times the file."""
    entries = {str(k): {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]} for k in range(100)}
    header = json.dumps({"__metadata__": {"saccade": HEADER_OF_NOW, "digest": "0"}, **entries}).encode()
    (tmp_path / "odd").write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    with pytest.raises(ModelFileError, match="overlap"):
        model_file.read(tmp_path / "odd")


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="too much for a file"):
        model_file.write(tmp_path / "m", {"names": ["x" * 1000] * 40_000}, {})
    assert not (tmp_path / "m").exists()
