"""Some rows of codes, and codes in the other layout: entries are moved, no value is coded again.

A CSR matrix made of coordinates is a counting sort, one pass over the entries; it keeps the order of equal keys.
"""

from typing import Annotated

import numpy as np
import scipy.sparse as sp

from saccade._core.arrays import Array
from saccade.operators.codes import CodeBlocks, Codes, SortedColumns, block_bases, even_rows, row_type, suiting_rows
from saccade.operators.decode import entries, new_numbers


def subset(
    codes: Codes,
    rows: Annotated[Array, "b"],  # ascending row numbers
    most_rows: int | None = None,  # of a block; None: as the cache likes it
) -> Codes:
    """Codes of some of the rows, in the layout and with the levels of all."""
    (n, D), count = codes.shape, rows.size
    if isinstance(codes, SortedColumns):
        row = new_numbers(n, rows)[codes.rows]
        kept = np.flatnonzero(row >= 0)  # still in ascending order of their values
        starts = np.searchsorted(kept, codes.starts)
        return SortedColumns((count, D), starts, row[kept].astype(row_type(count)), codes.values[kept])
    column, row, code = entries(codes, new_numbers(n, rows))
    most_rows = most_rows or suiting_rows(codes.shape, codes.codes.size, codes.rows is None)
    bases = block_bases(count, even_rows(count, most_rows))
    block = np.searchsorted(bases, row, side="right") - 1
    shape = ((bases.size - 1) * D, int(np.diff(bases).max(initial=0)))
    found = sp.csr_matrix((code, (block * D + column, row - bases[block])), shape=shape)
    numbers = None if codes.rows is None else found.indices.astype(np.uint16)
    starts = found.indptr.astype(np.int64)
    return CodeBlocks((count, D), bases, starts, numbers, found.data, codes.level_starts, codes.values)


def sorted_columns(codes: Codes) -> SortedColumns:
    """Codes as sorted columns, whose products and exact derivatives are quicker for few rows."""
    if isinstance(codes, SortedColumns):
        return codes
    n = codes.shape[0]
    column, row, code = entries(codes, np.arange(n))
    some = code > 0
    level = codes.level_starts[column[some]] + code[some]
    found = sp.csr_matrix((code[some], (level, row[some])), shape=(codes.values.size, n))
    ends = found.indptr.astype(np.int64)  # level after level, each with its rows in order
    values = np.repeat(codes.values, np.diff(ends))
    return SortedColumns(codes.shape, ends[codes.level_starts], found.indices.astype(row_type(n)), values)
