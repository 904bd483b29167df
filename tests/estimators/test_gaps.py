"""NaN and infinities: our own error says where the first one is and what to do, in `fit` and `predict` of all."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saccade import SVDD, GPClassifier, GPRegressor, OneClassGP
from saccade._core.errors import InvalidInput

X = np.random.default_rng(0).random((12, 3))
y = np.arange(12) % 2
ESTIMATORS = [GPClassifier(), GPRegressor(), OneClassGP(), SVDD()]


def gapped(value: float) -> Any:
    bad = X.copy()
    bad[4, 1] = bad[7, 2] = value
    return bad


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, np.ndarray.tolist], ids=["dense", "sparse", "list"])
def test_a_gap_is_found_in_fit_and_predict(
    estimator: Any, value: float, shown: str, form: Callable[[Any], Any]
) -> None:
    bad = form(gapped(value))
    message = rf"`X` must be finite numbers, got {shown} at X\[4, 1\], 2 such value"
    with pytest.raises(InvalidInput, match=message):
        estimator.fit(bad, y)
    with pytest.raises(InvalidInput, match=message):
        estimator.fit(X, y).predict(bad)


def test_a_gap_in_a_table_of_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas reads tables: pip install saccade[tables]")
    table = pandas.DataFrame(X, columns=["a", "b", "c"]).astype("Float64")
    table.loc[4, "b"] = pandas.NA
    with pytest.raises(InvalidInput, match=r"got NaN at X\[4, 1\]"):
        GPClassifier().fit(table, y)


def test_gaps_in_targets_and_weights() -> None:
    with pytest.raises(InvalidInput, match=r"got NaN at y\[3\]"):
        GPRegressor().fit(X, np.where(np.arange(12) == 3, np.nan, y))
    with pytest.raises(InvalidInput, match=r"got inf at sample_weight\[5\]"):
        GPClassifier().fit(X, y, sample_weight=np.where(np.arange(12) == 5, np.inf, 1.0))


def test_other_faults_stay_as_they_were() -> None:
    with pytest.raises(ValueError, match="could not convert string"):
        GPClassifier().fit([["a", "b"], ["c", "d"]], [0, 1])
