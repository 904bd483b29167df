"""A likelihood written as Gaussians of the latent values: what every inference ends with.

Regression, Laplace and EP all approximate p(y_i | f_i) by Z_i N(f_i; t_i, N_i). The posterior is then that of a
regression on targets t with noise N, so tables, variances, leave-one-out and samples serve all three, and

    log p(y) = Σ_i log Z_i + log N(t; 0, K + N).
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeVar

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.inference.solving.evidence import of_copies
from saccade.inference.solving.regression import Solution

METHODS = ("regression", "laplace", "ep")
FLATTEST = 1e8  # noise of a site, in units of the prior variance and σ², beyond which it says nothing


class Regression(NamedTuple):
    """What a step of Laplace or EP asks for: α of a regression on sites."""

    noise: Annotated[Array, "n, m"]
    targets: Annotated[Array, "n, m"]
    guess: Annotated[Array, "n, m"] | None = None  # of α
    left: float | None = None  # residual that may be left, without a diagonal of the inverse; None: as little as can be


Found = TypeVar("Found")
# An inference yields regressions and is sent their solutions: who runs it solves, and it knows no matrix.
Steps = Generator[Regression, Solution, Found]


@dataclass(frozen=True)
class Sites:
    """Targets and noise of the Gaussians that stand for the likelihood, and how they were found."""

    targets: Annotated[Array, "n, m"]
    noise: Annotated[Array, "n, 1 | n, m"]
    log_norm: float = 0.0  # Σ log Z over all examples and columns
    changes: tuple[float, ...] = ()  # of the latent values in each step
    converged: bool = True

    @classmethod
    def of_regression(
        cls,
        Y: Annotated[Array, "n, m"],
        noise: Annotated[Array, "n, 1 | n, m"],  # of an example with all its copies
        weight: Annotated[Array, "n"] | None,
    ) -> "Sites":
        """Targets with Gaussian noise stand for themselves."""
        return cls(Y, noise, -of_copies(noise, Y.shape[1], weight)[0])


def flattest(
    prior: Annotated[Array, "n"],  # the diagonal of K
    noise: Annotated[Array, "n, 1 | n, m"],  # σ²
) -> float:
    """The largest noise of a site: its factor of the likelihood is flat already."""
    largest = float(prior.max(initial=0.0))
    most = FLATTEST * (largest + float(noise.max(initial=0.0)))
    if not np.isfinite(most):
        raise InvalidInput(
            f"The largest k(x, x) is {largest:.3g}, too large for float64 beside its noise. Scale the features to "
            "values near 1 (sklearn.preprocessing.MaxAbsScaler), or scale the kernel."
        )
    return most


def log_gaussian(
    x: Array,
    mean: Array,
    variance: Array,
) -> Array:
    """log N(x; mean, variance)."""
    return np.asarray(-0.5 * (np.square(x - mean) / variance + np.log(2.0 * np.pi * variance)))
