"""Engines: what makes the kernel matrix of a kernel and rows, and so decides where it is held and computed.

`kernel.gram(X, engine=...)` hands itself and the rows to an engine; estimators pass on theirs. The one here holds all
in the memory of this process. Another one (rows on disk, on workers of a cluster, codes on a GPU) returns Grams of its
own, or gives `intersection_gram` another `operate`. Its Grams pass tests/kernels/test_gram.py, and nothing above
`kernels` changes (docs/decisions/047).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from saccade.kernels.dense_gram import DenseGram, StreamedGram
from saccade.kernels.gram import own_rows
from saccade.kernels.intersection_gram import Coding, intersection_gram

if TYPE_CHECKING:
    from saccade.kernels.base import Array, Kernel, Matrix
    from saccade.kernels.gram import Gram, TabledGram
    from saccade.kernels.intersection import HIK

__all__ = ["MEMORY", "Coding", "Engine", "MemoryEngine"]


class Engine(Protocol):
    """What makes kernel matrices. A Gram stays with its engine: rows are appended and subsets made where it is."""

    def dense(self, kernel: Kernel, X: Matrix, weight: Array | None, held: bool) -> Gram:
        """K of any kernel, which is settled on the training rows X (n, d) here.

        `weight` (n,) says how many copies each row stands for, None for one each; `held`, whether n² numbers may be.
        """

    def intersection(self, kernel: HIK, X: Matrix, weight: Array | None, coding: Coding) -> TabledGram:
        """K of an intersection kernel, by codes and levels; `coding` says how values become codes."""


class MemoryEngine:
    """All in the memory of this process.

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.kernels import HIK
    >>> HIK(scale=1.0).gram(np.array([[1.0], [3.0]]), engine=MemoryEngine()).to_dense()
    array([[1., 1.],
           [1., 3.]])
    """

    def dense(self, kernel: Kernel, X: Matrix, weight: Array | None, held: bool) -> Gram:
        X = own_rows(X)
        return (DenseGram if held else StreamedGram)(kernel.resolved(X, weight), X)

    intersection = staticmethod(intersection_gram)


MEMORY: Engine = MemoryEngine()
