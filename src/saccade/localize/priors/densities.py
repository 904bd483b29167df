"""Densities over coordinates: normals with exact conditioning, the uniform density of a block, and blends of them."""

from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.stats import chi2, multivariate_normal

from saccade._core.arrays import Array


def log_sum(logs: Array, axis: int = 0) -> Any:
    """log Σ exp; −inf where all are −inf. SciPy's logsumexp takes two to five times as long."""
    top = np.max(logs, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top).sum(axis=axis)) + np.squeeze(top, axis)


class Density(Protocol):
    """A probability density: its logarithm at any place, and random draws."""

    def log_density(self, u: Array) -> Array: ...

    def draw(self, n: int, rng: np.random.Generator) -> Array: ...

    def inside(self) -> float:
        """Probability that the first two coordinates, the centre, are in the unit square: the picture."""
        ...


@dataclass(frozen=True)
class Normals:
    """Σ_k weight_k N(mean_k, covariance_k); a normal is a mixture of one."""

    weights: Annotated[Array, "k"]  # which sum to 1
    means: Annotated[Array, "k, d"]
    covariances: Annotated[Array, "k, d, d"]  # positive definite

    def part(self, places: Annotated[Array, "p"]) -> "Normals":
        """The density of some coordinates alone."""
        return Normals(self.weights, self.means[:, places], self.covariances[:, places][:, :, places])

    def given(
        self, places: Annotated[Array, "p"], values: Annotated[Array, "p"], wanted: Annotated[Array, "q"]
    ) -> "Normals":
        """The density of the coordinates `wanted` once those at `places` are known. S §4, p(x₁ | x₂):

        μ₁ + Σ₁₂ Σ₂₂⁻¹ (x₂ − μ₂) and Σ₁₁ − Σ₁₂ Σ₂₂⁻¹ Σ₂₁ for each component, and the weights become the components'
        responsibilities, weight_k N(x₂; μ₂, Σ₂₂).
        """
        known = self.part(places)
        shares = np.log(self.weights) + known.component_log_densities(values[None])[0]
        means, covariances = [], []
        for mean, C in zip(self.means, self.covariances, strict=True):
            L = np.linalg.cholesky(C[np.ix_(places, places)])
            V = solve_triangular(L, C[np.ix_(places, wanted)], lower=True)
            z = solve_triangular(L, values - mean[places], lower=True)
            means.append(mean[wanted] + V.T @ z)
            covariances.append(_symmetric(C[np.ix_(wanted, wanted)] - V.T @ V))
        return Normals(np.exp(shares - log_sum(shares)), np.array(means), np.array(covariances))

    def squared_distances(self, u: Annotated[Array, "n, d"]) -> Annotated[Array, "n, k"]:
        """Mahalanobis' (u − μ)ᵀ Σ⁻¹ (u − μ) to each component."""
        found = [
            np.square(solve_triangular(np.linalg.cholesky(C), (u - mean).T, lower=True)).sum(axis=0)
            for mean, C in zip(self.means, self.covariances, strict=True)
        ]
        return np.column_stack(found)

    def component_log_densities(self, u: Annotated[Array, "n, d"]) -> Annotated[Array, "n, k"]:
        """log N(u; μ_k, Σ_k), without the weights."""
        log_det = np.array([2.0 * np.log(np.linalg.cholesky(C).diagonal()).sum() for C in self.covariances])
        return np.asarray(-0.5 * (self.squared_distances(u) + log_det + self.means.shape[1] * np.log(2.0 * np.pi)))

    def log_density(self, u: Annotated[Array, "n, d"]) -> Annotated[Array, "n"]:
        return np.asarray(log_sum(np.log(self.weights) + self.component_log_densities(u), axis=1))

    def tail(self, u: Annotated[Array, "d"]) -> float:
        """How often a draw lies farther out than u: Σ_k weight_k P(χ²_d > squared distance to component k)."""
        far = chi2.sf(self.squared_distances(u[None])[0], self.means.shape[1])
        return float(self.weights @ far)

    def draw(self, n: int, rng: np.random.Generator) -> Annotated[Array, "n, d"]:
        which = rng.choice(self.weights.size, n, p=self.weights / self.weights.sum())
        L = np.linalg.cholesky(self.covariances)
        normals = rng.standard_normal((n, self.means.shape[1]))
        return np.asarray(self.means[which] + np.einsum("nij,nj->ni", L[which], normals))

    def inside(self) -> float:
        places = zip(self.means[:, :2], self.covariances[:, :2, :2], strict=True)
        each = [multivariate_normal.cdf(np.ones(2), mean, C, True, lower_limit=np.zeros(2)) for mean, C in places]
        return float(self.weights @ each)

    @property
    def mean(self) -> Annotated[Array, "d"]:
        return np.asarray(self.weights @ self.means)

    @property
    def covariance(self) -> Annotated[Array, "d, d"]:
        off = self.means - self.mean
        return np.asarray(
            np.einsum("k,kij->ij", self.weights, self.covariances) + np.einsum("k,ki,kj->ij", self.weights, off, off)
        )


@dataclass(frozen=True)
class Block:
    """Uniform density from `low` to `high`; 0 outside."""

    low: Annotated[Array, "d"]
    high: Annotated[Array, "d"]

    def log_density(self, u: Annotated[Array, "n, d"]) -> Annotated[Array, "n"]:
        inside = ((u >= self.low) & (u <= self.high)).all(axis=1)
        return np.where(inside, -np.log(self.high - self.low).sum(), -np.inf)

    def draw(self, n: int, rng: np.random.Generator) -> Annotated[Array, "n, d"]:
        return np.asarray(rng.uniform(self.low, self.high, (n, self.low.size)))

    def inside(self) -> float:
        low, high = self.low[:2], self.high[:2]
        return float((np.maximum(np.minimum(high, 1.0) - np.maximum(low, 0.0), 0.0) / (high - low)).prod())


@dataclass(frozen=True)
class Blend:
    """Σ_k share_k density_k, of densities of any kind."""

    shares: Annotated[Array, "k"]  # which sum to 1
    parts: tuple[Density, ...]

    def log_density(self, u: Annotated[Array, "n, d"]) -> Annotated[Array, "n"]:
        found = np.array([part.log_density(u) for part in self.parts])
        return np.asarray(log_sum(found + np.log(self.shares)[:, None], axis=0))

    def draw(self, n: int, rng: np.random.Generator) -> Annotated[Array, "n, d"]:
        which = rng.choice(self.shares.size, n, p=self.shares)
        u = np.stack([part.draw(n, rng) for part in self.parts])
        return np.asarray(u[which, np.arange(n)])

    def inside(self) -> float:
        return float(self.shares @ [part.inside() for part in self.parts])


@dataclass(frozen=True)
class Cells:
    """Density of a place in the unit square by a table of probabilities: constant within each cell."""

    chances: Annotated[Array, "rows, columns"]  # positive, which sum to 1

    def log_density(self, u: Annotated[Array, "n, x and y"]) -> Annotated[Array, "n"]:
        rows, columns = self.chances.shape
        inside = ((u >= 0.0) & (u <= 1.0)).all(axis=1)
        at = np.clip(u, 0.0, 1.0) * (columns, rows)
        x, y = (np.minimum(at[:, i].astype(np.int64), (columns, rows)[i] - 1) for i in (0, 1))
        return np.where(inside, np.log(self.chances[y, x] * self.chances.size), -np.inf)

    def draw(self, n: int, rng: np.random.Generator) -> Annotated[Array, "n, 2"]:
        cell = rng.choice(self.chances.size, n, p=self.chances.ravel())
        y, x = np.divmod(cell, self.chances.shape[1])
        return np.asarray((np.column_stack([x, y]) + rng.random((n, 2))) / self.chances.shape[::-1])

    def inside(self) -> float:
        return 1.0


@dataclass(frozen=True)
class PlaceAndRest:
    """Two independent densities: of the first two coordinates, and of the others."""

    place: Density
    rest: Density

    def log_density(self, u: Annotated[Array, "n, d"]) -> Annotated[Array, "n"]:
        return np.asarray(self.place.log_density(u[:, :2]) + self.rest.log_density(u[:, 2:]))

    def draw(self, n: int, rng: np.random.Generator) -> Annotated[Array, "n, d"]:
        return np.hstack([self.place.draw(n, rng), self.rest.draw(n, rng)])

    def inside(self) -> float:
        return self.place.inside()


@dataclass(frozen=True)
class Held:
    """A density over the first coordinates; the last ones are known."""

    free: Density
    known: Annotated[Array, "h"]

    def log_density(self, u: Annotated[Array, "n, d"]) -> Annotated[Array, "n"]:  # per unit of the free coordinates
        return self.free.log_density(u[:, : u.shape[1] - self.known.size])

    def draw(self, n: int, rng: np.random.Generator) -> Annotated[Array, "n, d"]:
        return np.hstack([self.free.draw(n, rng), np.tile(self.known, (n, 1))])

    def inside(self) -> float:
        return self.free.inside()


@dataclass(frozen=True)
class Inside:
    """A density given that the centre is in the picture: 0 outside, and inside larger by 1 / `share`."""

    whole: Density
    share: float

    @classmethod
    def of(cls, whole: Density) -> "Inside":
        return cls(whole, max(whole.inside(), np.finfo(np.float64).tiny))

    def log_density(self, u: Annotated[Array, "n, d"]) -> Annotated[Array, "n"]:
        outside = ((u[:, :2] < 0.0) | (u[:, :2] > 1.0)).any(axis=1)
        return np.where(outside, -np.inf, self.whole.log_density(u) - np.log(self.share))


def fill(
    U: Annotated[Array, "n, d"], mean: Annotated[Array, "d"], C: Annotated[Array, "d, d"]
) -> tuple[Array, list[tuple[Array, Array]]]:  # (n, d); the rows and the (d, d) covariance of what was filled in
    """The conditional mean in place of every NaN, and how uncertain it is: the E-step for missing values."""
    filled, doubt = U.copy(), list[tuple[Array, Array]]()
    missing = np.isnan(U)
    for pattern in np.unique(missing, axis=0):
        rows = np.flatnonzero((missing == pattern).all(axis=1))
        if not pattern.any():
            continue
        there, gone = np.flatnonzero(~pattern), np.flatnonzero(pattern)
        left = np.zeros_like(C)
        W = np.zeros((there.size, gone.size))
        if there.size:
            factor = np.linalg.cholesky(C[np.ix_(there, there)])
            W = cho_solve((factor, True), C[np.ix_(there, gone)])
        filled[np.ix_(rows, gone)] = mean[gone] + (U[np.ix_(rows, there)] - mean[there]) @ W
        left[np.ix_(gone, gone)] = C[np.ix_(gone, gone)] - C[np.ix_(gone, there)] @ W
        doubt.append((rows, left))
    return filled, doubt


def known_log_density(
    U: Annotated[Array, "n, d"], mean: Annotated[Array, "d"], C: Annotated[Array, "d, d"]
) -> Annotated[Array, "n"]:
    """The log density of what is known of each row; the rest of it is NaN."""
    out, missing = np.zeros(len(U)), np.isnan(U)
    for pattern in np.unique(missing, axis=0):
        rows, there = np.flatnonzero((missing == pattern).all(axis=1)), np.flatnonzero(~pattern)
        if there.size:
            known = Normals(np.ones(1), mean[None, there], C[np.ix_(there, there)][None])
            out[rows] = known.component_log_densities(U[np.ix_(rows, there)])[:, 0]
    return out


def _symmetric(C: Array) -> Array:
    return np.asarray(0.5 * (C + C.T))
