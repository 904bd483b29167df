"""Examples kept as they came: drawn from all of them alike, also when more come later."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saccade._core import limits
from saccade.kernels.raw_rows import raw_rows

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_numbers_go_with_their_rows(form: Any) -> None:
    X, rng = np.arange(6000.0)[:, None], np.random.default_rng(0)
    kept = raw_rows(form(X[:5000]), rng)
    assert kept.numbers.size == limits.EXAMPLES_COMPARED
    more = raw_rows(form(X[5000:]), rng, kept, 5000)
    for some in (kept, more):
        assert (np.diff(some.numbers) > 0).all()
        values = some[some.numbers[10:20]]
        np.testing.assert_array_equal(
            np.asarray(values.todense() if sp.issparse(values) else values)[:, 0], some.numbers[10:20]
        )
    assert more.numbers.size == limits.EXAMPLES_COMPARED
    assert (more.numbers >= 5000).sum() == round(limits.EXAMPLES_COMPARED / 6)


def test_few_are_all_kept() -> None:
    kept = raw_rows(np.eye(3), np.random.default_rng(0))
    assert raw_rows(np.eye(3)[:2], np.random.default_rng(0), kept, 3).numbers.tolist() == [0, 1, 2, 3, 4]
