"""The posterior at every row of a fixed pool, of which more and more are observed: each step in closed form.

With L the observed rows, K̃ = K_LL + σ²I and c(x, z) = k(x, z) − k(x, L) K̃⁻¹ k(L, z), the posterior covariance:

    observing rows R     S = c(R, R) + σ²I,  a = S⁻¹(y_R − mean_R)
                         mean += c(·, R) a,  variance −= diag(c(·, R) S⁻¹ c(R, ·)),  sums of c alike
    forgetting rows R    A = K̃⁻¹E_R,  D = A_R
                         mean −= k(·, L) A D⁻¹ α_R,  variance += diag(k(·, L) A D⁻¹ Aᵀ k(L, ·))

The factor of K̃ grows by the new rows, and so do α = K̃⁻¹y and the diagonal of K̃⁻¹, which leaving one out needs. A step
costs a product with K and |L|² per row: nothing of the size pool × labels is held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.inference.low_rank import low_rank
from saccade.kernels.gram import Gram
from saccade.operators.base import Dense
from saccade.solvers.cholesky import Factor, factorise


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """It never changes: a step gives a new one.

    Examples
    --------
    >>> from saccade.kernels import HIK
    >>> pool = HIK(scale=1.0).gram(np.array([[0.0], [1.0], [2.0]]))
    >>> field = Field.unobserved(pool, noise=1.0).observing(np.array([1]), np.array([[1.0]]))
    >>> field.mean[:, 0], field.variance
    (array([0. , 0.5, 0.5]), array([0. , 0.5, 1.5]))
    """

    gram: Gram
    noise: float
    rows: Array  # (l,): the observed ones, in the order in which they came
    targets: Array  # (l, m)
    factor: Factor  # of K̃
    alpha: Array  # (l, m)
    inverse_diagonal: Array  # (l,): of K̃⁻¹
    mean: Array  # (n, m)
    variance: Array  # (n,): exact, or an upper bound where many rows were observed at once
    sums: Array  # (n,): Σ_z c(x, z) over the whole pool
    prior: Array  # (n,): k(x, x)
    row_sums: Array  # (n,): Σ_z k(x, z)

    @classmethod
    def unobserved(cls, gram: Gram, noise: float) -> Field:
        nothing, rows, mean = np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros((gram.shape[0], 0))
        prior, sums = gram.diag(), gram.matmul(np.ones((gram.shape[0], 1)))[:, 0]
        return cls(gram, noise, rows, nothing, Factor(nothing), nothing, np.zeros(0), mean, prior, sums, prior, sums)

    def __repr__(self) -> str:
        return f"Field({self.gram.kernel!r}, rows={self.gram.shape[0]}, observed={self.rows.size})"

    # ---- steps

    def observing(
        self,
        rows: Array,  # (b,): not observed yet
        targets: Array,  # (l + b, m): of the observed rows and these
    ) -> Field:
        """With further rows; the targets of the others may have changed, and have other columns."""
        if rows.size == 0:
            return self.retargeted(targets)
        old = self.retargeted(targets[: self.rows.size])
        if rows.size > limits.OBSERVED_ONE_BY_ONE:
            return old._with_many(rows, targets)
        K_new = self.gram.spread(rows, np.eye(rows.size))
        beside, corner = K_new[self.rows], K_new[rows] + self.noise * np.eye(rows.size)
        V = self.factor.solve(beside)
        c = K_new - self._from_observed(V)
        factor = self.factor.grown(beside, corner)
        S = factor.L[self.rows.size :, self.rows.size :]
        half = solve_triangular(S, targets[self.rows.size :] - old.mean[rows], lower=True)
        gain = solve_triangular(S, half, lower=True, trans=1)
        return replace(
            old,
            rows=np.append(self.rows, rows),
            targets=targets,
            factor=factor,
            alpha=np.vstack([old.alpha - V @ gain, gain]),
            inverse_diagonal=np.append(self.inverse_diagonal + _squares(S, V), Factor(S).inverse_diagonal()),
            mean=old.mean + c @ gain,
            variance=np.maximum(self.variance - _squares(S, c), 0.0),
            sums=self.sums - c @ Factor(S).solve(self.sums[rows, None])[:, 0],
        )

    def _with_many(self, rows: Array, targets: Array) -> Field:
        """The same from the start, which is quicker for many rows at once."""
        every = np.append(self.rows, rows)
        factor = factorise(self.gram.between(every, every), np.full(every.size, self.noise), overwrite=True)
        new = replace(self, rows=every, factor=factor, inverse_diagonal=factor.inverse_diagonal())
        explained = new._from_observed(factor.solve(self.row_sums[every, None]))[:, 0]
        new = replace(new, variance=new._variance(), sums=self.row_sums - explained)
        return new.retargeted(targets, anew=True)

    def retargeted(
        self,
        targets: Array,  # (l, m)
        anew: bool = False,
    ) -> Field:
        """With other targets of the same rows."""
        if not anew and np.array_equal(targets, self.targets):
            return self
        alpha = self.factor.solve(targets) if targets.size else targets
        return replace(self, targets=targets, alpha=alpha, mean=self._from_observed(alpha))

    def forgetting(
        self,
        places: Array,  # (b,): which of the observed rows, by their place among these
    ) -> Field:
        """Without some of the observed rows."""
        kept = np.setdiff1d(np.arange(self.rows.size), places)
        unit = np.zeros((self.rows.size, places.size))
        unit[places, np.arange(places.size)] = 1.0
        A = self.factor.solve(unit)
        D = factorise(A[places], np.zeros(places.size))
        P, gain = self._from_observed(A), D.solve(self.alpha[places])
        if np.array_equal(kept, np.arange(kept.size)):
            factor = Factor(self.factor.L[: kept.size, : kept.size])
        else:
            K = self.gram.between(self.rows[kept], self.rows[kept])
            factor = factorise(K, np.full(kept.size, self.noise), overwrite=True)
        return replace(
            self,
            rows=self.rows[kept],
            targets=self.targets[kept],
            factor=factor,
            alpha=(self.alpha - A @ gain)[kept],
            inverse_diagonal=(self.inverse_diagonal - _squares(D.L, A))[kept],
            mean=self.mean - P @ gain,
            variance=np.minimum(self.variance + _squares(D.L, P), self.prior),
            sums=self.sums + P @ D.solve(P.sum(axis=0)),
        )

    def _variance(self) -> Array:  # (n,)
        """From the start: exact, or from directions W with ‖Wᵀk*‖² ≤ k*ᵀK̃⁻¹k* where there are too many rows."""
        n, count = self.gram.shape[0], self.rows.size
        if count * n <= limits.FIELD_NUMBERS:
            W = solve_triangular(self.factor.L, np.eye(count), lower=True).T
        else:
            K = Dense(self.gram.between(self.rows, self.rows))
            W = low_rank(K, np.full((count, 1), self.noise), limits.FIELD_DIRECTIONS, np.random.default_rng(0)).W
        explained = np.zeros(n)
        for first in range(0, W.shape[1], limits.UNIT_COLUMNS):
            some = self._from_observed(np.ascontiguousarray(W[:, first : first + limits.UNIT_COLUMNS]))
            explained += np.einsum("ij,ij->i", some, some)
            report("variance of the pool", first / W.shape[1])
        return np.asarray(np.maximum(self.prior - explained, 0.0))

    def _from_observed(
        self,
        V: Array,  # (l, m)
    ) -> Array:  # (n, m)
        """k(·, L) V."""
        return self.gram.spread(self.rows, V) if V.size else np.zeros((self.gram.shape[0], V.shape[1]))

    # ---- questions

    def leave_one_out(self) -> Array:  # (l, m)
        """The mean at each observed row, as if it had not been observed."""
        return np.asarray(self.targets - self.alpha / self.inverse_diagonal[:, None])

    def covariance(
        self,
        a: Array,  # (p,) row numbers
        b: Array,  # (q,)
    ) -> Array:  # (p, q)
        """c(x, z) between some rows and others."""
        prior = self.gram.between(a, b)
        if not self.rows.size:
            return prior
        left, right = (self.factor.half_solve(self.gram.between(self.rows, some)) for some in (a, b))
        return np.asarray(prior - left.T @ right)

    def weighed_covariance(
        self,
        weight: Array,  # (n, q)
    ) -> Array:  # (n, q)
        """Σ_z c(x, z) w_z for every row x, over the whole pool: two products with K and one solve."""
        sums = self.gram.matmul(weight)
        return sums - self._from_observed(self.factor.solve(sums[self.rows]))


def _squares(
    S: Array,  # (b, b) lower
    c: Array,  # (n, b)
) -> Array:  # (n,)
    """diag(c (SSᵀ)⁻¹ cᵀ)."""
    half = solve_triangular(S, c.T, lower=True)
    return np.asarray(np.einsum("ij,ij->j", half, half))
