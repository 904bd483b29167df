"""Which coordinates a search may move, and its steps in units of theirs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from saccade._core import limits
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.estimators.losses import DensityLosses
from saccade.inference.tuning.objective import Objective, Task
from saccade.inference.tuning.options import Tune, Tuning
from saccade.inference.tuning.search import Search, Stop, _free, tune
from saccade.kernels import HIK, RBF, Kernel, Matern

Array = np.ndarray[Any, np.dtype[Any]]


def task(kernel: Kernel, n: int = 60, d: int = 2, noise: float = 0.1) -> Task:
    rng = np.random.default_rng(0)
    X = rng.random((n, d))
    Y = np.sin(5.0 * X[:, :1]) + 0.3 * X[:, 1:2] ** 2 + 0.1 * rng.standard_normal((n, 1))
    return Task(kernel, kernel.gram(X), Y, np.ones((n, 1)), noise, DensityLosses.of(Y, None))


def test_units_do_not_change_where_the_search_ends() -> None:
    """The slope that L-BFGS-B gets is that of the coordinates in their units."""
    ends = []
    for units in ([1.0, 1.0, 1.0], [0.2, 4.0, 1.0]):
        objective = Objective(task(RBF(0.5, 2.0)), "evidence")
        objective.table[:, 3] = units
        free = np.ones(3, bool)
        search = Search(objective, free, Tuning("gradient", "evidence"), limit=200, tol=1e-7)
        with suppress(Stop):
            search.gradient(search.start)
        slope = objective(search.theta).gradient
        assert np.abs(slope).max() < 2e-3
        ends.append(search.best[0])
    assert ends[0] == pytest.approx(ends[1], abs=1e-5)


def test_what_has_no_room_does_not_move() -> None:
    names = Objective(task(RBF(0.5)), "evidence").names
    assert _free(Objective(task(RBF(0.5)), "evidence"), Tune()).all()
    assert _free(Objective(task(RBF(0.5), noise=0.0), "evidence"), Tune()).tolist() == [n != "noise" for n in names]
    fixed = _free(Objective(task(RBF(0.5)), "evidence"), Tune(fixed=("noise",)))
    assert fixed.tolist() == [name != "noise" for name in names]


@pytest.mark.parametrize(("method", "most"), [("grid", 3), ("nelder-mead", 10)])
def test_as_many_parameters_as_a_method_is_for(method: Any, most: int) -> None:
    """A length scale per dimension, an amplitude and the noise."""
    at_most = Objective(task(Matern(np.ones(most - 2)), d=most - 2) if most > 3 else task(RBF(0.5)), "evidence")
    assert _free(at_most, Tune(method)).sum() == most
    more = Objective(task(Matern(np.ones(most - 1)), d=max(most - 1, 2)), "evidence")
    with pytest.raises(InvalidParameter, match=f"up to {most} parameters"):
        _free(more, Tune(method))


def test_no_noise_is_for_what_a_factor_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FACTOR_UP_TO", 60)
    Objective(task(HIK(), noise=0.0), "evidence")
    Objective(task(RBF(1.0), n=61, noise=0.0), "evidence")  # held in memory
    Objective(task(HIK(), n=61, noise=1e-6), "evidence")
    with pytest.raises(InvalidInput, match="`noise` is 0, which tunes up to 60 examples of this kernel, got 61"):
        Objective(task(HIK(), n=61, noise=0.0), "evidence")


def test_nothing_left_to_tune_is_an_error() -> None:
    with pytest.raises(InvalidParameter, match="nothing to tune"):
        tune(task(RBF(0.5)), Tune(fixed=("noise", "length_scale", "amplitude")))
