"""Systems with targets and probes, solved no better than is asked for: in float32 where that is enough."""

from typing import Annotated, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade.operators.base import Operator, Single
from saccade.solvers.cg import LARGEST_SINGLE, LOOSE, solve_cg
from saccade.solvers.nystrom import Nystrom
from saccade.solvers.rank_one import Leading


class System(NamedTuple):
    """K + N, and how it is solved."""

    K: Operator
    noise: Annotated[Array, "n, 1 | n, m"]
    M: Nystrom | Leading | None
    max_iter: int

    def wide(self, m: int, k: int) -> Annotated[Array, "n, 1 | n, k"]:
        """The noise of m targets and k − m probes."""
        c = self.noise.shape[1]
        return self.noise if c == 1 else np.hstack([self.noise, np.repeat(self.noise, (k - m) // c, axis=1)])

    def solved(
        self,
        B: Annotated[Array, "n, k"],  # m targets, then as many probes for each column of the noise
        tol: Annotated[Array, "k"],
        m: int,
        guess: Array | None = None,  # (n, k) or less: each column is begun at a multiple of it
    ) -> tuple[Array, Array]:  # (n, k), (n, k)
        """X, and what it leaves: B − (K + N)X."""
        noise = self.wide(m, B.shape[1])
        relative = (tol + 1e-300) / (np.abs(B).max(axis=0, initial=0.0) + 1e-300)
        single = relative.min() >= LOOSE and self.K.diag().max(initial=0.0) < LARGEST_SINGLE
        K = Single(self.K) if single else self.K
        X, left = np.zeros_like(B), B
        if guess is not None:
            A = K.matmul(guess) + noise * guess
            best = np.einsum("ij,ij->j", A, B) / (np.einsum("ij,ij->j", A, A) + 1e-300)
            X, left = best * guess, B - best * A
        size = np.abs(left).max(axis=0, initial=0.0) + 1e-300
        found = solve_cg(K, noise, left / size, tol=tol / size, max_iter=self.max_iter, precondition=self.M)
        return X + found.x * size, found.left * size
