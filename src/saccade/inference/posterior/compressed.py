"""A Gaussian process as tables: what a model file holds, and what predicts fast. It holds no training example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.inference.approximations.by_name import Method
from saccade.inference.likelihoods.prior_mean import Mean, plus
from saccade.inference.posterior.base import Posterior
from saccade.kernels.gram import TabledGram
from saccade.kernels.intersection import HIK
from saccade.operators.norms import NormTables
from saccade.operators.tables import GridTables, PiecewiseTables, quantize

if TYPE_CHECKING:
    from saccade.inference.posterior.gp import GP


@dataclass(frozen=True, eq=False, repr=False)
class Compressed(Posterior):
    """Mean and variance from tables alone."""

    kernel: HIK
    mean_tables: PiecewiseTables | GridTables
    norms: tuple[NormTables, ...] | None  # what a low rank explains of the variance: one table, or one per output
    tops: Annotated[Array, "D"]  # the largest value of each dimension; empty where the tables are a grid already
    prior_mean: Mean | None = None  # None: 0

    def __repr__(self) -> str:
        m = self.mean_tables.T.shape[1]
        return f"Compressed({self.kernel!r}, outputs={m}, variance={self.variance_method!r})"

    @property
    def tables(self) -> PiecewiseTables | GridTables:
        return self.mean_tables

    @property
    def variance_method(self) -> Method | None:
        return None if self.norms is None else "lowrank"

    def mean(self, X: Any) -> Array:
        return plus(self.prior_mean, X, walk(self.kernel, self.mean_tables, X))

    def variance(self, X: Any) -> Array:
        if self.norms is None:
            no_variance()
        return unexplained(self.norms, self.kernel.features(X))

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        if self.norms is None:
            no_variance()
        features = self.kernel.features(X)
        mean = walk(self.kernel, self.mean_tables, X, features)
        return plus(self.prior_mean, X, mean), unexplained(self.norms, features)

    def quantized(self, bins: int) -> Compressed:
        tables = check_bins(self.mean_tables, bins)
        return replace(self, mean_tables=quantize(tables, self.tops, self.kernel.features, bins))

    def compressed(self) -> Compressed:
        return self


def walk(
    kernel: HIK | TabledGram,
    tables: PiecewiseTables | GridTables | None,
    X: Annotated[Any, "b, d"],
    features: sp.csr_matrix | None = None,  # those of X, where they are known
) -> Annotated[Array, "b, m"]:
    """The tables at the rows of X."""
    if isinstance(tables, GridTables):
        return tables.walk(sp.csr_matrix(X))
    assert tables is not None
    return tables.walk(kernel.features(X) if features is None else features)


def unexplained(norms: tuple[NormTables, ...], features: sp.csr_matrix) -> Annotated[Array, "b, 1 | b, m"]:
    """k(x, x) less what the directions behind the tables explain, from 0 to k(x, x)."""
    prior = np.asarray(features.sum(axis=1))
    known = np.empty((prior.size, len(norms)))
    for j, tables in enumerate(norms):
        known[:, j] = tables.squared_norms(features)
    return np.asarray(np.clip(prior - known, 0.0, prior))


def check_bins(tables: object, bins: object) -> PiecewiseTables:
    """The tables, once they and the number of steps are known to be good for quantising."""
    if not isinstance(tables, PiecewiseTables):
        raise InvalidInput("Only a fitted HIK model that is not quantised yet has tables to quantise.")
    if not isinstance(bins, int) or not 2 <= bins <= limits.TABLE_BINS:
        wanted = f"`bins` must be a whole number from 2 to {limits.TABLE_BINS}"
        raise InvalidParameter(f"{wanted}, got {bins!r}. The default is 256.")
    return tables


def compress(gp: GP) -> Compressed:
    """The tables of a fitted process; an error where its kernel has none."""
    if not isinstance(gp.gram, TabledGram):
        raise ModelFileError(
            f"A {type(gp.kernel).__name__} model has no tables: it predicts from its training examples. Save it with "
            "examples=True to keep them in the file, or use HIK()."
        )
    norms, tables = None if gp.variance_method is None else gp.inverse.norms, gp.tables
    assert tables is not None
    mean = None if gp.prior_mean is None else gp.prior_mean.function
    return Compressed(gp.gram.kernel, tables, norms, gp.gram.tops, mean)


def no_variance() -> NoReturn:
    """Complain of a model without variance."""
    raise InvalidInput('This model was fitted with variance=None, so it has none. Fit it with variance="auto".')
