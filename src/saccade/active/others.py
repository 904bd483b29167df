"""Query strategies of scikit-activeml, asked through `query`."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from saccade._core.errors import InvalidParameter
from saccade.active.pool import check_pool, known_labels
from saccade.estimators.classifier import GPClassifier


def query_by(strategy: Any, X: Any, y: Any, clf: Any, missing: Any, **options: Any) -> Any:
    """What `strategy.query` answers, with our classifier inside where it wants one."""
    if not callable(getattr(strategy, "query", None)):
        raise InvalidParameter(f"`strategy` must be a name or a query strategy of scikit-activeml, got {strategy!r}.")
    wanted = inspect.signature(strategy.query).parameters
    X = check_pool(X)
    rows, labels = known_labels(y, X.shape[0], missing)
    classes, number = np.unique(labels, return_inverse=True)
    known = np.full(X.shape[0], np.nan)
    known[rows] = number
    if "clf" in wanted:
        from skactiveml.classifier import SklearnClassifier

        model = GPClassifier() if clf is None else clone(clf)
        options["clf"] = SklearnClassifier(model, classes=np.arange(max(classes.size, 2)), missing_label=np.nan)
    unknown = [
        name
        for name, parameter in wanted.items()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        and name not in (*options, "X", "y")
    ]
    if unknown:
        raise InvalidParameter(
            f"{type(strategy).__name__} also needs {', '.join(unknown)}, which `query` does not have. Call its own "
            "`query` method."
        )
    return strategy.query(X=X.toarray() if sp.issparse(X) else X, y=known, **options)
