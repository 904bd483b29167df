"""The conventions of scikit-learn's outlier detectors, written once."""

from abc import abstractmethod
from typing import Annotated, Any, Self

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
    def score_samples(self, X: Any) -> Annotated[Array, "n"]:
        """Higher is more normal."""

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on examples of the one class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training examples.
        y : None
            Ignored; pipelines pass it.

        Returns
        -------
        self
            Fitted.
        """

    def decision_function(self, X: Any) -> Annotated[Array, "n"]:
        """Score less threshold: `score_samples` − `offset_`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n,)
            Negative for novelties.
        """
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> Annotated[Array, "n"]:
        """Verdicts: 1 for normal examples, −1 for novelties.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n,)
            1 or −1.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
