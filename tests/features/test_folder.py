"""Names and links: which files of a folder are meant as pictures. No file here has any content."""

import os
from pathlib import Path

import pytest

from saccade._core.errors import InvalidInput
from saccade.features.files import BACK, BESIDE, NO_PICTURE, NOWHERE, OUT, TWICE, find_pictures


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def names(root: Path) -> list[str]:
    return [file.name for file in find_pictures(str(root))[0]]


def labels(root: Path) -> list[str | None]:
    return [file.label for file in find_pictures(str(root))[0]]


def skipped(root: Path) -> list[tuple[str, str]]:
    return find_pictures(str(root))[1]


def test_a_class_a_folder_at_any_depth(tmp_path: Path) -> None:
    touch(tmp_path, "dog/b.jpg", "dog/a.jpg", "cat/2024/may/x.PNG", "cat/x.jpg", "dog-2/a.tif")
    assert names(tmp_path) == ["cat/2024/may/x.PNG", "cat/x.jpg", "dog/a.jpg", "dog/b.jpg", "dog-2/a.tif"]
    assert labels(tmp_path) == ["cat", "cat", "dog", "dog", "dog-2"]
    assert skipped(tmp_path) == []


def test_a_flat_folder_has_no_labels(tmp_path: Path) -> None:
    touch(tmp_path, "b.webp", "a.gif", "IMG_0001", "notes/readme.txt")
    (tmp_path / "empty").mkdir()
    assert names(tmp_path) == ["IMG_0001", "a.gif", "b.webp"]
    assert labels(tmp_path) == [None, None, None]
    assert skipped(tmp_path) == [("notes/readme.txt", NO_PICTURE)]


def test_pictures_beside_class_folders_are_told(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg", "cat/b.jpg", "Thumbs.db", "cat/list.txt", "cat/raw.NEF")
    assert names(tmp_path) == ["cat/b.jpg"]
    others = [(name, NO_PICTURE) for name in ("Thumbs.db", "cat/list.txt", "cat/raw.NEF")]
    assert sorted(skipped(tmp_path)) == sorted([("a.jpg", BESIDE), *others])


def test_hidden_files_are_not_mentioned(tmp_path: Path) -> None:
    touch(tmp_path, ".DS_Store", "cat/.x.jpg", ".cache/a.jpg", "cat/._a.jpg", "cat/a.jpg")
    assert names(tmp_path) == ["cat/a.jpg"]
    assert skipped(tmp_path) == []


def test_names_with_any_characters(tmp_path: Path) -> None:
    odd = [
        "a b.jpg",
        "ä/é 猫.png",
        "new\nline.jpg",
        "quote\"'.jpg",
        os.fsdecode(b"\xff\xfe/\xff.jpg"),
        "semi;colon.jpg",
    ]
    touch(tmp_path, *(f"class/{name}" for name in odd))
    assert sorted(names(tmp_path)) == sorted(f"class/{name}" for name in odd)
    assert all(os.path.exists(file.path) for file in find_pictures(str(tmp_path))[0])


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    touch(tmp_path, "out/secret.jpg", "in/cat/a.jpg", "inside-no-more/b.jpg")
    root = tmp_path / "in"
    (root / "cat" / "file.jpg").symlink_to(tmp_path / "out" / "secret.jpg")
    (root / "dog").symlink_to(tmp_path / "out")
    (root / "up").symlink_to("..")
    (root / "near").symlink_to(tmp_path / "inside-no-more")  # begins like the folder's name
    (root / "cat" / "hop.jpg").symlink_to(root / "cat" / "file.jpg")  # in, and then out
    assert names(root) == ["cat/a.jpg"]
    assert skipped(root) == [(name, OUT) for name in ("cat/file.jpg", "cat/hop.jpg", "dog", "near", "up")]


def test_links_inside_are_followed(tmp_path: Path) -> None:
    touch(tmp_path, "cat/a.jpg", "dog/b.jpg", ".store/c", ".store/folder/d.png")
    (tmp_path / "dog" / "a.jpg").symlink_to("../cat/a.jpg")
    (tmp_path / "dog" / "c.jpg").symlink_to(tmp_path / ".store" / "c")
    (tmp_path / "bird").symlink_to(".store/folder")
    assert names(tmp_path) == ["bird/d.png", "cat/a.jpg", "dog/a.jpg", "dog/b.jpg", "dog/c.jpg"]
    assert skipped(tmp_path) == []


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    touch(tmp_path, "real/cat/a.jpg")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "cat" / "b.jpg").symlink_to("a.jpg")
    assert names(tmp_path / "link") == ["cat/a.jpg", "cat/b.jpg"]


def test_circles_of_links_end(tmp_path: Path) -> None:
    touch(tmp_path, "a/x.jpg", "b/y.jpg")
    (tmp_path / "a" / "self").symlink_to(".")
    (tmp_path / "a" / "root").symlink_to("..")
    (tmp_path / "a" / "b").symlink_to("../b")
    (tmp_path / "b" / "a").symlink_to("../a")
    (tmp_path / "one.jpg").symlink_to("two.jpg")
    (tmp_path / "two.jpg").symlink_to("one.jpg")
    (tmp_path / "gone.jpg").symlink_to("nothing.jpg")
    assert names(tmp_path) == ["a/b/y.jpg", "a/x.jpg", "b/a/x.jpg", "b/y.jpg"]
    reasons = dict(skipped(tmp_path))
    assert reasons["a/self"] == reasons["a/root"] == BACK
    assert reasons["a/b/a"] == reasons["b/a/b"] == TWICE
    assert reasons["one.jpg"] == reasons["gone.jpg"] == NOWHERE


def test_links_to_links_do_not_multiply(tmp_path: Path) -> None:
    """Thirty folders with two links each to the next would be 2³⁰ pictures."""
    for k in range(30):
        (tmp_path / f"{k:02d}").mkdir()
        for side in "lr":
            (tmp_path / f"{k:02d}" / side).symlink_to(f"../{k + 1:02d}")
    touch(tmp_path, "30/x.jpg")
    assert names(tmp_path) == ["29/l/x.jpg", "29/r/x.jpg", "30/x.jpg"]


def test_no_folder(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg")
    with pytest.raises(InvalidInput, match="does not exist"):
        find_pictures(str(tmp_path / "absent"))
    with pytest.raises(InvalidInput, match="is a file; for single files pass a list"):
        find_pictures(str(tmp_path / "a.jpg"))
    with pytest.raises(InvalidInput, match="does not exist"):
        find_pictures("no\0name")
