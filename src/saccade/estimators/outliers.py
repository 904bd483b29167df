"""The conventions of scikit-learn's outlier detectors, written once."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from saccade._core.arrays import Array


class Outliers(OutlierMixin):
    """Scores say how normal an example is; it is novel below `offset_`."""

    @property
    @abstractmethod
    def offset_(self) -> float:
        """The score below which an example is novel."""

    @abstractmethod
    def score_samples(self, X: Any) -> Array:  # (n,)
        """Higher is more normal."""

    def decision_function(self, X: Any) -> Array:  # (n,)
        """`score_samples` less `offset_`: negative for novelties."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> Array:  # (n,)
        """1 for normal examples, −1 for novelties."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
