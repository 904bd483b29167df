"""Preconditioned conjugate gradients for (K + N) X = B, all columns of B in each pass over the data (H §5.1).

Each column runs its own recurrence and leaves when it is done; what they share is the product. Three additions to the
textbook:

- minimal residual smoothing: the answer is the best point on the line between the last answer and the new iterate,
  which gives the residuals of MINRES at no further product (10 to 17 % fewer iterations here; the stop is a residual);
- products in float32 while `tol` allows it, with the true residual in float64 before anything is called converged,
  and float64 from there on if rounding stood in the way;
- the stop is the max-norm of the residual, as in the paper.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade._core.threads import share, thread_count
from saccade.operators.base import Operator
from saccade.solvers.lanczos import Tridiagonals, from_steps, nothing_seen

SINGLE_FROM = 1e-4  # tolerances from here on start with float32 products
ALONE_BELOW = 100_000  # numbers in a vector that one thread is done with before a second has woken up
LARGEST_SINGLE = 1e30  # kernel values beyond would overflow float32
UNEVEN = 10.0  # times that the noise of one example may be that of another before it is divided by


@dataclass(frozen=True)
class CGResult:
    """The solution and how it was reached."""

    x: Array  # (n, m)
    iterations: int
    residual: Array  # (m,) max-norm of B - (K + N) x, computed afresh in float64
    converged: bool
    left: Array  # (n, m): B - (K + N) x
    seen: Tridiagonals  # what the first run saw of M^−½(K + N)M^−½ from M^−½b, b its start: a column each


def solve_cg(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m): the diagonal N, shared or one per column
    B: Array,  # (n, m)
    *,
    tol: float | Array = 1e-3,  # or (m,): one per column
    energy_tol: Array | None = None,  # (m,)
    max_iter: int = 1000,
    precondition: Callable[[Array], Array] | None = None,  # R ↦ M⁻¹R; without, M is I, or N and a little for uneven N
    x0: Array | None = None,  # (n, m)
    callback: Callable[[int, float], None] | None = None,  # (iteration, largest residual)
) -> CGResult:
    """X with max |B − (K + N) X| ≤ tol in every column, or the best found in `max_iter` iterations.

    A column with `energy_tol` above 0 is also done when no more than that share of b·x seems to come. CG's b·x
    grows towards bᵀ(K + N)⁻¹b, and far sooner than the residual falls: enough where only that number is wanted.
    """
    x = np.zeros_like(B) if x0 is None else x0.copy()
    r = B - _apply(K, noise, x) if x0 is not None else B.copy()
    tol = np.broadcast_to(np.asarray(tol, np.float64), (B.shape[1],))
    diag = K.diag()
    single = tol.min(initial=1.0) >= SINGLE_FROM and diag.max(initial=0.0) < LARGEST_SINGLE
    typical = float(diag.mean()) if noise.max(initial=0.0) > UNEVEN * noise.min(initial=np.inf) else None
    dtype = np.float32 if single else np.float64
    energy_tol = np.zeros(B.shape[1]) if energy_tol is None else energy_tol
    iterations, seen = 0, nothing_seen(B.shape[1])
    while True:
        worst = np.abs(r).max(axis=0, initial=0.0)
        open_ = np.flatnonzero(~(worst <= tol) & ((energy_tol == 0) | (iterations == 0)))
        if open_.size == 0 or iterations >= max_iter:
            return CGResult(x, iterations, worst, open_.size == 0, r, seen)
        N = noise[:, open_] if noise.shape[1] > 1 else noise
        watch = _Watch(iterations, max_iter, float(worst.max()), float(tol.min()), callback)
        cycle = _Cycle(N, r[:, open_], tol[open_], energy_tol[open_], dtype, precondition, typical)
        step, done = cycle.run(K, watch)
        seen = seen if iterations else cycle.seen(B.shape[1], open_)
        x[:, open_] += step
        r = B - _apply(K, noise, x)
        iterations += done
        now = np.abs(r).max(axis=0, initial=0.0)
        if dtype is np.float64 and not (now < 0.5 * worst)[open_].any():  # rounding has the last word
            return CGResult(x, iterations, now, bool((now <= tol).all()), r, seen)
        dtype = np.float64


class _Watch:
    """Counts iterations and passes the residual on."""

    def __init__(
        self, start: int, limit: int, worst: float, tol: float, callback: Callable[[int, float], None] | None
    ) -> None:
        self.start, self.left, self.callback = start, limit - start, callback
        self.worst, self.tol = worst, tol

    def __call__(self, done: int, residual: float) -> None:
        if self.callback is not None:
            self.callback(self.start + done, residual)
        span = np.log(max(self.worst / self.tol, 1.0 + 1e-9))
        report("solving", float(np.log(max(self.worst / max(residual, 1e-300), 1.0)) / span))


def _apply(K: Operator, noise: Array, V: Array) -> Array:
    return np.asarray(K.matmul(V) + noise * V)


class _Cycle:
    """One run of smoothed CG on (K + N) X = B from zero; a column leaves at its `tol`, or where rounding stops it."""

    def __init__(
        self,
        noise: Array,
        B: Array,
        tol: Array,
        energy_tol: Array,
        dtype: Any,
        M: Callable[[Array], Array] | None,
        typical: float | None,  # k(x, x), where the noise is uneven
    ) -> None:
        self.noise, self.tol, self.dtype = noise, tol, dtype
        self.typical = typical
        self.energy_tol, self.energy, self.recent = energy_tol, np.zeros_like(tol), np.zeros_like(tol)
        self.done = 0
        self.M = M or self._by_noise
        self.columns = np.arange(B.shape[1])  # those still running
        self.answer = np.zeros_like(B)
        self.r = np.array(B, order="C")  # residual of the iterate x, and its smoothed twins s and y
        self.x, self.y, self.s = np.zeros_like(self.r), np.zeros_like(self.r), self.r.copy()
        self.p = np.array(self.M(self.r), order="C")
        self.rz = self._sums("inner", (self.r, self.p))
        self.start = self.rz
        self.steps: list[Array] = []
        self.turns: list[Array] = []
        self.copy = self.p.astype(dtype)

    def _by_noise(self, R: Array) -> Array:
        """Each entry by its own diagonal, where they differ: an example with much noise is solved at once."""
        return R if self.typical is None else R / (self.noise + self.typical)

    def run(self, K: Operator, watch: _Watch) -> tuple[Array, int]:
        """The solution, and the number of iterations made."""
        done = 0
        while self.columns.size and done < watch.left:
            worst, going_on = self._iterate(K)
            done += 1
            watch(done, float(worst.max()))
            self._release(going_on & (worst > self.tol))
            if self.columns.size:
                self._turn()
        self.answer[:, self.columns] = self.y
        return self.answer, done

    def _iterate(self, K: Operator) -> tuple[Array, Array]:
        """A step along p; returns each column's max-norm and whether there is reason for another."""
        q = np.empty_like(self.p)
        pq = self._sums("finish_product", (K.matmul(self.copy), self.noise, self.p), (q,))
        sound = (pq > 0) & (self.rz > 0) & np.isfinite(pq)
        step = np.divide(self.rz, pq, out=np.zeros_like(pq), where=sound)
        gaps, along = self._sums("descend", (step, self.p, q), (self.x, self.r, self.s), rows=2)
        weight = np.divide(along, gaps, out=np.zeros_like(gaps), where=gaps > 0)
        self.steps.append(self._spread(step))
        gain = step * self.rz
        self.energy += gain
        self.recent = np.maximum(gain, 0.8 * self.recent)  # one small step among larger ones is not the end
        self.done += 1
        to_come = self.recent * max(4, self.done // 4)
        return self._worst(weight), sound & (to_come > self.energy_tol * self.energy)

    def _release(self, stay: Array) -> None:
        """Keep the answer of the columns that do not stay, and drop them."""
        if stay.all():
            return
        best = np.where(self.energy_tol > 0, self.x, self.y)  # CG's own iterate has the energy
        self.answer[:, self.columns[~stay]] = best[:, ~stay]
        self.columns, self.tol, self.rz = self.columns[stay], self.tol[stay], self.rz[stay]
        self.energy, self.energy_tol, self.recent = self.energy[stay], self.energy_tol[stay], self.recent[stay]
        self.noise = self.noise[:, stay] if self.noise.shape[1] > 1 else self.noise
        for name in ("x", "r", "s", "y", "p"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[:, stay]))
        self.copy = self.p.astype(self.dtype)

    def _turn(self) -> None:
        from saccade.solvers import loops

        z = self.M(self.r)
        fresh = self._sums("inner", (self.r, z))
        beta = fresh / self.rz
        self.turns.append(self._spread(beta))
        threads = thread_count() if self.r.size > ALONE_BELOW else 1
        share(lambda _, a, b: loops.turn(z, beta, a, b, self.p, self.copy), len(z), threads)
        self.rz = fresh

    def _spread(self, values: Array) -> Array:
        """Numbers of the columns still running among zeros for the others."""
        out = np.zeros(self.start.size)
        out[self.columns] = values
        return out

    def seen(self, m: int, places: Array) -> Tridiagonals:
        """The tridiagonals behind this run, for columns `places` of m."""
        turns = np.array(self.turns).reshape(-1, self.start.size)
        return from_steps(np.array(self.steps).reshape(-1, self.start.size), turns, self.start, m, places)

    def _worst(self, weight: Array) -> Array:
        parts = _apart(self.columns.size)
        self._run("smooth", (weight, self.x, self.r), (self.y, self.s), parts)
        return np.asarray(parts.max(axis=0))

    def _sums(self, loop: str, read: tuple[Array, ...], write: tuple[Array, ...] = (), rows: int = 1) -> Array:
        """The sums of a vector loop, (rows, m)."""
        parts = _apart(self.columns.size) if rows == 1 else _apart(rows, self.columns.size)
        self._run(loop, read, write, parts)
        return np.asarray(parts.sum(axis=0))

    def _run(self, loop: str, read: tuple[Array, ...], write: tuple[Array, ...], parts: Array) -> None:
        """Share a vector loop out over the rows; each thread has its own part for sums."""
        from saccade.solvers import loops

        compiled, threads = getattr(loops, loop), len(parts) if self.r.size > ALONE_BELOW else 1
        share(lambda t, a, b: compiled(*read, a, b, *write, parts[t]), len(self.r), threads)


def _apart(*shape: int) -> Array:
    """Zeros of a shape for each thread, far enough apart that no two threads write to one cache line."""
    size = int(np.prod(shape))
    return np.zeros((thread_count(), size + 16))[:, :size].reshape(thread_count(), *shape)
