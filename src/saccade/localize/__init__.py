"""Find: boxes, and where the objects of a situation are likely to be."""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.localize.boxes import iou, non_maximum_suppression
    from saccade.localize.learned_response import Response
    from saccade.localize.location import Location
    from saccade.localize.painting import heat_map
    from saccade.localize.prior import BoxPrior
    from saccade.localize.search import Localizer
    from saccade.localize.several import SituationSearch
    from saccade.localize.situation import SituationModel
    from saccade.localize.window_search import BestWindow, best_window

__all__ = [
    "BestWindow",
    "BoxPrior",
    "Localizer",
    "Location",
    "Response",
    "SituationModel",
    "SituationSearch",
    "best_window",
    "heat_map",
    "iou",
    "non_maximum_suppression",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BestWindow": "window_search",
        "BoxPrior": "prior",
        "Location": "location",
        "Localizer": "search",
        "Response": "learned_response",
        "SituationModel": "situation",
        "SituationSearch": "several",
        "best_window": "window_search",
        "heat_map": "painting",
        "iou": "boxes",
        "non_maximum_suppression": "boxes",
    },
)
