"""Dog-walking photographs of Portland State University: context says more than no context, and rarely misleads.

The pictures are research data that is not part of this project: SACCADE_DATA names the folder.
"""

import csv
from typing import Any

import numpy as np
import pytest

from saccade.datasets.on_disk import data_folder
from saccade.localize import SituationModel

Array = np.ndarray[Any, np.dtype[Any]]
FOLDER = data_folder() / "portland"
pytestmark = pytest.mark.skipif(
    not all((FOLDER / name).is_file() for name in ("ground_truth.csv", "proposals.npz")),
    reason=f"{FOLDER} has no ground_truth.csv and proposals.npz: point SACCADE_DATA at the folder that has portland",
)


@pytest.fixture(scope="module")
def photographs() -> tuple[dict[str, Array], Array]:
    """Boxes (500, 4) of each object, and the sizes of the pictures.

    The boxes were recovered from overlaps. Three leashes came out inverted and count as missing. A picture is as large
    as its outermost proposals.
    """
    with np.load(FOLDER / "proposals.npz") as file:
        proposals, names, objects = file["props"], file["names"].tolist(), file["objects"].tolist()
    sizes = (proposals[..., :2] + proposals[..., 2:4]).max(axis=(1, 2))
    with (FOLDER / "ground_truth.csv").open(encoding="utf-8") as table:
        found = {(row["image"], row["object"]): [float(row[k]) for k in "xywh"] for row in csv.DictReader(table)}
    boxes = {name: np.array([found[image, name] for image in names]) for name in objects}
    for box in boxes.values():
        box[(box[:, 2:] <= 0).any(axis=1)] = np.nan
        box[:, 2:] += box[:, :2]
    return boxes, sizes


@pytest.mark.parametrize("kind", ["normal", "mixture"])
def test_context_helps(photographs: tuple[dict[str, Array], Array], kind: Any) -> None:
    boxes, sizes = photographs
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
