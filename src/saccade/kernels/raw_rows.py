"""Some training examples as they came, where the codes of a model hold only the nearest of a few levels.

New examples are not rounded to levels, so they are not compared with examples that are: at 32 levels that took half of
all normal examples for novel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array


@dataclass(frozen=True)
class RawRows:
    """Examples drawn at random from all that a model was trained on."""

    numbers: Annotated[Array, "k"]  # ascending
    X: Annotated[Any, "k, d"]  # dense or CSR

    def __getitem__(self, numbers: Annotated[Array, "b: some of those that are kept"]) -> Annotated[Any, "b, d"]:
        return self.X[np.searchsorted(self.numbers, numbers)]

    def subset(self, rows: Annotated[Array, "b: ascending"]) -> RawRows:
        """Those among some examples, by their numbers there."""
        some = np.isin(self.numbers, rows)
        return RawRows(np.searchsorted(rows, self.numbers[some]), self.X[some])


def raw_rows(
    X: Annotated[Any, "n, d"],
    rng: np.random.Generator,
    old: RawRows | None = None,  # kept of the `before` examples that came before
    before: int = 0,
    most: int = limits.EXAMPLES_COMPARED,
) -> RawRows:
    """At most `most` examples, old and new ones by their share of all."""
    n = before + X.shape[0]
    new = _some(X.shape[0], most if old is None else round(most * X.shape[0] / n), rng)
    if old is None:
        return RawRows(new, X[new])
    kept = _some(old.numbers.size, most - new.size, rng)
    rows = [old.X[kept], X[new]]
    joined = sp.vstack(rows, format="csr") if any(map(sp.issparse, rows)) else np.vstack(rows)
    return RawRows(np.append(old.numbers[kept], before + new), joined)


def _some(n: int, count: int, rng: np.random.Generator) -> Array:
    return np.sort(rng.permutation(n)[:count])
