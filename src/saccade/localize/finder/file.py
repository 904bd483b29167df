"""A finder in a model file: that of its judge, with what else was learned beside it in the header."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from saccade._core import codec, limits, model_file
from saccade._core.codec import Record
from saccade._core.fields import text, whole
from saccade.loading import KEY
from saccade.localize.finder.calibration import CALIBRATOR, Calibrator
from saccade.localize.finder.finder import Finder
from saccade.localize.finder.learning import OBJECT
from saccade.localize.judges import ModelJudge
from saccade.localize.search.response import RESPONSE, Response
from saccade.localize.situations.model import SituationModel
from saccade.localize.situations.state import SITUATION_MODEL


def _finder(
    situation: SituationModel, response: Response, calibrator: Calibrator, label: str, random_state: int, **sizes: int
) -> Finder:
    finder = Finder(label=label, random_state=random_state, **sizes)
    finder.situation_, finder.response_, finder.calibrator_ = situation, response, calibrator
    if OBJECT not in situation.objects_:
        raise ValueError(f"its situation has no {OBJECT!r}")
    return finder


FINDER = Record(
    _finder,
    {
        "label": text(),
        "looks": whole(1, limits.LOOKS),
        "batch": whole(1, limits.LOOKS),
        "folds": whole(2),
        "random_state": whole(),
        "situation": SITUATION_MODEL,
        "response": RESPONSE,
        "calibrator": CALIBRATOR,
    },
    version=1,
    name="Finder",
    take=lambda finder: {
        **{name: getattr(finder, name) for name in ("label", "looks", "batch", "folds", "random_state")},
        **{name: getattr(finder, f"{name}_") for name in ("situation", "response", "calibrator")},
    },
)


def save(finder: Finder, path: Path) -> None:
    """Write the file of the judge with the finder in its header."""
    with TemporaryDirectory() as folder:
        judge = Path(folder) / "judge.saccade"
        finder.judge_.model.save(judge, features=finder.judge_.features, compact=True)
        header, tensors = model_file.read(judge)
    model_file.write(path, header | {KEY: codec.to_json(FINDER, finder)}, tensors)


def finder_of(state: Any, model: Any, features: Any, path: Any) -> Finder:
    """The finder of a file: what its header holds, and the judge that was read already."""
    finder: Finder = codec.from_json(FINDER, state, path)
    finder.features, finder.judge_ = features, ModelJudge(model, features, None, (0.0, 1.0))
    return finder
