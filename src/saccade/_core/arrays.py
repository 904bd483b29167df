"""The types of arrays. A shape stands beside the type, as in `Annotated[Array, "n, d"]`."""

from typing import Annotated, Any, TypeAlias

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
PerRow: TypeAlias = Annotated[Array, "n"]  # one number for each example
