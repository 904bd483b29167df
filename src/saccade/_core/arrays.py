"""The type of every array in this package."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
