"""Our detectors for those who work with PyOD: its base class, its names and its signs."""

from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.errors import InvalidParameter
from saccade.estimators.one_class import OneClassGP
from saccade.estimators.predictor import OutlierScorer
from saccade.scores.novelty import ROUNDING

try:
    from pyod.models.base import BaseDetector
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("PyODDetector needs PyOD: pip install pyod", name=error.name) from None

__all__ = ["PyODDetector"]


class PyODDetector(BaseDetector):
    """A detector of ours as one of PyOD's: scores are higher for more abnormal examples, labels are 1 for outliers.

    Parameters
    ----------
    detector : default OneClassGP()
        Any detector with `fit` and `score_samples`, ours or scikit-learn's. A copy of it is trained.
    contamination : float above 0, at most 0.5, or a PyThresh object
        The share of outliers among the training examples: PyOD's threshold comes from it, whatever threshold the
        detector has for itself.

    Attributes
    ----------
    detector_ : the trained copy.
    decision_scores_ : array of shape (n,)
        Scores of the training examples, each predicted by all the others where the detector can tell.
    threshold_, labels_ : as every PyOD detector has them.

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.estimators.svdd import SVDD
    >>> X = np.append(np.random.default_rng(0).random((99, 2)), [[9.0, 9.0]], axis=0)
    >>> model = PyODDetector(SVDD(nu=0.1), contamination=0.01).fit(X)
    >>> int(model.labels_.argmax()), model.predict(np.array([[0.5, 0.5], [8.0, 9.0]]))
    (99, array([0, 1]))
    """

    def __init__(self, detector: OutlierScorer | None = None, contamination: Any = 0.1) -> None:
        super().__init__(contamination=contamination)
        self.detector = detector

    def fit(self, X: Any, y: Any = None) -> Self:
        self._check()
        self._set_n_classes(y)
        self.detector_ = clone(OneClassGP() if self.detector is None else self.detector).fit(X)
        scores = getattr(self.detector_, "leave_one_out_scores_", None)
        self.decision_scores_ = -np.asarray(self.detector_.score_samples(X) if scores is None else scores)
        self._process_decision_scores()
        if isinstance(self.contamination, float | int):
            # Equal examples score alike but for rounding: none is an outlier where the threshold is their score.
            self.threshold_ += ROUNDING * max(1.0, abs(self.threshold_))
            self.labels_ = (self.decision_scores_ > self.threshold_).astype(int)
        return self

    def decision_function(self, X: Any) -> Annotated[Array, "n"]:
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        return -np.asarray(self.detector_.score_samples(X))

    def _check(self) -> None:
        """PyOD checks when the object is made, not after `set_params`."""
        share = self.contamination
        if hasattr(share, "fit"):  # PyThresh
            return
        if isinstance(share, bool) or not isinstance(share, float | int) or not 0.0 < share <= 0.5:
            raise InvalidParameter(
                f"`contamination` must be above 0 and at most 0.5, got {share!r}. PyOD's default is 0.1."
            )
