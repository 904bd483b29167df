"""The parts that estimators are composed of, each by itself: what it computes, and what it refuses to read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saccade
from saccade import GPClassifier, GPRegressor, OneClassGP, Tune
from saccade._core import limits
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.estimators.automatic import Automatic
from saccade.estimators.calibration import Calibration, Decisions
from saccade.estimators.columns import ColumnScales
from saccade.estimators.known_classes import KnownClasses
from saccade.estimators.normal_scores import LeftOutExamples, NormalScores, Scoring
from saccade.estimators.number_targets import Normalising, NumberTargets, TargetUnits, looks_at
from saccade.estimators.part import Part
from saccade.estimators.svdd import Ball
from saccade.estimators.targets import ClassTargets, MemberTargets, joined_weight
from saccade.estimators.unknown_classes import FEWEST, choose_weight
from saccade.inference.approximations.by_name import Approximating
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.regression import Solving
from saccade.kernels import HIK, RBF
from saccade.kernels.dense_gram import DenseGram, StreamedGram
from saccade.scores.novelty import ROUNDING, fisher_product, own_p_values, p_values, quantiles
from saccade.scores.probability import fit_sharpness
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
rng = np.random.default_rng(0)
X = rng.gamma(0.5, 1.0, (40, 5))
LABEL = (X[:, 0] > X[:, 1]).astype(int)
ASCENDING = np.linspace(0.1, 0.9, 501)
HOW = Normalising(None, True)
PARTS: list[Part] = [
    Calibration(2.5),
    KnownClasses(ASCENDING, ASCENDING + 1.0, ASCENDING + 2.0, 7, 0.25),
    NormalScores(0.3, ASCENDING, 40, 0.01, 0.5),
    ColumnScales(np.array([1.0, 2.0]), np.array([-1.0, 0.0]), np.array([0.0, 3.0])),
    TargetUnits(np.array([1.0, 2.0]), np.array([3.0, 4.0]), False),
    Ball(1.0, 2.0, -4.0),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_comes_back_from_its_state_and_from_a_file(part: Part) -> None:
    header, tensors = part.to_file()
    other = {"unknown": 1.0}, {"scores_unknown": np.ones(3)}  # of another part of the same file
    found = (type(part).from_state(part.to_state()), type(part).from_file(header | other[0], tensors | other[1], "it"))
    for name in part.record.fields:
        for again in found:
            np.testing.assert_array_equal(getattr(again, name), getattr(part, name))
    assert all(name.startswith("scores_") for name in tensors)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_only_an_optional_part_may_be_missing(part: Part) -> None:
    if type(part).optional:
        assert type(part).from_file({}, {}, "it") is None
    else:
        with pytest.raises(ModelFileError, match="it does not describe a model: `"):
            type(part).from_file({}, {}, "it")


@pytest.mark.parametrize(
    ("part", "name", "bad"),
    [
        (PARTS[0], "sharpness", 0.0),
        (PARTS[0], "sharpness", float("inf")),
        (PARTS[1], "known", 0),
        (PARTS[1], "known", 2**60),
        (PARTS[1], "confidence_weight", 1.5),
        (PARTS[1], "both", [2.0, 1.0]),
        (PARTS[2], "normal", []),
        (PARTS[2], "middle", float("nan")),
        (PARTS[3], "spread", [1.0, 0.0]),
        (PARTS[3], "low", [1.0]),
        (PARTS[4], "scale", [3.0, -4.0]),
        (PARTS[4], "flat", True),
        (PARTS[4], "offset", [1.0]),
        (PARTS[5], "offset", 1.0),
        (PARTS[5], "radius", -1.0),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_numbers_out_of_bounds_are_refused(part: Part, name: str, bad: Any) -> None:
    with pytest.raises(ModelFileError, match="does not describe a model"):
        type(part).from_state(part.to_state() | {name: bad})


def test_what_earlier_files_lack_has_its_default() -> None:
    known, normal = (part.to_state() for part in PARTS[1:3])
    del known["confidence_weight"], normal["least_prior"], normal["middle"]
    assert KnownClasses.from_state(known).confidence_weight == 0.5
    back = NormalScores.from_state(normal)
    assert (back.least_prior, back.middle) == (-1.0, 0.0)


# ---- targets


def test_classes_are_columns_and_two_share_one() -> None:
    three = ClassTargets.of(np.array(["b", "c", "a", "b"]))
    assert three.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(three.columns(), [[-1, 1, -1], [-1, -1, 1], [1, -1, -1], [-1, 1, -1]])
    two = ClassTargets.of(np.array([5, 3, 5]))
    np.testing.assert_array_equal(two.columns(), [[1], [-1], [1]])
    assert (three.outputs, two.outputs) == (3, 1)
    assert ClassTargets.of(np.array([3, 3]), classes=[3, 4]).outputs == 1


def test_impossible_classes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least two classes"):
        ClassTargets.of(np.array([3, 3]))
    with pytest.raises(InvalidInput, match="label 4, which is not among"):
        ClassTargets.of(np.array([3, 4]), classes=[3, 5])
    with pytest.raises(InvalidInput, match="of one kind"):
        ClassTargets.of(np.array([3, 4])).grown(np.array(["a"]), None, np.array(["a"]), False)
    with pytest.raises(ValueError, match="beyond the classes"):
        ClassTargets.from_state({"y": np.array([0, 2])}, np.array(["a", "b"]), False)


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 1.0, 4.0])])
def test_balanced_noise_gives_both_sides_the_same_weight(weight: Array | None) -> None:
    targets = ClassTargets.of(np.array([0, 1, 1, 2]), weight, balanced=True)
    noise, Y = targets.noise_diagonal(0.1), targets.columns()
    total = np.ones(4) if weight is None else weight
    plain = replace(targets, balanced=False).noise_diagonal(0.1)
    np.testing.assert_allclose(plain[:, 0], 0.1 / total)
    for column in range(3):  # the precision of each side is that of half the examples
        up = Y[:, column] > 0
        sides = [(1.0 / noise[side, column]).sum() for side in (up, ~up)]
        np.testing.assert_allclose(sides, total.sum() / 0.1 / 2.0)


def test_a_new_class_moves_labels_and_solution() -> None:
    before = ClassTargets.of(np.array(["b", "d"]), np.array([2.0, 3.0]))
    after = before.grown(np.array(["c", "a"]), None, np.array(["c", "a"]), True)
    assert after.classes[after.label].tolist() == ["b", "d", "c", "a"]
    np.testing.assert_array_equal(after.weight, [2.0, 3.0, 1.0, 1.0])
    assert after.balanced
    alpha = np.array([[0.5], [-0.25]])  # of "d" against "b"
    start = after.carried(alpha, before.classes)
    np.testing.assert_array_equal(start[:2], [[0, -0.5, 0, 0.5], [0, 0.25, 0, -0.25]])
    assert not start[2:].any()
    same = before.grown(np.array(["b"]), None, np.array(["b"]), False)
    np.testing.assert_array_equal(same.carried(alpha, before.classes), [[0.5], [-0.25], [0.0]])


def test_weights_of_old_and_new_examples() -> None:
    assert joined_weight(None, 2, None, 3) is None
    np.testing.assert_array_equal(joined_weight(None, 2, np.array([5.0]), 1), [1.0, 1.0, 5.0])
    np.testing.assert_array_equal(joined_weight(np.array([5.0]), 1, None, 2), [5.0, 1.0, 1.0])


def test_numbers_are_normalised_and_come_back() -> None:
    y = np.column_stack([X[:, 0] * 3.0 + 100.0, -X[:, 1]])
    looks, keys = looks_at(X, y, None, joins=True, exact=False)
    assert keys is None
    targets = NumberTargets.of(looks, Normalising(None, True))
    np.testing.assert_allclose(targets.left().mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(targets.left().std(axis=0), 1.0)
    np.testing.assert_allclose(targets.units.values(targets.left() + targets.units(X)), y)
    draws = np.repeat(targets.columns()[..., None], 3, axis=2)
    np.testing.assert_allclose(targets.units.values(draws), np.repeat(y[..., None], 3, axis=2))
    flat = NumberTargets.of(looks_at(X, y[:, 0], None, joins=False, exact=False)[0], Normalising(50.0, False)).units
    np.testing.assert_allclose(flat.values(1.0 + flat(X)), np.full(40, 51.0))


@pytest.mark.parametrize("mean", [None, 2.0, lambda X: X[:, 0]], ids=["none", "number", "function"])
def test_targets_that_grew_are_those_of_all_rows(mean: Any) -> None:
    y, weight, how = X[:, 0] + X[:, 1] ** 2, rng.random(40) + 0.5, Normalising(mean, True)
    first = NumberTargets.of(looks_at(X[:25], y[:25], weight[:25], joins=True, exact=False)[0], how)
    rows, grown = first.grown(X[25:], y[25:], weight[25:], how, exact=False)
    whole = NumberTargets.of(looks_at(X, y, weight, joins=True, exact=False)[0], how)
    np.testing.assert_array_equal(rows, X[25:])
    assert_close(grown.left(), whole.left())
    assert_close(grown.prior_mean().values, grown.prior_mean()(X))
    assert_close(grown.noise_diagonal(0.1), whole.noise_diagonal(0.1))
    np.testing.assert_allclose(grown.count, weight.sum())
    alpha = rng.random((25, 1))
    start = grown.carried(alpha, first.units)
    assert_close(start[:25] * grown.units.scale, alpha * first.units.scale)
    assert not start[25:].any()


def test_exact_targets_count_once_and_stay_exact() -> None:
    twice, y = np.vstack([X[:3], X[:1]]), np.array([1.0, 2.0, 3.0, 1.0])
    looks, keys = looks_at(twice, y, None, joins=False, exact=True)
    targets = NumberTargets.of(looks, Normalising(None, True), keys)
    assert targets.y.tolist() == [1.0, 2.0, 3.0]
    rows, more = targets.grown(X[2:5], np.array([3.0, 4.0, 5.0]), None, Normalising(None, True), exact=True)
    np.testing.assert_array_equal(rows, X[3:5])
    assert more.y.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(InvalidParameter, match="from or to 0"):
        targets.grown(X[5:6], np.array([1.0]), None, Normalising(None, True), exact=False)
    with pytest.raises(InvalidInput, match=r"1 target\(s\)"):
        targets.grown(X[5:6], np.ones((1, 2)), None, Normalising(None, True), exact=True)


def test_a_function_as_mean_is_not_written() -> None:
    looks = looks_at(X, X[:, 0], None, joins=False, exact=False)[0]
    targets = NumberTargets.of(looks, Normalising(lambda X: X[:, 1], True))
    for part in (targets, targets.units):
        with pytest.raises(InvalidParameter, match="a file holds no code"):
            part.to_state()


# ---- calibration and references


def fitted() -> tuple[GP, ClassTargets]:
    targets = ClassTargets.of(LABEL)
    return GP.fit(
        HIK().gram(X), targets.columns(), targets.noise_diagonal(0.1), solving=Solving(leave_one_out=True)
    ), targets


def test_sharpness_is_that_of_the_left_out_decisions() -> None:
    gp, targets = fitted()
    found = Calibration.of(gp, targets.label, None, Decisions(False, 0.1))
    mean, variance = gp.leave_one_out()
    assert_close(found.decision, mean)
    assert found.sharpness == pytest.approx(fit_sharpness(mean, targets.label, None))
    probit = Calibration.of(gp, targets.label, None, Decisions(True, 0.1))
    assert_close(probit.decision, mean / np.sqrt(variance + 0.1))
    coarse = gp.with_variance("lowrank")
    again = probit.sharpened(coarse, targets.label, None, Decisions(True, 0.1))
    rows, wide = coarse.left_out_variance(None, 2048)
    assert again.decision is not None
    assert_close(again.decision[rows], mean[rows] / np.sqrt(wide + 0.1))
    assert again.sharpness == pytest.approx(fit_sharpness(again.decision[rows], targets.label[rows], None))


def test_novelty_compares_both_signs_with_left_out_examples() -> None:
    gp, targets = fitted()
    decisions = Decisions(False, 0.1)
    calibration = Calibration.of(gp, targets.label, None, decisions)
    known = KnownClasses.of(gp, targets, calibration, decisions)
    assert (known.known, known.confidence_weight) == (40, 0.5)
    like, unlike = np.zeros(1), np.ones(1)
    found = [known.novelty(left, sure)[0] for left, sure in ((like, unlike), (unlike, unlike), (unlike, like))]
    assert found[0] < found[1] < found[2] > 0.97
    assert replace(known, confidence_weight=0.0).novelty(like, like)[0] == pytest.approx(0.0)
    far = known.novelty_at(gp, 100.0 * X[:3] + 50.0, calibration, decisions)
    assert (far > known.novelty_at(gp, X[:3], calibration, decisions)).all()


@pytest.mark.parametrize("measure", ["probability", "variance", "mean", "ratio"])
def test_scores_of_left_out_examples_set_the_threshold(measure: Any) -> None:
    targets, scoring = MemberTargets(36), Scoring(measure, False, 0.1, 0.25)
    trained, apart = np.arange(36), np.arange(36, 40)
    gp = GP.fit(RBF(2.0).gram(X[:36]), targets.columns(), targets.noise_diagonal(0.1))
    examples, normal, scores = LeftOutExamples.judged(gp, X, trained, scoring)
    mean, variance = (found[:, 0] for found in gp.left_out(trained))
    assert_close(scores[trained], scoring.scores(mean, variance))
    assert_close(scores[apart], scoring.at(gp, X[apart]))
    assert normal.known == normal.normal.size == 40
    assert (scores < normal.offset).sum() == 10
    assert_close(normal.p_values(scores[apart]), p_values(scores[apart], np.sort(normal.normal)))
    again = examples.compared_anew(gp, normal.least_prior, scoring)
    assert_close(again.normal, normal.normal)
    empty = replace(normal, least_prior=0.5).unless_empty(np.array([7.0, 7.0]), np.array([0.4, 0.6]))
    assert empty.tolist() == [normal.middle, 7.0]


# ---- settings, and who may look inside


def test_settings_are_what_a_fit_learns_with() -> None:
    assert GPClassifier().settings().noise == GPClassifier(noise=0.1).settings().noise == 0.1
    auto = GPClassifier("auto").settings().automatic
    assert (auto.kernel, auto.noise, auto.learns_noise) == (True, True, True)
    for parameters in ({"balanced": True}, {"inference": "ep"}, {"approximation": "fitc"}, {"tune": "grid"}):
        assert not GPClassifier(**parameters).settings().automatic.learns_noise, parameters
    given = RBF(1.0)
    assert OneClassGP(given).settings().kernel is not given
    with pytest.raises(InvalidParameter, match="`noise`"):
        GPRegressor(noise=-1.0).settings()
    random = np.random.RandomState(0)
    GPClassifier(random_state=random).settings()
    assert random.randint(2**31) == np.random.RandomState(0).randint(2**31)  # looking at settings draws no number


def test_learning_more_is_learning_all() -> None:
    settings, targets = GPClassifier(noise=0.1, solver="cholesky").settings(), ClassTargets.of(LABEL)
    some = ClassTargets.of(LABEL[:30])
    before = settings.learn(X[:30], some)
    more = settings.learn_more(before, X[30:], targets, targets.carried(before.gp.solution.alpha, some.classes))
    assert_close(more.gp.mean(X), settings.learn(X, targets).gp.mean(X))
    with pytest.raises(InvalidParameter, match="must stay as in the first call"):
        replace(settings, levels=8).learn_more(before, X[30:], targets, more.gp.solution.alpha)


def test_nobody_looks_into_a_model() -> None:
    """Active learning, localisation, the command line and model files use public names of estimators."""
    root, found = Path(saccade.__file__).parent, list[str]()
    inside = re.compile(r"\b(?:model|clf|estimator|detector|given|new)\._(?!replace\b)[a-z]\w*")
    rooms = [root / name for name in ("active", "localize", "cli")] + [root / "loading.py"]
    rooms += [root / "estimators" / name for name in ("model_file.py", "model_writing.py", "pyod.py", "display.py")]
    for room in rooms:
        for path in sorted(room.rglob("*.py")) if room.is_dir() else [room]:
            found += [f"{path.relative_to(root)}: {match}" for match in inside.findall(path.read_text())]
    assert not found


def test_which_parts_a_file_may_lack_and_which_are_in_its_header() -> None:
    names = {type(part).__name__: type(part) for part in PARTS}
    assert [name for name, kind in names.items() if kind.optional] == ["KnownClasses", "ColumnScales"]
    assert [name for name, kind in names.items() if kind.in_header] == ["TargetUnits"]
    for part in PARTS:
        arrays = {name for name in part.record.fields if isinstance(getattr(part, name), np.ndarray)}
        header, tensors = part.to_file()
        assert set(tensors) == (set() if type(part).in_header else {f"scores_{name}" for name in arrays})
        assert set(header) == set(part.record.fields) - (set() if type(part).in_header else arrays)


def test_settings_hold_the_matrix_unless_products_are_enough() -> None:
    targets = ClassTargets.of(LABEL)

    def kind(**parameters: Any) -> type:
        return type(GPClassifier(RBF(1.0), noise=0.1, **parameters).settings().learn(X, targets).gp.gram)

    streamed = {"approximation": "diagonal", "variance": "diagonal"}
    assert kind(**streamed) is StreamedGram
    assert kind() is DenseGram
    assert kind(**streamed | {"inference": "laplace"}) is DenseGram
    grid = Tune("grid", "loo", grid={"length_scale": [0.5, 1.0]})
    tuned = GPClassifier(RBF(1.0), noise=0.1, tune=grid, **streamed).settings()
    assert type(tuned.kernel.gram(X, held=False)) is StreamedGram
    assert type(tuned.learn(X, targets).gp.gram) is DenseGram


def test_what_was_learned_stays_when_more_is_learned() -> None:
    some, every = ClassTargets.of(LABEL[:30]), ClassTargets.of(LABEL)
    start = np.zeros((40, 1))
    fixed, auto = GPClassifier(RBF(1.0), noise=0.1).settings(), GPClassifier(RBF(1.0)).settings()
    before = fixed.learn(X[:30], some)._replace(noise=0.7)
    assert fixed.learn_more(before, X[30:], every, start).noise == 0.1
    assert auto.learn_more(before, X[30:], every, start).noise == 0.7
    grid = Tune("grid", "loo", grid={"length_scale": [0.25, 0.5]})
    tuned = replace(fixed, tune=grid).learn(X[:30], some)
    after = fixed.learn_more(tuned._replace(noise=0.7), X[30:], every, start)
    assert (after.noise, after.gp.kernel, after.tuning) == (0.7, tuned.gp.kernel, tuned.tuning)
    other = replace(fixed, kernel=RBF(2.0))
    chosen = replace(other, automatic=Automatic(kernel=True))
    for settings, kernel in ((fixed, RBF(1.0)), (other, RBF(2.0)), (chosen, RBF(1.0))):
        assert_close(settings.learn_more(before, X[30:], every, start).gp.kernel(X), kernel(X))


def test_one_approximation_of_mean_and_variance_where_there_are_tables() -> None:
    members = MemberTargets(40)
    for solver, kernel, method in (("auto", HIK(), "exact"), ("cg", HIK(), "lowrank"), ("cg", RBF(1.0), "exact")):
        approximation = OneClassGP(kernel, solver=solver).settings().learn(X, members).gp.approximation
        assert (approximation.mean, approximation.variance) == (method, method)
    settings = OneClassGP(RBF(1.0), noise=0.1, solver="cg").settings()
    assert settings.learn(X, members).gp.solving.solver == "cg"
    assert replace(settings, noise=0.0).learn(X, members).gp.solving.solver == "cholesky"  # iterating would not end


def test_members_have_nothing_to_keep_beside_their_rows() -> None:
    assert MemberTargets(3).to_state() == {}
    assert not ClassTargets.of(np.array([0, 1])).balanced


def test_units_before_any_example_and_what_a_file_keeps() -> None:
    units = TargetUnits.before_fit(X, None)
    assert (units.offset.tolist(), units.scale.tolist(), units.flat, units.function) == ([0.0], [1.0], True, None)
    assert TargetUnits.before_fit(X, 3.0).offset.tolist() == [3.0]
    both = TargetUnits.before_fit(X, lambda rows: rows[:, :2])
    assert (both.offset.tolist(), both.flat) == ([0.0, 0.0], False)
    assert_close(both(X), X[:, :2])
    weight = np.arange(1.0, 41.0)
    looks = looks_at(np.vstack([X, X]), np.append(X[:, 0], X[:, 1]), np.append(weight, weight), True, False)[0]
    state = NumberTargets.of(looks, Normalising(None, True)).to_state()
    assert set(state) == {"y", "weight", "apart"}
    assert_close(state["y"], X[:, :2].mean(axis=1))
    assert_close(state["weight"], 2.0 * weight)
    assert_close(state["apart"][:, 0], weight * (X[:, 0] - X[:, 1]) ** 2 / 2.0)
    again = NumberTargets.from_state(X, {name: a for name, a in state.items() if a is not None}, HOW, False)
    assert_close(again.left(), NumberTargets.of(looks, HOW).left())


def test_calibration_by_an_approximate_mean_and_of_examples_that_are_not_comparable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "HELD_OUT_FROM", 20)
    targets, solving = ClassTargets.of(LABEL), Solving(leave_one_out=True)
    data = HIK().gram(X), targets.columns(), targets.noise_diagonal(0.1)
    sod = GP.fit(*data, solving=solving, approximation=Approximating("sod", "sod", inducing=np.arange(15)))
    for takes in (False, True):
        decisions = Decisions(takes, 0.1)
        found = Calibration.of(sod, targets.label, None, decisions)
        mean, variance = sod.left_out(np.arange(40))
        wanted = mean / np.sqrt(variance + 0.1) if takes else mean
        assert_close(found.decision, wanted)
        assert found.sharpness == pytest.approx(fit_sharpness(wanted, targets.label, None))
        at = sod.mean(X[:5]) / (np.sqrt(sod.variance(X[:5]) + 0.1) if takes else 1.0)
        assert_close(decisions.at(sod, X[:5]), at)
    low = GP.fit(*data, solving=solving, approximation=Approximating(variance="lowrank", rank=5))
    others = np.setdiff1d(np.arange(40), low.comparable())
    assert others.size
    mean, variance = low.leave_one_out()
    decision = Calibration.of(low, targets.label, None, Decisions(True, 0.1)).decision
    assert decision is not None
    assert_close(decision[others], (mean / np.sqrt(variance + 0.1))[others])
    assert Calibration.from_state({"sharpness": 0.5}).sharpness == 0.5


@pytest.mark.parametrize("classes", [2, FEWEST])
@pytest.mark.parametrize("weighed", [False, True])
def test_known_classes_are_those_of_left_out_examples(classes: int, weighed: bool) -> None:
    order = np.argsort(np.argsort(X[:, 0] - X[:, 1])) * classes // 40
    weight = 1.0 + np.arange(40) % 2 if weighed else None
    targets = ClassTargets.of(order, weight)
    noise = targets.noise_diagonal(0.1)
    gp = GP.fit(HIK().gram(X), targets.columns(), noise, weight=weight, solving=Solving(leave_one_out=True))
    decisions = Decisions(False, 0.1)
    calibration = Calibration.of(gp, targets.label, weight, decisions)
    known = KnownClasses.of(gp, targets, calibration, decisions)
    mean, variance = gp.left_out(np.arange(40))
    copies = np.repeat(np.arange(40), 1 if weight is None else weight.astype(int))
    left = (variance[:, 0] / gp.kernel.diag(X))[copies]
    sure = calibration.probabilities(mean).max(axis=1)[copies]
    assert_close(known.explained, quantiles(-left - ROUNDING))
    assert_close(known.confidence, quantiles(sure - ROUNDING))
    assert known.known == copies.size
    share = choose_weight(gp.kernel(X), gp.kernel.diag(X), order, 0.1, calibration.sharpness)
    assert known.confidence_weight == pytest.approx(0.5 if classes < FEWEST else share)
    rare = own_p_values(-left, np.sort(-left - ROUNDING)), own_p_values(sure, np.sort(sure - ROUNDING))
    assert_close(known.both, quantiles(fisher_product(*rare, known.confidence_weight)))
    new = X[:9] * 1.5
    fresh = gp.variance(new)[:, 0] / gp.kernel.diag(new), calibration.probabilities(gp.mean(new)).max(axis=1)
    assert_close(known.novelty_at(gp, new, calibration, decisions), known.novelty(*fresh))


def test_rows_with_nothing_to_compare_set_no_threshold() -> None:
    mean, variance = np.array([0.1, 0.5, 0.9, 0.3]), np.full(4, 0.2)
    scoring = Scoring("mean", False, 0.1, 0.25)
    some = NormalScores.of(mean, variance, np.array([0.0, 1.0, 1.0, 1.0]), 0.5, scoring)
    np.testing.assert_allclose(some.normal, [0.3, 0.5, 0.9], rtol=1e-9)
    assert (some.known, some.middle) == (3, pytest.approx(0.5))
    none = NormalScores.of(mean, variance, np.zeros(4), 0.5, scoring)  # all alike: all are taken
    np.testing.assert_allclose(none.normal, [0.1, 0.3, 0.5, 0.9], rtol=1e-9)
    plain = NormalScores(0.1, mean, 4)
    assert (plain.least_prior, plain.middle) == (-1.0, 0.0)
