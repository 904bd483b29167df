"""Few inducing points u instead of n examples: FITC, DTC, SoR, and the mere subset of the data (A §2.2).

With K_uu = LLᵀ, V = L⁻¹K_un and Q = VᵀV the first three put Q + Λ in the place of K + N (Quiñonero-Candela and
Rasmussen 2005), Λ = diag(K − Q)/w + N for FITC, w the copies of each example, and N for the others. With
A = I + VΛ⁻¹Vᵀ = RRᵀ and v* = L⁻¹k_u*

    mean = v*ᵀA⁻¹VΛ⁻¹y,   variance = k** − ‖v*‖² + ‖R⁻¹v*‖²,   SoR: ‖R⁻¹v*‖² alone.

No jitter: an inducing point that the others determine to fourteen digits adds nothing to Q and is dropped.

Against the exact variance: the subset is above, as fewer examples explain less. SoR is below, as Q ⪯ K, new example
included, and the Schur complement that the variance is grows with the matrix. FITC and DTC are on neither side: at an
inducing point they take what Q leaves of the examples for independent or for nothing, and are too sure; at an example
that is no inducing point they do not use what it tells of itself, and are not sure enough.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpstrf

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import is_number
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.inference.approximations.base import Approximation, RegularizedSystem, outputs
from saccade.inference.approximations.exact import Exact
from saccade.inference.approximations.inducing_variance import InducingVariance, SubsetVariance
from saccade.inference.solving.conditional import squared_columns
from saccade.operators.base import Dense
from saccade.solvers.cholesky import factorise

DETERMINED = 1e-14  # share of the largest k(x, x) that may be left of an inducing point that the others determine
ROUNDING = 100 * DETERMINED  # the same share, for parts of a point that are found less exactly


@dataclass(frozen=True)
class Inducing(Approximation):
    """FITC, DTC or SoR."""

    points: Annotated[Array, "r"]  # example numbers
    needed: Annotated[
        Array, "r"
    ]  # bool: whether Q changes without the point; not where a point that was left away equals it
    predictive: InducingVariance  # L and R, which are all that the variance of new rows takes
    V: Annotated[Array, "r, n"]
    scale: Annotated[Array, "n, 1 | n, m"]  # Λ
    adapts: bool  # whether Λ depends on the points: FITC's does
    weight: Annotated[Array, "n"] | None = None  # how many equal copies each example stands for

    @property
    def support(self) -> Array:
        return np.sort(self.points)

    def comparable(self) -> Array | None:
        """Without an inducing point the Λ of FITC is another: enough other examples are left to compare with."""
        others = np.delete(np.arange(self.V.shape[1]), self.points)
        return others if self.adapts and others.size >= self.points.size / 3 else None

    def explained(self, k_star: Array) -> Array:
        return self.predictive.explained(k_star[self._places])

    def variance(self, k_star: Array, prior: Array) -> Array:
        return self.predictive.variance(k_star[self._places], prior)

    @property
    def _places(self) -> Annotated[Array, "r"]:
        """Of the points among the support."""
        return np.argsort(np.argsort(self.points))

    def weights(self, Y: Annotated[Array, "n, m"]) -> Annotated[Array, "n, m"]:
        """L⁻ᵀA⁻¹VΛ⁻¹Y on the inducing rows, 0 elsewhere."""
        found = np.zeros_like(Y, np.float64)
        solved = [_solve(R, p) for R, p in zip(self.predictive.roots, self._targets(Y), strict=True)]
        found[self.points] = solve_triangular(self.predictive.L, np.hstack(solved), lower=True, trans=1)
        return found

    def left_out(
        self,
        k_rows: Annotated[Array, "r, b"],
        prior: Annotated[Array, "b"],
        rows: Annotated[Array, "b"],
        Y: Annotated[Array, "n, m"],
    ) -> tuple[Annotated[Array, "b, m"], Annotated[Array, "b, 1 | b, m"]]:
        """Mean and variance without the example, and without it among the inducing points where it is one of them.

        The example gone, A loses v v'/Λ_i, with h = vᵀA⁻¹v and l = 1 − h/Λ_i: vᵀA₋⁻¹v = h/l. The inducing point gone,
        Q loses the direction b of v that no other point has, the unit vector along L⁻¹e: vectors v lose bᵀv, and A₋ is
        inverted beside b. With c = vᵀA⁻¹b and e = bᵀA⁻¹b + c²/(Λ_i l), the mean and ‖R⁻¹v‖² lose (c/l)/e times their
        like at b. Of w copies one goes, with wΛ_i in the place of Λ_i, and an inducing point stays. FITC keeps Λ of the
        other examples, which would grow: see `comparable`.
        """
        v, b, means, remains = self.V[:, rows], self._own_directions(rows), [], []
        copies = np.ones(rows.size) if self.weight is None else np.maximum(self.weight[rows], 1.0)
        for j, (R, p) in enumerate(zip(self.predictive.roots, self._targets(Y), strict=True)):
            half, half_b = (solve_triangular(R, x, lower=True) for x in (v, b))
            half_p, y, scale = (
                solve_triangular(R, p, lower=True),
                outputs(Y, self.scale, j)[rows],
                copies * self.scale[rows, j],
            )
            leverage, c = squared_columns(half) / scale, np.einsum("ij,ij->j", half, half_b)
            left = np.maximum(1.0 - leverage, np.finfo(np.float64).eps)
            e = squared_columns(half_b) + c**2 / (scale * left)
            share = np.divide(c / left, e, out=np.zeros_like(c), where=e > 0)
            mean = (half.T @ half_p - leverage[:, None] * y) / left[:, None]
            at_b = half_b.T @ half_p + (c / scale)[:, None] * (mean - y)
            means.append(mean - share[:, None] * at_b)
            remains.append(np.maximum(leverage * scale - share * c, 0.0) / left)
        beside = v - b * np.einsum("ij,ij->j", b, v)
        return np.hstack(means), self.predictive.with_prior(np.column_stack(remains), beside, prior)

    def takes_columns(self) -> bool:
        return False

    def leaves_all(self, weight: Array) -> Array | None:
        return None

    def _own_directions(self, rows: Array) -> Annotated[Array, "r, b"]:
        """The unit vector along L⁻¹e of every row that is an inducing point, 0 for the others."""
        place = np.full(self.V.shape[1], -1)
        needed = self.needed if self.weight is None else self.needed & (self.weight[self.points] <= 1.0)
        place[self.points[needed]] = np.flatnonzero(needed)
        found, inside = np.zeros((self.points.size, rows.size)), place[rows] >= 0
        unit = np.eye(self.points.size)[:, place[rows[inside]]]
        direction = solve_triangular(self.predictive.L, unit, lower=True)
        found[:, inside] = direction / np.sqrt(squared_columns(direction))
        return found

    def _targets(self, Y: Array) -> list[Annotated[Array, "r, m | r, 1"]]:  # each
        """VΛ⁻¹Y for every column of the noise."""
        return [self.V @ (outputs(Y, self.scale, j) / scale[:, None]) for j, scale in enumerate(self.scale.T)]


@dataclass(frozen=True)
class Subset(Approximation):
    """The exact process of some examples (SoD)."""

    points: Annotated[Array, "r"]  # example numbers, ascending
    n: int
    exact: Exact

    @property
    def support(self) -> Array:
        return self.points

    @property
    def predictive(self) -> SubsetVariance:
        """The factors, which are all that the variance of new rows takes."""
        return SubsetVariance(tuple(factor.L for factor in self.exact.trained.factors))

    def explained(self, k_star: Annotated[Array, "r, b"]) -> Annotated[Array, "b, 1 | b, m"]:
        """k_u*ᵀK̃_uu⁻¹k_u*, a lower bound of k*ᵀK̃⁻¹k*."""
        return self.exact.explained(k_star)

    def weights(self, Y: Annotated[Array, "n, m"]) -> Annotated[Array, "n, m"]:
        """K̃_uu⁻¹Y_u on the subset, 0 elsewhere."""
        found = np.zeros((self.n, Y.shape[1]))
        found[self.points] = self.exact.weights(Y[self.points])
        return found

    def left_out(
        self,
        k_rows: Annotated[Array, "r, b"],
        prior: Annotated[Array, "b"],
        rows: Annotated[Array, "b"],
        Y: Annotated[Array, "n, m"],
    ) -> tuple[Annotated[Array, "b, m"], Annotated[Array, "b, 1 | b, m"]]:
        """Of the subset as of the exact process; the others are new to it anyway."""
        mean, variance = k_rows.T @ self.exact.weights(Y[self.points]), self.variance(k_rows, prior)
        place = np.full(self.n, -1)
        place[self.points] = np.arange(self.points.size)
        inside = np.flatnonzero(place[rows] >= 0)
        if inside.size:
            own = k_rows[:, inside], prior[inside], place[rows[inside]]
            mean[inside], variance[inside] = self.exact.left_out(*own, Y[self.points])
        return mean, variance

    def leaves_all(self, weight: Array) -> Array | None:
        """The subset leaves an example out with all its copies; of the others there is nothing to leave out."""
        return np.where(np.isin(np.arange(self.n), self.points), weight, 1.0)


def inducing_points(
    method: str,
    trained: RegularizedSystem,
    inducing: float | Array,
    rng: np.random.Generator,
    most: int = limits.INDUCING_NUMBERS,  # kernel values
) -> Inducing | Subset:
    """ "fitc", "dtc", "sor" or "sod" on a random share of the examples, or on those of the given numbers."""
    K, noise, n = trained.K, trained.noise, trained.K.shape[0]
    points = choose_points(inducing, n, rng)
    _check_count(n, points.size, most)
    if method == "sod":
        inner = K.block(points)
        factors = tuple(factorise(inner, column) for column in noise[points].T)
        return Subset(
            points, n, Exact(RegularizedSystem(Dense(inner), noise[points], factors, trained.tol, trained.max_iter))
        )
    K_nu = K.columns(points)
    kept, L = _factor(K_nu[points])
    away, points, K_nu = np.delete(points, kept), points[kept], K_nu[:, kept]
    V = solve_triangular(L, K_nu.T, lower=True)
    needed = _needed(L, V[:, away])
    left = np.maximum(K.diag() - squared_columns(V), 0.0)[:, None]
    weight, fitc = trained.weight, method == "fitc"
    scale = noise + (left if weight is None else left / weight[:, None]) if fitc else noise
    roots = tuple(_root(V, column) for column in scale.T)
    predictive = InducingVariance(L, roots, own_prior=method != "sor")
    return Inducing(points, needed, predictive, V, scale, adapts=fitc, weight=weight)


def choose_points(
    inducing: Any,  # a share, or example numbers
    n: int,
    rng: np.random.Generator,
) -> Annotated[Array, "r"]:  # in ascending order
    """Different examples, at least one."""
    if is_number(inducing):
        if 0.0 < inducing <= 1.0:
            return np.sort(rng.permutation(n)[: max(1, round(inducing * n))])
    else:
        points = np.asarray(inducing)
        if points.ndim == 1 and points.size and points.dtype.kind in "iu" and 0 <= points.min() <= points.max() < n:
            return np.unique(points)
    raise InvalidParameter(
        "`inducing` must be a share above 0 and up to 1, or a non-empty array of example numbers "
        f"from 0 to {n - 1}, got {inducing!r}. The default is 0.25."
    )


def _check_count(n: int, points: int, most: int) -> None:
    if n * points > most:
        raise InvalidParameter(
            f"{points} inducing points of {n} examples need {n * points / 1e9:.1f} G kernel values, too many. "
            f"Pass fewer, such as inducing={most / n**2:.1g}."
        )


def _factor(K_uu: Annotated[Array, "m, m"]) -> tuple[Array, Array]:  # (r,), (r, r)
    """The points that the ones before do not determine, each time the least determined one, and the factor of those."""
    A = (K_uu + K_uu.T) / 2
    L, order, rank, _ = dpstrf(A, tol=max(DETERMINED * float(A.diagonal().max()), np.finfo(np.float64).tiny), lower=1)
    return order[:rank] - 1, np.tril(L[:rank, :rank])


def _needed(
    L: Annotated[Array, "r, r"],
    away: Annotated[Array, "r, s"],  # v of the points that were left away
) -> Annotated[Array, "r"]:  # bool
    """Whether no point that was left away would take the place of a point: none has a part in its own direction."""
    if not away.shape[1]:
        return np.ones(len(L), bool)
    parts = np.square(solve_triangular(L, away, lower=True, trans=1)).max(axis=1)  # (L⁻¹e)ᵀv, not yet of unit length
    lengths = squared_columns(solve_triangular(L, np.eye(len(L)), lower=True))
    return np.asarray(parts <= ROUNDING * lengths * squared_columns(L.T).max(initial=0.0))


def _root(
    V: Annotated[Array, "r, n"],
    scale: Annotated[Array, "n"],  # Λ
) -> Annotated[Array, "r, r"]:
    """R with RRᵀ = I + VΛ⁻¹Vᵀ."""
    try:
        return np.asarray(cholesky(np.eye(len(V)) + (V / scale) @ V.T, lower=True))
    except (np.linalg.LinAlgError, ValueError):  # not positive definite, or not finite
        largest = squared_columns(V).max()
        raise InvalidInput(
            f"With a noise of {scale.min():.3g} next to kernel values of {largest:.3g}, float64 cannot tell the "
            f"inducing points apart. Raise `noise` to {1e-12 * largest:.1g} or more, or pass fewer `inducing` points."
        ) from None


def _solve(R: Array, B: Array) -> Array:
    """(RRᵀ)⁻¹B."""
    half = solve_triangular(R, B, lower=True)
    return np.asarray(solve_triangular(R, half, lower=True, trans=1))
