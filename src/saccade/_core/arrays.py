"""The types of arrays and of arguments that many take. A shape stands beside the type: `Annotated[Array, "n, d"]`."""

from os import PathLike
from typing import Annotated, Any, TypeAlias

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
PerRow: TypeAlias = Annotated[Array, "n"]  # one number for each example
FilePath: TypeAlias = str | PathLike[str]
RandomSource: TypeAlias = int | np.random.RandomState | np.random.Generator | None  # what `random_state` may be
