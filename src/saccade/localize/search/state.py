"""The fields of a search in a state; reading it leads to the same next question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from saccade._core.arrays import Array
from saccade._core.codec import Record
from saccade._core.fields import Many, Maybe, Numbers, Row, flag, number, text, whole
from saccade.localize.boxes import check_boxes
from saccade.localize.priors.state import BOX_PRIOR
from saccade.localize.search.asking import Policy
from saccade.localize.search.belief import Failure
from saccade.localize.search.checks import check_looks
from saccade.localize.search.response import RESPONSE

if TYPE_CHECKING:
    from saccade.localize.search.localizer import Localizer


def _search(options: dict[str, Any], boxes: Array, told: Array, failures: list[Failure]) -> Localizer:
    from saccade.localize.search.localizer import Localizer

    search = Localizer(options.pop("bounds"), **options)
    check_boxes(boxes, bounds=search.bounds)
    check_looks(boxes, told, search.scores)
    search.boxes, search.told, search.failures = boxes, told, failures
    return search


_share = number(0.0, 1.0)
OPTIONS = Record(
    dict,
    {
        "bounds": Numbers(4),
        "prior": Maybe(BOX_PRIOR),
        "size": Maybe(Numbers(2)),
        "proposals": Maybe(Numbers("proposals", 4)),
        "scores": Maybe(Numbers(2)),
        "response": Maybe(RESPONSE),
        "crowd": flag(),
        "noise": Maybe(number(0.0)),
        "policy": text(*get_args(Policy)),
        **{name: _share for name in ("xi", "from_prior", "at_random", "absent")},
        "step": Maybe(number(above=0.0)),
        "random_state": whole(),
    },
)
LOCALIZER = Record(
    _search,
    {
        "options": OPTIONS,
        "boxes": Numbers("looks", 4),
        "told": Numbers("looks"),
        "failures": Many(Row((Numbers(4), text()), Failure)),
    },
    version=1,
    name="Localizer",
    take=lambda search: {
        "options": search,
        "boxes": search.boxes,
        "told": search.told,
        "failures": search.failures,
    },
)
