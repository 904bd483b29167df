"""Saccade: one Gaussian process on pictures, for recognising, noticing, asking and finding."""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.estimators.classifier import GPClassifier
    from saccade.estimators.display import RelevanceDisplay, TuningDisplay
    from saccade.estimators.one_class import OneClassGP
    from saccade.estimators.pyod import PyODDetector
    from saccade.estimators.regressor import GPRegressor
    from saccade.estimators.svdd import SVDD
    from saccade.inference.tuning.options import Tune
    from saccade.loading import load

__version__ = "0.1.0"
__all__ = [
    "SVDD",
    "GPClassifier",
    "GPRegressor",
    "OneClassGP",
    "PyODDetector",
    "RelevanceDisplay",
    "Tune",
    "TuningDisplay",
    "load",
]

# scikit-learn takes seconds to load, and `saccade --help` needs none of it.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "GPClassifier": "estimators.classifier",
        "GPRegressor": "estimators.regressor",
        "OneClassGP": "estimators.one_class",
        "PyODDetector": "estimators.pyod",
        "RelevanceDisplay": "estimators.display",
        "SVDD": "estimators.svdd",
        "Tune": "inference.tuning.options",
        "TuningDisplay": "estimators.display",
        "load": "loading",
    },
)
