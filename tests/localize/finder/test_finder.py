"""`Finder`: trained on boxes, it finds the object, says how sure it is, and says where the object is not."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import saccade
from saccade._core import model_file
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.loading import KEY
from saccade.localize import Finder, iou, open_picture
from saccade.localize.finder.learning import Scene, _Part, folds_of
from tests.localize.objects import HEIGHT, WIDTH, hog, scene

LOOKS = 20


def empty(seed: int) -> Array:
    """The noise of a scene without its rings."""
    grey = np.random.default_rng(seed).integers(90, 130, (HEIGHT, WIDTH, 1)).astype(np.uint8)
    return np.repeat(grey, 3, axis=2)


@cache
def finder() -> Finder:
    scenes = [scene(seed) for seed in range(14)]
    pictures, boxes = [picture for picture, _ in scenes], [box[None] for _, box in scenes]
    return Finder(hog(), looks=LOOKS, folds=3, label="rings").fit([*pictures, empty(0)], [*boxes, []])


def test_finds_what_is_there_and_nothing_else() -> None:
    there = [(finder().find(picture), box) for picture, box in map(scene, range(100, 112))]
    none = [finder().find(empty(seed)) for seed in range(100, 112)]
    right = [iou(found.box, box) >= 0.5 for found, box in there]
    assert np.mean(right) >= 0.8
    assert np.mean([found.found for found, _ in there]) >= 0.9
    assert np.mean([found.found for found in none]) <= 0.1
    assert np.mean([found.probability for found, _ in there]) > 0.7
    assert max(found.probability for found in none) < 0.3
    assert all(found.looks == LOOKS for found, _ in there)


def test_held_out_searches_with_and_without_the_object() -> None:
    trials = finder().trials_
    assert trials.there.sum() == 14
    assert (~trials.there).sum() >= 10  # of one picture, and of parts beside the objects
    assert trials.hit[trials.there].mean() > 0.7
    assert not trials.hit[~trials.there].any()
    assert finder().response_.expected(np.array([0.0, 1.0])).tolist() == sorted(
        finder().response_.expected(np.array([0.0, 1.0])).tolist()
    )


def test_a_stated_share_of_absence() -> None:
    search = finder().search((WIDTH, HEIGHT))
    search.run(finder().judge_, empty(7), looks=LOOKS)
    sure, usual, rare = (finder().answer(search, share) for share in (0.0, 0.5, 0.95))
    assert sure.present == 1.0
    assert sure.found
    assert not usual.found
    assert rare.present < usual.present < sure.present
    assert rare.probability < usual.probability < sure.probability


def test_one_file_answers_alike_and_keeps_no_picture(tmp_path: Path) -> None:
    finder().save(tmp_path / "rings.saccade")
    again = saccade.load(tmp_path / "rings.saccade")
    assert isinstance(again, Finder)
    assert (again.label, again.looks) == ("rings", LOOKS)
    picture = scene(200)[0]
    old, new = finder().find(picture), again.find(picture)
    assert np.allclose(old.box, new.box, atol=1.0)
    assert new.probability == pytest.approx(old.probability, abs=0.02)
    header, tensors = model_file.read(tmp_path / "rings.saccade")
    assert "examples" not in header
    header[KEY]["response"].pop("table")
    model_file.write(tmp_path / "worse.saccade", header, tensors)
    with pytest.raises(ModelFileError, match="table"):
        saccade.load(tmp_path / "worse.saccade")


def test_a_part_of_a_picture_is_read_like_the_picture() -> None:
    picture = scene(3)[0]
    part = _Part(picture, np.array([20.0, 10.0, 120.0, 90.0]))
    assert part.shape == (80, 100, 3)
    assert np.array_equal(open_picture(part).read((5, 6, 25, 36)), picture[16:46, 25:45])


def test_folds_share_pictures_with_and_without_evenly() -> None:
    box, none = np.array([[0.0, 0.0, 9.0, 9.0]]), np.zeros((0, 4))
    scenes = [Scene(None, np.array([20.0, 20.0]), box if k < 14 else none) for k in range(21)]
    folds = folds_of(scenes, 3, np.random.default_rng(0))
    assert sorted(np.bincount(folds[:14], minlength=3)) == [4, 5, 5]
    assert sorted(np.bincount(folds[14:], minlength=3)) == [2, 2, 3]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Finder(hog()).fit([empty(0)] * 3, [[]] * 2), InvalidInput, "3 pictures need as many"),
        (lambda: Finder(hog()).fit([empty(0)] * 3, [[[0, 0, 9, 9]], [], []]), InvalidInput, "1 pictures have a box"),
        (lambda: Finder(hog()).fit([empty(0)], [[[0, 0, 999, 9]]]), InvalidInput, "not inside the picture"),
        (lambda: Finder(folds=1), InvalidParameter, "folds"),
        (lambda: Finder(looks=0), InvalidParameter, "looks"),
        (lambda: Finder().find(empty(0)), NotFittedError, "learned nothing"),
        (lambda: Finder().save("x"), NotFittedError, "learned nothing"),
        (lambda: finder().answer(finder().search((9, 9))), InvalidInput, "without looks"),
        (lambda: finder().find(empty(0), absent=1.0), InvalidParameter, "absent"),
    ],
)
def test_refusals(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
