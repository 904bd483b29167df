"""Products in float32 alone."""

from __future__ import annotations

import numpy as np

from saccade.kernels import HIK
from saccade.operators.base import Single
from saccade.solvers.cg import solve_cg
from tests.operators.histograms import columns, sparse_rows
from tests.tolerances import assert_close


def test_every_product_is_in_float32_and_solves_as_well() -> None:
    K = HIK().gram(sparse_rows(300, 20))
    single, V = Single(K), columns(300, 3)
    assert (single.shape, single.work, single.backend) == (K.shape, K.work, K.backend)
    assert single.matmul(V).dtype == np.float32
    assert_close(single.matmul(V), K.matmul(V), np.float32)
    np.testing.assert_array_equal(single.diag(), K.diag())
    found = solve_cg(single, np.full((300, 1), 0.1), V, tol=1e-3)
    left = V - K.matmul(found.x) - 0.1 * found.x
    assert found.converged
    assert np.abs(left).max() < 1.1e-3
    assert_close(found.left, left, np.float32)
