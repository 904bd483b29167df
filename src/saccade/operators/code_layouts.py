"""The two layouts of codes, chosen by measurement (docs/decisions/002); codes.py makes them."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array


@dataclass(frozen=True)
class SortedColumns:
    """Entries k of dimension d are starts[d] <= k < starts[d+1], ascending in `values`; `rows` says whose they are."""

    shape: tuple[int, int]
    starts: Annotated[Array, "D+1"]  # int64
    rows: Annotated[Array, "nnz"]  # uint16 or uint32
    values: Annotated[Array, "nnz"]  # float64

    @property
    def level_starts(self) -> Annotated[Array, "D+1"]:
        """Every entry is its own level."""
        return self.starts


@dataclass(frozen=True)
class CodeBlocks:
    """Row blocks of code columns. Dimension d has the levels values[level_starts[d]:level_starts[d+1]], the first is 0.

    Entries of (block, d) are starts[block*D + d] <= k < starts[block*D + d + 1]; entry k belongs to row
    bases[block] + rows[k], or, when `rows` is None, to the next row each (dense: zeros are there too, with code 0).
    """

    shape: tuple[int, int]
    bases: Annotated[Array, "blocks+1"]  # int64, first row of each block
    starts: Annotated[Array, "blocks*D+1"]  # int64
    rows: Annotated[Array, "nnz"] | None  # uint16
    codes: Annotated[Array, "nnz"]  # uint8
    level_starts: Annotated[Array, "D+1"]  # int64
    values: Annotated[Array, "levels"]  # float64


Codes = SortedColumns | CodeBlocks


def level_dims(starts: Annotated[Array, "D+1"]) -> Annotated[Array, "L"]:
    """The dimension of each level."""
    return np.repeat(np.arange(starts.size - 1), np.diff(starts))


def row_type(n: int) -> type[np.unsignedinteger[Any]]:
    """The type of the row numbers of `SortedColumns`."""
    return np.uint16 if n <= 65_536 else np.uint32
