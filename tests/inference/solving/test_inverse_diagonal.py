"""The estimated diagonal of (K + N)⁻¹ against the dense one: it is as good as it says, and says it everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from saccade._core.errors import InvalidInput
from saccade.datasets.synthetic import histograms
from saccade.inference.solving.closed_form import leave_one_out, turning_points
from saccade.inference.solving.diagonal_estimate import Check, checked, estimate, known_of
from saccade.inference.solving.inverse_diagonal import CUBES, PAIRS, WANTED, Probes
from saccade.inference.solving.regression import Solution, Solving, solve
from saccade.kernels import HIK
from saccade.kernels.intersection_gram import resolved_on_codes
from saccade.operators.base import Dense
from saccade.operators.codes import encode
from saccade.operators.intersection_base import Intersection
from saccade.scores.accuracy import left_out_accuracy
from saccade.scores.probability import class_means
from saccade.solvers.cholesky import factorise
from saccade.solvers.nystrom import build
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
digits, label = load_digits(return_X_y=True)
digits, label = digits[:900] / 16.0, label[:900]


def pictures_like(n: int) -> Array:
    """Smooth random pictures of very different brightness, as clothes are."""
    rng = np.random.default_rng(1)
    shapes = np.cumsum(np.cumsum(rng.standard_normal((12, 14, 14)), axis=1), axis=2).reshape(12, -1)
    return np.maximum(0.0, rng.gamma(1.0, size=(n, 1)) * (rng.dirichlet(np.full(12, 0.3), n) @ shapes))


def problem(X: Any) -> tuple[Intersection, Array]:
    """The operator and the matrix."""
    codes = encode(X)
    kernel = resolved_on_codes(HIK(), HIK(scale=1.0).operator(codes))[0]
    return kernel.operator(codes), np.asarray(kernel(X))


def exact_diagonal(dense: Array, noise: Array) -> Array:
    return np.column_stack([np.linalg.inv(dense + np.diag(column)).diagonal() for column in noise.T])


def solved(K: Intersection, dense: Array, noise: Array, seed: int = 0, **options: Any) -> Solution:
    Y = np.random.default_rng(9).standard_normal((len(dense), max(noise.shape[1], 2)))
    Y = Y[:, : noise.shape[1]] if noise.shape[1] > 1 else Y
    limits = {name: options.pop(name) for name in ("most_kept", "probe_work") if name in options}
    return solve(K, noise, Y, Solving(**{"solver": "cg", "seed": seed, "leave_one_out": True, **options}), **limits)


def off(exact: Array, found: Solution) -> float:
    """What `error` claims to be."""
    return float(np.sqrt(np.square(exact / found.inverse_diagonal - 1.0).mean()))


def even(noise: float) -> Any:
    return lambda n: np.full((n, 1), noise)


def per_class(n: int) -> Array:
    own = label[:n, None] == np.arange(3)
    return 0.2 * np.where(own, own.mean(axis=0), 1.0 - own.mean(axis=0))


def uneven(n: int) -> Array:
    return 0.1 / np.random.default_rng(5).choice([0.1, 1.0, 10.0], (n, 1))


@pytest.mark.parametrize("work", [1e9, 2e7, 1e-9], ids=["as much as it takes", "probes", "few probes"])
@pytest.mark.parametrize(
    ("data", "noise"),
    [
        ("digits", even(0.1)),
        ("digits", even(0.01)),
        ("digits", even(0.001)),
        ("digits", per_class),
        ("digits", uneven),
        ("pictures", even(0.1)),
        ("pictures", even(0.01)),
        ("words", even(0.1)),
    ],
    ids=["digits 0.1", "0.01", "0.001", "a noise per class", "weights", "pictures 0.1", "pictures 0.01", "words"],
)
def test_the_error_is_what_it_says(data: str, noise: Any, work: float) -> None:
    """Where many probes would be asked for, a factor takes their place, and there is no error."""
    X = {
        "digits": lambda: digits,
        "pictures": lambda: pictures_like(900),
        "words": lambda: histograms(900, D=200, nonzeros=40, rng=np.random.default_rng(0))[0],
    }[data]()
    K, dense = problem(X)
    N = noise(900)
    exact = exact_diagonal(dense, N)
    for seed in range(3):
        found = solved(K, dense, N, seed, probe_work=work)
        assert found.factors == ()
        if work == 1e9 and (data, np.ptp(N), N.max()) != ("digits", 0.0, 0.1):
            assert found.error == 0.0
            np.testing.assert_allclose(found.inverse_diagonal, exact, rtol=1e-9)
            continue
        true = off(exact, found)
        assert true < 1.1 * found.error
        assert true > 0.3 * found.error
        assert found.error < (WANTED if work == 1e9 else 0.5)
        assert (found.inverse_diagonal <= 1.0 / N).all()
        assert (found.inverse_diagonal >= 1.0 / (N + dense.diagonal()[:, None]) - 1e-12).all()


def test_where_a_factor_costs_too_much_there_are_as_many_probes_as_it_takes() -> None:
    K, dense = problem(pictures_like(2900))
    noise = np.full((2900, 1), 0.1)
    exact = factorise(dense, noise[:, 0]).inverse_diagonal()[:, None]
    for seed in range(3):
        found = solved(K, dense, noise, seed)
        assert 0.0 < found.error <= WANTED
        assert 0.3 * found.error < off(exact, found) < 1.2 * found.error


@pytest.mark.parametrize("noise", [even(0.1), per_class], ids=["one column", "a noise per class"])
def test_a_factor_may_take_twice_as_long_as_probes(noise: Any) -> None:
    K, dense = problem(digits[:300])
    N = noise(300)
    reads = 300 * (K.work / PAIRS + N.shape[1] * 300**2 / CUBES)
    probes = Probes(K, N, None, 100, np.random.default_rng(0))
    assert probes._exact(0.49 * reads) is None
    np.testing.assert_allclose(probes._exact(0.51 * reads), exact_diagonal(dense, N), rtol=1e-9)


def test_rounding_that_spoils_a_factor_leaves_the_probes() -> None:
    """Equal rows with next to no noise have no factor in float64."""
    X = np.repeat(np.random.default_rng(0).random((60, 40)), 5, axis=0)
    K, dense = problem(X)
    noise = np.full((300, 1), 1e-17)
    with pytest.raises(InvalidInput):
        factorise(dense, noise[:, 0])
    with pytest.warns(ConvergenceWarning):
        found = solved(K, dense, noise, max_iter=5)
    assert found.error > 0.0
    assert np.isfinite(found.inverse_diagonal).all()


def test_the_low_rank_tells_examples_apart() -> None:
    """Without it, and with the same probes, the regression misses more."""
    K, dense = problem(digits)
    noise = np.full(900, 0.01)
    inverse = np.linalg.inv(dense + np.diag(noise))
    Z = np.random.default_rng(0).choice([-1.0, 1.0], (900, 40))
    low = build(K, noise, np.random.default_rng(1).permutation(900)[:128])
    missed = []
    column = noise[:, None]
    for known in (known_of(K, column, low)[:, 0], known_of(K, column, None)[:, 0], np.zeros((900, 1))):
        found = estimate(Z * (inverse @ Z), noise, dense.diagonal(), known)
        assert np.sqrt(np.square(inverse.diagonal() / found.value - 1.0).mean()) < 1.1 * found.error
        missed.append(found.missed)
    assert missed[0] < 0.9 * missed[1] < 0.9 * 0.7 * missed[2]


def test_few_examples_and_empty_ones() -> None:
    X = np.array([[0.2, 0.5], [0.0, 0.0], [0.2, 0.5], [0.7, 0.1]])
    for n in (1, 2, 4):
        K, dense = problem(X[:n])
        for noise in (np.full((n, 1), 0.1), np.random.default_rng(0).uniform(0.01, 1.0, (n, 3))):
            found = solved(K, dense, noise)
            assert off(exact_diagonal(dense, noise), found) <= found.error < 1e-5


def test_nothing_is_estimated_where_it_is_not_wanted_or_known() -> None:
    K, dense = problem(digits[:100])
    noise = np.full((100, 1), 0.1)
    assert np.isnan(solved(K, dense, noise, leave_one_out=False).error)
    direct = solved(K, dense, noise, solver="cholesky")
    assert direct.error == 0.0
    np.testing.assert_allclose(direct.inverse_diagonal, exact_diagonal(dense, noise), rtol=1e-10)


def test_few_examples_are_exact_with_any_number_of_noises() -> None:
    """Factors that are too many to keep are used one after the other."""
    K, dense = problem(digits[:60])
    noise = np.random.default_rng(0).uniform(0.05, 0.2, (60, 40))
    kept = solved(K, dense, noise, solver="auto")
    found = solved(K, dense, noise, solver="auto", most_kept=39 * 60 * 60)
    assert (len(kept.factors), len(found.factors), found.error) == (40, 0, 0.0)
    np.testing.assert_array_equal(found.alpha, kept.alpha)
    np.testing.assert_allclose(found.inverse_diagonal, exact_diagonal(dense, noise), rtol=1e-10)


def test_much_in_few_dimensions_tells_examples_apart() -> None:
    """Told the exact diagonal twice, the error is what the regression cannot tell: more where K is no sum."""
    K, dense = problem(histograms(900, D=200, nonzeros=40, rng=np.random.default_rng(0))[0])
    column, inverse = np.full((900, 1), 0.01), np.linalg.inv(dense + 0.01 * np.eye(900))
    check = Check(np.arange(900), np.repeat(inverse.diagonal()[:, None], 2, axis=1))
    with_squares, without = (
        checked(column[:, 0], dense.diagonal(), known_of(operator, column, None)[:, 0], check)[1]
        for operator in (K, Dense(dense))
    )
    assert with_squares < 0.85 * without


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("probes", [2, 5])
@pytest.mark.parametrize("noise", [0.1, 0.01])
def test_a_check_at_few_examples_tells_the_error(
    probes: int, noise: float, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five draws: the error of the regression is neither too small nor far too large, whatever rounding does.

    Rows have the sum one, so that k(x, x) is constant but for rounding.
    """
    monkeypatch.setenv("SACCADE_NUM_THREADS", threads)
    X = histograms(1500, D=150, nonzeros=40, rng=np.random.default_rng(0))[0]
    dense = problem(X)[1]
    column, inverse = np.full((1500, 1), noise), np.linalg.inv(dense + noise * np.eye(1500))
    chances = np.square(inverse / inverse.diagonal()[:, None]).sum(axis=1) - 1.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        places = np.sort(rng.permutation(1500)[:150])
        sparse = np.zeros((1500, probes))
        sparse[places] = rng.choice([-1.0, 1.0], (150, probes))
        check = Check(places, (sparse * (inverse @ sparse))[places])
        rounded = X.copy()
        rounded.data *= 1.0 + 1e-15 * rng.standard_normal(rounded.nnz)
        known = known_of(problem(rounded)[0], column, None)[:, 0]
        value, error, chance = checked(column[:, 0], dense.diagonal(), known, check)
        true = float(np.sqrt(np.square(inverse.diagonal() / value - 1.0).mean()))
        assert true < 1.1 * error
        assert error < 3.0 * true
        assert 0.5 * chances.mean() < chance < 2.0 * chances.mean()
        tilted = Check(places, check.probed * np.where(np.arange(150) % 2, 1.3, 0.7)[:, None])
        assert checked(column[:, 0], dense.diagonal(), known, tilted)[1] > 0.25


def test_what_is_constant_but_for_rounding_tells_nothing() -> None:
    """A column of rounding errors, or one that repeats another, leaves the regression as it is without them."""
    rng = np.random.default_rng(0)
    known = rng.standard_normal((600, 2))
    diagonal = np.exp(0.1 * known[:, 0])
    places = np.arange(0, 600, 3)
    check = Check(places, diagonal[places, None] * np.exp(0.1 * rng.standard_normal((200, 2))))
    noise, prior = np.full(600, 0.5), np.full(600, 5.0)
    expected = checked(noise, prior, known, check)
    for scale in (0.0, 1e-15, 1e-12):
        rounding = scale * rng.standard_normal((600, 1))
        found = checked(noise, prior, np.hstack([3.0 + rounding, known]), check)
        assert_close(found[0], expected[0])
        assert found[1] == pytest.approx(expected[1], rel=0.05)
        twice = checked(noise, prior, np.hstack([known, known[:, :1] + rounding]), check)
        np.testing.assert_allclose(twice[0], expected[0], rtol=0.05)


def many_classes(n: int, classes: int) -> tuple[Array, Array]:
    """Classes that overlap much: the decisions about an example differ by less than labels by far."""
    rng = np.random.default_rng(0)
    centres, y = rng.gamma(0.5, 1.0, (classes, 60)), np.arange(n) % classes
    return rng.gamma(0.7, 1.0, (n, 60)) * (centres[y] + 0.6), y


def test_the_error_counts_the_noise_of_the_regression() -> None:
    """Twenty terms from few noisy values: of twenty draws two at most are off by more than they say, and by little."""
    K, dense = problem(many_classes(1200, 60)[0])
    noise, inverse = np.full(1200, 0.1), np.linalg.inv(dense + 0.1 * np.eye(1200))
    low = build(K, noise, np.random.default_rng(1).permutation(1200)[:128])
    known, share = known_of(K, noise[:, None], low)[:, 0], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        places = np.sort(rng.permutation(1200)[:200])
        signs = rng.choice([-1.0, 1.0], (200, 4))
        check = Check(places, signs * (inverse[np.ix_(places, places)] @ signs))
        value, error, _ = checked(noise, dense.diagonal(), known, check)
        share.append(np.sqrt(np.square(inverse.diagonal() / value - 1.0).mean()) / error)
    assert (np.array(share) > 1.0).sum() <= 2
    assert max(share) < 1.4
    assert np.median(share) > 0.5


@pytest.mark.parametrize("probes", [2, 6])
def test_full_probes_tell_their_error(probes: int) -> None:
    """Ten draws of probes over all examples: no stated error is too small by much, and none is far too large."""
    K, dense = problem(many_classes(600, 30)[0])
    noise, inverse = np.full(600, 0.1), np.linalg.inv(dense + 0.1 * np.eye(600))
    known, share = known_of(K, noise[:, None], None)[:, 0], []
    for seed in range(10):
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (600, probes))
        found = estimate(signs * (inverse @ signs), noise, dense.diagonal(), known)
        share.append(np.sqrt(np.square(inverse.diagonal() / found.value - 1.0).mean()) / found.error)
    assert max(share) < 1.5
    assert min(share) > 0.3


def test_few_examples_count_the_probes_alike() -> None:
    """Below 100 examples there is one group: what its probes say beside the regression has one share for all."""
    rng = np.random.default_rng(0)
    noise, prior, known = np.full(90, 0.5), np.full(90, 5.0), rng.standard_normal((90, 2))
    probed = 1.0 + 0.1 * rng.standard_normal((90, 4))  # far from both bounds, 1/5.5 and 2
    found = estimate(probed, noise, prior, known)
    moved, said = found.value / found.fitted - 1.0, probed.mean(axis=1) / found.fitted - 1.0
    assert_close(moved, (moved @ said) / (said @ said) * said)


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_the_turning_point_is_where_the_class_changes(classes: int) -> None:
    rng = np.random.default_rng(0)
    own = rng.integers(classes, size=300)
    Y = np.where(own[:, None] == np.arange(classes), 1.0, -1.0)
    alpha = Y * rng.gamma(2.0, size=Y.shape)
    Y, alpha = (Y[:, 1:], alpha[:, 1:]) if classes == 2 else (Y, alpha)
    turns = turning_points(Y, alpha)
    for factor, right in ((1.01, True), (0.99, False)):
        mean = class_means(leave_one_out(Y, alpha, factor * turns[:, None], np.ones((300, 1)))[0])
        np.testing.assert_array_equal(mean.argmax(axis=1) == own, right)


def test_where_decisions_hang_on_the_diagonal_a_factor_makes_it() -> None:
    """Where that costs no more than probes may."""
    X, y = many_classes(1200, 60)
    K, dense = problem(X)
    noise, Y = np.full((1200, 1), 0.5), np.where(y[:, None] == np.arange(60), 1.0, -1.0)
    solving = Solving("cg", leave_one_out=True)
    found = solve(K, noise, Y, solving)
    assert (found.error, found.factors) == (0.0, ())
    np.testing.assert_allclose(found.inverse_diagonal, exact_diagonal(dense, noise), rtol=1e-9)
    assert solve(K, noise, Y, solving, probe_work=5e7).error > 0.0
    two = np.where(X.sum(axis=1) > 60.0, 1.0, -1.0)[:, None]  # two classes, easy to tell apart
    assert solve(K, noise, two, solving).error > 0.0


def test_where_a_factor_costs_too_much_probes_take_the_bias_away() -> None:
    """Its mean is off by a few thousandths, and the leave-one-out accuracy by no more than its error."""
    X, y = many_classes(3000, 150)
    K, dense = problem(X)
    noise, Y = np.full((3000, 1), 0.1), np.where(y[:, None] == np.arange(150), 1.0, -1.0)
    factor = factorise(dense, noise[:, 0])
    exact = factor.inverse_diagonal()[:, None]
    share = ((Y - factor.solve(Y) / exact).argmax(axis=1) == y).mean()
    bias = []
    for seed in range(4):
        found = solve(K, noise, Y, Solving("cg", seed=seed, leave_one_out=True), probe_work=1e7)
        bias.append((exact / found.inverse_diagonal - 1.0).mean())
        said, error = left_out_accuracy(Y - found.alpha / found.inverse_diagonal, y, found.error)
        assert abs(said - share) < 2.0 * error
        assert 0.0 < error < 0.1
    assert np.sqrt(np.square(bias).mean()) < 0.006
