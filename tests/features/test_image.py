"""Folders, lists and arrays as lazy pictures, with everything bad that lies in real folders."""

import os
import pickle
import shutil
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut, chelsea, coffee, lfw_subset
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import listening
from saccade.features import files
from saccade.features.image import Pictures, Resize, read_pictures, resize, to_rgb

PARTS = {
    "cat": [chelsea()[k : k + 60, 100:180] for k in (0, 60, 120)],
    "cup": [coffee()[k : k + 60, 200:280] for k in (100, 160)],
    "face": [astronaut()[k : k + 60, 180:260] for k in (40, 100)],
}


def save(path: Path, picture: Array, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path, **options)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """root/cat/0.png, … : three classes, seven pictures."""
    for name, pictures in PARTS.items():
        for k, picture in enumerate(pictures):
            save(tmp_path / "photos" / name / f"{k}.png", picture)
    return tmp_path / "photos"


def test_a_folder(folder: Path) -> None:
    pictures = read_pictures(folder)
    expected = [picture for parts in PARTS.values() for picture in parts]
    assert len(pictures) == 7
    assert pictures.names == [f"{name}/{k}.png" for name, parts in PARTS.items() for k in range(len(parts))]
    assert pictures.paths == [folder / name for name in pictures.names]
    assert pictures.labels is not None
    assert pictures.labels.tolist() == ["cat"] * 3 + ["cup"] * 2 + ["face"] * 2
    assert pictures.labels.dtype.kind == "U"
    assert pictures.skipped == []
    assert all(np.array_equal(a, b) for a, b in zip(pictures, expected, strict=True))
    assert np.array_equal(pictures[-1], expected[-1])
    with pytest.raises(IndexError):
        pictures[7]


def test_selections_keep_names_and_labels(folder: Path) -> None:
    pictures = read_pictures(str(folder))
    for rows in (slice(5, 1, -2), [5, 0, 0], np.array([2, -1]), pictures.labels == "cup", slice(0, 0)):
        some = pictures[rows]
        numbers = np.arange(7)[rows]
        assert isinstance(some, Pictures)
        assert some.names == [pictures.names[k] for k in numbers]
        assert some.labels is not None
        assert pictures.labels is not None
        assert np.array_equal(some.labels, pictures.labels[rows])
        assert [some.digest(i) for i in range(len(some))] == [pictures.digest(k) for k in numbers]
        assert all(np.array_equal(picture, pictures[k]) for picture, k in zip(some, numbers, strict=True))


def test_scikit_learn_splits_them_unread(folder: Path) -> None:
    pictures = read_pictures(folder)
    train, test, y_train, y_test = train_test_split(pictures, pictures.labels, test_size=3, random_state=0)
    assert isinstance(train, Pictures)
    assert isinstance(test, Pictures)
    assert np.array_equal(train.labels, y_train)
    assert np.array_equal(test.labels, y_test)
    assert sorted(train.names + test.names) == pictures.names


def test_a_flat_folder_and_a_list_have_no_labels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flat = read_pictures(folder / "cat")
    assert flat.names == ["0.png", "1.png", "2.png"]
    assert flat.labels is None
    assert flat[1:].labels is None
    monkeypatch.chdir(folder)
    listed = read_pictures([Path("cup/1.png"), "cat/0.png", b"cat/0.png"])
    monkeypatch.chdir("/")
    assert listed.names == ["cup/1.png", "cat/0.png", "cat/0.png"]
    assert listed.labels is None
    assert np.array_equal(listed[0], PARTS["cup"][1])
    assert np.array_equal(read_pictures(np.array([str(folder / "cup" / "1.png")]))[0], PARTS["cup"][1])


def test_bad_files_are_told_and_rows_stay_in_step(folder: Path) -> None:
    whole = (folder / "cat" / "0.png").read_bytes()
    jpeg = save(folder / "cup" / "8.jpg", coffee()[:90, :90]).read_bytes()
    save(folder / "cup" / "9.jpg", coffee()[:100, :100])
    save(folder / "face" / "pixel.png", np.full((1, 1), 7, np.uint8))
    (folder / "face" / "really-a.gif").write_bytes(whole)
    bad = {
        "cat/empty.jpg": b"",
        "cat/half.png": whole[: len(whole) // 2],
        "cup/half.jpg": jpeg[: len(jpeg) // 2],
        "cup/text.jpg": b"Dear diary",
        "face/head.tif": b"II*\0",
    }
    for name, data in bad.items():
        (folder / name).write_bytes(data)
    os.mkfifo(folder / "cat" / "pipe.jpg")
    (folder / "cat" / "notes.txt").write_text("Dear diary")
    pictures = read_pictures(folder, max_pixels=9999)
    assert sorted(name for name, _ in pictures.skipped) == sorted([*bad, "cat/pipe.jpg", "cat/notes.txt", "cup/9.jpg"])
    reasons = dict(pictures.skipped)
    assert reasons["cat/empty.jpg"] == "empty file"
    assert "damaged" in reasons["cat/half.png"]
    assert "damaged" in reasons["cup/half.jpg"]
    assert reasons["cup/text.jpg"].startswith("not a JPEG")
    assert reasons["cat/pipe.jpg"] == "not a file"
    assert reasons["cup/9.jpg"].startswith("100 x 100 = 10,000 pixels, over the limit of 9,999")
    assert pictures.names == sorted(pictures.names)
    assert pictures.labels is not None
    assert [name.split("/")[0] for name in pictures.names] == pictures.labels.tolist()
    assert np.array_equal(pictures[pictures.names.index("face/pixel.png")], [[[7, 7, 7]]])
    assert np.array_equal(pictures[pictures.names.index("face/really-a.gif")], PARTS["cat"][0])


def test_a_list_with_bad_paths(folder: Path) -> None:
    good = folder / "cat" / "0.png"
    pictures = read_pictures([folder / "cat", good, folder / "no.png", "no\0name", ""])
    assert pictures.paths == [good]
    assert len(pictures.skipped) == 4
    reasons = [reason for _, reason in pictures.skipped]
    assert reasons[:2] == ["not a file", "no such file or directory"]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Permissions do not bind root: lay its rights down for a while."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may read, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_what_may_not_be_read(open_folder: Path) -> None:
    for name in ("a/yes.png", "a/no.png", "closed/x.png"):
        save(open_folder / name, PARTS["cat"][0])
    read_pictures(open_folder)  # everything is imported
    os.chmod(open_folder / "a" / "no.png", 0)
    os.chmod(open_folder / "closed", 0)
    try:
        with as_nobody():
            pictures = read_pictures(open_folder)
            assert pictures.names == ["a/yes.png"]
            assert sorted(pictures.skipped) == [("a/no.png", "permission denied"), ("closed", "permission denied")]
    finally:
        os.chmod(open_folder / "closed", 0o700)


def test_names_with_any_characters(tmp_path: Path) -> None:
    for name in ("new\nline.png", "ä 猫.png", os.fsdecode(b"\xff.png")):
        shutil.copy(save(tmp_path / "first.png", PARTS["cat"][0]), tmp_path / name)
    pictures = read_pictures(tmp_path)
    assert pictures.names == sorted(os.listdir(tmp_path))
    assert all(np.array_equal(picture, PARTS["cat"][0]) for picture in pictures)
    os.truncate(tmp_path / os.fsdecode(b"\xff.png"), 0)
    with pytest.raises(InvalidInput) as error:
        list(pictures)
    str(error.value).encode()  # can be shown


@pytest.mark.parametrize("make", ["absent", "empty", "hidden", "file", "bad"])
def test_a_folder_without_pictures(tmp_path: Path, make: str) -> None:
    root = tmp_path / "photos"
    if make == "file":
        root.touch()
    elif make != "absent":
        root.mkdir()
    if make == "hidden":
        (root / ".x.png").touch()
    if make == "bad":
        for k in range(5):
            (root / f"{k}.jpg").touch()
    words = {
        "absent": "does not exist",
        "file": "is a file",
        "bad": r"None of the 5 files .*'0.jpg': empty.*and 2 more",
    }
    with pytest.raises(InvalidInput, match=words.get(make, "There is no picture in")) as error:
        read_pictures(root)
    assert "photos" in str(error.value)


def test_changed_and_vanished_files_are_named(folder: Path) -> None:
    pictures = read_pictures(folder)
    stamp = (folder / "cat" / "1.png").stat()
    save(folder / "cat" / "0.png", PARTS["cup"][0])
    (folder / "cat" / "1.png").touch()
    (folder / "cat" / "2.png").unlink()
    for k in (0, 2):
        with pytest.raises(
            InvalidInput, match=rf"cat/{k}\.png' has changed since it was read .*Read the pictures again"
        ):
            pictures[k]
    assert (folder / "cat" / "1.png").stat().st_mtime_ns != stamp.st_mtime_ns
    assert np.array_equal(pictures[1], PARTS["cat"][1])  # another time, the same content


def test_digests_say_content_and_size(folder: Path) -> None:
    shutil.copy(folder / "cat" / "0.png", folder / "cup" / "0.png")
    pictures, small = read_pictures(folder), read_pictures(folder, max_side=40)
    digests = [pictures.digest(i) for i in range(len(pictures))]
    assert digests[0] == digests[3]
    assert len(set(digests)) == len(digests) - 1
    assert not set(digests) & {small.digest(i) for i in range(len(small))}
    moved = folder.rename(folder.parent / "moved")
    again = read_pictures(moved)
    assert [again.digest(i) for i in range(len(again))] == digests


def test_a_second_run_from_the_cache_decodes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cat" / "bad.png").write_bytes(b"text")
    first = read_pictures(folder, cache=tmp_path / "kept")
    real = files.decode
    decoded: list[str] = []

    def noted(file: Any, **options: Any) -> Array:
        decoded.append(Path(file.name).name)
        return real(file, **options)

    monkeypatch.setattr(files, "decode", noted)
    second = read_pictures(folder, cache=tmp_path / "kept")
    assert decoded == []
    assert second.names == first.names
    assert second.skipped == first.skipped
    save(folder / "cat" / "new.png", PARTS["cup"][0][:50])
    read_pictures(folder, cache=tmp_path / "kept")
    assert decoded == ["new.png"]
    assert len(read_pictures(folder, cache=tmp_path / "kept", max_pixels=4000)) == 1  # known, and now too large
    read_pictures(folder)
    assert len(decoded) > 8


def test_progress_comes_to_its_end(folder: Path) -> None:
    heard: list[tuple[str, float]] = []
    with listening(lambda what, done: heard.append((what, done))):
        read_pictures(folder)
    assert heard == [("Reading pictures", k / 7) for k in range(1, 8)]


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_any_number_of_threads(folder: Path, n_jobs: int) -> None:
    (folder / "cup" / "0.png").write_bytes(b"")
    pictures = read_pictures(folder, n_jobs=n_jobs)
    assert pictures.names == ["cat/0.png", "cat/1.png", "cat/2.png", "cup/1.png", "face/0.png", "face/1.png"]


def test_only_a_few_pictures_lie_in_memory(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (512, 512, 3), dtype=np.uint8)  # 0.75 MiB
    for k in range(40):
        save(tmp_path / f"{k}.bmp", np.roll(noise, k, axis=0))
    read_pictures(tmp_path)
    tracemalloc.start()
    try:
        total = sum(int(picture.size) for picture in read_pictures(tmp_path, n_jobs=2))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 40 * noise.size
    assert peak < 12 * noise.size


def test_the_longer_side(folder: Path) -> None:
    pictures = read_pictures(folder, max_side=40)
    assert pictures[0].shape == (30, 40, 3)
    assert np.array_equal(pictures[0], resize(PARTS["cat"][0], (40, 30)))
    assert read_pictures([astronaut()], max_side=64)[0].shape == (64, 64, 3)


def test_arrays() -> None:
    faces = lfw_subset()  # (200, 25, 25), floats
    pictures = read_pictures(faces)
    assert len(pictures) == 200
    assert np.array_equal(pictures[3], to_rgb(faces[3]))
    assert pictures.paths is None
    assert pictures.labels is None
    assert pictures[5:7].names == ["5", "6"]
    mixed = read_pictures([astronaut(), coffee()[..., 0], chelsea() > 9, np.zeros((2, 2, 4), np.uint16)])
    assert [picture.shape for picture in mixed] == [(512, 512, 3), (400, 600, 3), (300, 451, 3), (2, 2, 3)]
    assert np.array_equal(read_pictures(np.stack([astronaut()] * 2))[1], astronaut())
    assert mixed.digest(0) == read_pictures(np.stack([astronaut()] * 2)).digest(1) != mixed.digest(1)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ([], "empty"),
        (np.zeros((0, 8, 8)), "empty"),
        (astronaut(), r"\(512, 512, 3\).*pass \[picture\]"),
        (np.zeros((8, 8)), r"pass \[picture\]"),
        (np.zeros((2, 8, 8, 3, 1)), "Picture 0"),
        ([np.zeros((4, 4)), np.full((4, 4), 2.0)], "Picture 1, counted from 0.*from 2 to 2"),
        ([np.zeros((4, 4)), "a.jpg"], "got str as number 1"),
        (["a.jpg", None], "got NoneType as number 1"),
        (7, "got int"),
        (None, "got NoneType"),
    ],
)
def test_other_sources_are_refused(source: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_pictures(source)


def test_pictures_are_not_read_twice(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="got Pictures"):
        read_pictures(read_pictures(folder))


@pytest.mark.parametrize("options", [{"max_pixels": 0}, {"max_pixels": 1e8}, {"max_side": 0}, {"max_side": True}])
def test_bad_parameters(folder: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=f"`{next(iter(options))}` must be a whole number"):
        read_pictures(folder, **options)
    with pytest.raises(InvalidParameter, match="n_jobs"):
        read_pictures(folder, n_jobs=0)


def test_they_can_be_sent_to_another_process(folder: Path) -> None:
    pictures = read_pictures(folder)
    again = pickle.loads(pickle.dumps(pictures))
    assert again.names == pictures.names
    assert np.array_equal(again[2], pictures[2])
    assert repr(again) == "<7 pictures, 0 skipped>"


def test_resize(folder: Path) -> None:
    pictures = read_pictures(folder)
    small = Resize((24, 16)).fit_transform(pictures)
    assert len(small) == 7
    assert all(picture.shape == (16, 24, 3) for picture in small)
    assert np.array_equal(small[2], resize(pictures[2], (24, 16)))
    assert small.digest(0) not in (pictures.digest(0), Resize((16, 24)).transform(pictures).digest(0))
    assert clone(Resize((24, 16))).get_params() == {"size": (24, 16)}
    assert Resize().transform([np.zeros((5, 5))])[0].shape == (256, 256, 3)


def test_a_number_limits_the_longer_side(folder: Path) -> None:
    wide = np.zeros((10, 40, 3), np.uint8)
    shapes = [picture.shape for picture in Resize(20).transform([wide, wide[:, :12]])]
    assert shapes == [(5, 20, 3), (10, 12, 3)]


@pytest.mark.parametrize("size", [0, 2.5, (256,), (0, 5), (5, 2.5), None])
def test_sizes_that_cannot_be(size: Any) -> None:
    with pytest.raises(InvalidParameter, match="`size` must be"):
        Resize(size).fit([])
    with pytest.raises(InvalidParameter, match="`size` must be"):
        Resize(size).transform([])
