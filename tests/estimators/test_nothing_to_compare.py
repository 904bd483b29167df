"""Rows with next to no features, one row, rows of zeros: told, and not taken for the most novel."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade import OneClassGP, load
from saccade.kernels import HIK
from saccade.scores.novelty import MEASURES

rng = np.random.default_rng(0)
normal = rng.gamma(2.0, size=(60, 8))
faint = 1e-4 * rng.random((20, 8))


@pytest.mark.parametrize("measure", [m for m in MEASURES if m != "mean"])
@pytest.mark.parametrize("kernel", [HIK(), HIK(scale=1.0)], ids=repr)
def test_rows_near_zero_are_neither_normal_nor_novel(kernel: Any, measure: Any, tmp_path: Path) -> None:
    model = OneClassGP(kernel, measure=measure).fit(normal)
    with pytest.warns(UserWarning, match="20 of 21 examples have nothing to compare"):
        p = model.predict_proba(np.vstack([faint, 9.0 * np.eye(8)[:1]]))[:, 1]
    assert (np.abs(p[:-1] - 0.5) < 0.05).all()
    assert p[-1] < 0.2 or measure == "variance"
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    with pytest.warns(UserWarning, match="20 of 20 examples"):
        np.testing.assert_allclose(back.predict_proba(faint)[:, 1], p[:-1], atol=0.05)


def test_training_rows_near_zero_set_no_threshold() -> None:
    plain = OneClassGP(HIK(scale=1.0)).fit(normal)
    with pytest.warns(UserWarning, match="20 of 80 training examples have nothing to compare"):
        model = OneClassGP(HIK(scale=1.0)).fit(np.vstack([normal, faint]))
    assert model.n_known_ == plain.n_known_ == 60
    assert model.offset_ == pytest.approx(plain.offset_, rel=1e-3)
    assert not (model.leave_one_out_scores_[60:] < model.offset_).any()


def test_one_row_is_told() -> None:
    with pytest.warns(UserWarning, match="given 1 training example"):
        OneClassGP().fit(normal[:1])


def test_rows_of_zeros_are_told() -> None:
    with pytest.warns(UserWarning, match="All training examples are 0"):
        model = OneClassGP(HIK()).fit(np.zeros((5, 8)))
    with pytest.warns(UserWarning, match="5 of 65 examples have nothing"):
        scores = model.score_samples(np.vstack([np.zeros((5, 8)), normal]))
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("empty", [3, 45])
def test_zeros_among_other_rows_are_counted(empty: int) -> None:
    """Also where most of the rows are zeros, so that a usual row has no features."""
    rows = np.vstack([normal[: 60 - empty], np.zeros((empty, 8))])
    with pytest.warns(UserWarning, match=f"^{empty} of 60 training examples have nothing to compare"):
        OneClassGP(HIK(scale=1.0)).fit(rows)
