"""Find: boxes, where the objects of a situation are likely to be, and all hits in the tiles of a huge picture."""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.localize.all_targets import TileSearch
    from saccade.localize.boxes import iou, non_maximum_suppression
    from saccade.localize.situation import SituationModel
    from saccade.localize.source import crops, open_source

__all__ = ["SituationModel", "TileSearch", "crops", "iou", "non_maximum_suppression", "open_source"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "SituationModel": "situation",
        "TileSearch": "all_targets",
        "crops": "source",
        "iou": "boxes",
        "non_maximum_suppression": "boxes",
        "open_source": "source",
    },
)
