"""The loaders of experiments: pictures as they were written, clear words for broken files, and honest splits."""

import gzip
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("small_pictures")


@pytest.fixture
def large_table2(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("large_table2")


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


def write_fashion(folder: Path, count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Files of random pictures; the training ones packed, the test ones not. Returns the pictures of both parts."""
    place, rng = folder / "fashion-mnist", np.random.default_rng(0)
    place.mkdir()
    made = [rng.integers(0, 256, (count, 28, 28), np.uint8) for _ in range(2)]
    labels = np.arange(count, dtype=np.uint8) % 10
    (place / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(made[0])))
    (place / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    (place / "t10k-images-idx3-ubyte").write_bytes(idx(made[1]))
    (place / "t10k-labels-idx1-ubyte").write_bytes(idx(labels))
    return made[0], made[1]


def test_idx_files_are_read_packed_or_not(small_pictures: Any, tmp_path: Path) -> None:
    train, test = write_fashion(tmp_path)
    pictures = small_pictures.load("fashion-mnist", tmp_path)
    np.testing.assert_array_equal(pictures.train, train)
    np.testing.assert_array_equal(pictures.test, test)
    assert pictures.y.tolist() == [*range(10), 0, 1]


def test_sheets_have_a_picture_a_row(small_pictures: Any, tmp_path: Path) -> None:
    from PIL import Image

    place, rng = tmp_path / "cifar10", np.random.default_rng(0)
    place.mkdir()
    names = [*(f"data_batch_{k}.png" for k in range(1, 6)), "test_batch.png"]
    made = rng.integers(0, 256, (6, 2, 32, 32, 3), np.uint8)
    for name, pictures in zip(names, made, strict=True):
        Image.fromarray(pictures.reshape(2, 1024, 3)).save(place / name)
    (place / "train_lables.json").write_text(json.dumps(list(range(10))))
    (place / "test_lables.json").write_text("[3, 4]")
    pictures = small_pictures.load("cifar10", tmp_path)
    np.testing.assert_array_equal(pictures.train, made[:5].reshape(10, 32, 32, 3))
    np.testing.assert_array_equal(pictures.test, made[5])
    assert pictures.y_test.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t10k-labels-idx1-ubyte", idx(np.zeros(12, np.uint8))[:-1], "cut off"),
        ("t10k-labels-idx1-ubyte", b"", "no IDX file"),
        ("t10k-labels-idx1-ubyte", bytes([0, 0, 8, 200, 1]), "no IDX file"),
        ("t10k-labels-idx1-ubyte", idx(np.zeros(11, np.uint8)), "12 pictures"),
        ("t10k-labels-idx1-ubyte", idx(np.full(12, 10, np.uint8)), "from 0 to 9"),
        ("t10k-images-idx3-ubyte", None, "no file t10k-images-idx3-ubyte"),
    ],
)
def test_broken_files_are_named(
    small_pictures: Any, tmp_path: Path, name: str, content: bytes | None, says: str
) -> None:
    write_fashion(tmp_path)
    path = tmp_path / "fashion-mnist" / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(SystemExit, match=says):
        small_pictures.load("fashion-mnist", tmp_path)


def test_missing_folder_says_what_to_do(small_pictures: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="SACCADE_DATA"):
        small_pictures.load("cifar10", tmp_path)


def test_histograms_are_kept(small_pictures: Any, tmp_path: Path) -> None:
    write_fashion(tmp_path)
    made = small_pictures.histograms("fashion-mnist", tmp_path, tmp_path / "kept", words=7)
    np.testing.assert_allclose(made.train.sum(axis=1), 1.0, rtol=1e-5)
    kept = small_pictures.histograms("fashion-mnist", tmp_path / "gone", tmp_path / "kept", words=7)
    for part in ("train", "test"):
        np.testing.assert_array_equal(getattr(kept, part).toarray(), getattr(made, part).toarray())
    np.testing.assert_array_equal(kept.y, made.y)
    assert kept.train.shape == (12, 7)


def test_nobody_is_tested_on_what_was_trained_on(large_table2: Any, small_pictures: Any) -> None:
    y, y_test = np.tile(np.arange(10), 4), np.tile(np.arange(10), 6)
    names = sp.csr_matrix(np.arange(1.0, 101.0)[:, None])  # each picture is known by its value
    split = large_table2.divided(small_pictures.Histograms(names[:40], y, names[40:], y_test), [20, 50])
    train, test = (X.toarray().ravel() for X in (split.X, split.X_test))
    assert not np.intersect1d(train, test).size
    assert len(np.unique(np.concatenate([train, test]))) == 100
    for n in (20, 50):
        assert (np.bincount(split.y[:n]) == n // 10).all()
    order = np.argsort(np.concatenate([train, test]))  # one factor scales all, and their order stays
    np.testing.assert_array_equal(np.concatenate([split.y, split.y_test])[order], [*y, *y_test])
    borrowed = np.isin(np.argsort(order)[:50], np.arange(40, 100))
    assert borrowed.sum() == 10
    assert not borrowed[:40].any()  # the smaller training set is of the training part alone


def test_too_large_a_training_set_is_refused(large_table2: Any, small_pictures: Any) -> None:
    y = np.tile(np.arange(10), 4)
    made = small_pictures.Histograms(sp.csr_matrix(np.ones((40, 2))), y, sp.csr_matrix(np.ones((40, 2))), y)
    with pytest.raises(SystemExit, match="too few to test"):
        large_table2.divided(made, [70])
