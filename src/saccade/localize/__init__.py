"""Find objects in pictures.

`Finder` learns from boxes to find an object, or to say that it is not there. `Localizer` finds one object in few looks,
`SituationSearch` several objects that say where the others are, and `TileSearch` all hits in the tiles of a huge
picture. `best_window` finds the best window of a bag-of-words model.
"""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.localize import judges
    from saccade.localize.boxes import iou, non_maximum_suppression
    from saccade.localize.finder.finder import Finder, Found
    from saccade.localize.painting import heat_map
    from saccade.localize.priors.box_prior import BoxPrior
    from saccade.localize.search.belief import Location
    from saccade.localize.search.localizer import Localizer
    from saccade.localize.search.response import Response
    from saccade.localize.situations.model import SituationModel
    from saccade.localize.situations.search import SituationSearch
    from saccade.localize.sources.base import crops, open_picture
    from saccade.localize.tiles.search import TileSearch
    from saccade.localize.windows.best_window import BestWindow, best_window

__all__ = [
    "BestWindow",
    "BoxPrior",
    "Finder",
    "Found",
    "Localizer",
    "Location",
    "Response",
    "SituationModel",
    "SituationSearch",
    "TileSearch",
    "best_window",
    "crops",
    "heat_map",
    "iou",
    "judges",
    "non_maximum_suppression",
    "open_picture",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BestWindow": "windows.best_window",
        "BoxPrior": "priors.box_prior",
        "Location": "search.belief",
        "Finder": "finder.finder",
        "Found": "finder.finder",
        "Localizer": "search.localizer",
        "Response": "search.response",
        "SituationModel": "situations.model",
        "SituationSearch": "situations.search",
        "TileSearch": "tiles.search",
        "best_window": "windows.best_window",
        "crops": "sources.base",
        "heat_map": "painting",
        "iou": "boxes",
        "judges": "judges",
        "non_maximum_suppression": "boxes",
        "open_picture": "sources.base",
    },
    renamed={"open_source": "open_picture"},
)
