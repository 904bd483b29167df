"""Class probabilities from latent means: pure functions."""

from typing import Annotated

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from saccade._core.arrays import Array, PerRow

LOG_TEMPERATURES = (-7.0, 9.0)  # where the search looks
TIED = 1e-9  # by which rounding may part two equal means of labels ±1


def class_means(mean: Annotated[Array, "n, 1: for two classes, (n, M) for more"]) -> Annotated[Array, "n, M"]:
    """One latent mean per class; with two classes the first has the negative of the second's."""
    return np.hstack([-mean, mean]) if mean.shape[1] == 1 else mean


def probabilities(mean: Annotated[Array, "n, 1 | n, M"], sharpness: float) -> Annotated[Array, "n, M"]:
    """softmax(sharpness · mean)."""
    found: Array = sharpness * class_means(mean)  # in place from here on: there may be millions of rows
    found -= found.max(axis=1, keepdims=True)
    np.exp(found, out=found)
    found /= found.sum(axis=1, keepdims=True)
    return found


def standardized_mean(
    mean: Annotated[Array, "n, m"], variance: Annotated[Array, "n, 1 | n, m: of the latent f"], noise: float
) -> Annotated[Array, "n, m"]:
    """μ/√(σ² + noise): with the cumulative-Gaussian likelihood, p(y = 1) is Φ of it."""
    return np.asarray(mean / np.sqrt(variance + noise))


def fit_sharpness(
    mean: Annotated[Array, "n, 1 | n, M"],  # leave-one-out means
    label: PerRow,  # class numbers
    weight: PerRow | None = None,
) -> float:
    """The sharpness (inverse temperature) with the least leave-one-out cross-entropy.

    Each label counts as one observation among n + 2, the other classes share the rest: with perfect separation the
    answer stays finite, and certainty grows with the number of examples that earned it.
    """
    Mu = class_means(mean)
    target = _targets(label, Mu.shape[1], weight)
    below = Mu - Mu.max(axis=1, keepdims=True)
    share, along, raised = target.sum(axis=1), float(np.einsum("ij,ij->", target, below)), np.empty_like(below)

    def loss(log_sharpness: float) -> float:
        sharpness = np.exp(log_sharpness)
        np.exp(np.multiply(below, sharpness, out=raised), out=raised)
        return float(np.einsum("i,i->", share, np.log(raised.sum(axis=1))) - sharpness * along)

    found = minimize_scalar(loss, bounds=LOG_TEMPERATURES, method="bounded", options={"xatol": 1e-8})
    return float(np.exp(found.x))


def _targets(label: Array, M: int, weight: Array | None) -> Annotated[Array, "n, M"]:  # all of them sum to 1
    """What the cross-entropy compares with: each label one observation among n + 2."""
    n = label.size
    w = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    doubt = 1.0 / (n + 2.0 if weight is None else weight.sum() + 2.0)
    target = np.full((n, M), doubt / max(M - 1, 1))
    target[np.arange(n), label] = 1.0 - doubt
    return np.asarray(w[:, None] * target)


def cross_entropy(
    mean: Annotated[Array, "n, 1 | n, M"], label: Annotated[PerRow, "class numbers"], weight: PerRow | None = None
) -> tuple[float, Array]:  # and its derivative, like mean
    """The cross-entropy per example at the best sharpness for these means.

    The sharpness is at a minimum, so its change with the means adds nothing to the derivative.
    """
    sharpness = fit_sharpness(mean, label, weight)
    Mu = class_means(mean)
    target = _targets(label, Mu.shape[1], weight)
    log_p = log_softmax(sharpness * Mu, axis=1)
    slope = sharpness * (np.exp(log_p) * target.sum(axis=1, keepdims=True) - target)
    return float(-(target * log_p).sum()), slope if mean.shape[1] > 1 else slope[:, 1:] - slope[:, :1]


def example_costs(
    mean: Annotated[Array, "n, 1 | n, M"], label: Annotated[PerRow, "class numbers"], weight: PerRow | None = None
) -> PerRow:
    """What each example costs: its cross-entropy at the best sharpness for these means, and 1 where the class is wrong.

    The cross-entropy alone prefers a smooth model that is a little more often wrong, the errors alone jump.
    """
    Mu = class_means(mean)
    target = _targets(label, Mu.shape[1], weight)
    nats = -(target * log_softmax(fit_sharpness(mean, label, weight) * Mu, axis=1)).sum(axis=1)
    behind = Mu.max(axis=1) - Mu[np.arange(label.size), label]
    return np.asarray(nats / target.sum(axis=1) + (behind > TIED))


def expected_calibration_error(
    probability: Annotated[Array, "n, M"], label: Annotated[Array, "n: class numbers"], bins: int = 15
) -> float:
    """Mean gap between confidence and accuracy over equal-width bins of confidence, weighted by their size.

    >>> expected_calibration_error(np.array([[0.8, 0.2]] * 5), np.array([0, 0, 0, 0, 1]))
    0.0
    """
    confidence = probability.max(axis=1)
    right = probability.argmax(axis=1) == label
    bin_ = np.minimum((confidence * bins).astype(int), bins - 1)
    gap = np.bincount(bin_, confidence, bins) - np.bincount(bin_, right, bins)
    return float(np.round(np.abs(gap).sum() / len(label), 12))
