"""Query strategies of scikit-activeml, asked through `query`."""

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

from saccade._core.arrays import Array
from saccade._core.errors import InvalidParameter
from saccade.estimators.classifier import GPClassifier
from saccade.estimators.predictor import Predictor

MODEL_NAMES = ("clf", "estimator", "discriminator")  # what strategies call the classifier they want


def query_by(strategy: Any, X: Any, rows: Array, labels: Array, clf: Predictor | None, **options: Any) -> Any:
    """What `strategy.query` answers, with our classifier where it wants one. X is made dense, because it needs that."""
    name = type(strategy).__name__
    if not callable(getattr(strategy, "query", None)):
        raise InvalidParameter(f"`strategy` must be a name or a query strategy of scikit-activeml, got {strategy!r}.")
    missing = getattr(strategy, "missing_label", np.nan)
    if missing is None or missing == missing:
        raise InvalidParameter(f"{name} has missing_label={missing!r}. Leave it at NaN: `query` numbers the classes.")
    classes, number = np.unique(labels, return_inverse=True)
    y = np.full(X.shape[0], np.nan)
    y[rows] = number
    wanted = inspect.signature(strategy.query).parameters
    options |= {model: _wrapped(clf, max(classes.size, 2)) for model in MODEL_NAMES if model in wanted}
    required = [key for key, parameter in wanted.items() if parameter.default is parameter.empty]
    unknown = [key for key in required if key not in (*options, "X", "y")]
    if unknown:
        raise InvalidParameter(
            f"{name} also needs {', '.join(unknown)}, which `query` does not have. Call its own `query`."
        )
    found = strategy.query(X=_dense(X), y=y, **{key: _dense(value) for key, value in options.items()})
    if options["return_utilities"]:
        return np.asarray(found[0], np.int64), np.asarray(found[1])
    return np.asarray(found, np.int64)


def _wrapped(clf: Predictor | None, classes: int) -> Any:
    """The classifier as scikit-activeml wants it: it knows its classes beforehand and takes NaN for no label."""
    from skactiveml.base import SkactivemlClassifier
    from skactiveml.classifier import SklearnClassifier

    model = GPClassifier() if clf is None else clone(clf)
    if not is_classifier(model):
        raise InvalidParameter(f"Strategies of scikit-activeml take a classifier as `clf`, got {model!r}.")
    known = {"classes": np.arange(classes), "missing_label": np.nan}
    return model.set_params(**known) if isinstance(model, SkactivemlClassifier) else SklearnClassifier(model, **known)


def _dense(value: Any) -> Any:
    return value.toarray() if sp.issparse(value) else value
