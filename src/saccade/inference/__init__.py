"""Gaussian processes: the fitted posterior (`GP`), the posterior of a pool (`PoolPosterior`), and what makes them.

posterior        every question about a fitted process      may import all below, but not tuning
tuning           kernel parameters and noise                solving
leave_one_out    training examples left out                 approximations, likelihoods, solving
approximations   of the inverse of K + N                    solving
likelihoods      labels as Gaussian sites                   solving
solving          systems with K + N; `Conditional`, the     kernels, solvers, operators
                 Gaussian given values, of all four jobs
"""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.inference.posterior.gp import GP
    from saccade.inference.posterior.pool import PoolPosterior

__all__ = ["GP", "PoolPosterior"]

__getattr__, __dir__ = lazy_names(__name__, {"GP": "posterior.gp", "PoolPosterior": "posterior.pool"})
