"""An estimator's training examples as a task for `saccade.inference.tune`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade._core.checks import check_choice
from saccade._core.errors import InvalidParameter
from saccade.inference.evidence import EXACT_UP_TO
from saccade.inference.loo_slope import Loss
from saccade.inference.objective import Task
from saccade.inference.parameters import DenseSpace, HIKSpace, Space
from saccade.inference.tune import METHODS, OBJECTIVES, Tune
from saccade.kernels import Kernel
from saccade.kernels.gram import Gram, TabledGram
from saccade.operators.codes import sorted_rows
from saccade.scores.probability import cross_entropy


class Losses(NamedTuple):
    """How predictions are judged."""

    loo: Callable[[Array], Loss]  # example numbers -> loss of their leave-one-out predictions, summed
    score: Callable[[Array, Array], float]  # example numbers, means -> loss of predictions for them, an example
    has_scale: bool  # whether `loo` depends on the scale of kernel and noise together


def check_tune(tune: Any) -> Tune | None:
    """The options behind the parameter `tune`, and `--tune`: None, a method, an objective or a Tune."""
    if tune is None:
        return None
    if isinstance(tune, str):
        check_choice("tune", tune, (None, *METHODS, *OBJECTIVES))
        return Tune(tune) if tune in METHODS else Tune(objective=tune)
    if not isinstance(tune, Tune):
        raise InvalidParameter(
            f'`tune` must be None, a word such as "gradient" or "loo", or a Tune(...), got {tune!r}.'
        )
    tune.check()
    return tune


def spaces(
    kernel: Kernel,
    gram: Gram,
    weight: Array | None,  # (n,)
) -> Callable[[Array | None], Space]:
    """Example numbers -> the kernels on them."""

    def of_codes(rows: Array | None) -> Space:
        assert isinstance(gram, TabledGram)
        codes, n = gram.operator.codes, gram.shape[0] if rows is None else rows.size
        codes = codes if rows is None and n > EXACT_UP_TO else sorted_rows(codes, rows)
        return HIKSpace(kernel, codes, gram.width, weight if rows is None or weight is None else weight[rows])

    def of_rows(rows: Array | None) -> Space:
        return DenseSpace(kernel, gram.rows(rows), weight if rows is None or weight is None else weight[rows])

    return of_codes if isinstance(gram, TabledGram) else of_rows


def class_losses(label: Array, weight: Array | None) -> Losses:
    """Cross-entropy at the best temperature: summed for leave-one-out means, an example for predictions.

    An example with a weight is left out with all its copies.
    """

    def score(rows: Array, mean: Array) -> float:
        return cross_entropy(mean, label[rows], None if weight is None else weight[rows])[0]

    def loss_of(rows: Array) -> Loss:
        def loss(mean: Array, variance: Array) -> tuple[float, Array, Array]:
            value, slope = cross_entropy(mean, label[rows], None if weight is None else weight[rows])
            return rows.size * value, rows.size * slope, np.zeros_like(variance)

        return loss

    return Losses(loss_of, score, False)


def density_losses(Y: Array, weight: Array | None) -> Losses:
    """−log N(y; mean, variance) summed for leave-one-out predictions; mean squared error for others."""
    w = np.ones((len(Y), 1)) if weight is None else (weight / weight.mean())[:, None]

    def score(rows: Array, mean: Array) -> float:
        return float((w[rows] * np.square(Y[rows] - mean)).mean())

    def loss_of(rows: Array) -> Loss:
        def loss(mean: Array, variance: Array) -> tuple[float, Array, Array]:
            off = Y[rows] - mean
            value = 0.5 * w[rows] * (np.log(2.0 * np.pi * variance) + off**2 / variance)
            by_variance = 0.5 * w[rows] * (1.0 / variance - off**2 / variance**2)
            if variance.shape[1] == 1:
                by_variance = by_variance.sum(axis=1, keepdims=True)
            return float(value.sum()), -w[rows] * off / variance, by_variance

        return loss

    return Losses(loss_of, score, True)


def task(
    kernel: Kernel,  # not settled yet
    gram: Gram,
    Y: Array,  # (n, m)
    shape: Array,  # (n, 1) or (n, m): the noise for noise 1
    noise: float,
    weight: Array | None,  # (n,)
    losses: Losses,
    max_iter: int,
    seed: int,
) -> Task:
    """All of it together."""
    space = spaces(kernel, gram, weight)
    return Task(space, Y, shape, noise, losses.loo, losses.score, losses.has_scale, weight, max_iter, seed)
