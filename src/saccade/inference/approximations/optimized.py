"""The optimised diagonal approximation OA (A §4): of all diagonals below K̃⁻¹ the one that leaves the least.

    min over D⁻¹ of λ_max(K̃⁻¹ − D⁻¹)   subject to   λ_min(K̃⁻¹ − D⁻¹) ≥ 0                  A (6)

"optimized-signed" is this problem as it is printed. About half of the entries of its D⁻¹ are negative: the variance is
a bound still, but far below its worst case, and ranks new examples poorly. "optimized" adds D⁻¹ ≥ 0, so that D is a
kernel matrix above K̃ as that of FA is (docs/decisions/015).

Both are semidefinite programs. With t for the largest eigenvalue, the minimum of

    s t − log |tI − K̃⁻¹ + D⁻¹| − log |K̃⁻¹ − D⁻¹| (− Σ log D⁻¹)

for growing s leads to the solution along the central path (Boyd and Vandenberghe 2004, §11.6). The paper smooths the
eigenvalue instead (Chen et al. 2004), which finds the same optimum by hundreds of eigendecompositions. Here the Hessian
is the elementwise squares of two inverses: a Newton step takes a few n³, and there are some 30 to 200 of them. The two
inverses also give a feasible point of the dual problem, which says how far from the optimum the result is at most.

An example of w copies has w equal entries in D⁻¹. K̃ of all copies is W^½KW^½ + σ² on the span of the examples, with
W = diag w, and σ² on differences of copies, w − 1 of them for each example: n rows and these numbers say all of it.

Where the largest eigenvalue of K̃⁻¹ belongs to few examples, OA spends all it has on those, and on average over new
examples may explain less than FA, as A found in two of its three data sets.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.inference.approximations.base import RegularizedSystem
from saccade.inference.approximations.diagonal import Diagonal
from saccade.solvers.cholesky import Factor, factorise

CLOSE = 1e-3  # distance from the optimum to stop at, as a share of what is gained and of what is left
LONGEST = 1e10  # s over n at most: rounding ends the path there
GROW = {True: 8.0, False: 50.0}  # of s from one stage to the next, with D⁻¹ ≥ 0 and without: fewest steps
CENTRED = 0.25  # Newton's decrement, squared, that ends a stage
NOTHING = 1e-10  # of λ_max(K̃⁻¹): FA leaves nothing
STEPS = 1000  # at most: some 200 are the most that was seen
INSIDE = 0.9  # of FA, which is on the edge of the constraint: where the path starts


@dataclass(frozen=True)
class Optimum:
    """How D⁻¹ was found."""

    largest: float  # λ_max(K̃⁻¹ − D⁻¹)
    largest_of_sums: float  # the same for FA
    gap: float  # no D⁻¹ leaves less than `largest` by more than this
    iterations: int  # Newton steps


@dataclass(frozen=True)
class Optimized(Diagonal):
    """OA, and the record of each column of the noise."""

    searches: tuple[Optimum, ...] = ()


def optimized(trained: RegularizedSystem, *, signed: bool = False) -> Optimized:
    """D⁻¹ for every column of the noise: not negative, or of either sign as A (6) is printed."""
    K = trained.K.to_dense()
    found = list(map(partial(_search, trained, K, signed), range(trained.noise.shape[1])))
    inverse = np.column_stack([inverse for inverse, _ in found])
    return Optimized(inverse, trained.weight, tuple(record for _, record in found))


def _search(trained: RegularizedSystem, K: Array, signed: bool, j: int) -> tuple[Array, Optimum]:
    """D⁻¹ (n,) for one column of the noise."""
    noise, n = trained.noise[:, j], len(K)
    weight = np.ones(n) if trained.weight is None else trained.weight
    factor = trained.factors[j] if trained.factors else factorise(K, noise)
    factor = Factor(np.sqrt(weight)[:, None] * factor.L)  # of W^½KW^½ + σ²
    sums = 1.0 / (np.abs(K) @ weight + weight * noise)  # absolute values: for any kernel below K̃⁻¹
    path = _Path(factor, sums, positive=not signed, weight=weight, alone=1.0 / (weight * noise))
    of_sums = path.largest(np.ones(n))
    x, least = path.follow() if of_sums > NOTHING else (np.ones(n), 0.0)
    inverse = _onto_constraint(factor, sums * x)
    largest = path.largest(inverse / sums)
    if largest > of_sums:
        inverse, largest = sums, of_sums
    largest, of_sums, gap = (path.unit * value for value in (largest, of_sums, largest - least))
    return weight * inverse, Optimum(largest, of_sums, gap, path.steps)


def _onto_constraint(factor: Factor, inverse: Annotated[Array, "n"]) -> Annotated[Array, "n"]:
    """γD⁻¹ with the largest γ ≤ 1 that keeps it below K̃⁻¹ = L⁻ᵀL⁻¹, and a little less for rounding.

    K̃⁻¹ ⪰ γD⁻¹ is the same as I ⪰ γ LᵀD⁻¹L.
    """
    top = float(np.linalg.eigvalsh((factor.L.T * inverse) @ factor.L)[-1])
    return inverse / max(1.0, top * (1.0 + 8 * inverse.size * np.finfo(np.float64).eps))


class _Point(NamedTuple):
    """The barrier at one place of the path."""

    above: Annotated[Array, "n, n"]  # (tI − K̃⁻¹ + D⁻¹)⁻¹
    below: Annotated[Array, "n, n"]  # (K̃⁻¹ − D⁻¹)⁻¹
    above_apart: Annotated[Array, "n"]  # 1/(t − σ⁻² + D⁻¹), as above on differences of copies, where there are some
    below_apart: Annotated[Array, "n"]  # 1/(σ⁻² − D⁻¹)
    barrier: float  # without s t


class _Path:
    """The central path over x and t, D⁻¹ = x times that of FA; eigenvalues in units of λ_max(K̃⁻¹)."""

    def __init__(
        self,
        factor: Factor,
        sums: Annotated[Array, "n"],
        positive: bool,
        weight: Annotated[Array, "n"],  # copies of each example
        alone: Annotated[Array, "n"],  # σ⁻², the eigenvalue of K̃⁻¹ on differences of copies
    ) -> None:
        P, self.weight, self.more = factor.inverse(), weight, np.maximum(weight - 1.0, 0.0)
        self.unit = max(float(np.linalg.eigvalsh(P)[-1]), float(alone[self.more > 0].max(initial=0.0)))
        self.P, self.L, self.sums = P / self.unit, factor.L * np.sqrt(self.unit), sums / self.unit
        self.alone, self.positive, self.steps = alone / self.unit, positive, 0

    def largest(self, x: Array) -> float:
        apart = (self.alone - self.sums * x)[self.more > 0]
        return max(float(np.linalg.eigvalsh(self.P - np.diag(self.sums * x))[-1]), float(apart.max(initial=0.0)))

    def follow(self) -> tuple[Array, float]:
        """x at the end of the path, and what any x leaves at least."""
        n = max(float(self.weight.sum()), 1.0)
        x, t, s = np.full(self.sums.size, INSIDE), 1.0 + 1.0 / n, n
        best, least = (np.inf, x), 0.0
        while self.steps < STEPS and s <= LONGEST * n:
            x, t, found = self._centre(x, t, s)
            best, least = min(best, (self.largest(x), x), key=lambda pair: pair[0]), max(least, found)
            report("variance", self.steps / STEPS)
            if best[0] - least <= CLOSE * min(best[0], 1.0 - best[0]):
                break
            s *= GROW[self.positive]
        return best[1], least

    def _centre(self, x: Array, t: float, s: float) -> tuple[Array, float, float]:
        """Newton's method with a line search, from a point inside to the centre for this s; and `_least` there."""
        point = self._at(x, t)
        assert point is not None
        while self.steps < STEPS:
            self.steps += 1
            slope, step = self._newton(point, x, s)
            decrement = -float(slope @ step)
            if not decrement > CENTRED:
                return x, t, self._least(point, step, s)
            ahead, length = None, 1.0
            while ahead is None and length > 1e-12:
                ahead = self._at(x + length * step[:-1], t + length * step[-1])
                if ahead is not None:
                    gained = point.barrier - ahead.barrier - s * length * step[-1]
                    ahead = ahead if gained >= 0.1 * length * decrement else None
                length *= 0.5
            if ahead is None:  # rounding: as far as it goes
                break
            x, t, point = x + 2.0 * length * step[:-1], t + 2.0 * length * float(step[-1]), ahead
        return x, t, 0.0

    def _at(self, x: Array, t: float) -> _Point | None:
        """None outside of the constraints."""
        if self.positive and not x.min() > 0.0:
            return None
        inverse, eye, several = self.sums * x, np.eye(x.size), self.more > 0
        apart = [np.where(several, part, 1.0) for part in (t - self.alone + inverse, self.alone - inverse)]
        if not np.min(apart) > 0.0:
            return None
        try:
            above = factorise(-self.P, t + inverse)
            inner = factorise((-self.L.T * inverse) @ self.L, np.ones(x.size))  # Lᵀ(K̃⁻¹ − D⁻¹)L: far better conditioned
        except ValueError:
            return None
        below = self.L @ cho_solve((inner.L, True), self.L.T)
        logs = above.log_determinant() + inner.log_determinant() + (self.weight @ np.log(x) if self.positive else 0.0)
        logs += self.more @ (np.log(apart[0]) + np.log(apart[1]))
        return _Point(cho_solve((above.L, True), eye), below, 1.0 / apart[0], 1.0 / apart[1], -float(logs))

    def _newton(self, point: _Point, x: Array, s: float) -> tuple[Array, Array]:  # (n+1,), (n+1,)
        """The slope and Newton's step; the derivative of an inverse is its elementwise square."""
        n, above, below = x.size, np.square(point.above), np.square(point.below)
        above += np.diag(self.more * point.above_apart**2)
        below += np.diag(self.more * point.below_apart**2)
        H = np.empty((n + 1, n + 1))
        H[:n, :n] = (above + below) * self.sums[:, None] * self.sums
        H[n, :n] = H[:n, n] = above.sum(axis=1) * self.sums
        H[n, n] = above.sum()
        of_above = point.above.diagonal() + self.more * point.above_apart
        of_below = point.below.diagonal() + self.more * point.below_apart
        slope = np.append((of_below - of_above) * self.sums, s - of_above.sum())
        if self.positive:
            slope[:n] -= self.weight / x
            H[np.arange(n), np.arange(n)] += self.weight / x**2
        try:
            return slope, -np.asarray(cho_solve(cho_factor(H), slope))
        except LinAlgError:
            return slope, np.zeros(n + 1)

    def _least(self, point: _Point, step: Array, s: float) -> float:
        """What any D⁻¹ leaves at least: tr (V − W)P for V, W ⪰ 0, tr V = 1 and diag V = diag W (≤ for D⁻¹ ≥ 0), as

        λ_max(P − D⁻¹) ≥ tr V(P − D⁻¹) ≥ tr V(P − D⁻¹) − tr W(P − D⁻¹) = tr (V − W)P − tr (V − W)D⁻¹.

        A⁻¹/s less its change by Newton's step has these traces and diagonals, and is ⪰ 0 for a decrement below 1.
        """
        inverse = self.sums * step[:-1]
        V = point.above - (point.above * (inverse + step[-1])) @ point.above
        W = point.below + (point.below * inverse) @ point.below
        v = point.above_apart - point.above_apart**2 * (inverse + step[-1])
        w = point.below_apart + point.below_apart**2 * inverse
        return (float(np.einsum("ij,ij->", V - W, self.P)) + float(self.more @ ((v - w) * self.alone))) / s
