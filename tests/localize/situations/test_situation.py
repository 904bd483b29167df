"""Situations: conditioning against dense algebra, fall-back, draws, few and odd situations, files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import NotFittedError

from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.localize import SituationModel
from saccade.localize.boxes import boxes_within, from_coordinates, to_coordinates
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.priors.densities import Block, Normals
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
SIZE = (640, 480)
KINDS = ["normal", "mixture", "uniform"]


def situations(n: int, seed: int = 0) -> tuple[dict[str, Array], Array]:
    """Dogs left of their walkers with a leash between, in pictures of several sizes."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([300.0, 480.0, 640.0, 1000.0], (n, 2))
    bounds = np.column_stack([np.zeros((n, 2)), sizes])
    x, y, size = rng.normal(0.4, 0.05, n), rng.normal(0.6, 0.04, n), rng.normal(-4.0, 0.3, n)
    noise = rng.normal(0.0, [0.02, 0.02, 0.1, 0.1], (3, n, 4))
    dog = np.column_stack([x, y, size, np.full(n, 0.3)]) + noise[0]
    walker = np.column_stack([x + 0.2, y - 0.1, size + 1.0, np.full(n, -1.0)]) + noise[1]
    leash = np.column_stack([x + 0.1, y - 0.05, size - 1.0, np.full(n, 0.0)]) + noise[2]
    boxes = {"dog": dog, "walker": walker, "leash": leash}
    return {name: from_coordinates(u, bounds) for name, u in boxes.items()}, sizes


@pytest.fixture(scope="module")
def model() -> SituationModel:
    return SituationModel().fit(*situations(200))


FOUND = {"dog": [250.0, 250.0, 330.0, 310.0], "leash": [330.0, 240.0, 370.0, 290.0]}


def joint(model: SituationModel) -> tuple[Array, Array]:
    assert isinstance(model.density_, Normals)
    return model.density_.means[0], model.density_.covariances[0]


def test_conditioning_is_dense_algebra(model: SituationModel) -> None:
    mean, C = joint(model)
    u = to_coordinates(np.array(list(FOUND.values())), np.array([0.0, 0.0, *SIZE])).ravel()
    known, wanted = np.r_[0:4, 8:12], np.r_[4:8]
    gain = C[np.ix_(wanted, known)] @ np.linalg.inv(C[np.ix_(known, known)])
    expected = multivariate_normal(
        mean[wanted] + gain @ (u - mean[known]), C[4:8, 4:8] - gain @ C[np.ix_(known, wanted)]
    )
    boxes = model.sample(30, "walker", FOUND, SIZE, np.random.default_rng(0))
    coordinates = to_coordinates(boxes, np.array([0.0, 0.0, *SIZE]))
    np.testing.assert_allclose(model.log_density(boxes, "walker", FOUND, SIZE), expected.logpdf(coordinates), rtol=1e-8)
    prior = model.prior("walker", FOUND, SIZE)
    assert prior.used == ("dog", "leash")
    assert not prior.fell_back


@pytest.mark.parametrize("kind", ["normal", "mixture"])
def test_the_order_of_what_was_found_does_not_matter(kind: Any) -> None:
    model = SituationModel(kind).fit(*situations(100))
    boxes = model.sample(20, "walker", FOUND, SIZE, np.random.default_rng(0))
    turned = dict(reversed(FOUND.items()))
    assert_close(model.log_density(boxes, "walker", turned, SIZE), model.log_density(boxes, "walker", FOUND, SIZE))


def test_a_found_object_sharpens_the_others(model: SituationModel) -> None:
    boxes, sizes = situations(50, seed=1)
    for name, other in (("walker", "dog"), ("dog", "leash")):
        alone = [model.log_density(boxes[name][i], name, None, sizes[i])[0] for i in range(50)]
        helped = [model.log_density(boxes[name][i], name, {other: boxes[other][i]}, sizes[i])[0] for i in range(50)]
        assert np.mean(helped) > np.mean(alone) + 0.5


def test_draws_have_the_conditioned_moments(model: SituationModel) -> None:
    prior = model.prior("walker", FOUND, SIZE)
    u = to_coordinates(prior.sample(50_000, np.random.default_rng(1)), prior.bounds)
    assert isinstance(prior.density, Normals)
    deviation = np.sqrt(prior.density.covariance.diagonal())
    np.testing.assert_allclose((u.mean(axis=0) - prior.density.mean) / deviation, 0.0, atol=0.03)
    scale = np.outer(deviation, deviation)
    np.testing.assert_allclose(np.cov(u.T) / scale, prior.density.covariance / scale, atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(640, 480), (7, 5000), (100.0, 200.0, 160.0, 230.0)])
def test_draws_lie_in_the_picture(kind: Any, size: Any) -> None:
    model = SituationModel(kind).fit(*situations(3))
    for name in model.objects_:
        prior = model.prior(name, None, size)
        boxes = prior.sample(300, np.random.default_rng(0))
        assert boxes.shape == (300, 4)
        assert boxes_within(boxes, prior.bounds).all()
        assert np.isfinite(prior.log_density(boxes)).all() or kind == "uniform"
    assert model.sample(0, "dog", None, size, np.random.default_rng(0)).shape == (0, 4)


def test_draws_where_the_model_says_outside() -> None:
    """Every centre is outside: it is moved to the edge, and the box is cut."""
    far = Normals(np.ones(1), np.array([[5.0, 5.0, -900.0, 50.0]]), 1e-4 * np.eye(4)[None])
    boxes = BoxPrior(np.array([0.0, 0.0, 640.0, 480.0]), far).sample(20, np.random.default_rng(0))
    assert boxes.shape == (20, 4)
    assert boxes_within(boxes, np.array([0.0, 0.0, 640.0, 480.0])).all()


def test_draws_with_a_centre_outside_are_drawn_again() -> None:
    """Half of the centres would be left of the picture: what is drawn is the half-normal, not a heap at the edge."""
    half = Normals(np.ones(1), np.array([[0.0, 0.5, -20.0, 0.0]]), np.diag([0.01, 1e-4, 1e-4, 1e-4])[None])
    boxes = BoxPrior(np.array([0.0, 0.0, 1.0, 1.0]), half).sample(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(boxes[:, [0, 2]].mean(), 0.1 * np.sqrt(2.0 / np.pi), atol=0.003)


def test_draws_repeat(model: SituationModel) -> None:
    a, b = (model.sample(5, "dog", FOUND, SIZE, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", ["normal", "mixture"])
def test_what_is_unlikely_is_not_used(kind: Any) -> None:
    model = SituationModel(kind).fit(*situations(200))
    odd = {"dog": [0.0, 0.0, 20.0, 470.0]}
    prior, alone = model.prior("walker", odd, SIZE), model.prior("walker", None, SIZE)
    assert prior.fell_back
    assert prior.used == ()
    assert prior.tail < 1e-3
    box = [300.0, 100.0, 400.0, 300.0]
    assert_close(prior.log_density(box), alone.log_density(box))
    assert not alone.fell_back
    assert alone.tail == 1.0
    believed = SituationModel(kind, doubt=0.0).fit(*situations(200)).prior("walker", odd, SIZE)
    assert believed.used == ("dog",)
    assert not believed.fell_back


def test_true_situations_rarely_count_as_unlikely() -> None:
    model, (boxes, sizes) = SituationModel(doubt=0.05).fit(*situations(400)), situations(400, seed=1)
    odd = [
        model.prior("walker", {"dog": boxes["dog"][i], "leash": boxes["leash"][i]}, sizes[i]).fell_back
        for i in range(400)
    ]
    assert 0.02 < np.mean(odd) < 0.09


def test_the_picture_may_begin_elsewhere(model: SituationModel) -> None:
    move = np.array([1000.0, 50.0, 1000.0, 50.0])
    bounds = np.array([0.0, 0.0, *SIZE]) + move
    box = np.array([[300.0, 100.0, 400.0, 300.0]])
    moved = {name: np.array(found) + move for name, found in FOUND.items()}
    assert_close(model.log_density(box + move, "walker", moved, bounds), model.log_density(box, "walker", FOUND, SIZE))


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_the_unit_does_not_matter(model: SituationModel, factor: float) -> None:
    box = np.array([[300.0, 100.0, 400.0, 300.0]])
    scaled = {name: factor * np.array(found) for name, found in FOUND.items()}
    size = (factor * SIZE[0], factor * SIZE[1])
    assert_close(model.log_density(factor * box, "walker", scaled, size), model.log_density(box, "walker", FOUND, SIZE))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_situations(kind: Any, n: int) -> None:
    boxes, sizes = situations(n)
    model = SituationModel(kind).fit(boxes, sizes)
    found = {"dog": boxes["dog"][0], "leash": boxes["leash"][0]}
    prior = model.prior("walker", found, sizes[0])
    assert np.isfinite(prior.log_density(boxes["walker"][0])).all()
    assert prior.sample(50, np.random.default_rng(0)).shape == (50, 4)
    assert model.n_situations_ == n
    if isinstance(model.density_, Normals):
        assert model.density_.weights.size == (n if kind == "mixture" else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_situations_that_are_all_alike(kind: Any) -> None:
    """No variance at all, and a walker always at the same place beside the dog: singular covariances."""
    boxes, sizes = situations(1)
    same = {name: np.tile(box, (6, 1)) for name, box in boxes.items()}
    twins = {"dog": situations(30)[0]["dog"], "twin": situations(30)[0]["dog"]}
    for given, shape in ((same, np.tile(sizes, (6, 1))), (twins, situations(30)[1])):
        model = SituationModel(kind).fit(given, shape)
        other = list(given)[1]
        prior = model.prior(other, {"dog": given["dog"][0]}, shape[0])
        assert np.isfinite(prior.log_density(given[other][0])).all()
        assert not prior.fell_back
        assert prior.sample(9, np.random.default_rng(0)).shape == (9, 4)


def test_pictures_without_some_object() -> None:
    boxes, sizes = situations(300)
    boxes["leash"][::2] = np.nan
    boxes["dog"][1::5] = np.nan
    boxes["walker"][7] = boxes["dog"][7] = boxes["leash"][7] = np.nan  # a picture with none
    for kind in KINDS:
        model = SituationModel(kind).fit(boxes, sizes)  # type: ignore[arg-type]
        assert model.n_situations_ == 299
        assert np.isfinite(model.log_density(FOUND["dog"], "dog", None, SIZE)).all()


def test_gaps_cost_little() -> None:
    """Half of the leashes and a fifth of the dogs are missing: better than the whole situations alone, near to all."""
    boxes, sizes = situations(40)
    every, gaps = SituationModel().fit(boxes, sizes), {name: found.copy() for name, found in boxes.items()}
    gaps["leash"][::2], gaps["dog"][1::5] = np.nan, np.nan
    whole = np.isfinite(gaps["leash"]).all(axis=1) & np.isfinite(gaps["dog"]).all(axis=1)
    few = SituationModel().fit({name: found[whole] for name, found in boxes.items()}, sizes[whole])
    scores = [held_out(model) for model in (few, SituationModel().fit(gaps, sizes), every)]
    assert scores[0] < scores[1] < scores[2] < scores[1] + 1.0


def held_out(model: SituationModel) -> float:
    """The mean log density of a walker where dog and leash were found, in other pictures."""
    boxes, sizes = situations(200, seed=5)
    others = [{name: boxes[name][i] for name in ("dog", "leash")} for i in range(200)]
    found = [model.log_density(boxes["walker"][i], "walker", others[i], sizes[i])[0] for i in range(200)]
    return float(np.mean(found))


def test_uniform_knows_ranges_only() -> None:
    boxes, sizes = situations(40)
    model = SituationModel("uniform").fit(boxes, sizes)
    assert isinstance(model.density_, Block)
    prior = model.prior("walker", FOUND, SIZE)
    assert (prior.used, prior.fell_back) == ((), False)
    inside = model.log_density([[300.0, 100.0, 350.0, 220.0], [10.0, 300.0, 60.0, 420.0]], "walker", None, SIZE)
    assert inside[0] == inside[1] > -np.inf
    assert model.log_density([300.0, 100.0, 620.0, 104.0], "walker", None, SIZE)[0] == -np.inf
    for name, found in boxes.items():
        assert all(np.isfinite(model.log_density(found[i], name, None, sizes[i])[0]) for i in range(40))


def test_a_search_without_a_model_has_a_prior() -> None:
    prior = BoxPrior.unknown((640, 480))
    boxes = prior.sample(2000, np.random.default_rng(0))
    assert boxes_within(boxes, prior.bounds).all()
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2 / [640, 480]
    np.testing.assert_allclose(centre.mean(axis=0), 0.5, atol=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(kind: Any, tmp_path: Path) -> None:
    model = SituationModel(kind, components=2, doubt=0.01).fit(*situations(40))
    model.save(tmp_path / "dogs.safetensors")
    again = [
        SituationModel.from_dict(json.loads(json.dumps(model.to_dict()))),
        SituationModel.load(tmp_path / "dogs.safetensors"),
    ]
    expected = model.sample(20, "walker", FOUND, SIZE, np.random.default_rng(0))
    for other in again:
        assert repr(other) == repr(model)
        assert (other.kind, other.components, other.doubt) == (kind, 2, 0.01)
        assert other.shrinkage_ == model.shrinkage_
        assert np.array_equal(other.sample(20, "walker", FOUND, SIZE, np.random.default_rng(0)), expected)
        assert other.to_dict() == model.to_dict()


def _broken(state: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    state = json.loads(json.dumps(state))
    inner = state
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return state


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("estimator",), "GPClassifier"),
        (("objects",), ["dog"]),
        (("objects",), ["dog", "dog", "leash"]),
        (("objects",), 3),
        (("parameters", "kind"), "magic"),
        (("parameters", "kind"), "uniform"),
        (("parameters",), None),
        (("situations",), "many"),
        (("density",), None),
        (("density", "weights"), [0.5]),
        (("density", "weights"), [-1.0]),
        (("density", "means", 0, 3), float("nan")),
        (("density", "means"), [[1.0, [2.0]]]),
        (("density", "covariances", 0, 0, 0), -1.0),
        (("density", "covariances", 0, 0, 1), 5.0),
        (("density", "other"), [1.0]),
    ],
)
def test_a_foreign_state_is_refused(model: SituationModel, path: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(ModelFileError):
        SituationModel.from_dict(_broken(model.to_dict(), path, value))


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    state = SituationModel("uniform").fit(*situations(4)).to_dict()
    for value in (-9.0, 9.0):
        with pytest.raises(ModelFileError, match="must end after they begin"):
            SituationModel.from_dict(_broken(state, ("density", "high" if value < 0 else "low", 2), value))


def test_a_broken_file_is_refused(model: SituationModel, tmp_path: Path) -> None:
    path = tmp_path / "dogs.safetensors"
    model.save(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ModelFileError):
        SituationModel.load(path)
    with pytest.raises(ModelFileError, match="no model file"):
        SituationModel.load(tmp_path / "none")


GOOD = {"dog": [[1.0, 1.0, 5.0, 5.0], [2.0, 2.0, 6.0, 6.0]]}


@pytest.mark.parametrize(
    ("boxes", "sizes", "says"),
    [
        ([[1, 1, 2, 2]], (10, 10), "must be a dict"),
        ({}, (10, 10), "must be a dict"),
        ({3: [[1, 1, 2, 2]]}, (10, 10), "must be a dict"),
        (GOOD, [(10, 10)], r"`boxes\['dog'\]` must be an array \(1, 4\)"),
        ({**GOOD, "cat": [[1, 1, 5, 5]]}, (10, 10), r"`boxes\['cat'\]` must be an array \(2, 4\)"),
        ({"dog": [1, 1, 5, 5]}, (10, 10), r"must be an array \(n, 4\)"),
        ({"dog": np.zeros((0, 4))}, (10, 10), "No picture has a box of 'dog'"),
        ({**GOOD, "cat": np.full((2, 4), np.nan)}, (10, 10), "No picture has a box of 'cat'"),
        ({"dog": [[np.nan] * 4, [1, np.nan, 2, 3]]}, (10, 10), r"Box 1 of `boxes\['dog'\]`.*not finite"),
        ({"dog": [[np.nan] * 4, [5, 1, 2, 3]]}, (10, 10), r"Box 1 of `boxes\['dog'\]`.*is inverted"),
        ({"dog": [[1, 1, 2, 2], [8, 8, 30, 9]]}, (10, 10), "Box 1.*centre outside its picture.*width, height"),
        (GOOD, (10, 0), "positive width"),
        ({"dog": [["a", 1, 2, 2]]}, (10, 10), "must be an array of numbers"),
    ],
)
def test_fit_says_what_is_wrong(boxes: Any, sizes: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        SituationModel().fit(boxes, sizes)


def test_questions_that_cannot_be_answered(model: SituationModel) -> None:
    with pytest.raises(InvalidInput, match=r"does not know 'cat'. It knows dog, walker, leash"):
        model.prior("cat", None, SIZE)
    with pytest.raises(InvalidInput, match="not know 'cat'"):
        model.prior("dog", {"cat": FOUND["dog"]}, SIZE)
    with pytest.raises(InvalidInput, match="must be one box, got 2"):
        model.prior("dog", {"leash": [FOUND["dog"]] * 2}, SIZE)
    with pytest.raises(InvalidInput, match=r"`found\['leash'\]`.*is inverted"):
        model.prior("dog", {"leash": [5, 5, 1, 1]}, SIZE)
    with pytest.raises(InvalidInput, match="of one picture"):
        model.prior("dog", None, [SIZE, SIZE])
    with pytest.raises(InvalidParameter, match="`n`"):
        model.sample(-1, "dog", None, SIZE, np.random.default_rng(0))
    with pytest.raises(NotFittedError, match="learned nothing yet"):
        SituationModel().prior("dog", None, SIZE)
    with pytest.raises(NotFittedError):
        SituationModel().to_dict()


@pytest.mark.parametrize("wrong", [{"kind": "magic"}, {"components": 0}, {"doubt": 2.0}, {"doubt": -0.1}])
def test_parameters_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        SituationModel(**wrong)


def test_the_objects_own_box_is_left_out(model: SituationModel) -> None:
    own = {**FOUND, "walker": [1.0, 1.0, 9.0, 9.0]}
    assert model.prior("walker", own, SIZE).used == ("dog", "leash")
