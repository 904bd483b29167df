"""Models of pictures as judges of crops."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saccade
from saccade import GPClassifier, OneClassGP
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize import Finder, Localizer, iou
from saccade.localize.judges import model_judge, windows
from tests.localize.objects import HEIGHT, WIDTH, class_model, crops_and_overlaps, hog, overlap_model, scene


def test_a_model_of_overlap_finds_the_object() -> None:
    """In unseen pictures, by looks alone; a judge that says nothing finds few of them."""
    judge, hits, blind = model_judge(*overlap_model()), 0, 0
    for seed in range(100, 104):
        picture, truth = scene(seed)
        search = Localizer((WIDTH, HEIGHT), scores=judge.scores, random_state=seed)
        found = search.run(judge, picture, looks=40, sure=1.0)
        hits += float(iou(found.box, truth)) >= 0.5
        nothing = Localizer((WIDTH, HEIGHT), scores=judge.scores, random_state=seed)
        blind += float(iou(nothing.run(lambda boxes: np.zeros(len(boxes)), looks=40).box, truth)) >= 0.5
    assert hits >= 3
    assert blind <= 2


def test_a_class_scores_by_its_latent_mean() -> None:
    crops, overlaps = crops_and_overlaps()
    judge = model_judge(*class_model())
    assert (judge.label, judge.scores) == ("rings", (-1.0, 1.0))
    model, features = class_model()
    np.testing.assert_array_equal(judge(crops[:9]), model.decision_function(features.transform(crops[:9])))
    other = model_judge(model, features, "background")
    np.testing.assert_array_equal(other(crops[:9]), -judge(crops[:9]))
    score = judge(crops)
    assert score[overlaps > 0.6].mean() > 0.5 > -0.5 > score[overlaps == 0].mean()


def test_one_of_several_classes() -> None:
    crops, overlaps = crops_and_overlaps()
    features, labels = hog(), np.digitize(overlaps, [0.2, 0.5])
    model = GPClassifier(random_state=0).fit(features.fit_transform(crops), labels)
    judge = model_judge(model, features, "2")
    np.testing.assert_array_equal(judge(crops[:5]), model.decision_function(features.transform(crops[:5]))[:, 2])
    with pytest.raises(InvalidInput, match=r"3 classes.*0, 1, 2"):
        model_judge(model, features)
    with pytest.raises(InvalidInput, match="does not know the class 'cat'"):
        model_judge(model, features, "cat")


def test_laplace_scores_by_its_probability() -> None:
    crops, overlaps = crops_and_overlaps()
    features = hog()
    model = GPClassifier(inference="laplace", random_state=0).fit(features.fit_transform(crops), overlaps > 0.4)
    score = model_judge(model, features)(crops[:7])
    np.testing.assert_allclose(score, 2.0 * model.predict_proba(features.transform(crops[:7]))[:, 1] - 1.0)


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        (["face", "not a face"], "face"),
        (["BACKGROUND_Google", "Faces"], "Faces"),
        (["a", "b"], "b"),
        ([0, 1], 1),
        (["none", "other"], "other"),
    ],
)
def test_the_class_that_is_not_background(classes: list[object], label: object) -> None:
    crops, overlaps = crops_and_overlaps()
    features = hog()
    y = np.array(classes)[(overlaps > 0.4).astype(int)]
    assert model_judge(GPClassifier().fit(features.fit_transform(crops), y), features).label == label


def test_a_loaded_model_judges_alike(tmp_path: Path) -> None:
    crops, _ = crops_and_overlaps()
    for model, features in (class_model(), overlap_model()):
        model.save(tmp_path / "m.saccade", features=features)
        again = model_judge(saccade.load(tmp_path / "m.saccade"))
        np.testing.assert_allclose(again(crops[:9]), model_judge(model, features)(crops[:9]), atol=1e-9)


def test_a_few_at_a_time_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from saccade._core import limits

    crops, _ = crops_and_overlaps()
    judge = model_judge(*overlap_model())
    at_once = judge(crops[:10])
    monkeypatch.setattr(limits, "PICTURE_ROWS_AT_ONCE", 3)
    np.testing.assert_array_equal(judge(crops[:10]), at_once)
    assert judge([]).shape == (0,)


def test_what_cannot_judge() -> None:
    model, features = overlap_model()
    with pytest.raises(InvalidInput, match="Pass `features`"):
        model_judge(model)
    with pytest.raises(InvalidParameter, match="`label` is for models of classes"):
        model_judge(model, features, "rings")
    with pytest.raises(InvalidInput, match="got a OneClassGP"):
        model_judge(OneClassGP().fit(features.transform(crops_and_overlaps()[0])), features)


def test_windows_are_inside_and_know_their_overlap() -> None:
    box = np.array([0.0, 50.0, 20.0, 90.0])  # at the edge
    boxes, overlaps = windows((100, 100), box, 400, np.random.default_rng(0))
    assert boxes.min() >= 0
    assert boxes.max() <= 100
    assert (boxes[:, 2:] - boxes[:, :2] >= 1).all()
    np.testing.assert_array_equal(boxes, np.round(boxes))
    np.testing.assert_allclose(overlaps, iou(boxes, box))
    assert (overlaps > 0.5).mean() > 0.2  # as many near the object as far from it
    assert (overlaps == 0).sum() > 10


def test_the_guide_finds_the_square_and_the_ramp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text("utf-8")
    section = guide.split("## Finding with a model", 1)[1].split("\n## ", 1)[0]
    trained, by_hand = re.findall(r"```python\n(.*?)```", section, re.S)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(trained, "guide.md", "exec"), names)
    assert names["found"].found
    assert float(iou(names["found"].box, np.array(names["boxes"][0][0]))) >= 0.5
    assert isinstance(saccade.load("squares.saccade"), Finder)
    names.clear()
    exec(compile(by_hand, "guide.md", "exec"), names)
    assert float(iou(names["found"].box, np.array([90.0, 30.0, 150.0, 70.0]))) >= 0.5
    assert (tmp_path / "ramp.saccade").exists()
