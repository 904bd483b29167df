"""The diagonal of (K + N)⁻¹ from random probes, and the error that it has: what leave-one-out needs beyond Cholesky.

A probe z of random signs gives u = z ⊙ (K + N)⁻¹z: right on average for every example, and off by 40 to 90 % for a
single one. Two things make it good:

- a regression of u on what is cheap to know of each example (its self-similarity, what a low rank leaves of it, the
  diagonals of two low-rank inverses). The noise of u averages out over n examples; what stays is what the regression
  cannot tell, 2 to 17 % on digits and Fashion-MNIST. One number alone, binned, left 4 to 43 %;
- the mean of the probes at each example, which has no such bias, in the share that makes the sum best.

The error is known because probes are independent. With r_k = u_k / fitted − 1, the product r_k r_l of two probes is on
average the square of what the regression misses, and the spread of the r_k tells the noise of their mean.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.operators.base import Operator
from saccade.solvers.cg import solve_cg
from saccade.solvers.nystrom import Nystrom, build

WANTED = 0.05  # error at which no more probes are asked
EXAMPLES_EACH = 50  # examples that a coefficient of the regression needs
SURE = 1e-9  # residual of these
GROUPS = 10  # of examples with similar leverage, each with its own share of probes and regression
RANK = 128  # of a low rank that is made to tell examples apart, where it costs little
ENERGY_TOL = 3e-3  # a probe stops when no more than this share of z·x seems to come
SHORT = 1e-2  # error by that stop, which probes do not see: at 1e-2 examples of high leverage came out 3 % further off
APART = 3.0  # times less noise that makes an entry one to judge apart
ROUNDS = 20  # of the regression
LARGEST = 30.0  # times that a single target counts at most, against the first rounds running away
FARTHEST = 3.0  # standard deviations from the mean to which what is known of an example is clipped


class Probes:
    """Probes for each column of the noise, and the diagonals that they tell."""

    def __init__(
        self,
        K: Operator,
        noise: Array,  # (n, c)
        precondition: Callable[[Array], Array] | None,
        max_iter: int,
        rng: np.random.Generator,
        most_work: float = limits.PROBE_WORK,  # numbers read
    ) -> None:
        self.K, self.noise, self.precondition = K, noise, precondition
        self.max_iter, self.rng = max_iter, rng
        self._probed = np.empty((*noise.shape, 0))  # (n, c, p)
        self._work, self._most_work = 0.0, most_work

    def draw(self, count: int) -> Array:  # (n, c · count): those of the first column of the noise first
        """Random signs."""
        n, c = self.noise.shape
        return np.asarray(self.rng.choice([-1.0, 1.0], (n, c * count)))

    def take(
        self,
        Z: Array,  # (n, c · count): probes
        X: Array,  # (n, c · count): (K + N)⁻¹Z
    ) -> None:
        """Count these."""
        self._probed = np.concatenate([self._probed, (Z * X).reshape(*self.noise.shape, -1)], axis=2)

    def ask(self, count: int) -> None:
        """Solve so many more for every column of the noise.

        Entries that are judged apart have probes that are zero elsewhere: what is not probed adds no noise.
        """
        Z, X = self.draw(count), np.zeros((len(self.noise), count * self.noise.shape[1]))
        noise = self.noise if self.noise.shape[1] == 1 else np.repeat(self.noise, count, axis=1)
        for some in judged_apart(self.noise):
            wanted = np.repeat(some, count, axis=1)
            X += np.where(wanted, self._solved(np.where(wanted, Z, 0.0), noise), 0.0)
        self.take(Z, X)

    def _solved(
        self,
        Z: Array,  # (n, b)
        noise: Array,  # (n, 1) or (n, b)
    ) -> Array:  # (n, b)
        X = np.empty_like(Z)
        for some in gen_batches(Z.shape[1], limits.SOLVED_AT_ONCE):
            found = solve_cg(
                self.K,
                noise[:, some] if noise.shape[1] > 1 else noise,
                Z[:, some],
                energy_tol=np.full(some.stop - some.start, ENERGY_TOL),
                max_iter=self.max_iter,
                precondition=self.precondition,
            )
            X[:, some] = found.x
            self._work += float(self.K.work) * found.iterations * (some.stop - some.start)
        return X

    def _one_by_one(self) -> tuple[Array, float]:  # (n, c)
        """The diagonals from a solve for each example, and a bound of their error: |rᵀK̃⁻¹e| ≤ ‖r‖/N, d ≥ 1/(N + k)."""
        options: dict[str, Any] = {"tol": SURE, "max_iter": self.max_iter, "precondition": self.precondition}
        n, most = len(self.noise), self.noise + self.K.diag()[:, None]
        found = [solve_cg(self.K, column[:, None], np.eye(n), **options) for column in self.noise.T]
        left = np.sqrt(n) * np.array([result.residual.max() for result in found])
        value = np.maximum(np.column_stack([result.x.diagonal() for result in found]), 1.0 / most)
        return value, float((left * (most / self.noise).max(axis=0)).max())

    def settle(
        self,
        low_rank: Nystrom | None,
        iterations: int,  # that a probe takes
    ) -> tuple[Array, float]:  # (n, c)
        """The diagonals and their error, with as many more probes as the error asks for and the work allows."""
        (n, c), self._work = self.noise.shape, 0.0
        if n <= limits.SOLVE_EACH_UP_TO:
            return self._one_by_one()
        if not self._probed.shape[2]:
            self.ask(2)
        if low_rank is None and float(self.K.work) * RANK < self._most_work / 4:
            low_rank = build(self.K, self.noise.mean(axis=1), self.rng.permutation(n)[:RANK])
        known = known_of(self.K, self.noise, low_rank)
        each = float(self.K.work) * c * max(iterations, 1)
        while True:
            value, error, wanted = self._estimated(known)
            count = int(min(np.ceil(wanted - self._probed.shape[2]), (self._most_work - self._work) / each))
            if error <= WANTED or count < 1:
                return value, error
            before = self._work
            self.ask(count)
            each = (self._work - before) / count

    def _estimated(
        self,
        known: Array,  # (n, c, q)
    ) -> tuple[Array, float, float]:  # (n, c)
        """Diagonals, error, and probes to bring it down; all columns of the noise are estimated together."""
        prior = np.broadcast_to(self.K.diag()[:, None], self.noise.shape)
        value, errors, wanted = np.empty_like(self.noise), [0.0], [0.0]
        for some in judged_apart(self.noise):
            found = estimate(self._probed[some], self.noise[some], prior[some], known[some])
            value[some] = found.value
            errors.append(found.error)
            wanted.append(probes_for(found, self._probed.shape[2], WANTED))
        return value, max(errors), max(wanted)


class Estimated(NamedTuple):
    """An estimate and how good it is."""

    value: Array  # (n,): of (K + N)⁻¹
    error: float  # root of the mean square of true / value − 1: of y minus its leave-one-out mean, relatively
    fitted: Array  # (n,): what the regression alone says
    missed: float  # mean square that the regression misses
    chance: float  # mean square of a single probe around the truth


def estimate(
    probed: Array,  # (n, p): z ⊙ (K + N)⁻¹z for p ≥ 2 independent probes
    noise: Array,  # (n,)
    prior: Array,  # (n,): the diagonal of K
    known: Array,  # (n, q): what tells examples apart, see `known_of`
) -> Estimated:
    """The diagonal, between its bounds 1/(N + k(x, x)) and 1/N."""
    n, p = probed.shape
    lowest = noise / (noise + prior)
    kept = noise[:, None] * probed  # one minus the leverage
    fitted, coefficients = _regressed(kept.mean(axis=1), known, lowest)
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
    left += 2.0 * coefficients / n * chance / p  # twice the noise of the coefficients, because examples share probes
    square = (left * (fitted / value) ** 2).mean() + SHORT**2
    return Estimated(value / noise, float(np.sqrt(square)), fitted / noise, float(missed), float(chance))


def _share(
    ratio: Array,  # (b, p): probes relative to the regression, less 1
) -> tuple[float, float]:
    """Mean squares of what the regression misses, one standard error on the safe side, and of one probe's noise."""
    p = ratio.shape[1]
    pairs = (p * ratio.mean(axis=1) ** 2 - np.square(ratio).mean(axis=1)) / (p - 1)  # products of different probes
    missed = max(float(pairs.mean()), 0.0) + float(pairs.std()) / np.sqrt(len(ratio))
    return missed, float(ratio.var(axis=1, ddof=1).mean())


def probes_for(
    found: Estimated,
    probes: int,  # behind it
    wanted: float,  # error
) -> float:
    """How many probes in all would bring the error down to `wanted`."""
    left = wanted**2 - SHORT**2
    alone = found.chance * max(1.0 / left - 1.0 / (found.missed + 1e-300), 0.0)
    return max(alone, probes * (found.error**2 - SHORT**2) / left)


def judged_apart(
    noise: Array,  # (n, c)
) -> list[Array]:  # (n, c) masks
    """Entries with far less noise than the same example has in another column, and all others.

    With `balanced` these are the examples of a column's own class: few, and much depends on them.
    """
    quiet = APART * noise < noise.max(axis=1, keepdims=True)
    return [some for some in (quiet, ~quiet) if some.any()]


def known_of(
    K: Operator,
    noise: Array,  # (n, c)
    low_rank: Nystrom | None,
) -> Array:  # (n, c, q)
    """Numbers that go with the leverage of an example, from one product or from the low rank of the preconditioner."""
    prior = K.diag()
    tiny = 1e-300 + 1e-3 * float(prior.mean())
    if low_rank is None:
        alike = K.matmul(np.ones((len(prior), 1), np.float32))[:, 0].astype(np.float64) / len(prior)
        columns = [np.stack([prior + tiny, np.maximum(alike, 0.0) + tiny], axis=1) / N[:, None] for N in noise.T]
        return np.asarray(np.log(np.stack(columns, axis=1)))
    own, left = low_rank.left, low_rank.left + 1e-2 * float(low_rank.left.mean()) + 1e-300
    columns = [
        np.column_stack(
            [
                N * low_rank.inverse_diagonal(N + own),  # as if examples shared only what the low rank holds
                N * low_rank.inverse_diagonal(N + own.mean()),  # and had equally much of their own
                left / N,
                (prior + tiny) / N,
            ]
        )
        for N in noise.T
    ]
    return np.asarray(np.log(np.maximum(np.stack(columns, axis=1), 1e-12)))


def quadratic(
    known: Array,  # (n, q)
) -> Callable[[Array], Array]:  # (b, q) -> (b, terms)
    """One, each number standardised, and all products of two of them; fewer terms for few examples."""
    centre, spread = known.mean(axis=0), known.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    first, second = np.triu_indices(known.shape[1])
    terms = max(1, len(known) // EXAMPLES_EACH)

    def basis(some: Array) -> Array:
        Z = np.clip((some - centre) / spread, -FARTHEST, FARTHEST)
        return np.hstack([np.ones((len(Z), 1)), Z, Z[:, first] * Z[:, second]])[:, :terms]

    return basis


def _regressed(
    target: Array,  # (n,)
    known: Array,  # (n, q)
    lowest: Array,  # (n,)
) -> tuple[Array, int]:  # (n,)
    """exp of a quadratic function with Σ a (target / fitted − 1) = 0 for each of its terms a, and how many there are.

    These equations hold on average whatever the noise of the targets (a gamma regression with a logarithmic link).
    """
    some = slice(None, None, 1 + target.size // limits.FITTED_ENTRIES)
    basis = quadratic(known[some])
    A, t, low = basis(known[some]), target[some], lowest[some]
    found = np.zeros(A.shape[1])
    found[0] = np.log(np.clip(t.mean(), low.min(), 1.0))
    inverse = np.linalg.pinv(A.T @ A, hermitian=True)
    for _ in range(ROUNDS):
        excess = t / np.exp(np.clip(A @ found, np.log(low), 0.0)) - 1.0
        found += inverse @ (A.T @ np.clip(excess, -LARGEST, LARGEST))
    parts = [basis(known[rows]) @ found for rows in gen_batches(target.size, limits.FITTED_ENTRIES)]
    return np.asarray(np.exp(np.clip(np.concatenate(parts), np.log(lowest), 0.0))), found.size
