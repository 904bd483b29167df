"""A second engine, as an outsider would write it: rows and codes lie in files that are mapped into memory.

Compiled loops visit block after block, so the operating system reads what they ask for and drops it again. Nothing but
`saccade.kernels.engines` and what it names is needed for it.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import scipy.sparse as sp

from saccade.kernels.dense_gram import StreamedGram
from saccade.kernels.intersection_gram import Coding, IntersectionGram, intersection_gram
from saccade.operators.codes import Codes
from saccade.operators.intersection import intersection
from saccade.operators.intersection_base import Intersection

Array = np.ndarray[Any, np.dtype[Any]]


class DiskEngine:
    """Files in a folder that go when nothing needs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def dense(self, kernel: Any, X: Any, weight: Array | None, held: bool) -> StreamedGram:
        rows = self.mapped(X.toarray() if sp.issparse(X) else X.astype(np.float64))
        return StreamedGram(kernel.resolved(rows, weight), rows)

    def intersection(self, kernel: Any, X: Any, weight: Array | None, coding: Coding) -> IntersectionGram:
        return intersection_gram(kernel, X, weight, coding, self.operate)

    def operate(self, codes: Codes, levels: Array) -> Intersection:
        """The products of codes that are put into files first."""
        big = {name: getattr(codes, name) for name in ("codes", "rows", "starts") if hasattr(codes, name)}
        found = {name: self.mapped(values) for name, values in big.items() if values is not None}
        return intersection(replace(codes, **found), levels)

    def mapped(self, values: Array) -> Array:
        """The numbers in a file that is mapped into memory; changes stay in memory."""
        if not values.size:
            return values
        with TemporaryFile(dir=self.folder) as file:  # it is gone with the last map of it
            np.ascontiguousarray(values).tofile(file)
            file.flush()
            return np.asarray(np.memmap(file, values.dtype, "c", shape=values.shape))


def is_mapped(values: Any) -> bool:
    """Whether numbers lie in a file."""
    while isinstance(values, np.ndarray) and not isinstance(values, np.memmap):
        values = values.base
    return isinstance(values, np.memmap)
