"""The mean of a regression's process before any example: none, a number, or a function of the rows."""

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.checks import is_number, shown
from saccade._core.errors import InvalidInput, InvalidParameter

MeanOption = float | Callable[[Any], Any] | None
LARGEST, SMALLEST = 1e153, 1e-150  # targets, and differences of them, whose squares float64 can add up
CONSTANT = 1e-12  # share of the targets below which a difference is rounding


def check_mean(mean: object) -> Callable[[Any], Any] | None:
    """The mean if it is a function; None for None and a number; an error for anything else."""
    if callable(mean):
        return mean
    if mean is None or (is_number(mean) and np.isfinite(mean)):
        return None
    raise InvalidParameter(f"`mean` must be None, a number, or a function of X that gives (n,), got {shown(mean)}.")


def values_at(
    function: Callable[[Any], Any],
    X: Annotated[Any, "n, d"],
    outputs: int | None = None,  # None: as many as the function gives
) -> Annotated[Array, "n, m"]:
    """What the function gives for the rows of X, one column for each output."""
    n = X.shape[0]
    if not n:  # a user's function need not know what to do with no row
        return np.zeros((0, outputs or 1))
    try:
        found = np.asarray(function(X), np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"`mean` must give a number for each row of X: {error}.") from error
    table = found[:, None] if found.ndim == 1 else found
    wanted = table.shape[1:] if outputs is None else (outputs,)
    if table.ndim != 2 or len(table) != n or table.shape[1:] not in ((1,), wanted):
        many = f"({n},)" if outputs in (None, 1) else f"({n},) or ({n}, {outputs})"
        raise InvalidInput(f"`mean` must give shape {many} for {n} rows of X, got shape {found.shape}.")
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if bad.size:
        raise InvalidInput(
            f"`mean` must be finite everywhere, got {table[bad[0]].tolist()} at row {bad[0]} of X. Bound a log density "
            "from below, such as by np.maximum(..., -20)."
        )
    return np.asarray(np.broadcast_to(table, (n, *wanted)))


def check_targets(y: Annotated[Array, "n | n, m"]) -> Annotated[Array, "n | n, m"]:
    """The targets in float64; an error where their squares overflow."""
    y = y.astype(np.float64)
    if (largest := float(np.abs(y).max(initial=0.0))) > LARGEST:
        raise InvalidInput(f"`y` is too large for float64 squares, up to {largest:.2g}. Divide it first.")
    return y


def offset_and_scale(
    Y: Annotated[Array, "n, m"],  # the targets, less the mean where it is a function
    weight: Annotated[Array, "n"] | None,
    scatter: Annotated[Array, "n, m"] | None,  # Σ (y − ȳ)² of equal rows that were joined
    mean: MeanOption,
    normalize: bool,
) -> tuple[Array, Array]:  # (m,), (m,)
    """What is subtracted from the targets, and what the rest is divided by, before the process sees them."""
    m = Y.shape[1]
    if mean is None and normalize:
        offset = np.average(Y, axis=0, weights=weight)
    else:
        offset = np.full(m, 0.0 if mean is None or callable(mean) else float(mean))
    within = 0.0 if scatter is None or weight is None else scatter / weight[:, None]
    apart = Y - offset
    farthest = float(np.abs(apart).max(initial=0.0))
    if normalize and CONSTANT * np.abs(Y).max(initial=0.0) < farthest < SMALLEST:
        raise InvalidInput(f"`y` is too small for float64 squares: it differs by {farthest:.2g}. Multiply it first.")
    with np.errstate(over="ignore"):
        spread = np.sqrt(np.average(apart**2 + within, axis=0, weights=weight))
    if not np.isfinite(spread).all():
        raise InvalidInput(f"`y` is too large for float64 squares, up to {np.abs(Y).max():.2g}. Divide it first.")
    return offset, np.where(spread > 0, spread, 1.0) if normalize else np.ones(m)
