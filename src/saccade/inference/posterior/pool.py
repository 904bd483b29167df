"""The posterior at every row of a fixed pool, of which more and more are observed: each step in closed form.

With L the observed rows, K̃ = K_LL + σ²I and c(x, z) = k(x, z) − k(x, L) K̃⁻¹ k(L, z), the posterior covariance:

    observing rows R     S = c(R, R) + σ²I,  a = S⁻¹(y_R − mean_R)
                         mean += c(·, R) a,  variance −= diag(c(·, R) S⁻¹ c(R, ·)),  c Z alike
    forgetting rows R    A = K̃⁻¹E_R,  D = A_R
                         mean −= k(·, L) A D⁻¹ α_R,  variance += diag(k(·, L) A D⁻¹ Aᵀ k(L, ·))

What solves with K̃ (observed.py) grows by the new rows, and so do α = K̃⁻¹y and the diagonal of K̃⁻¹, which leaving one
out needs. A step costs a product with K and |L|² per row: nothing of the size pool × labels is held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.blas import one_blas_thread
from saccade._core.progress import report
from saccade.inference.approximations.low_rank import low_rank
from saccade.inference.posterior.observed import SubsetOperator, explained, observed, observed_first, observed_more
from saccade.inference.posterior.sketch import Sketch, signs
from saccade.inference.solving.conditional import Conditional
from saccade.kernels.gram import Gram
from saccade.solvers.cholesky import factorise


@dataclass(frozen=True, eq=False, repr=False)
class PoolPosterior:
    """The posterior at every row of a pool. It never changes: a step gives a new one.

    Parameters
    ----------
    gram : Gram
        K of the pool, of n rows.
    noise : float
        σ².
    rows : array (l,)
        Numbers of the observed rows, in the order in which they came.
    targets : array (l, m)
        What was observed.
    observed : Conditional
        The process given these rows: it solves with K̃.
    alpha : array (l, m)
        K̃⁻¹ times the targets.
    inverse_diagonal : array (l,)
        The diagonal of K̃⁻¹.
    mean : array (n, m)
        At every row.
    variance : array (n,)
        At every row: exact, or an upper bound where many rows were observed at once.
    sketch : Sketch
        Sums of covariances.
    prior : array (n,)
        k(x, x).

    Examples
    --------
    >>> from saccade.kernels import HIK
    >>> pool = HIK(scale=1.0).gram(np.array([[0.0], [1.0], [2.0]]))
    >>> field = PoolPosterior.unobserved(pool, noise=1.0).observing(np.array([1]), np.array([[1.0]]))
    >>> field.mean[:, 0], field.variance
    (array([0. , 0.5, 0.5]), array([0. , 0.5, 1.5]))
    """

    gram: Gram
    noise: float
    rows: Array
    targets: Array
    observed: Conditional
    alpha: Array
    inverse_diagonal: Array
    mean: Array
    variance: Array
    sketch: Sketch
    prior: Array

    @classmethod
    def unobserved(cls, gram: Gram, noise: float) -> PoolPosterior:
        """Begin with no observed row.

        Parameters
        ----------
        gram : Gram
            K of the pool.
        noise : float
            σ².

        Returns
        -------
        PoolPosterior
            The prior, and no output yet.
        """
        nothing, rows, mean = np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros((gram.shape[0], 0))
        prior, sketched = gram.diag(), Sketch.of(gram.matmul(signs(gram.shape[0])))
        return cls(
            gram, noise, rows, nothing, observed(gram, noise, rows), nothing, np.zeros(0), mean, prior, sketched, prior
        )

    def __repr__(self) -> str:
        return f"PoolPosterior({self.gram.kernel!r}, rows={self.gram.shape[0]}, observed={self.rows.size})"

    # ---- steps

    def observing(self, rows: Array, targets: Array) -> PoolPosterior:
        """Observe further rows; the targets of the others may have changed, and have other columns.

        Parameters
        ----------
        rows : array (b,)
            Numbers of rows that are not observed yet.
        targets : array (l + b, m)
            Of the observed rows and these.

        Returns
        -------
        PoolPosterior
            The posterior given all of them.
        """
        if rows.size == 0:
            return self.retargeted(targets)
        if rows.size > limits.OBSERVED_ONE_BY_ONE:
            return self._with_many(rows, targets)
        old = self.retargeted(targets[: self.rows.size])
        if rows.size > limits.OBSERVED_BY_ONE_THREAD:
            return old._with_few(rows, targets)
        with one_blas_thread():
            return old._with_few(rows, targets)

    def _with_few(self, rows: Array, targets: Array) -> PoolPosterior:
        """By the step above, once targets of the others are as they are to be."""
        n, unit = self.rows.size, np.eye(rows.size)
        K = self.gram.matmul_rows(rows, unit, np.append(self.rows, rows))
        more, V = observed_more(self.observed, K[:n], K[n:] + self.noise * unit)
        c = self.gram.matmul_rows(np.append(rows, self.rows), np.vstack([unit, -V]))
        S = factorise(c[rows], np.full(rows.size, self.noise))
        gain = S.solve(targets[n:] - self.mean[rows])
        return replace(
            self,
            rows=np.append(self.rows, rows),
            targets=targets,
            observed=more or observed(self.gram, self.noise, np.append(self.rows, rows)),
            alpha=np.vstack([self.alpha - V @ gain, gain]),
            inverse_diagonal=np.append(self.inverse_diagonal + explained(S, V), S.inverse_diagonal()),
            mean=self.mean + c @ gain,
            variance=np.maximum(self.variance - explained(S, c), 0.0),
            sketch=self.sketch.less(c, S.solve(self.sketch.rows(rows))),
        )

    def _with_many(self, rows: Array, targets: Array) -> PoolPosterior:
        """Made anew from all rows, which is quicker for many rows at once."""
        every = np.append(self.rows, rows)
        known = observed(self.gram, self.noise, every)
        new = replace(self, rows=every, observed=known, inverse_diagonal=known.inverse_diagonal())
        new = replace(new, variance=new._variance(), sketch=new.sketched())
        return new.retargeted(targets, anew=True)

    def retargeted(self, targets: Array, anew: bool = False) -> PoolPosterior:
        """Give the observed rows other targets.

        Parameters
        ----------
        targets : array (l, m)
            The new ones.
        anew : bool
            Whether to solve though they are the old ones.

        Returns
        -------
        PoolPosterior
            The posterior given these.
        """
        if not anew and np.array_equal(targets, self.targets):
            return self
        start = self.alpha if self.alpha.shape == targets.shape else None
        alpha = self.observed.solve(targets, start) if targets.size else targets
        return replace(self, targets=targets, alpha=alpha, mean=self._from_observed(alpha))

    def forgetting(self, places: Array) -> PoolPosterior:
        """Forget some of the observed rows.

        Parameters
        ----------
        places : array (b,)
            Their places among the observed ones.

        Returns
        -------
        PoolPosterior
            The posterior given the others.
        """
        kept = np.setdiff1d(np.arange(self.rows.size), places)
        unit = np.zeros((self.rows.size, places.size))
        unit[places, np.arange(places.size)] = 1.0
        A = self.observed.solve(unit)
        D = factorise(A[places], np.zeros(places.size))
        P, gain = self._from_observed(A), D.solve(self.alpha[places])
        last = np.array_equal(kept, np.arange(kept.size))
        rest = observed_first(self.observed, kept.size) if last else None
        return replace(
            self,
            rows=self.rows[kept],
            targets=self.targets[kept],
            observed=rest or observed(self.gram, self.noise, self.rows[kept]),
            alpha=(self.alpha - A @ gain)[kept],
            inverse_diagonal=(self.inverse_diagonal - explained(D, A))[kept],
            mean=self.mean - P @ gain,
            variance=np.minimum(self.variance + explained(D, P), self.prior),
            sketch=self.sketch.less(P, -D.solve(P.T @ signs(self.prior.size))),
        )

    def _variance(self) -> Annotated[Array, "n"]:
        """From the start: exact, or from directions W with ‖Wᵀk*‖² ≤ k*ᵀK̃⁻¹k* where there are too many rows."""
        n, count = self.gram.shape[0], self.rows.size
        if count * n <= limits.FIELD_NUMBERS:
            K = self.gram.between(self.rows, self.rows)
            W = factorise(K, np.full(count, self.noise), overwrite=True).half_solve(np.eye(count)).T
        else:
            part, rng = SubsetOperator(self.gram, self.rows), np.random.default_rng(0)
            W = low_rank(part, np.full((count, 1), self.noise), limits.FIELD_DIRECTIONS, rng).W
        explained = np.zeros(n)
        for first in range(0, W.shape[1], limits.UNIT_COLUMNS):
            some = self._from_observed(np.ascontiguousarray(W[:, first : first + limits.UNIT_COLUMNS]))
            explained += np.einsum("ij,ij->i", some, some)
            report("variance of the pool", first / W.shape[1])
        return np.asarray(np.maximum(self.prior - explained, 0.0))

    def _from_observed(self, V: Array) -> Array:
        """k(·, L) V (n, m) for V (l, m)."""
        return self.gram.matmul_rows(self.rows, V) if V.size else np.zeros((self.gram.shape[0], V.shape[1]))

    # ---- questions

    def leave_one_out(self) -> Array:
        """The mean at each observed row, as if it had not been observed.

        Returns
        -------
        array (l, m)
            The mean.
        """
        return np.asarray(self.targets - self.alpha / self.inverse_diagonal[:, None])

    def covariance(self, a: Array, b: Array) -> Array:
        """The covariance c(x, z) between some rows and others.

        Parameters
        ----------
        a, b : array (p,) and (q,)
            Row numbers.

        Returns
        -------
        array (p, q)
            The covariances.
        """
        prior = self.gram.between(a, b)
        if not self.rows.size:
            return prior
        left, right = (self.gram.between(self.rows, some) for some in (a, b))
        return np.asarray(prior - left.T @ self.observed.solve(right))

    def sketched(self, targets: Array | None = None) -> Sketch:
        """Sums of covariances with some rows, from the start.

        Parameters
        ----------
        targets : array (t,) or None
            Row numbers; None for the whole pool.

        Returns
        -------
        Sketch
            The sums.
        """
        return Sketch.of(self.weighed_covariance(signs(self.prior.size, targets)))

    def weighed_covariance(self, weight: Array) -> Array:
        """Σ_z c(x, z) w_z for every row x, over the whole pool: two products with K and one solve.

        Parameters
        ----------
        weight : array (n, q)
            Weights of all rows.

        Returns
        -------
        array (n, q)
            The sums.
        """
        sums = self.gram.matmul(weight)
        return sums - self._from_observed(self.observed.solve(sums[self.rows].astype(np.float64)).astype(sums.dtype))
