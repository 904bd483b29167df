"""Tuning: it finds better parameters, says how, keeps to bounds, and survives what users do to it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from saccade import GPClassifier, GPRegressor, Tune, load
from saccade._core import limits
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import listening
from saccade.datasets.synthetic import histograms
from saccade.estimators.losses import ClassLosses, DensityLosses
from saccade.inference.tuning.objective import Objective, Task
from saccade.kernels import HIK, RBF, Exponential, GeneralizedRBF, Monotone, Power, Weights
from saccade.scores.probability import cross_entropy

X, y = load_digits(return_X_y=True)
X, y = X[:240] / 16.0, y[:240]


def fitted(kernel=None, tune="gradient", **more) -> GPClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GPClassifier(kernel, tune=tune, random_state=0, **more).fit(X, y)


def objective_of(model: GPClassifier, kind: str) -> float:
    """What tuning makes small, from a model that was not tuned."""
    if kind == "evidence":
        return -model.log_marginal_likelihood("exact").value / len(X)
    return cross_entropy(model.leave_one_out_decision_, np.searchsorted(model.classes_, y))[0]


@pytest.mark.parametrize("kind", ["evidence", "loo"])
@pytest.mark.parametrize(
    "kernel",
    [HIK(), HIK(Power(1.0)), HIK(Exponential(0.0)), HIK([Power(0.5), Weights()]), HIK(Monotone(pieces=4)), RBF(2.0)],
    ids=repr,
)
def test_gradient_finds_better_parameters(kernel, kind: str) -> None:
    model = fitted(kernel, Tune(objective=kind, prior=0.0, max_evaluations=15), noise=5.0)
    record = model.tuning_
    values = [e.value for e in record.evaluations]
    assert len(values) <= 15
    assert record.best.value == min(values)
    assert values[0] - min(values) > 0.02
    again = GPClassifier(model.kernel_, noise=model.noise_).fit(X, y)
    assert objective_of(again, kind) == pytest.approx(record.best.value, rel=1e-3)
    before = GPClassifier(kernel, noise=5.0).fit(X, y)
    assert objective_of(before, kind) == pytest.approx(values[0], rel=1e-3)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_three_methods_agree_on_what_is_best() -> None:
    tunes = [
        Tune(method, "evidence", fixed=("scale",), max_evaluations=40) for method in ("gradient", "nelder-mead", "grid")
    ]
    gradient, simplex, grid = (fitted(HIK(Power(1.0)), tune, noise=5.0) for tune in tunes)
    assert len(grid.tuning_.evaluations) == 49
    assert gradient.tuning_.best.value <= grid.tuning_.best.value + 1e-3
    assert simplex.tuning_.best.value >= gradient.tuning_.best.value  # a bound of the negative log evidence from above
    exact = [m.log_marginal_likelihood("exact").value / len(X) for m in (gradient, simplex, grid)]
    assert max(exact[1:]) <= exact[0] + 1e-3
    untuned = GPClassifier(HIK(Power(1.0)), noise=5.0).fit(X, y).log_marginal_likelihood("exact").value / len(X)
    assert min(exact) > untuned


@pytest.mark.parametrize("kind", ["evidence", "loo"])
def test_many_examples_are_tuned_from_products(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The estimates lead near the place where dense algebra leads."""
    exact = fitted(HIK(Power(1.0)), Tune(objective=kind), noise=5.0)
    monkeypatch.setattr(limits, "FACTOR_UP_TO", 50)
    found = fitted(HIK(Power(1.0)), Tune(objective=kind), noise=5.0)
    assert all(e.error == 0 for e in exact.tuning_.evaluations)
    assert all(e.error > 0 for e in found.tuning_.evaluations)
    assert abs(found.tuning_.best.value - objective_of(found, kind)) < 4.0 * found.tuning_.best.error
    assert objective_of(found, kind) < objective_of(exact, kind) + 0.05
    assert objective_of(found, kind) < objective_of(GPClassifier(noise=5.0).fit(X, y), kind) - 0.01


def test_relevance_finds_the_features_that_matter() -> None:
    rng = np.random.default_rng(0)
    Z = rng.random((150, 8))
    label = (Z[:, 0] > Z[:, 5]).astype(int)  # no offset to be made up from other features
    model = GPClassifier(HIK(Weights()), tune=Tune(objective="evidence", prior=0.0), random_state=0)
    model.fit(Z, label)
    relevance = model.feature_relevance_
    assert relevance.sum() == pytest.approx(1.0)
    assert set(np.argsort(relevance)[-2:]) == {0, 5}
    assert relevance[[0, 5]].sum() > 0.9


def test_blocks_are_weighed_as_wholes() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 120)
    useful, useless = rng.random((120, 5)) + 0.6 * label[:, None], rng.random((120, 7))
    model = GPClassifier(HIK(Weights(blocks=[5, 7])), tune=Tune(objective="evidence", prior=0.0), random_state=0)
    model.fit(np.hstack([useful, useless]), label)
    (weights,) = model.kernel_.transforms()
    assert len(weights.w) == 2
    assert weights.w[0] > 3.0 * weights.w[1]


def test_a_strong_prior_holds_weights_together_and_auto_chooses_one() -> None:
    loose, tight = (fitted(HIK(Weights()), Tune(prior=strength)) for strength in (0.0, 1e4))
    spread = [np.log(np.asarray(m.kernel_.transforms()[0].w)).std() for m in (loose, tight)]
    assert spread[1] < 0.1 * spread[0]
    assert loose.tuning_.best.value < tight.tuning_.best.value
    auto = fitted(HIK(Weights()), Tune(prior="auto", max_evaluations=10))
    assert auto.tuning_.prior > 0.0
    assert np.log(np.asarray(auto.kernel_.transforms()[0].w)).std() < 0.5 * spread[0]
    smooth = fitted(HIK(Monotone(pieces=5)), Tune(prior=1e4))
    assert np.abs(np.log(np.asarray(smooth.kernel_.transforms()[0].slopes))).max() < 0.2


def test_fixed_parameters_stay() -> None:
    model = fitted(HIK(Power(0.7)), Tune(objective="evidence", fixed=("noise", "power")), noise=0.3)
    assert model.noise_ == pytest.approx(0.3)
    assert model.kernel_.transforms()[0].eta == pytest.approx(0.7)
    assert model.kernel_.scale != HIK(Power(0.7)).resolved(X).scale
    kept = fitted(HIK(Power(0.7), scale=0.2))
    assert kept.kernel_.scale == 0.2
    weights = np.ones(64)
    weights[10] = 0.0  # outside of what learning may reach, and yet it stays
    both = fitted(HIK([Power(0.7), Weights(weights)]), Tune(fixed=("weights",)))
    np.testing.assert_array_equal(both.kernel_.transforms()[1].w, weights)
    assert both.tuning_.prior == 0.0
    assert set(both.tuning_.best.parameters) == {"scale", "power", "weights", "noise"}


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, None, "foo"])
def test_a_bad_scale_is_explained_when_tuning_too(scale) -> None:
    with pytest.raises(InvalidParameter, match="scale"):
        GPClassifier(HIK(Power(1.0), scale=scale), tune="gradient").fit(X, y)


def test_weights_of_examples_have_no_unit() -> None:
    """A thousand copies of everything with a thousand times the noise are tuned to the same place."""
    tune = Tune(objective="loo")
    once, often = (
        GPClassifier(tune=tune, noise=w, random_state=0).fit(X, y, sample_weight=np.full(240, w)) for w in (1.0, 1e3)
    )
    assert once.noise_ < 0.7
    assert often.noise_ == pytest.approx(1e3 * once.noise_, rel=0.3)


def test_the_simplex_starts_inside_of_the_bounds() -> None:
    model = fitted(HIK(Power(4.9)), Tune("nelder-mead", max_evaluations=25))
    assert len({e.parameters["power"] for e in model.tuning_.evaluations}) > 5


def test_balanced_noise_and_sample_weights_are_tuned_too() -> None:
    few = GPClassifier(balanced=True, tune=Tune(objective="evidence"), random_state=0)
    skewed = np.where(y == 3, 1, 0)
    before = GPClassifier(balanced=True).fit(X, skewed).log_marginal_likelihood().value
    assert few.fit(X, skewed).log_marginal_likelihood().value > before
    weight = np.append(np.full(60, 2.0), np.ones(180))
    options = {"tune": Tune(max_evaluations=5), "noise": 1.0}
    once = GPRegressor(**options).fit(X, y, sample_weight=weight)
    twice = GPRegressor(**options).fit(np.concatenate([X, X[:60]]), np.concatenate([y, y[:60]]))
    assert once.noise_ == pytest.approx(twice.noise_, rel=1e-6)
    assert once.tuning_.best.value == pytest.approx(twice.tuning_.best.value, rel=1e-6)
    assert once.log_marginal_likelihood().value == pytest.approx(twice.log_marginal_likelihood().value, rel=1e-6)


def test_regression_is_tuned_by_density() -> None:
    rng = np.random.default_rng(0)
    Z = rng.random((150, 3))
    t = np.sin(3 * Z[:, 0]) + Z[:, 1] + 0.3 * rng.standard_normal(150)
    truth = 0.09 / t.var()
    for kind in ("evidence", "loo"):
        model = GPRegressor(noise=10.0, tune=Tune(objective=kind)).fit(Z, t)
        assert truth / 2 < model.noise_ < truth * 2


def test_a_dense_kernel_learns_its_own_numbers() -> None:
    model = fitted(GeneralizedRBF(HIK(), 0.01), Tune(objective="loo"))
    assert model.kernel_.beta > 0.02
    plain = GPClassifier(GeneralizedRBF(HIK(), 0.01), noise=0.1).fit(X, y)
    assert objective_of(model, "loo") < objective_of(plain, "loo") - 0.05
    ard = fitted(RBF(np.full(64, 2.0)), Tune(max_evaluations=5))
    assert np.ptp(ard.kernel_.length_scale) > 0.0


def test_an_interruption_keeps_the_best_so_far() -> None:
    def listener(what: str, done: float) -> None:
        if what == "tuning" and done > 0.1:
            raise KeyboardInterrupt

    with listening(listener), pytest.warns(UserWarning, match="interrupted"):
        model = GPClassifier(HIK(Power(1.0)), tune=Tune(max_evaluations=20)).fit(X, y)
    assert model.tuning_.stopped == "interrupted"
    assert len(model.tuning_.evaluations) == 3
    assert model.noise_ == pytest.approx(model.tuning_.best.parameters["noise"])
    assert model.score(X, y) > 0.9


def test_an_interruption_before_the_first_evaluation_keeps_the_start() -> None:
    def listener(what: str, done: float) -> None:
        if what == "choosing a prior":
            raise KeyboardInterrupt

    with listening(listener), pytest.warns(UserWarning, match="interrupted"):
        model = GPClassifier(HIK(Weights()), tune="gradient").fit(X, y)
    assert model.tuning_.stopped == "interrupted"
    np.testing.assert_array_equal(model.predict(X), GPClassifier().fit(X, y).predict(X))
    with pytest.raises(InvalidInput, match="before anything"):
        _ = model.tuning_.best


def test_what_was_tuned_survives_partial_fit_and_the_file(tmp_path) -> None:
    model = GPClassifier(HIK([Weights(), Monotone(pieces=3)]), tune=Tune(max_evaluations=4), random_state=0)
    model.fit(X[:200], y[:200])
    noise, kernel = model.noise_, model.kernel_
    model.partial_fit(X[200:], y[200:])
    assert (model.noise_, model.kernel_) == (noise, kernel)
    model.save(tmp_path / "m.saccade")
    found = load(tmp_path / "m.saccade")
    assert (found.noise_, found.noise, found.tune) == (noise, noise, None)
    np.testing.assert_array_equal(found.decision_function(X), model.decision_function(X))


def test_classes_are_tuned_by_leave_one_out_and_numbers_by_evidence() -> None:
    assert fitted(tune=Tune(max_evaluations=2)).tuning_.objective == "loo"
    assert fitted(tune=Tune("nelder-mead", max_evaluations=2)).tuning_.objective == "evidence"
    assert GPRegressor(tune=Tune(max_evaluations=2)).fit(X, y).tuning_.objective == "evidence"


def test_options_are_an_estimators_parameters() -> None:
    model = clone(GPClassifier(tune=Tune(objective="loo")))
    model.set_params(tune__prior=1.0)
    assert (model.tune.objective, model.tune.prior) == ("loo", 1.0)


@pytest.mark.parametrize(
    ("tune", "word"),
    [
        ("accuracy", "'grid', 'evidence', 'loo', got 'accuracy'"),
        ("newton", "gradient"),
        (3, "Tune"),
        (Tune("newton"), "method"),
        (Tune(objective="accuracy"), "objective"),
        (Tune(prior=-1.0), "prior"),
        (Tune(prior=np.nan), "prior"),
        (Tune(fixed="noise"), "fixed"),
        (Tune(fixed=None), "fixed"),
        (Tune(fixed=("eta",)), "power, scale, noise"),
        (Tune(fixed=("noise", "scale", "power")), "nothing to tune"),
        (Tune(max_evaluations=0), "max_evaluations"),
    ],
)
def test_bad_options_are_explained(tune, word: str) -> None:
    with pytest.raises(InvalidParameter, match=word):
        GPClassifier(HIK(Power(1.0)), tune=tune).fit(X, y)


def test_few_parameter_methods_refuse_many() -> None:
    with pytest.raises(InvalidParameter, match="up to 10 parameters, got 66"):
        GPClassifier(HIK(Weights()), tune="nelder-mead").fit(X, y)


@pytest.mark.parametrize("kind", ["evidence", "loo"])
@pytest.mark.parametrize("tune", ["gradient", "nelder-mead"])
def test_degenerate_data_ends_at_a_bound_or_is_explained(kind: str, tune: str) -> None:
    """Constant targets, duplicate rows, one example, equal rows: a bounded optimum, and a word about it."""
    rng = np.random.default_rng(0)
    Z = rng.random((20, 3))
    cases = [
        (Z, np.ones(20)),
        (np.repeat(Z[:5], 4, axis=0), np.repeat(rng.standard_normal(5), 4)),
        (Z[:1], np.ones(1)),
        (np.zeros((6, 2)) + 0.5, rng.standard_normal(6)),
    ]
    for data, target in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = GPRegressor(HIK(Power(1.0)), tune=Tune(tune, kind, max_evaluations=25)).fit(data, target)
        assert np.isfinite(model.predict(data)).all()
        assert np.isfinite(model.tuning_.best.value)
    with pytest.warns(ConvergenceWarning, match="bound of"):
        GPRegressor(HIK(Power(1.0)), tune=Tune(tune, kind)).fit(Z, np.ones(20))


def test_values_that_overflow_some_transforms_do_not_end_the_search() -> None:
    Z = np.array([[1e80, 1.0], [2e80, 5.0], [1e81, 2.0], [3e79, 7.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GPRegressor(HIK(Power(1.0)), tune="grid").fit(Z, np.arange(4.0))  # 1e81 to the fifth is too much
    assert np.isfinite(model.predict(Z)).all()


@pytest.mark.parametrize(("kind", "sizes"), [("evidence", [1024, 8300]), ("loo", [256, 1024, 8300])])
def test_ten_thousand_examples_start_on_samples(kind: str, sizes: list[int]) -> None:
    A, label = histograms(8300, D=40, nonzeros=8, rng=np.random.default_rng(0))
    tune = Tune(objective=kind, max_evaluations=4)
    model = GPClassifier(HIK(Power(1.0)), tune=tune, levels=32, random_state=0).fit(A, label)
    assert list(dict.fromkeys(e.examples for e in model.tuning_.evaluations)) == sizes
    assert model.tuning_.best.examples == 8300


@pytest.mark.parametrize("kind", ["evidence", "loo"])
@pytest.mark.parametrize("kernel", [HIK([Power(0.7), Weights()]), RBF(2.0)], ids=repr)
@pytest.mark.parametrize("numbers", [False, True])
def test_some_examples_of_a_task_are_a_task_of_their_own(kernel, kind: str, numbers: bool) -> None:
    rng, rows = np.random.default_rng(0), np.arange(3, 240, 4)
    weight, shape = rng.uniform(0.5, 2.0, 240), rng.uniform(0.5, 1.0, (240, 1))
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    losses = DensityLosses.of(Y, weight) if numbers else ClassLosses(y, weight)
    part = Task(kernel, kernel.gram(X, weight=weight), Y, shape, 0.3, losses, weight).subset(rows)
    own = DensityLosses(Y[rows], weight[rows, None] / weight.mean()) if numbers else ClassLosses(y[rows], weight[rows])
    alone = Task(kernel, kernel.gram(X[rows]), Y[rows], shape[rows], 0.3, own, weight[rows])
    found, wanted = (Objective(task, kind) for task in (part, alone))
    theta = wanted.table[:, 0] + 0.1
    assert found.names == wanted.names
    np.testing.assert_allclose(found(theta).value, wanted(theta).value, rtol=1e-9)
    np.testing.assert_allclose(found(theta).gradient, wanted(theta).gradient, rtol=1e-6, atol=1e-9)
    mean = rng.standard_normal(Y[rows].shape)
    assert part.losses.score(mean) == pytest.approx(own.score(mean))


def test_an_objective_is_short_for_a_tune_with_it() -> None:
    short = fitted(HIK(Power(1.0)), tune="evidence")
    whole = fitted(HIK(Power(1.0)), tune=Tune(objective="evidence"))
    assert short.tuning_.objective == "evidence"
    assert short.tuning_.method == "gradient"
    np.testing.assert_array_equal(short.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize(
    ("kernel", "labels", "message"),
    [
        (HIK(Power(1.0)), "presence", r"bound of power: 0.05, the least .* Only whether a feature is there .*fixed"),
        (HIK(), "random", r"bound of noise: 100, the most .* tell nothing of the labels"),
    ],
)
def test_the_end_at_a_bound_says_what_to_do(kernel: HIK, labels: str, message: str) -> None:
    """Counts whose size says nothing, and labels that have nothing to do with the features."""
    rng = np.random.default_rng(5)
    there = rng.random((60, 4)) < 0.5
    counts = np.where(there, rng.lognormal(0.0, 3.0, (60, 4)), 0.0)
    flips, coins = rng.random((2, 60))
    label = there[:, 0] ^ (flips < 0.1) if labels == "presence" else coins < 0.5
    with pytest.warns(ConvergenceWarning, match=message):
        GPClassifier(kernel, tune="loo").fit(counts, label)


@pytest.mark.filterwarnings("ignore:Tuning ended at the bound")
def test_evidence_of_many_examples_is_not_led_astray_by_a_sample_of_few() -> None:
    """A sample with fewer examples than features has no noise by evidence; all examples ended at 0.0008 then."""
    n = limits.TUNE_SAMPLE_ABOVE + 100
    X, y = histograms(n + 1000, rng=np.random.default_rng(0))
    model = GPClassifier(HIK(Power(1.0)), noise=0.1, tune=Tune(objective="evidence"), variance=None, random_state=0)
    model.fit(X[:n], y[:n])
    assert model.noise_ > 0.01
    assert model.score(X[n:], y[n:]) > 0.93  # 0.88 with next to no noise
