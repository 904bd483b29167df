"""From labels to Gaussians and their posterior: Laplace or EP on the kernel matrix of the examples."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidParameter
from saccade.inference.likelihoods.draft import Draft
from saccade.inference.likelihoods.ep import ep
from saccade.inference.likelihoods.laplace import laplace
from saccade.inference.likelihoods.sites import Sites
from saccade.inference.solving.regression import Solution, Solver, is_direct, solve
from saccade.operators.base import Dense, Operator

Inference = Literal["regression", "laplace", "ep"]


@dataclass(frozen=True)
class Solving:
    """How systems with K + N are solved.

    Parameters
    ----------
    solver : "auto", "cholesky" or "cg"
        By a factor, by conjugate gradients, or whichever suits the number of examples.
    tol : float
        Largest residual that conjugate gradients leave.
    max_iter : int
        Most iterations.
    seed : int
        Of the random numbers inside: the same ones every time.
    leave_one_out : bool
        Whether leave-one-out predictions of all examples will be wanted, as with labels. These are iterated where that
        is far quicker than a factor, which is then made when a question needs it.
    start : array (n, m) or None
        A first guess of α.

    Examples
    --------
    >>> Solving("cg", tol=1e-4).max_iter
    1000
    """

    solver: Solver = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    seed: int = 0
    leave_one_out: bool = False
    start: Array | None = field(default=None, repr=False, compare=False)

    def rng(self) -> np.random.Generator:
        """Random numbers, equal every time."""
        return np.random.default_rng(self.seed)

    @property
    def options(self) -> dict[str, Any]:
        """For `solve`."""
        return {"solver": self.solver, "tol": self.tol, "max_iter": self.max_iter, "rng": self.rng()}

    def __call__(self, K: Operator, noise: Array, targets: Array, start: Array | None = None, **other: Any) -> Solution:
        """The posterior of any sites."""
        return solve(K, noise, targets, start=start, **(self.options | other))


def infer(
    K: Operator,
    Y: Annotated[Array, "n, m"],  # labels ±1
    noise: Annotated[Array, "n, 1 | n, m"],  # of an example with all its copies
    weight: Annotated[Array, "n"] | None,  # how many equal copies each example stands for
    inference: Literal["laplace", "ep"],
    solving: Solving,
    mean: Annotated[Array, "n, 1"] | None = None,  # before any label
) -> tuple[Sites, Solution]:
    """The likelihood of labels as Gaussians, less the prior mean, and the posterior under them.

    With a prior mean m, sites are of f and the posterior is that of f − m: Kα + m = targets − noise · α as without it.
    """
    if mean is not None and (Y.shape[1] > 1 or not is_direct(K, solving.solver)):
        raise InvalidParameter('A prior mean with labels takes one output and solver="cholesky".')
    K = Dense(K.to_dense()) if K.in_memory else K  # for many factors, not for one
    one = 1.0 if weight is None else weight[:, None]
    labels = K.diag(), Y, noise * one  # the noise of one copy of an example
    unit = float(np.sqrt(labels[0].mean())) or 1.0
    if inference == "ep":
        solve = _in_units(unit, partial(solving, _for_cavities(K, Y.shape[1], solving.solver)), mean)
        sites, solution = ep(*labels, solve, weight)
    else:
        draft = _draft(K, solving, unit) if mean is None else None
        sites, solution = laplace(*labels, _in_units(unit, partial(solving, K), mean), weight, draft=draft)
    return sites if mean is None else replace(sites, targets=sites.targets - mean), solution


def _draft(K: Operator, solving: Solving, unit: float) -> Draft | None:
    """The solver of all Laplace's steps but the last, where conjugate gradients are quicker; None: as the last step."""
    n, few = K.shape[0], solving.solver == "auto" and K.shape[0] <= limits.FACTOR_UP_TO
    if K.in_memory or solving.solver == "cholesky" or (few and n <= limits.LAPLACE_FACTOR_UP_TO):
        return None
    return Draft(K, unit, (0.1 if few else 0.3) * solving.tol, solving.max_iter)


def _for_cavities(K: Operator, columns: int, solver: Solver) -> Operator:
    """K written out while factors are affordable: only they have the exact variances that EP needs."""
    n = K.shape[0]
    few = solver == "auto" and n <= limits.EP_FACTOR_UP_TO and n * n * columns <= limits.EP_FACTOR_NUMBERS
    return Dense(K.to_dense()) if few else K


def _in_units(unit: float, solved: Callable[..., Solution], mean: Array | None) -> Callable[..., Solution]:
    """A solver for targets that are latent values of this size, not labels ±1: the solver's tolerance is for those."""

    def solve(noise: Array, targets: Array, guess: Array | None) -> Solution:
        targets = targets if mean is None else targets - mean
        found = solved(noise, targets / unit, None if guess is None else guess / unit)
        return replace(found, alpha=unit * found.alpha, residual=unit * found.residual)

    return solve
