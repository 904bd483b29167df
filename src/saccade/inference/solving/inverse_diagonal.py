"""The diagonal of (K + N)⁻¹ from random probes, with the error that it has: what leave-one-out needs beyond Cholesky.

Here probes are solved: first some beside the targets, which cost little, then as many as the error asks for. Where they
would be many, a factor takes their place. `diagonal_estimate` makes the diagonal of probes.
"""

from contextlib import suppress
from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade._core.errors import InvalidInput
from saccade.inference.solving.closed_form import turning_points
from saccade.inference.solving.diagonal_estimate import (
    Check,
    beside,
    checked,
    estimate,
    known_of,
    probes_for,
    reachable,
)
from saccade.operators.base import Operator
from saccade.solvers.cg import CGResult, Precondition, solve_cg
from saccade.solvers.cholesky import factorise
from saccade.solvers.nystrom import Nystrom, build
from saccade.solvers.rank_one import Leading

WANTED = 0.05  # error at which no more probes are asked
PAYS = 0.8  # share of its error to which full probes must be able to bring a regression
CLOSE = 0.12  # error at which further probes of a few examples may show that it is less
SURE = 1e-9  # residual of these
RANK = 128  # of a low rank that is made to tell examples apart, where it costs little
ENERGY_TOL = 3e-3  # a probe stops when no more than this share of z·x seems to come
LANES = 4  # columns that a product takes at once
CHECKED_LEAST, CHECKED_OF = 200, 100  # examples that the check looks at: at least, and one of so many
HANGING = 0.03  # by which, beyond 1/√n, the error may move the leave-one-out accuracy before more work is done
SPARED = 0.08  # probes for each target that this may be: with half the iterations of a target, 4 % of the solve
# In the time of a number that a product of many columns reads: numbers of two rows that are compared where K is written
# out, and n³ of a factor with the diagonal of its inverse.
PAIRS, CUBES = 1 / 0.3, 20
APART = 3.0  # times less noise that makes an entry one to judge apart


class Probes:
    """Probes for each column of the noise, and the diagonals that they tell."""

    def __init__(
        self,
        K: Operator,
        noise: Annotated[Array, "n, c"],
        precondition: Precondition | None,
        max_iter: int,
        rng: np.random.Generator,
        most_work: float = limits.PROBE_WORK,  # numbers read
    ) -> None:
        self.K, self.noise, self.precondition = K, noise, precondition
        self.max_iter, self.rng = max_iter, rng
        self._probed = np.empty((*noise.shape, 0))  # (n, c, p)
        self._check: Check | None = None
        self._work, self._most_work = 0.0, most_work

    def draw(self, count: int) -> Annotated[Array, "n, c · count"]:  # those of the first column of the noise first
        """Random signs."""
        n, c = self.noise.shape
        return np.asarray(self.rng.choice([-1.0, 1.0], (n, c * count)))

    def beside(self, targets: int) -> Annotated[Array, "n, at least 2"]:
        """Probes of a few examples to solve beside targets, as many as fill the lanes of the product."""
        self._check = None
        return self._draw_check(2 + (-targets - 2) % LANES)

    def _draw_check(self, count: int) -> Annotated[Array, "n, count"]:
        """Probes that are zero but at the examples of the check; these are drawn first, more for many probes."""
        if self._check is None:
            n = len(self.noise)
            size = max(CHECKED_LEAST, n // CHECKED_OF) * max(1, count // LANES)
            places = np.sort(self.rng.permutation(n)[:size])
            self._check = Check(places, np.empty((places.size, 0)))
        Z = np.zeros((len(self.noise), count))
        Z[self._check.places] = self.rng.choice([-1.0, 1.0], (self._check.places.size, count))
        return Z

    def take_beside(
        self,
        Z: Annotated[Array, "n, count"],  # of `beside`
        X: Annotated[Array, "n, count"],  # (K + N)⁻¹Z
    ) -> None:
        """Count these."""
        assert self._check is not None
        places, probed = self._check
        self._check = Check(places, np.hstack([probed, Z[places] * X[places]]))

    def take(
        self,
        Z: Annotated[Array, "n, c · count"],  # probes
        X: Annotated[Array, "n, c · count"],  # (K + N)⁻¹Z
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

    def _solved(self, Z: Annotated[Array, "n, b"], noise: Annotated[Array, "n, 1 | n, b"]) -> Annotated[Array, "n, b"]:
        X = np.empty_like(Z)
        for some in batches(Z.shape[1], limits.SOLVED_AT_ONCE):
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

    def one_by_one(self) -> tuple[Annotated[Array, "n, c"], float]:
        """The diagonals from a solve for each example, and a bound of their error: |rᵀK̃⁻¹e| ≤ ‖r‖/N, d ≥ 1/(N + k)."""
        options: dict[str, Any] = {"tol": SURE, "max_iter": self.max_iter, "precondition": self.precondition}
        n, most, found = len(self.noise), self.noise + self.K.diag()[:, None], list[CGResult]()
        for column in self.noise.T:
            found.append(solve_cg(self.K, column[:, None], np.eye(n), **options))
        left = np.sqrt(n) * np.array([result.residual.max() for result in found])
        value = np.maximum(np.column_stack([result.x.diagonal() for result in found]), 1.0 / most)
        return value, float((left * (most / self.noise).max(axis=0)).max())

    def settle(
        self,
        Y: Annotated[Array, "n, m"],  # targets that were solved for
        Z: Annotated[Array, "n, k"],  # probes that were solved beside them, perhaps none
        solved: CGResult,  # both
    ) -> tuple[Annotated[Array, "n, c"], float]:
        """The diagonals and their error, with as many more probes as the error asks for and the work allows.

        Or by a factor of K + N: where the leave-one-out accuracy hangs on the error, or probes would take as long.
        """
        (n, c), self._work = self.noise.shape, 0.0
        known, turns = self._known(), self._turns(Y, Z, solved.x)
        (plain, least, chance), more = self._checked(known, turns, Y.shape[1])
        if least <= WANTED:
            return plain, least
        each = self._work / more if more else float(self.K.work) * c * max(solved.iterations, 1)
        low = 0.0 if isinstance(self.precondition, Nystrom) else float(self.K.work) * RANK
        exact = self._exact(beside(least**2, chance, WANTED) * each + low)
        if exact is not None:
            return exact, 0.0
        if 0.0 < low < self._most_work / 4:
            low_rank = build(self.K, self.noise.mean(axis=1), self.rng.permutation(n)[:RANK])
            known = known_of(self.K, self.noise, low_rank)
            plain, least, chance = self._by_regression(known)
        if least <= WANTED or (least < np.inf and reachable(least, chance, self._most_work / each) > PAYS * least):
            return plain, least
        first = beside(least**2, chance, WANTED) if least < np.inf else 0.0
        value, error = self._by_probes(known, int(min(first, self._most_work / each)), each)
        return (value, error) if error <= least else (plain, least)

    def _known(self) -> Annotated[Array, "n, c, q"]:
        """What tells examples apart, from the preconditioner where it knows it already."""
        M = self.precondition
        low_rank, sums = M if isinstance(M, Nystrom) else None, M.row_sums if isinstance(M, Leading) else None
        return known_of(self.K, self.noise, low_rank, sums)

    def _turns(self, Y: Array, Z: Array, X: Annotated[Array, "n, m + k"]) -> Annotated[Array, "n"] | None:
        """Count the probes Z beside the targets; where these are labels ±1, the diagonals at which decisions turn."""
        if not Z.size:
            return None
        m = Y.shape[1]
        self.take_beside(Z, X[:, m:])
        return turning_points(Y, X[:, :m]) if bool((np.abs(Y) == 1.0).all()) else None

    def _checked(
        self, known: Annotated[Array, "n, c, q"], turns: Annotated[Array, "n"] | None, columns: int
    ) -> tuple[tuple[Array, float, float], int]:
        """Diagonals, error and chance by the check, with more of its probes where that may be enough; how many more.

        Error 0 where decisions hang on the diagonal and a factor is affordable.
        """
        found = value, error, chance = self._by_regression(known)
        more = LANES if WANTED < error < CLOSE else 0
        if turns is not None and hanging(value, error, turns) > HANGING + len(value) ** -0.5:
            exact = self._exact(self._most_work)
            if exact is not None:
                return (exact, 0.0, chance), 0
            if SPARED * columns > LANES:
                more, self._check = int(SPARED * columns), None
        if more:
            Z = self._draw_check(more)
            self.take_beside(Z, self._solved(Z, self.noise))
            found = self._by_regression(known)
        return found, more

    def _by_probes(
        self,
        known: Annotated[Array, "n, c, q"],
        first: int,  # probes to begin with
        each: float,  # numbers that a probe reads
    ) -> tuple[Annotated[Array, "n, c"], float]:
        """The diagonals and their error by full probes; by factors where these are so many that they cost less."""
        self.ask(max(first, 2))
        while True:
            value, error, wanted = self._estimated(known)
            more = LANES * np.ceil((wanted - self._probed.shape[2]) / LANES)
            count = int(min(more, (self._most_work - self._work) / each))
            if error <= WANTED or count < 1:
                return value, error
            exact = self._exact(count * each)
            if exact is not None:
                return exact, 0.0
            before = self._work
            self.ask(count)
            each = (self._work - before) / count

    def _exact(
        self,
        instead: float,  # numbers that probes would read
    ) -> Annotated[Array, "n, c"] | None:
        """The diagonals by a factor per column of the noise; None where it takes far longer, or rounding spoils it."""
        n, c = self.noise.shape
        work = n * (float(self.K.work) / PAIRS + c * n * n / CUBES)
        if work > min(limits.EXACT_IS_WORTH * instead, self._most_work):
            return None
        with suppress(InvalidInput):  # rounding may spoil a factor where conjugate gradients still solve
            K, last = self.K.to_dense(), c - 1
            factors = (factorise(K, column, overwrite=j == last) for j, column in enumerate(self.noise.T))
            return np.column_stack([factor.inverse_diagonal() for factor in factors])
        return None

    def _by_regression(self, known: Annotated[Array, "n, c, q"]) -> tuple[Annotated[Array, "n, c"], float, float]:
        """Diagonals, error and chance without a further probe, where there is a check."""
        if self._check is None:
            return self.noise, np.inf, 1.0
        value, error, chance = checked(self.noise[:, 0], self.K.diag(), known[:, 0], self._check)
        return value[:, None], error, chance

    def _estimated(self, known: Annotated[Array, "n, c, q"]) -> tuple[Annotated[Array, "n, c"], float, float]:
        """Diagonals, error, and probes to bring it down; all columns of the noise are estimated together."""
        prior = np.broadcast_to(self.K.diag()[:, None], self.noise.shape)
        value, errors, wanted = np.empty_like(self.noise), [0.0], [0.0]
        for some in judged_apart(self.noise):
            found = estimate(self._probed[some], self.noise[some], prior[some], known[some])
            value[some] = found.value
            errors.append(found.error)
            wanted.append(probes_for(found, self._probed.shape[2], WANTED))
        return value, max(errors), max(wanted)


def judged_apart(noise: Annotated[Array, "n, c"]) -> list[Annotated[Array, "n, c"]]:  # masks
    """Entries with far less noise than the same example has in another column, and all others.

    With `balanced` these are the examples of a column's own class: few, and much depends on them.
    """
    quiet = APART * noise < noise.max(axis=1, keepdims=True)
    return [some for some in (quiet, ~quiet) if some.any()]


def hanging(
    value: Annotated[Array, "n, 1"],  # d
    error: float,  # of it, relative
    turns: Annotated[Array, "n"],
) -> float:
    """How far the error of d may move the leave-one-out accuracy: half the share of turning points that it spans."""
    return float((np.abs(turns / value[:, 0] - 1.0) <= error).mean()) / 2.0
