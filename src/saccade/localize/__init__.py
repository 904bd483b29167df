"""Find: boxes, where the objects of a situation are likely to be, and all hits in the tiles of a huge picture."""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.localize.all_targets import TileSearch
    from saccade.localize.boxes import iou, non_maximum_suppression
    from saccade.localize.location import Location
    from saccade.localize.painting import heat_map
    from saccade.localize.prior import BoxPrior
    from saccade.localize.search import Localizer
    from saccade.localize.several import SituationSearch
    from saccade.localize.situation import SituationModel
    from saccade.localize.source import crops, open_source
    from saccade.localize.window_search import BestWindow, best_window

__all__ = [
    "BestWindow",
    "BoxPrior",
    "Localizer",
    "Location",
    "SituationModel",
    "SituationSearch",
    "TileSearch",
    "best_window",
    "crops",
    "heat_map",
    "iou",
    "non_maximum_suppression",
    "open_source",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BestWindow": "window_search",
        "BoxPrior": "prior",
        "Location": "location",
        "Localizer": "search",
        "SituationModel": "situation",
        "SituationSearch": "several",
        "TileSearch": "all_targets",
        "best_window": "window_search",
        "crops": "source",
        "heat_map": "painting",
        "iou": "boxes",
        "non_maximum_suppression": "boxes",
        "open_source": "source",
    },
)
