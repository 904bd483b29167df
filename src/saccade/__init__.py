"""Saccade: one Gaussian process on pictures, for recognising, noticing, asking and finding."""

from saccade.estimators.classifier import GPClassifier
from saccade.estimators.model_file import load
from saccade.estimators.regressor import GPRegressor

__version__ = "0.1.0"
__all__ = ["GPClassifier", "GPRegressor", "load"]
