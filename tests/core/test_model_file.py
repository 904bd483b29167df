"""The file itself: whole or not there, and nothing in it is believed before the digest is."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

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
    save_file(tensors, tmp_path / "odd", {"saccade": text, "digest": model_file._digest(text, tensors)})
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
