"""A Gaussian process as the few training rows that carry it: what a model file holds of inducing approximations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.codec import Record, from_file, to_file
from saccade._core.errors import ModelFileError
from saccade._core.fields import Maybe, Numbers, text
from saccade.inference.approximations.base import new_columns
from saccade.inference.approximations.by_name import Method
from saccade.inference.approximations.inducing import Inducing, Subset
from saccade.inference.approximations.inducing_variance import InducingVariance, SubsetVariance
from saccade.inference.likelihoods.prior_mean import Mean, plus
from saccade.inference.posterior.base import Posterior
from saccade.inference.posterior.compressed import Compressed, check_bins, no_variance
from saccade.inference.posterior.gp import GP
from saccade.kernels.base import Kernel
from saccade.kernels.gram import Gram

INDUCING: tuple[Method, ...] = ("fitc", "dtc", "sor", "sod")


@dataclass(frozen=True, eq=False, repr=False)
class Supported(Posterior):
    """Mean and variance from the support of a process that was fitted to more examples."""

    gram: Gram  # of the support, s rows
    alpha: Annotated[Array, "s, m"]
    method: Method | None  # of the variance; None: there is none
    factors: InducingVariance | SubsetVariance | None = None
    places: Annotated[Array, "r"] | None = None  # of the rows that the factors take, in their order
    prior_mean: Mean | None = None  # None: 0
    kernel: Kernel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", self.gram.kernel)

    def __repr__(self) -> str:
        s, m = self.alpha.shape
        return f"Supported({self.kernel!r}, rows={s}, outputs={m}, variance={self.method!r})"

    @property
    def tables(self) -> None:
        return None

    @property
    def variance_method(self) -> Method | None:
        return self.method

    def mean(self, X: Any) -> Array:
        found = [k_star.T @ self.alpha for k_star, _ in new_columns(self.gram, X)]
        return plus(self.prior_mean, X, np.concatenate(found))

    def variance(self, X: Any) -> Array:
        return self.mean_and_variance(X)[1]

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        if self.factors is None:
            no_variance()
        columns = new_columns(self.gram, X)
        found = [(k.T @ self.alpha, self.factors.variance(k[self.places], prior)) for k, prior in columns]
        mean, variance = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return plus(self.prior_mean, X, mean), variance

    def quantized(self, bins: int) -> Supported:
        check_bins(self.tables, bins)
        return self

    def compressed(self) -> Compressed:
        raise ModelFileError(
            f"A {type(self.kernel).__name__} model has no tables: it predicts from {len(self.alpha)} training rows. "
            "Leave `examples` out to keep them in the file."
        )


def supported(gp: Posterior) -> Supported | None:
    """The support of a fitted process; None where new rows need all examples, or a grid, or its kernel has a centre.

    The centre of a kernel is a mean over all examples, which parameters do not hold.
    """
    if not isinstance(gp, GP):
        return gp if isinstance(gp, Supported) else None
    if gp.grid is not None or gp.kernel.centred_part() is not None or gp.kernel.mixes_centre:
        return None
    if (rows := gp.support) is None:
        return None
    mean = None if gp.prior_mean is None else gp.prior_mean.function
    known: dict[str, Any] = {"method": gp.variance_method, "prior_mean": mean}
    if gp.variance_method is not None:
        how = gp.inverse.variance
        assert isinstance(how, Inducing | Subset)
        known |= {"factors": how.predictive, "places": np.searchsorted(rows, how.points)}
    return Supported(gp.gram.subset(rows), gp.solution.alpha[rows], **known)


def write_support(gp: Supported) -> tuple[dict[str, Any], dict[str, Array]]:
    """What a header says beside kernel and rows, and the arrays by name."""
    return to_file(SUPPORT, gp)


def read_support(kernel: Kernel, X: Any, header: Any, tensors: dict[str, Array], source: Any) -> Supported:
    """What `write_support` wrote, for a kernel that is settled and its rows; a ValueError where they do not fit."""
    found = from_file(SUPPORT, header, tensors, source)
    method, alpha, L, roots = (found[name] for name in ("method", "alpha", "L", "roots"))
    if len(alpha) != X.shape[0] or (L is None) != (method in (None, "sod")) or (roots is None) != (method is None):
        raise ValueError("rows, weights and factors do not fit together")
    factors: InducingVariance | SubsetVariance | None = None
    if roots is not None:
        parts = tuple(_factor(part) for part in np.split(roots, max(1, roots.shape[1] // max(1, len(roots))), axis=1))
        if len(parts) not in (1, alpha.shape[1]) or found["places"] is None:
            raise ValueError(f"{len(parts)} factors for {alpha.shape[1]} outputs")
        factors = SubsetVariance(parts) if L is None else InducingVariance(_factor(L), parts, method != "sor")
    gram = kernel.gram(X, held=False)
    if not np.isfinite(gram.cross(X[:1])).all():
        raise ValueError(f"{kernel!r} does not go with these rows")
    return Supported(gram, alpha, method, factors, found["places"])


def _factor(L: Array) -> Array:
    if L.shape[0] != L.shape[1] or not len(L) or not (L.diagonal() > 0).all():
        raise ValueError("a factor that is none")
    return np.asfortranarray(L)


def _fields(gp: Supported) -> dict[str, Any]:
    factors = gp.factors
    return {
        "method": gp.method,
        "alpha": gp.alpha,
        "places": gp.places,
        "L": factors.L if isinstance(factors, InducingVariance) else None,
        "roots": None if factors is None else np.hstack(factors.roots),
    }


SUPPORT = Record(
    dict,
    {
        "method": Maybe(text(*INDUCING)),
        "alpha": Numbers("s", "m"),
        "places": Maybe(Numbers("r", dtype=np.int64, below="s"), None),
        "L": Maybe(Numbers("r", "r"), None),
        "roots": Maybe(Numbers("r", "w"), None),  # beside each other, one per column of the noise
    },
    name="a model",
    take=_fields,
)
