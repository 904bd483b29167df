"""The operator of the intersection kernel for each layout of the codes."""

from typing import Annotated

from saccade._core.arrays import Array
from saccade.operators.codes import Codes, SortedColumns
from saccade.operators.intersection_base import Intersection


def intersection(codes: Codes, levels: Annotated[Array, "L: what the kernel makes of codes.values"]) -> Intersection:
    """The operator for the layout that the codes have; with it come the compiled loops, and Numba."""
    from saccade.operators.binned_intersection import BinnedIntersection
    from saccade.operators.sorted_intersection import SortedIntersection

    kind = SortedIntersection if isinstance(codes, SortedColumns) else BinnedIntersection
    return kind(codes, levels)
