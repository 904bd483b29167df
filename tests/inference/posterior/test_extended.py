"""Further examples: a factor that grows answers as one made anew, warns as it does, and stops where the solver says."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import LinAlgWarning

from saccade import GPClassifier, GPRegressor, Tune
from saccade._core import limits
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.inference.approximations.by_name import Approximating
from saccade.inference.approximations.low_rank import hold_out
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.regression import Solving
from saccade.kernels import HIK, RBF, Kernel, Power
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
rng = np.random.default_rng(0)
X, NEW = rng.random((60, 4)), rng.random((9, 4)) * 1.3
LABEL = X[:, :3].argmax(axis=1)
Y, NOISE = rng.standard_normal((60, 2)), np.full((60, 1), 0.1)
kernels = pytest.mark.parametrize("kernel", [HIK(scale=0.3), RBF(0.8)], ids=["HIK", "RBF"])


def grown(kernel: Kernel, n: int = 40, **solving: Any) -> GP:
    gp = GP.fit(kernel.gram(X[:n]), Y[:n], NOISE[:n], solving=Solving(**solving))
    assert gp.solution.factors
    return gp.extended(X[n:], Y, NOISE)


@kernels
def test_partial_fit_with_a_growing_factor_is_fit(kernel: Kernel) -> None:
    """The scale is a number, so the kernel stays and the factor grows; the method of the variance is chosen too."""
    parts = GPClassifier(kernel, noise=0.1).partial_fit(X[:30], LABEL[:30]).partial_fit(X[30:], LABEL[30:])
    whole = GPClassifier(kernel, noise=0.1).fit(X, LABEL)
    assert parts.variance_method_ == whole.variance_method_ == "exact"
    for ask in ("decision_function", "predict_proba", "novelty"):
        np.testing.assert_allclose(getattr(parts, ask)(NEW), getattr(whole, ask)(NEW), atol=1e-9)
    assert whole.leave_one_out_accuracy_[0] > 0.6  # labels that X tells: the sharpness is not at its floor
    np.testing.assert_allclose(parts.leave_one_out_proba_, whole.leave_one_out_proba_, atol=1e-9)
    parts, whole = GPRegressor(kernel).partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:]), whole
    found, wanted = (m.predict(NEW, return_std=True) for m in (parts, GPRegressor(kernel).fit(X, Y)))
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-9)
    np.testing.assert_allclose(found[1], wanted[1], atol=1e-9)


@kernels
@pytest.mark.parametrize("columns", [1, 2])
def test_the_inverse_diagonal_grows_with_the_factor(kernel: Kernel, columns: int) -> None:
    noise = np.random.default_rng(1).uniform(0.05, 0.2, (60, columns))
    gp = GP.fit(kernel.gram(X[:40]), Y[:40], noise[:40]).extended(X[40:], Y, noise)
    assert gp.solution.factors
    K = gp.kernel(X)
    dense = [np.linalg.inv(K + np.diag(column)).diagonal() for column in noise.T]
    assert_close(gp.solution.inverse_diagonal, np.column_stack(dense))


@kernels
def test_a_factor_of_another_noise_does_not_grow(kernel: Kernel) -> None:
    gp = GP.fit(kernel.gram(X[:40]), Y[:40], NOISE[:40])
    for noise in (3.0 * NOISE, np.where(np.arange(60)[:, None] == 7, 1.0, NOISE)):
        found, wanted = gp.extended(X[40:], Y, noise), GP.fit(kernel.gram(X), Y, noise)
        assert_close(found.solution.inverse_diagonal, wanted.solution.inverse_diagonal)
        assert_close(found.mean(NEW), wanted.mean(NEW))
        assert_close(found.variance(NEW), wanted.variance(NEW))


def test_the_solver_of_now_decides() -> None:
    gp = replace(GP.fit(HIK(scale=0.3).gram(X[:40]), Y[:40], NOISE[:40]), solving=Solving("cg"))
    assert gp.extended(X[40:], Y, NOISE).solution.iterations > 0
    model = GPClassifier(HIK(scale=0.3)).partial_fit(X[:40], LABEL[:40]).set_params(solver="cg")
    assert model.partial_fit(X[40:], LABEL[40:]).n_iter_ > 1


def test_beyond_what_a_solver_factorises_no_factor_grows() -> None:
    many, noise = rng.random((2060, 2)), np.full((2060, 1), 1.0)
    y = np.sin(5.0 * many[:, :1])
    gp = GP.fit(HIK(scale=1.0).gram(many[:2040]), y[:2040], noise[:2040])
    assert gp.solution.factors
    more = gp.extended(many[2040:], y, noise)
    assert not more.solution.factors
    assert more.variance_method == "lowrank"


@kernels
def test_a_growing_factor_warns_as_one_made_anew(kernel: Kernel) -> None:
    rows, noise = np.tile(X[:20], (2, 1)), np.full((40, 1), 1e-13)
    gp = GP.fit(kernel.gram(rows[:20]), Y[:20], noise[:20])
    with pytest.warns(LinAlgWarning, match="ill-conditioned"):
        gp.extended(rows[20:], Y[:40], noise)


def test_a_factor_that_cannot_grow_is_made_anew() -> None:
    """The sentence is then the one that fit says. Equal rows are 1 alike and others 0, so every processor refuses."""
    rows, noise = np.tile(X[:20], (2, 1)), np.full((40, 1), 1e-19)
    gp = GP.fit(RBF(0.01).gram(rows[:20]), Y[:20], noise[:20])
    with pytest.raises(InvalidInput, match="with noise 1e-19 is not positive definite"):
        gp.extended(rows[20:], Y[:40], noise)


@kernels
@pytest.mark.parametrize("levels", [None, 8])
@pytest.mark.parametrize("first", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("then", [np.asarray, sp.csr_matrix])
def test_sparse_and_dense_rows_and_first_negative_ones(kernel: Kernel, levels: Any, first: Any, then: Any) -> None:
    signed = np.vstack([X[:40], -X[40:]])
    gp = GP.fit(kernel.gram(first(signed[:40]), levels=levels), Y[:40], NOISE[:40])
    more = gp.extended(then(signed[40:]), Y, NOISE)
    rows = more.gram.all_rows()
    if levels is None:
        whole = GP.fit(kernel.gram(signed), Y, NOISE)
        np.testing.assert_allclose(more.mean(-NEW), whole.mean(-NEW), atol=1e-9)
        np.testing.assert_allclose(more.variance(-NEW), whole.variance(-NEW), atol=1e-9)
    else:  # levels of the first call stay: the dense algebra of the rounded rows
        K = more.kernel(rows) + 0.1 * np.eye(60)
        np.testing.assert_allclose(more.solution.alpha, np.linalg.solve(K, Y), atol=1e-9)


@kernels
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_no_further_row_changes_nothing(kernel: Kernel, solver: Any) -> None:
    gp = GP.fit(kernel.gram(X), Y, NOISE, solving=Solving(solver, tol=1e-10))
    np.testing.assert_allclose(gp.extended(X[:0], Y, NOISE).mean(NEW), gp.mean(NEW), atol=1e-9)


def test_a_kernel_that_cannot_be_compared_is_solved_anew() -> None:
    """A class inside a function has no name by which joblib could hash it."""

    class Local(RBF):
        pass

    found, wanted = grown(Local(0.8)), grown(RBF(0.8))
    np.testing.assert_allclose(found.mean(NEW), wanted.mean(NEW), atol=1e-9)


@pytest.mark.parametrize("tune", [None, Tune(max_evaluations=2)])
def test_a_kernel_of_another_kind_is_refused(tune: Any) -> None:
    model = GPClassifier(HIK(Power(1.0)), tune=tune).partial_fit(X[:30], LABEL[:30])
    with pytest.raises(InvalidParameter, match="stay of one kind"):
        model.set_params(kernel=RBF(1.0)).partial_fit(X[30:], LABEL[30:])


def test_factors_grow_only_where_all_else_is_as_it_was() -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((20, 3))
    targets, noise = np.sign(rows[:, :1] - rows[:, 1:2]), np.full((20, 1), 0.1)
    first = RBF(0.5).gram(rows[:15])
    every = first.append(rows[15:], None)
    other, sod = np.where(np.arange(20) == 3, 0.2, 0.1)[:, None], Approximating("sod", "sod", inducing=np.arange(9))

    def inverse(**options: Any) -> Any:
        return GP.fit(first, targets[:15], noise[:15], **{"solving": Solving("cholesky")} | options).inverse

    assert inverse().grows_to(every, noise)
    assert not inverse().grows_to(first, noise[:15])
    assert not inverse().grows_to(every, other)
    assert not inverse().grows_to(every, np.tile(noise, (1, 2)))
    assert not inverse().grows_to(RBF(0.4).gram(rows), noise)
    assert not inverse(inference="laplace").grows_to(every, noise)
    assert not inverse(approximation=sod).grows_to(every, noise)
    assert not inverse(solving=Solving("cg")).grows_to(every, noise)


def test_what_tables_and_held_out_examples_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HELD_OUT_FROM", 30)
    rows = np.random.default_rng(0).gamma(0.7, 1.0, (60, 4))
    targets = np.sign(np.column_stack([rows[:, 0] - rows[:, 1], rows[:, 2] - rows[:, 3]]))
    low = Approximating(variance="lowrank", rank=24)
    tabled, noise = HIK(scale=0.3).gram(rows), np.full((60, 2), 0.1)
    gp = GP.fit(tabled, targets, noise[:, :1], approximation=low)
    assert gp.inverse.tabled is tabled
    assert gp.with_variance("exact").inverse.tabled is None
    assert GP.fit(RBF(1.0).gram(rows), targets, noise[:, :1], approximation=low).inverse.tabled is None
    np.testing.assert_array_equal(gp.comparable(), hold_out(np.arange(60), 60, 24, gp.solving.rng()))
    some = gp.comparable().size
    three, apart = np.hstack([targets, np.sign(rows[:, :1] - rows[:, 3:])]), np.tile(noise, (1, 2))
    cases: list[tuple[Any, int, int, int]] = [("laplace", 1, 24, some), ("laplace", 2, 24, some)]
    cases += [("laplace", 2, 64, 60), ("laplace", 3, 64, some), ("regression", 3, 64, 60)]  # 60 spans everything
    for inference, columns, rank, count in cases:  # each column of Laplace has directions of its own
        approximation = replace(low, rank=rank)
        other = GP.fit(tabled, three[:, :columns], apart[:, :columns], approximation=approximation, inference=inference)
        assert other.comparable().size == count
