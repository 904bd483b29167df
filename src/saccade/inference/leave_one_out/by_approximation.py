"""Training examples as if they had not been there, by any approximation: the closed forms, weights counted."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade._core.progress import report
from saccade.inference.approximations.base import Approximation, PerOutput
from saccade.inference.approximations.exact import Exact
from saccade.inference.approximations.low_rank import LowRank, made_again
from saccade.inference.likelihoods.sites import Sites
from saccade.kernels.gram import Gram

Found = tuple[Array, Array, Array]  # (b, m), (b, 1) or (b, m), and the same where it is needed
NOT_NEEDED = np.zeros((0, 1))


def left_out_by(
    method: Approximation,
    gram: Gram,
    sites: Sites,
    weight: Annotated[Array, "n"] | None,  # how many equal copies each example stands for
    rows: Annotated[Array, "b"],  # numbers of training examples, ascending
) -> Found:
    """Mean and variance without one copy of each example; for rounded rows and a low rank also the variance with it.

    Of an example that a low rank holds out, all copies are left out.
    """
    parts, targets = method.parts if isinstance(method, PerOutput) else (method,), sites.targets
    low = [part for part in parts if isinstance(part, LowRank)]
    if low:
        prior, every = gram.diag()[rows], [targets] if len(low) == 1 else np.hsplit(targets, len(low))
        found = [part.left_out_of(prior, rows, Y) for part, Y in zip(low, every, strict=True)]
        mean, variance, with_itself = map(np.hstack, zip(*found, strict=True))
        if low[0].held_out.size:
            return mean, variance, with_itself
        if low[0].W.shape[1] < len(targets) < limits.HELD_OUT_FROM:
            return *made_again(low, gram.to_dense(), rows, targets, weight), with_itself
    elif isinstance(method, Exact) and gram.given is None and not method.takes_columns():
        mean, variance = method.left_out(NOT_NEEDED, gram.diag()[rows], rows, targets)
        with_itself = NOT_NEEDED
    else:
        mean, variance, with_itself = _by_columns(method, gram, targets, rows)
    copies = None if weight is None else method.leaves_all(weight)
    return *_with_other_copies(sites, copies, rows, mean, variance), with_itself


def _by_columns(method: Approximation, gram: Gram, targets: Array, rows: Array) -> Found:
    """Some rows at a time, with their columns of K where these are needed."""
    found, every, support = [], gram.diag(), method.support
    size, k_rows = len(targets) if support is None else support.size, NOT_NEEDED
    for some in batches(rows.size, max(1, limits.KERNEL_VALUES_AT_ONCE // max(size, 1))):
        these, prior = rows[some], every[rows[some]]
        if gram.given is not None or method.takes_columns():
            k_rows = gram.columns(these) if support is None else gram.cross(gram.rows(these), support)
        with_itself = NOT_NEEDED if gram.given is None else method.variance(k_rows, prior)
        found.append((*method.left_out(k_rows, prior, these, targets), with_itself))
        report("leaving one out", some.stop / rows.size)
    mean, variance, with_itself = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return mean, variance, with_itself


def _with_other_copies(
    sites: Sites, weight: Array | None, rows: Array, mean: Array, variance: Array
) -> tuple[Array, Array]:
    """Mean and variance at examples left out with all their copies, once all copies but one are back.

    An example of weight w has the noise N; w − 1 of its copies are an observation there with the noise N w/(w − 1).
    """
    if weight is None:
        return mean, variance
    targets, noise = sites.targets[rows], sites.noise[rows]
    noise = noise.max(axis=1, keepdims=True) if variance.shape[1] == 1 else noise  # a shared variance has the largest
    kept = 1.0 / (1.0 + variance * np.maximum(0.0, 1.0 - 1.0 / weight[rows])[:, None] / noise)
    return targets + kept * (mean - targets), variance * kept
