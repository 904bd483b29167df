"""The operator of the intersection kernel for each layout of the codes."""

from saccade.operators.binned_intersection import BinnedIntersection
from saccade.operators.codes import Codes, SortedColumns
from saccade.operators.intersection_base import Intersection, Levels
from saccade.operators.sorted_intersection import SortedIntersection


def intersection(codes: Codes, transform: Levels) -> Intersection:
    """The operator for the layout that the codes have."""
    kind = SortedIntersection if isinstance(codes, SortedColumns) else BinnedIntersection
    return kind(codes, transform)
