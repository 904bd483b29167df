"""Preconditioned conjugate gradients for (K + N) X = B, all columns of B in each pass over the data (H §5.1).

Each column runs its own recurrence and leaves when it is done; what they share is the product. Three additions to the
textbook:

- minimal residual smoothing: the answer is the best point on the line between the last answer and the new iterate,
  which gives the residuals of MINRES at no further product (10 to 17 % fewer iterations here; the stop is a residual);
- products in float32. Each is off by a share of its own residual, so the later ones hardly count: the residual is
  made anew in float64 whenever it has fallen a thousandfold, and before anything is called converged. Where rounding
  shows up there, products are in float64 from then on;
- the stop is the max-norm of the residual, as in the paper.

Vectors stay where the operator has them (`K.backend`); only sums per column come to the host.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.operators.backend import BackendArray, Run, Stride
from saccade.operators.base import Operator
from saccade.solvers.lanczos import Tridiagonals, from_steps, nothing_seen
from saccade.solvers.rank_one import Leading

Precondition = Callable[[BackendArray], BackendArray]  # R ↦ M⁻¹R

LOOSE = 1e-4  # tolerances from here on allow float32 products anywhere, others where they save time
RENEWED = 1e-3  # share of the residual at which it is made anew
DRIFT = 0.1  # share by which it may then differ, for float32 products to go on
LARGEST_SINGLE = 1e30  # kernel values beyond would overflow float32
UNEVEN = 10.0  # times that the noise of one example may be that of another before it is divided by


@dataclass(frozen=True)
class CGResult:
    """The solution and how it was reached."""

    x: Annotated[Array, "n, m"]
    iterations: int
    residual: Annotated[Array, "m"]  # max-norm of B - (K + N) x, computed afresh in float64
    converged: bool
    left: Annotated[Array, "n, m"]  # B - (K + N) x
    seen: Tridiagonals  # what the first run saw of M^−½(K + N)M^−½ from M^−½b, b its start: a column each


def solve_cg(
    K: Operator,
    noise: Annotated[Array, "n, 1 | n, m"],  # the diagonal N, shared or one per column
    B: Annotated[Array, "n, m"],
    *,
    tol: float | Array = 1e-3,  # or (m,): one per column
    energy_tol: float | Array = 0.0,  # or (m,)
    max_iter: int = 1000,
    precondition: Precondition | None = None,  # without, M is I, or N and a little for uneven N
    x0: Annotated[Array, "n, m"] | None = None,
) -> CGResult:
    """X with max |B − (K + N) X| ≤ tol in every column, or the best found in `max_iter` iterations.

    A column with `energy_tol` above 0 is also done when no more than that share of b·x seems to come. CG's b·x
    grows towards bᵀ(K + N)⁻¹b, and far sooner than the residual falls: enough where only that number is wanted.
    """
    backend = K.backend
    targets, N = backend.array(B), backend.array(noise)
    x, r = backend.zeros(B.shape), targets.copy()
    if x0 is not None:
        x = backend.array(x0).copy()
        r = targets - (K.matmul(x) + N * x)
    tol, energy_tol = (np.broadcast_to(np.asarray(t, np.float64), (B.shape[1],)) for t in (tol, energy_tol))
    dtype, typical = _first_products(K, noise, float(tol.min(initial=1.0)))
    iterations, seen = 0, nothing_seen(B.shape[1])
    while True:
        worst = backend.max_abs(r)
        open_ = np.flatnonzero(~(worst <= tol) & ((energy_tol == 0) | (iterations == 0)))
        if open_.size == 0 or iterations >= max_iter:
            return CGResult(backend.host(x), iterations, worst, open_.size == 0, backend.host(r), seen)
        cycle = _Cycle(K, N, r, open_, tol[open_], energy_tol[open_], dtype, precondition, typical)
        start, end = float(worst.max()), float(tol.min())
        while cycle.columns.size and iterations + cycle.done < max_iter:
            _tell(cycle.step(K.matmul(cycle.run.copy)), start, end)
            if cycle.stale:
                Kx = K.matmul(backend.for_product(cycle.run.x, np.float64))
                cycle.renew(Kx, K.matmul(backend.for_product(cycle.run.y, np.float64)))
        seen = seen if iterations else cycle.seen(B.shape[1], open_)
        iterations += cycle.done
        backend.put(x, open_, backend.take(x, open_) + cycle.ended())
        r = targets - (K.matmul(x) + N * x)
        now = backend.max_abs(r)
        if dtype is np.float64 and not (now < 0.5 * worst)[open_].any():  # rounding has the last word
            return CGResult(backend.host(x), iterations, now, bool((now <= tol).all()), backend.host(r), seen)
        dtype = np.float64


def _first_products(K: Operator, noise: Array, tol: float) -> tuple[type[np.floating[Any]], float | None]:
    """The numbers that products begin with, and the mean k(x, x) where the noise is uneven."""
    diag = K.diag()
    typical = float(diag.mean()) if noise.max(initial=0.0) > UNEVEN * noise.min(initial=np.inf) else None
    many = K.work >= limits.SINGLE_FROM and typical is None
    single = (many or tol >= LOOSE) and diag.max(initial=0.0) < LARGEST_SINGLE
    return np.float32 if single else np.float64, typical


def _tell(residual: float, start: float, tol: float) -> None:
    """Report how far the residual is on its way from `start` to `tol`."""
    span = log(max(start / tol, 1.0 + 1e-9))
    report("solving", log(max(start / max(residual, 1e-300), 1.0)) / span)


class _Cycle:
    """One run of smoothed CG on (K + N) X = R from zero; a column leaves at its `tol`, or where rounding stops it."""

    def __init__(
        self,
        K: Operator,
        noise: Annotated[BackendArray, "n, 1 | n, m"],
        R: Annotated[BackendArray, "n, m"],
        open_: Annotated[Array, "c"],  # columns of R to run
        tol: Annotated[Array, "c"],
        energy_tol: Annotated[Array, "c"],
        dtype: Any,  # of the products
        M: Precondition | None,
        typical: float | None,  # k(x, x), where the noise is uneven
    ) -> None:
        self.backend, self.tol, self.dtype = K.backend, tol, dtype
        backend = self.backend
        self.noise = backend.take(noise, open_) if noise.shape[1] > 1 else noise
        self.typical = typical
        self.energy_tol, self.energy, self.recent = energy_tol, np.zeros_like(tol), np.zeros_like(tol)
        self.done = 0
        self.M = M or self._by_noise
        if isinstance(M, Leading):
            self.u, self.share = M.direction, M.share
        else:
            self.u, self.share = backend.zeros((R.shape[0], 1)), 0.0
        self.full = not isinstance(M, Leading) and (M is not None or typical is not None)  # M does more than that
        self.R, self.open = R, open_
        self.columns = np.arange(open_.size)  # those still running
        r, s = backend.take(R, open_), backend.take(R, open_)
        x, y = backend.zeros(r.shape), backend.zeros(r.shape)
        self.answer: BackendArray = backend.zeros(r.shape)
        p = backend.take(self.M(r), self.columns)
        self.run, self.q = Run(x, y, r, s, p, backend.for_product(p, dtype)), backend.zeros(r.shape)
        self.rz = self.start = backend.inner(r, p)
        self.level = self.worst = float(backend.max_abs(r).max())  # of the residual when it was last made, and now
        self.steps: list[Array] = []
        self.turns: list[Array] = []

    def _by_noise(self, R: BackendArray) -> BackendArray:
        """Each entry by its own diagonal, where they differ: an example with much noise is solved at once."""
        return R if self.typical is None else R / (self.noise + self.typical)

    def step(
        self,
        Kp: Annotated[BackendArray, "n, c"],  # K times `run.copy`
    ) -> float:
        """A step along p and a turn; columns that are done leave. Returns the largest residual.

        CG's own x has the energy: columns that stop by it have no smoothed twin.
        """
        run, backend, q = self.run, self.backend, self.q
        pq = backend.finish_product(Kp, self.noise, run.p, q)
        sound = (pq > 0) & (self.rz > 0) & np.isfinite(pq)
        step, smoothed = _ratio(self.rz, pq, sound), self.energy_tol == 0
        length, along, gaps, towards = backend.descend(step, q, self.u, smoothed, run.r, run.s)
        out = self.share * along
        z, fresh = run.r, length - out * along
        if self.full:
            z = self.M(run.r)
            fresh = backend.inner(run.r, z)
        beta = _ratio(fresh, self.rz, self.rz > 0)
        worst = backend.advance(Stride(step, _ratio(towards, gaps, gaps > 0), beta, out, smoothed), z, self.u, run)
        self.steps.append(self._spread(step))
        self.turns.append(self._spread(beta))
        gain, self.rz = step * self.rz, fresh
        self.energy += gain
        self.recent = np.maximum(gain, 0.6 * self.recent)  # one small step among larger ones is not the end
        self.done += 1
        to_come = self.recent * max(4, self.done // 4)
        self._release(sound & (to_come > self.energy_tol * self.energy) & (worst > self.tol))
        self.worst = float(worst.max())
        return self.worst

    @property
    def stale(self) -> bool:
        """Whether the residuals of float32 products fell so far that they are to be made anew."""
        return self.columns.size > 0 and self.dtype is np.float32 and self.worst <= RENEWED * self.level

    def renew(self, Kx: BackendArray, Ky: BackendArray) -> None:
        """The residuals of x and y from products in float64. The run ends if float32 has led them astray."""
        run, backend, c = self.run, self.backend, self.columns.size
        targets, drift = backend.take(self.R, self.open[self.columns]), 0.0
        for iterate, residual, product in ((run.x, run.r, Kx), (run.y, run.s, Ky)):
            true = targets - (product + self.noise * iterate)
            drift = max(drift, float(backend.max_abs(true - residual).max()))
            backend.put(residual, np.arange(c), true)
        self.level, self.rz = self.worst, backend.inner(run.r, self.M(run.r))
        if not drift <= DRIFT * self.worst:  # the direction is as wrong as the residual was: the next run is in float64
            self._release(np.zeros(c, bool))

    def _release(self, stay: Array) -> None:
        """Keep the answer of the columns that do not stay, and drop them."""
        if stay.all():
            return
        self._keep(~stay)
        self.turns[-1][self.columns[~stay]] = 0.0  # nobody goes on in that direction
        self.columns, self.tol, self.rz = self.columns[stay], self.tol[stay], self.rz[stay]
        self.energy, self.energy_tol, self.recent = self.energy[stay], self.energy_tol[stay], self.recent[stay]
        left, take = np.flatnonzero(stay), self.backend.take
        self.noise = take(self.noise, left) if self.noise.shape[1] > 1 else self.noise
        x, y, r, s, p = (take(vectors, left) for vectors in self.run[:-1])
        self.run, self.q = Run(x, y, r, s, p, self.backend.for_product(p, self.dtype)), self.backend.zeros(r.shape)

    def _keep(self, leaving: Array) -> None:
        """The answer of these columns: the smoothed iterate where there is one."""
        by_energy = self.energy_tol > 0
        for best, some in ((self.run.x, leaving & by_energy), (self.run.y, leaving & ~by_energy)):
            if some.any():
                self.backend.put(self.answer, self.columns[some], self.backend.take(best, np.flatnonzero(some)))

    def _spread(self, values: Array) -> Array:
        """Numbers of the columns still running among zeros for the others."""
        out = np.zeros(self.start.size)
        out[self.columns] = values
        return out

    def ended(self) -> Annotated[BackendArray, "n, c"]:
        """The solution, with that of the columns still running."""
        self._keep(np.ones(self.columns.size, bool))
        return self.answer

    def seen(self, m: int, places: Array) -> Tridiagonals:
        """The tridiagonals behind this run, for columns `places` of m."""
        turns = np.array(self.turns).reshape(-1, self.start.size)
        return from_steps(np.array(self.steps).reshape(-1, self.start.size), turns, self.start, m, places)


def _ratio(above: Array, below: Array, where: Array) -> Array:
    """above / below, 0 elsewhere."""
    return np.divide(above, below, out=np.zeros_like(above), where=where)
