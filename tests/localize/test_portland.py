"""Dog-walking photographs of Portland State University: context says more than no context, and rarely misleads.

The photographs are research data that is not part of this project: SACCADE_DATA names the folder.
"""

from typing import Any

import numpy as np
import pytest

from saccade._core.errors import InvalidInput
from saccade.datasets.on_disk import Photographs, data_folder, portland
from saccade.localize import SituationModel, iou

FOLDER = data_folder() / "portland"
needs_data = pytest.mark.skipif(
    not all((FOLDER / name).is_file() for name in ("ground_truth.csv", "proposals.npz")),
    reason=f"{FOLDER} has no ground_truth.csv and proposals.npz: point SACCADE_DATA at the folder that has portland",
)


@pytest.fixture(scope="module")
def photographs() -> Photographs:
    return portland()


def test_a_missing_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_DATA", "nowhere")
    with pytest.raises(InvalidInput, match=r"nowhere.portland has no ground_truth.csv.*SACCADE_DATA"):
        portland()


@needs_data
def test_boxes_are_those_that_the_overlaps_were_made_with(photographs: Photographs) -> None:
    """The file's IOUs of the proposals against ours, for boxes and corners that might be mixed up."""
    for place, (name, boxes) in enumerate(photographs.boxes.items()):
        known = np.flatnonzero(np.isfinite(boxes).all(axis=1))
        wrong = [
            np.abs(iou(boxes[i], photographs.proposals[i, place, :, :4]) - photographs.proposals[i, place, :, 5])
            for i in known
        ]
        assert np.median([error.max() for error in wrong]) < 0.02, name


@needs_data
@pytest.mark.parametrize("kind", ["normal", "mixture"])
def test_context_helps(photographs: Photographs, kind: Any) -> None:
    boxes, sizes = photographs.boxes, photographs.sizes
    train, test = np.arange(500) % 4 > 0, np.flatnonzero(np.arange(500) % 4 == 0)
    model = SituationModel(kind).fit({name: box[train] for name, box in boxes.items()}, sizes[train])
    for name in model.objects_:
        gain, fell_back = [], []
        for i in test:
            found = {other: box[i] for other, box in boxes.items() if np.isfinite(box[i]).all()}
            if name in found:
                prior = model.prior(name, found, sizes[i])
                gain.append((prior.log_density(found[name]) - model.log_density(found[name], name, None, sizes[i]))[0])
                fell_back.append(prior.fell_back)
        assert np.mean(gain) > 2.0  # nats: the box is at least e² times as likely
        assert np.mean(fell_back) < 0.05
