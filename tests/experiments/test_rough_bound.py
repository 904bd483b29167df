"""The rough bound explains no more than everything does, and no less than the squared norm over λ₁."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.kernels import HIK
from tests.inference.posterior.test_variance import KERNELS, assert_below, exact, many, noises, problem
from tests.operators.histograms import LAYOUTS, encoded, histograms

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
from rough_bound import rough, rough_tables


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@many
@given(data=st.data(), level=st.floats(1e-3, 10.0), columns=st.integers(1, 3), nodes=st.integers(2, 9))
def test_explains_no_more_than_everything_does(
    kernel: HIK, data: st.DataObject, level: float, columns: int, nodes: int
) -> None:
    X, new = data.draw(histograms(dims=3)), data.draw(histograms(dims=3, top=1.5))
    operator = kernel.operator(encoded(X, data.draw(st.sampled_from(LAYOUTS))))
    K, k_star, noise = kernel(X), kernel(X, new), noises(len(X), level, columns)
    wanted = exact(K, noise, k_star).min(axis=1)
    assert_below(rough(operator, noise).explained(k_star)[:, 0], wanted, K)
    assert_below(rough_tables(operator, noise, nodes).explained(kernel.features(new)), wanted, K)


def test_is_a_share_of_the_squared_norm() -> None:
    K, k_star, operator, noise = problem()
    largest = np.linalg.eigvalsh(K + np.diag(noise[:, 0]))[-1]
    found = rough(operator, noise).explained(k_star)[:, 0]
    assert (found >= 0.9 * np.square(k_star).sum(axis=0) / largest).all()
