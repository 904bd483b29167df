"""Saccade: one Gaussian process on pictures, for recognising, noticing, asking and finding."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.estimators.classifier import GPClassifier
    from saccade.estimators.model_file import load
    from saccade.estimators.regressor import GPRegressor

__version__ = "0.1.0"
__all__ = ["GPClassifier", "GPRegressor", "load"]

_HOMES = {"GPClassifier": "classifier", "GPRegressor": "regressor", "load": "model_file"}


def __getattr__(name: str) -> Any:
    """Names load when they are first used: scikit-learn takes seconds, and `saccade --help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"saccade.estimators.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
