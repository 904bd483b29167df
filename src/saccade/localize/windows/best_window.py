"""The window of a picture with the largest decision of a model of words: branch and bound over sets of windows.

Lampert, Blaschko and Hofmann, "Beyond sliding windows: object localization by efficient subwindow search", CVPR 2008.
They bound a sum of weights; here the sum is one of piecewise linear functions, one per word (H (6)), and lines above
these bring the weights back, so that points of good and bad words in one column cancel (loops.py).
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.checks import check_count, check_positive
from saccade._core.errors import InvalidInput
from saccade.estimators.explanation import decision_number
from saccade.estimators.predictor import AdditiveModel
from saccade.localize.boxes import as_numbers, check_bounds
from saccade.localize.windows.grid import WindowGrid, Windows
from saccade.operators.tables import PiecewiseTables

Bound = Callable[[list[Windows]], tuple[list[float], list[int]]]
BoundedSet = tuple[float, int, Windows]  # bound, side to divide at or −1, set
Waiting = tuple[float, int, int, Windows]  # negative bound, turn, side, set


@dataclass(frozen=True, eq=False)
class BestWindow:
    """What `best_window` found.

    Parameters
    ----------
    box : array of shape (4,)
        x0, y0, x1, y1.
    score : float
        The decision about the histogram of the words in the box.
    gap : float
        No window scores more than `score + gap`; 0 unless the budget ended the search.
    bounds : int
        Bounds that were computed.
    windows : int
        Windows that a scan of this grid and these sizes would look at.

    Examples
    --------
    >>> from saccade import GPRegressor
    >>> model = GPRegressor(normalize_y=False, noise=1e-6).fit([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    >>> found = best_window(model, [[5, 5], [15, 5]], [0, 1], (20, 10), step=10)
    >>> found.box.tolist(), found.gap, found.windows
    ([0.0, 0.0, 10.0, 10.0], 0.0, 3)
    """

    box: Annotated[Array, "4"]
    score: float
    gap: float
    bounds: int
    windows: int


def best_window(
    model: AdditiveModel,
    points: Annotated[Any, "k, 2"],
    words: Annotated[Any, "k"],
    bounds: Any,
    *,
    label: Any = None,
    norm: Any = None,
    step: float = 8.0,
    min_size: Any = None,
    max_size: Any = None,
    budget: int | None = None,
) -> BestWindow:
    """The window, of all windows on a grid, whose histogram of words has the largest decision.

    Parameters
    ----------
    model : GPClassifier, GPRegressor or OneClassGP(measure="mean")
        Fitted, with HIK; a loaded one too. Its features are words, counted and normalised as `norm` says.
    points : array of shape (k, 2)
        x and y of each word, inside the picture. A window has those with x0 ≤ x < x1 and y0 ≤ y < y1; the right and the
        lower edge of the picture belong to it.
    words : array of shape (k,)
        Whole numbers: the column of X that each point counts in.
    bounds : (width, height) or (x0, y0, x1, y1)
        The picture.
    label : class or int, optional
        The class, or the number of the target, to look for. None: the only one; of two classes the second.
    norm : None, a positive number or "l1"
        None counts points, a number divides all counts by it, "l1" divides by the number of points in the window. "l1"
        takes a kernel without transforms, and more bounds, because the number of points is uncertain too. An empty
        window has an empty histogram.
    step : float
        Distance of the grid lines on which windows begin and end; the picture's edges are lines too.
    min_size, max_size : float or (width, height), optional
        Limits of the window's sides.
    budget : int, optional
        Largest number of bounds, except for a few more to reach a single window. `gap` of the answer then says how far
        it may be off.

    Returns
    -------
    BestWindow
        Of windows with equal scores, any one.

    Examples
    --------
    >>> from saccade import GPRegressor
    >>> model = GPRegressor(normalize_y=False, noise=1e-6).fit([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [1.0, -1.0, 2.0])
    >>> points, words = [[5, 5], [15, 5], [25, 5], [35, 5]], [1, 0, 0, 1]
    >>> found = best_window(model, points, words, (40, 10), step=10)
    >>> found.box.tolist(), round(found.score, 3), found.gap, found.windows
    ([10.0, 0.0, 30.0, 10.0], 2.0, 0.0, 10)
    """
    check_is_fitted(model)
    if getattr(model, "columns_", None) is not None:
        raise InvalidInput("This OneClassGP scales its columns, so they do not count words. Fit it with scale=None.")
    limit = check_bounds(bounds)
    at, numbers = _checked_points(points, words, limit, model.n_features_in_)
    grid = WindowGrid.of(limit, check_positive("step", step, "The default is 8."), min_size, max_size)
    if budget is not None:
        check_count("budget", budget, "None searches to the end.")
    tables, offset = _word_tables(model, numbers, label, norm)
    bound = _bound(grid, at, np.unique(numbers, return_inverse=True)[1], tables, norm == "l1")
    windows, score, gap, made = _search(grid, bound, budget)
    return BestWindow(grid.box(windows), score + offset, gap, made, grid.windows)


# ---- points and tables


def _checked_points(points: Any, words: Any, limit: Array, width: int) -> tuple[Array, Array]:  # (k, 2), (k,)
    at, numbers = as_numbers(points, "points"), as_numbers(words, "words")
    if at.ndim != 2 or at.shape[1] != 2 or numbers.shape != (len(at),):
        raise InvalidInput(
            f"`points` must be (k, 2) and `words` (k,), a word for each point, got {at.shape} and {numbers.shape}."
        )
    if not len(at):
        raise InvalidInput("`points` has no point: every window is empty, and none is best.")
    outside = ~((at >= limit[:2]) & (at <= limit[2:])).all(axis=1)  # NaN is outside too
    if outside.any():
        row = int(outside.argmax())
        raise InvalidInput(
            f"Point {row} of `points`, {at[row].tolist()}, is not inside the picture {limit.tolist()}. Points are x, y "
            "in the same unit as `bounds`."
        )
    wrong = ~((numbers >= 0) & (numbers < width) & (numbers == np.floor(numbers)))
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidInput(f"Word {row} of `words` must be a column from 0 to {width - 1}, got {numbers[row]:g}.")
    return at, numbers.astype(np.int64)


def _word_tables(
    model: AdditiveModel, numbers: Array, label: Any, norm: Any
) -> tuple[tuple[Array, Array, Array], float]:
    """The function of each word that occurs, ascending: where its nodes start, the nodes, the values; and the offset.

    Nodes are counts, or the levels of the model where a histogram is divided by its sum.
    """
    distinct, counts = np.unique(numbers, return_counts=True)
    if norm == "l1":
        nodes, sizes = _levels(model, distinct)
        values = nodes
    else:
        divisor = 1.0 if norm is None else check_positive("norm", norm, 'It may also be None or "l1".')
        sizes = counts + 1
        nodes = np.concatenate([np.arange(size, dtype=np.float64) for size in sizes])
        values = nodes / divisor
    columns = np.repeat(distinct, sizes)
    rows = sp.csr_matrix((values, columns, np.arange(values.size + 1)), shape=(values.size, model.n_features_in_))
    (output, sign), found = _output(model, label), model.explain(rows)
    shares = sign * found.shares[output].data
    return (np.concatenate([[0], np.cumsum(sizes)]), nodes, shares), float(sign * found.offset[output])


def _levels(model: AdditiveModel, distinct: Array) -> tuple[Array, Array]:  # (N,), (words,)
    """The levels of the given words in units of X, and how many each has."""
    tables, kernel = model.tables_, model.kernel_
    if not isinstance(tables, PiecewiseTables) or kernel.transforms():
        raise InvalidInput(
            f'norm="l1" takes an HIK model without transforms that is not quantised, got {kernel!r}. Count words, or '
            "divide them by a number."
        )
    own = [np.unique(tables.levels[tables.level_starts[w] : tables.level_starts[w + 1]]) for w in distinct]
    return np.concatenate(own) / kernel.check_scale(), np.array([levels.size for levels in own])


def _output(model: AdditiveModel, label: Any) -> tuple[int, float]:
    """The column of the decision, and its sign."""
    number, classes = decision_number(model, label), getattr(model, "classes_", ())
    if callable(getattr(model, "mean", None)):
        raise InvalidInput("A model whose `mean` is a function of X is no sum over words. Fit it with mean=None.")
    if len(classes) and model.inference != "regression":
        raise InvalidInput(
            f'Decisions with inference="{model.inference}" take the variance, and are no sum over words. Fit with '
            'inference="regression".'
        )
    return (0, 2.0 * number - 1.0) if len(classes) == 2 else (number, 1.0)


# ---- the search


def _bound(grid: WindowGrid, at: Array, word: Array, tables: tuple[Array, Array, Array], l1: bool) -> Bound:
    """Sets of windows to upper bounds of their scores, and to the sides to divide them at."""
    from saccade.localize.windows import loops as window_loops

    columns, rows = (
        np.minimum(np.searchsorted(lines, at[:, k], side="right") - 1, lines.size - 2)  # the last edge is inside
        for k, lines in enumerate((grid.x.lines, grid.y.lines))
    )
    order = np.lexsort((rows, columns))
    starts = np.searchsorted(columns[order], np.arange(grid.x.lines.size))
    node_starts, nodes, values = tables
    peaks, logs = running_maxima(values)
    read = starts, rows[order], word[order], node_starts, nodes, peaks, logs, l1
    kinds = node_starts.size - 1
    least, most, touched = np.zeros((3, kinds), np.int64)
    scratch = (
        least,
        most,
        touched,
        np.zeros(kinds),
        np.zeros(grid.x.lines.size),
        np.zeros(grid.y.lines.size),
        np.zeros(4),
    )

    def bound(sets: list[Windows]) -> tuple[list[float], list[int]]:
        out, sides = np.empty(len(sets)), np.empty(len(sets), np.int64)
        window_loops.bounds(*read, np.array(sets, np.int64), out, sides, *scratch)
        return out.tolist(), sides.tolist()

    return bound


def running_maxima(values: Annotated[Array, "N"]) -> tuple[Array, Array]:  # (K, N), (N + 2,)
    """The largest of the 2^k values from each one on, and the exponents k for runs of every length."""
    logs = np.frexp(np.arange(values.size + 2, dtype=np.float64))[1] - 1
    peaks = np.tile(values, (max(int(logs[values.size]), 0) + 1, 1))
    for k in range(1, len(peaks)):
        half = 1 << (k - 1)
        peaks[k] = peaks[k - 1]
        np.maximum(peaks[k - 1, :-half], peaks[k - 1, half:], out=peaks[k, :-half])
    return peaks, logs.astype(np.int64)


def _search(grid: WindowGrid, bound: Bound, budget: int | None) -> tuple[Windows, float, float, int]:
    """Divide the set with the largest bound until that is a single window: no other can be better."""
    (top,), (side,) = bound([grid.all])
    best, waiting, turn, made = grid.all, list[Waiting](), count(), 1
    while side >= 0 and (budget is None or made < budget):
        parts = _divided(grid, bound, best, side, top)
        made += len(parts)
        for value, next_side, part in parts:
            heapq.heappush(waiting, (-value, next(turn), next_side, part))
        negative, _, side, best = heapq.heappop(waiting)
        top = -negative
    stack, highest = [(-value, side, part) for value, _, side, part in sorted(waiting, reverse=True)], top
    while side >= 0:  # the budget is spent: straight down to a single window
        parts = _divided(grid, bound, best, side, top)
        made += len(parts)
        stack += sorted(parts)
        top, side, best = stack.pop()
    return best, top, highest - top, made


def _divided(grid: WindowGrid, bound: Bound, windows: Windows, side: int, top: float) -> list[BoundedSet]:
    """Both halves of a set, with their bounds, and the sides to divide them at next."""
    first, second = list(windows), list(windows)
    middle = (windows[2 * side] + windows[2 * side + 1]) // 2
    first[2 * side + 1], second[2 * side] = middle, middle + 1
    halves = [half for half in (grid.tightened(first), grid.tightened(second)) if half is not None]
    if not halves:
        return []
    values, sides = bound(halves)
    return [(min(value, top), next_side, half) for value, next_side, half in zip(values, sides, halves, strict=True)]
