"""From probes to the diagonal of (K + N)⁻¹: what is good about each of them, and the error of the result.

A probe z of random signs gives u = z ⊙ (K + N)⁻¹z: right on average for every example, and off by 40 to 90 % for a
single one. Two things make it good:

- a regression of u on what is cheap to know of each example (its self-similarity, and how much of that is in few
  dimensions; what a low rank leaves of it, the diagonals of two low-rank inverses). The noise of u averages out over
  n examples; what stays is what the regression cannot tell, 2 to 17 % on digits and Fashion-MNIST. One number alone,
  binned, left 4 to 43 %;
- the mean of the probes at each example, which has no such bias, in the share that makes the sum best.

The error is known because probes are independent. With r_k = u_k / fitted − 1, the product r_k r_l of two probes is on
average the square of what the regression misses, and the spread of the r_k tells the noise of their mean.

Probes that are zero but at s examples have only s/n of the noise there. They see what a regression misses far better
than full ones: where that is little, no example needs a probe of its own (`checked`).
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade.operators.base import Operator
from saccade.solvers.nystrom import Nystrom

EXAMPLES_EACH = 50  # examples that a coefficient of the regression needs
CHECKED_EACH = 10  # the same where probes are zero elsewhere, and have little noise
GROUPS = 10  # of examples with similar leverage, each with its own share of probes and regression
SHORT = 1.2e-2  # error by their early end, which probes do not see
ROUNDS = 20  # of the regression
LARGEST = 30.0  # times that a single target counts at most, against the first rounds running away
CONSTANT = 1e-6  # standard deviation of a logarithm up to which it is rounding, and tells nothing
FARTHEST = 3.0  # standard deviations from the mean to which what is known of an example is clipped


class Estimated(NamedTuple):
    """An estimate and how good it is."""

    value: Annotated[Array, "n"]  # of (K + N)⁻¹
    error: float  # root of the mean square of true / value − 1: of y minus its leave-one-out mean, relatively
    fitted: Annotated[Array, "n"]  # what the regression alone says
    missed: float  # mean square that the regression misses
    chance: float  # mean square of a single probe around the truth


class Check(NamedTuple):
    """Independent probes, at least two, that are zero but at some examples."""

    places: Annotated[Array, "s"]
    probed: Annotated[Array, "s, p"]  # z ⊙ (K + N)⁻¹z


def checked(
    noise: Annotated[Array, "n"],
    prior: Annotated[Array, "n"],  # the diagonal of K
    known: Annotated[Array, "n, q"],
    check: Check,
) -> tuple[Annotated[Array, "n"], float, float]:
    """The diagonal by a regression on the examples of the check, and its error, one standard error on the safe side.

    And the mean square by which a single full probe would be off. Of three regressions that with the least error.
    """
    lowest, few = noise / (noise + prior), noise[check.places, None] * check.probed
    s, some, q = len(few), check.places, known.shape[1]
    others = known[:: 1 + len(known) // limits.LEVERAGES]
    found: list[tuple[float, float, _Regression]] = []
    for terms in (1 + q, 1 + 2 * q, _terms(q)):  # lines, parabolas, and all
        regression = _regressed(few.mean(axis=1), known[some], lowest[some], min(terms, max(1, s // CHECKED_EACH)))
        ratio = few / regression(known[some], lowest[some])[:, None] - 1.0
        mean, own = ratio.mean(axis=1), regression.leverage(known[some])
        missed, chance = _share(ratio + (mean * own / (1.0 - own))[:, None])  # as if made without the example
        noisy = 2.0 * float(regression.leverage(others).mean()) * float(np.square(mean).mean())  # examples share probes
        found.append((missed + noisy + SHORT**2, chance * len(noise) / s, regression))
    square, chance, regression = min(found, key=lambda one: one[0])
    return regression(known, lowest) / noise, float(np.sqrt(square)), chance


def _pairs(ratio: Annotated[Array, "b, p"]) -> Annotated[Array, "b"]:
    """The mean product of two different probes at each example."""
    p = ratio.shape[1]
    return np.asarray((p * ratio.mean(axis=1) ** 2 - np.square(ratio).mean(axis=1)) / (p - 1))


def estimate(
    probed: Annotated[Array, "n, p"],  # z ⊙ (K + N)⁻¹z for p ≥ 2 independent probes
    noise: Annotated[Array, "n"],
    prior: Annotated[Array, "n"],  # the diagonal of K
    known: Annotated[Array, "n, q"],  # what tells examples apart, see `known_of`
) -> Estimated:
    """The diagonal, between its bounds 1/(N + k(x, x)) and 1/N."""
    n, p = probed.shape
    lowest = noise / (noise + prior)
    kept = noise[:, None] * probed  # one minus the leverage
    regression = _regressed(kept.mean(axis=1), known, lowest)
    fitted = regression(known, lowest)
    ratio = kept / fitted[:, None] - 1.0
    mean = ratio.mean(axis=1)
    groups = np.array_split(np.argsort(fitted, kind="stable"), max(1, min(GROUPS, n // EXAMPLES_EACH)))
    parts = [_share(ratio[some]) for some in groups]
    left = np.empty(n)
    for some, (missed, chance) in zip(groups, parts, strict=True):
        share = missed / (missed + chance / p + 1e-300)
        left[some] = share * chance / p
        mean[some] *= share
    bounded = np.where(mean > -0.5, 1.0 + mean, 0.25 / np.maximum(-mean, 0.5))  # a few probes may say less than nothing
    value = np.clip(fitted * bounded, lowest, 1.0)
    missed, chance = np.array([some.size for some in groups]) / n @ np.array(parts)
    left += (
        2.0 * regression.coefficients.size / n * chance / p
    )  # twice the noise of the coefficients, because examples share probes
    square = (left * (fitted / value) ** 2).mean() + SHORT**2
    return Estimated(value / noise, float(np.sqrt(square)), fitted / noise, float(missed), float(chance))


def _share(
    ratio: Annotated[Array, "b, p"],  # probes relative to the regression, less 1
) -> tuple[float, float]:
    """Mean squares of what the regression misses, one standard error on the safe side, and of one probe's noise."""
    pairs = _pairs(ratio)
    missed = max(float(pairs.mean()), 0.0) + float(pairs.std()) / np.sqrt(len(ratio))
    return missed, float(ratio.var(axis=1, ddof=1).mean())


def reachable(error: float, chance: float, probes: float) -> float:
    """The error that so many full probes would leave beside a regression with this one."""
    square, noise = error**2, chance / max(probes, 1e-300)
    return float(np.sqrt(square * noise / (square + noise + 1e-300)))


def beside(missed: float, chance: float, wanted: float) -> float:
    """How many full probes bring the error down to `wanted`, beside a regression that misses this mean square."""
    return chance * max(1.0 / (wanted**2 - SHORT**2) - 1.0 / (missed + 1e-300), 0.0)


def probes_for(
    found: Estimated,
    probes: int,  # behind it
    wanted: float,  # error
) -> float:
    """How many probes in all would bring the error down to `wanted`."""
    own = probes * (found.error**2 - SHORT**2) / (wanted**2 - SHORT**2)
    return max(beside(found.missed, found.chance, wanted), own)


def known_of(
    K: Operator,
    noise: Annotated[Array, "n, c"],
    low_rank: Nystrom | None,
    row_sums: Annotated[Array, "n"] | None = None,  # of K, where they are known
) -> Annotated[Array, "n, c, q"]:
    """Numbers that go with the leverage of an example, from one product or from the low rank of the preconditioner."""
    prior, squares = K.diag(), K.squared_parts()
    tiny = 1e-300 + 1e-3 * float(prior.mean())
    own = [prior + tiny] if squares is None else [prior + tiny, np.sqrt(squares) + tiny]
    if low_rank is None:
        if row_sums is None:
            row_sums = K.matmul(np.ones((len(prior), 1), np.float32))[:, 0].astype(np.float64)
        own.append(np.maximum(row_sums / len(prior), 0.0) + tiny)
        return np.asarray(np.log(np.stack([np.stack(own, axis=1) / N[:, None] for N in noise.T], axis=1)))
    left = low_rank.left
    own.append(left + 1e-2 * float(left.mean()) + 1e-300)
    columns = [
        np.column_stack(
            [
                N * low_rank.inverse_diagonal(N + left),  # as if examples shared only what the low rank holds
                N * low_rank.inverse_diagonal(N + left.mean()),  # and had equally much of their own
                *(number / N for number in own),
            ]
        )
        for N in noise.T
    ]
    return np.asarray(np.log(np.maximum(np.stack(columns, axis=1), 1e-12)))


def quadratic(
    known: Annotated[Array, "n, q"], terms: int | None = None
) -> Callable[[Array], Array]:  # (b, q) -> (b, terms)
    """One, each number standardised, their squares, and products of two; as many terms as n examples bear."""
    centre, spread = known.mean(axis=0), known.std(axis=0)
    spread = np.where(spread > CONSTANT, spread, np.inf)
    first, second = np.triu_indices(known.shape[1], 1)
    terms = max(1, len(known) // EXAMPLES_EACH) if terms is None else terms

    def basis(some: Array) -> Array:
        Z = np.clip((some - centre) / spread, -FARTHEST, FARTHEST)
        return np.hstack([np.ones((len(Z), 1)), Z, Z * Z, Z[:, first] * Z[:, second]])[:, :terms]

    return basis


def _terms(q: int) -> int:
    """How many `quadratic` has of q numbers."""
    return 1 + 2 * q + q * (q - 1) // 2


class _Regression(NamedTuple):
    """exp of a quadratic function."""

    basis: Callable[[Array], Array]
    coefficients: Annotated[Array, "t"]
    inverse: Annotated[Array, "t, t"]  # of AᵀA, with the terms A of the examples that it was made from

    def __call__(self, known: Annotated[Array, "n, q"], lowest: Annotated[Array, "n"]) -> Annotated[Array, "n"]:
        parts = [self.basis(known[rows]) @ self.coefficients for rows in batches(len(known), limits.FITTED_ENTRIES)]
        return np.asarray(np.exp(np.clip(np.concatenate(parts), np.log(lowest), 0.0)))

    def leverage(self, known: Annotated[Array, "n, q"]) -> Annotated[Array, "n"]:
        """aᵀ(AᵀA)⁻¹a: how far the noise of the targets moves what the regression says, as a share of its variance."""
        A = self.basis(known)
        return np.asarray(np.einsum("ij,ij->i", A @ self.inverse, A))


def _regressed(
    target: Annotated[Array, "k"],
    known: Annotated[Array, "k, q"],
    lowest: Annotated[Array, "k"],
    terms: int | None = None,
) -> _Regression:
    """The one with Σ a (target / fitted − 1) = 0 for each of its terms a.

    These equations hold on average whatever the noise of the targets (a gamma regression with a logarithmic link).
    """
    some = slice(None, None, 1 + target.size // limits.FITTED_ENTRIES)
    basis = quadratic(known[some], terms)
    A, t, low = basis(known[some]), target[some], lowest[some]
    found, inverse, lowest_log = np.zeros(A.shape[1]), np.linalg.pinv(A.T @ A, hermitian=True), np.log(low)
    found[0] = np.log(np.clip(t.mean(), low.min(), 1.0))
    for _ in range(ROUNDS):
        excess = t / np.exp(np.clip(A @ found, lowest_log, 0.0)) - 1.0
        found += inverse @ (A.T @ np.clip(excess, -LARGEST, LARGEST))
    return _Regression(basis, found, inverse)
