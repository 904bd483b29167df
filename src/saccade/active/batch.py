"""The best batch by greedy choice: score, take the best, condition on it, score again; or simply the first k."""

from collections.abc import Callable
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade.active.outlook import TIE, CandidateState


def first_best(scores: Annotated[Array, "s"], tie: float = TIE) -> int:
    """The place of the largest score; of several that are equal except for rounding, the first. −inf is never taken."""
    top = scores.max()
    return int(np.flatnonzero(scores >= top - tie * abs(top))[0])


def best_places(scores: Annotated[Array, "s"], count: int, tie: float = TIE) -> Annotated[Array, "count"]:
    """The places of the largest scores, ascending; of those that equal the last except for rounding, the first.

    >>> best_places(np.array([2.0, 1.0, 3.0, 1.0, 1.0]), 3)
    array([0, 1, 2])
    """
    last = np.partition(scores, -count)[-count]
    above = scores > last + tie * abs(last)
    level = np.flatnonzero(~above & (scores >= last - tie * abs(last)))
    return np.sort(np.append(np.flatnonzero(above), level[: count - int(above.sum())]))


def greedy(
    outlook: CandidateState,
    score: Callable[[CandidateState], Array],
    size: int,
    cost: Annotated[Array, "s"] | None,
    budget: float,
    keep: bool,
) -> tuple[list[int], list[Array]]:
    """Places of the chosen candidates, at most `size`, and with `keep` the scores (s,) by which each was chosen.

    With costs the score per cost decides, and candidates that the budget can no longer pay are left out.
    """
    places, used, spent = list[int](), list[Array](), 0.0
    while len(places) < size:
        found = np.asarray(score(outlook), np.float64)
        found = found.copy() if cost is None else found / cost
        found[places] = -np.inf
        open_ = found if cost is None else np.where(spent + cost <= budget * (1 + TIE), found, -np.inf)
        if not np.isfinite(open_.max(initial=-np.inf)):
            break
        if keep:
            used.append(found)
        best = first_best(open_, outlook.tie)
        places.append(best)
        if cost is not None:
            spent += float(cost[best])
        outlook.take(best)
    return places, used
