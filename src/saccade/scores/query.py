"""How much a label is worth, before it is known: pure functions of mean, variance and covariance. Higher asks first.

μ (n, m) is the latent mean of each class, σ² (n,) its variance, c (n, t) the posterior covariance between candidates
and targets, the rows whose answers matter. Every score is positive, so that a score per cost makes sense.
"""

from typing import Annotated

import numpy as np

from saccade._core.arrays import Array, PerRow

TINY = float(np.finfo(np.float64).tiny)


def lead(mean: Annotated[Array, "n, m"]) -> PerRow:
    """|μ| for two classes, whose means are μ and −μ; for more, half the distance between the two largest means.

    >>> lead(np.array([[-0.5, 0.5], [0.25, -0.25]])), lead(np.array([[0.9, 0.1, -1.0]]))
    (array([0.5 , 0.25]), array([0.4]))
    """
    if mean.shape[1] < 2:
        return np.asarray(np.abs(mean).sum(axis=1))
    two = np.partition(mean, -2, axis=1)[:, -2:]
    return np.asarray((two[:, 1] - two[:, 0]) / 2)


def margin(mean: Annotated[Array, "n, m"]) -> PerRow:
    """K Table 1, distance: argmin |μ|. (K's text has argmax; its table is right.)"""
    return np.asarray(1.0 / (1.0 + lead(mean)))


def uncertainty(mean: Annotated[Array, "n, m"], variance: PerRow, noise: float) -> PerRow:
    """K Table 1, uncertainty: argmin |μ|/√(σ² + noise)."""
    return np.asarray(1.0 / (1.0 + lead(mean) / np.sqrt(variance + noise)))


def class_uncertainty(mean: Annotated[Array, "n, m"], variance: PerRow, noise: float) -> Annotated[Array, "n, m"]:
    """Uncertainty of each class against the rest, of which K takes one question each in a round."""
    return np.asarray(1.0 / (1.0 + np.abs(mean) / np.sqrt(variance + noise)[:, None]))


def entropy(probability: Annotated[Array, "n, m"]) -> PerRow:
    """−Σ p log p, in nats.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([0.6931, 0.    ])
    """
    return np.asarray((probability * -np.log(np.maximum(probability, TINY))).sum(axis=1))


def least_margin(probability: Annotated[Array, "n, m"]) -> PerRow:
    """1 minus the lead of the likeliest class over the next: 1 for a tie.

    >>> least_margin(np.array([[0.5, 0.5], [0.7, 0.3]])).round(4)
    array([1. , 0.6])
    """
    if probability.shape[1] < 2:
        return np.ones(len(probability))
    two = np.partition(probability, -2, axis=1)[:, -2:]
    return np.asarray(1.0 - (two[:, 1] - two[:, 0]))


def sigma_optimality(sums: Annotated[Array, "n: Σ_* c(x, x_*)"], variance: PerRow, noise: float) -> PerRow:
    """(Σ_* c)² / (σ² + noise): by how much a label at x lowers the variance of the sum of f over all targets.

    Ma, Garnett, Schneider: Σ-optimality for active learning on Gaussian random fields (2013). Before the first label c
    is the kernel, and typical examples lead: those like many others.
    """
    return np.asarray(np.square(sums) / (variance + noise))


def variance_reduction(squares: Annotated[Array, "n: Σ_* c(x, x_*)²"], variance: PerRow, noise: float) -> PerRow:
    """Σ_* c² / (σ² + noise): by how much a label at x lowers the variances of f at all targets together.

    V-optimality: Ji and Han, a variance minimisation criterion to active learning on graphs (2012). Before the first
    label it asks for typical examples too, but each of another kind: what is far from x counts little when squared.
    """
    return np.asarray(squares / (variance + noise))


def nearer(distances: Annotated[Array, "n, t"], nearest: Annotated[Array, "t"], doubt: Annotated[Array, "t"]) -> PerRow:
    """Σ_j u_j max(0, d_j − d(x, j)): how much nearer a label at x is to doubtful targets than any label so far.

    Facility location weighted by doubt, whose greedy choice is k-medoids.

    >>> nearer(np.array([[0.0, 1.5], [1.5, 0.0]]), np.array([1.0, 2.0]), np.array([0.5, 1.0]))
    array([1., 2.])
    """
    return np.asarray(np.maximum(nearest - distances, 0.0) @ doubt, np.float64)


def information_gain(
    covariance: Annotated[Array, "n, t"], variance: PerRow, target_variance: Annotated[Array, "t"], noise: float
) -> PerRow:
    """−½ mean over targets of log(1 − c²/((σ² + noise)(σ_*² + noise))): the nats that a label at x tells of another.

    The expected predictive information gain of Bickford Smith and others (2023), in closed form for a Gaussian process.
    """
    squared = np.square(covariance) / ((variance + noise)[:, None] * (target_variance + noise))
    return np.asarray(-0.5 * np.log1p(-np.minimum(squared, 1.0 - 1e-12)).mean(axis=1))


def output_change(
    covariance: Annotated[Array, "n, t"],
    variance: PerRow,
    noise: float,
    mean: Annotated[Array, "n, m"],
    probability: Annotated[Array, "n, m"],
) -> PerRow:
    """The expected change of all outputs, Σ_y p(y) Σ_k |y_k − μ_k| · mean over targets of |c| / (σ² + noise).

    Freytag, Rodner, Denzler: selecting influential examples (2014). A label y (±1 for each class) at x moves output k
    at a target by c (y_k − μ_k)/(σ² + noise).
    """
    moved = np.abs(covariance).mean(axis=1) / (variance + noise)
    up, down = np.abs(1.0 - mean), np.abs(-1.0 - mean)
    expected = (probability * (up + down.sum(axis=1, keepdims=True) - down)).sum(axis=1)
    return np.asarray(moved * expected)
