"""Find: boxes, and where the objects of a situation are likely to be."""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.localize.boxes import iou, non_maximum_suppression
    from saccade.localize.found import Found
    from saccade.localize.prior import BoxPrior
    from saccade.localize.search import Localizer
    from saccade.localize.several import SituationSearch
    from saccade.localize.situation import SituationModel

__all__ = ["BoxPrior", "Found", "Localizer", "SituationModel", "SituationSearch", "iou", "non_maximum_suppression"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BoxPrior": "prior",
        "Found": "found",
        "Localizer": "search",
        "SituationModel": "situation",
        "SituationSearch": "several",
        "iou": "boxes",
        "non_maximum_suppression": "boxes",
    },
)
