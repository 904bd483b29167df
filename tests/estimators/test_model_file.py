"""Models to and from files: bit for bit the same, and a file that does not fit together is refused, never run."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from saccade import GPClassifier, GPRegressor, OneClassGP, Tune, load
from saccade._core import model_file
from saccade._core.errors import InvalidInput, ModelFileError
from saccade.kernels import HIK, Exponential, Power, TransformSum, Weights

Array = np.ndarray[Any, np.dtype[Any]]
rng = np.random.default_rng(0)
X = rng.gamma(0.5, size=(60, 5)) * (rng.random((60, 5)) < 0.7)
NEW = rng.gamma(0.7, size=(40, 5)) * (rng.random((40, 5)) < 0.7)
NUMBER = np.arange(60) % 3


def same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a, b, strict=True)


def reloaded(model: Any, path: Path) -> Any:
    model.save(path)
    return load(path)


KERNELS = [
    HIK(),
    HIK(Power(0.5)),
    HIK([Power(2.0), Weights([1, 0, 2, 0.5, 1])]),
    HIK(Exponential(-1.0), scale=0.3),
    2.0 * HIK(),
    HIK(Power(0.5)) + 2.0 * HIK([Weights([1, 0, 2, 0.5, 1]), Exponential(1.0)]) + HIK(scale=0.3),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("levels", [None, 16])
@pytest.mark.parametrize("bins", [None, 64])
def test_classifier_is_the_same(tmp_path: Path, kernel: HIK, levels: int | None, bins: int | None) -> None:
    model = GPClassifier(kernel, noise=0.2, levels=levels, random_state=0).fit(X, NUMBER)
    model = model if bins is None else model.quantized(bins)
    copy = reloaded(model, tmp_path / "m")
    for Z in (NEW, sp.csr_matrix(NEW), -NEW, NEW[:1]):
        same(copy.decision_function(Z), model.decision_function(Z))
        same(copy.predict_proba(Z), model.predict_proba(Z))
        same(copy.predict(Z), model.predict(Z))
    assert (copy.noise, copy.levels) == (0.2, levels)
    assert (copy.n_iter_, copy.residual_, copy.converged_) == (model.n_iter_, model.residual_, model.converged_)


@pytest.mark.parametrize("signed", [False, True])
def test_a_copy_of_a_copy_holds_the_same(tmp_path: Path, signed: bool) -> None:
    model = GPClassifier(random_state=0).fit(X - 0.5 * signed, NUMBER)
    reloaded(model, tmp_path / "a").save(tmp_path / "b")
    (header, tensors), (again, copies) = model_file.read(tmp_path / "a"), model_file.read(tmp_path / "b")
    assert again == header
    assert list(copies) == list(tensors)
    for name in tensors:
        same(copies[name], tensors[name])


def test_a_copy_can_be_quantised(tmp_path: Path) -> None:
    model = GPClassifier(random_state=0).fit(X, NUMBER)
    same(reloaded(model, tmp_path / "m").quantized(32).predict_proba(NEW), model.quantized(32).predict_proba(NEW))


@pytest.mark.parametrize(
    "y", [X @ np.arange(5), np.column_stack([X.sum(1), X[:, 0], X[:, 1]]), X[:, :1]], ids=["1d", "3", "1"]
)
def test_regressor_is_the_same(tmp_path: Path, y: Array) -> None:
    model = GPRegressor(noise=0.01).fit(X, y)
    copy = reloaded(model, tmp_path / "m")
    same(copy.predict(NEW), model.predict(NEW))
    assert copy.predict(NEW).shape == (len(NEW), *y.shape[1:])


LABELS = {
    "text": np.array(["cat", "dog", 'Übergröße, "q"\n']),
    "text objects": np.array(["cat", "dog", "eel"], object),
    "int": np.array([-5, 0, 2**62]),
    "small int": np.array([1, 2, 3], np.int8),
    "unsigned": np.array([0, 1, 2**64 - 1], np.uint64),
    "float": np.array([-1.0, 0.0, 2.0]),
    "bool": np.array([False, True, True]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind(tmp_path: Path, kind: str) -> None:
    model = GPClassifier(random_state=0).fit(X, LABELS[kind][NUMBER])
    copy = reloaded(model, tmp_path / "m")
    assert copy.classes_.tolist() == model.classes_.tolist()
    assert copy.predict(NEW).tolist() == model.predict(NEW).tolist()
    same(copy.predict_proba(NEW), model.predict_proba(NEW))
    if model.classes_.dtype != object:
        assert copy.classes_.dtype == model.classes_.dtype


def test_labels_that_a_file_cannot_hold(tmp_path: Path) -> None:
    model = GPClassifier(random_state=0).fit(X, NUMBER)
    model.classes_ = np.array([b"a", b"b", b"c"])
    with pytest.raises(ModelFileError, match="Use text or numbers"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_loaded_kernel_is_the_one_given(tmp_path: Path) -> None:
    """Fitted afresh on other data, every "auto" is settled again."""
    kernel = HIK(Power(0.5)) + 2.0 * HIK(Weights([1.0, 0.0, 2.0, 0.5, 1.0])) + HIK(scale=0.3)
    for given in (kernel, 2.0 * HIK(), HIK()):
        model = GPClassifier(given, random_state=0).fit(X, NUMBER)
        copy = reloaded(model, tmp_path / "m")
        same(copy.kernel_(X), model.kernel_(X))
        same(copy.kernel.resolved(3.0 * X)(NEW), given.resolved(3.0 * X)(NEW))
    tuned = GPClassifier(kernel, tune=Tune(max_evaluations=3, prior=None), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tuned.fit(X, NUMBER)
    copy = reloaded(tuned, tmp_path / "m")
    same(copy.kernel.resolved(3.0 * X)(NEW), tuned.kernel_(NEW))


@pytest.mark.parametrize("deep", [16, 17])
def test_sums_within_sums_are_saved_to_some_depth(tmp_path: Path, deep: int) -> None:
    kernel = HIK(scale=1.0)
    for _ in range(deep):
        kernel = HIK(TransformSum([kernel]), scale=1.0)
    model = GPClassifier(kernel, random_state=0).fit(X, NUMBER)
    if deep == 16:
        same(reloaded(model, tmp_path / "m").predict(NEW), model.predict(NEW))
    else:
        with pytest.raises(ModelFileError, match="More than 16 sums"):
            model.save(tmp_path / "m")


def test_a_loaded_model_says_what_it_cannot_do(tmp_path: Path) -> None:
    copy = reloaded(GPClassifier(random_state=0).fit(X, NUMBER), tmp_path / "m")
    with pytest.raises(InvalidInput, match="holds no training examples"):
        copy.partial_fit(X, NUMBER)
    with pytest.raises(InvalidInput, match="holds no training examples"):
        copy.sample_latent(NEW)
    assert copy.fit(X, NUMBER).score(X, NUMBER) > 0.5  # afresh, it can


def test_no_training_example_is_inside(tmp_path: Path) -> None:
    """A file for 60 examples and one for 600 of the same values are the same size: tables alone."""
    few, many = (GPClassifier(levels=8, variance_rank=8, random_state=0) for _ in range(2))
    few.fit(X, NUMBER).save(tmp_path / "few")
    many.fit(np.tile(X, (10, 1)), np.tile(NUMBER, 10)).save(tmp_path / "many")
    assert abs((tmp_path / "few").stat().st_size - (tmp_path / "many").stat().st_size) < 100


def test_feature_names(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    names = ["a", "ü", "c", "d", "e"]
    copy = reloaded(GPClassifier(random_state=0).fit(pd.DataFrame(X, columns=names), NUMBER), tmp_path / "m")
    assert copy.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names"):
        copy.predict(pd.DataFrame(NEW, columns=names[::-1]))


# Files with a valid digest whose parts do not fit together: each change is made to a sound file and must be refused.

Header = dict[str, Any]
Tensors = dict[str, Array]
Change = Callable[[Header, Tensors], None]


def put(*path: str, value: Any) -> Change:
    def change(header: Header, _: Tensors) -> None:
        place = header
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def drop(*path: str) -> Change:
    def change(header: Header, _: Tensors) -> None:
        place = header
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return change


def tensor(name: str, make: Callable[[Array], Array]) -> Change:
    def change(_: Header, tensors: Tensors) -> None:
        tensors[name] = np.ascontiguousarray(make(tensors[name].copy()))

    return change


def without(name: str) -> Change:
    return lambda _, tensors: tensors.__delitem__(name)


def at(place: Any, value: Any) -> Callable[[Array], Array]:
    def make(a: Array) -> Array:
        a[place] = value
        return a

    return make


def as_type(dtype: Any) -> Callable[[Array], Array]:
    return lambda a: a.astype(dtype)


def part(**change: Any) -> Change:
    parts = [{"scale": 1.0, "auto": False, "transforms": []} | change]
    return put("kernel", "transforms", value=[{"name": "TransformSum", "parts": parts}])


def nested(depth: int) -> list[Any]:
    """Sums of one kernel each, one within the other."""
    found: list[Any] = []
    for _ in range(depth):
        found = [{"name": "TransformSum", "parts": [{"scale": 1.0, "auto": False, "transforms": found}]}]
    return found


HEADER_CHANGES: dict[str, Change] = {
    "unknown estimator": put("estimator", value="os.system"),
    "estimator is a list": put("estimator", value=["GPClassifier"]),
    "no parameters": drop("parameters"),
    "unknown parameter": put("parameters", "evil", value=1),
    "parameters are a list": put("parameters", value=[1]),
    "scale is text": put("kernel", "scale", value="auto"),
    "scale is negative": put("kernel", "scale", value=-1.0),
    "scale is nan": put("kernel", "scale", value=float("nan")),
    "scale is true": put("kernel", "scale", value=True),
    "unknown transform": put("kernel", "transforms", value=[{"name": "__import__", "eta": 1}]),
    "transform out of range": put("kernel", "transforms", value=[{"name": "Power", "eta": -1.0}]),
    "transform of text": put("kernel", "transforms", value=[{"name": "Exponential", "eta": "x"}]),
    "transform with more": put("kernel", "transforms", value=[{"name": "Power", "eta": 1.0, "more": 1}]),
    "too few weights": put("kernel", "transforms", value=[{"name": "Weights", "w": [1.0, 2.0]}]),
    "negative weights": put("kernel", "transforms", value=[{"name": "Weights", "w": [1, 1, 1, 1, -1]}]),
    "weights of text": put("kernel", "transforms", value=[{"name": "Weights", "w": ["a", "b", "c", "d", "e"]}]),
    "transforms are a number": put("kernel", "transforms", value=3),
    "factor is negative": put("kernel", "factor", value=-1.0),
    "sum of nothing": put("kernel", "transforms", value=[{"name": "TransformSum", "parts": []}]),
    "sum of text": put("kernel", "transforms", value=[{"name": "TransformSum", "parts": ["HIK"]}]),
    "part of a sum": part(scale=-1.0),
    "part of a sum too wide": part(transforms=[{"name": "Weights", "w": [1.0, 2.0]}]),
    "sum within sum": put("kernel", "transforms", value=nested(17)),
    "unknown tables": put("tables", value="dict"),
    "more features": put("features", value=7),
    "fewer features": put("features", value=2),
    "features are infinite": put("features", value=float("inf")),
    "features are many": put("features", value=10**18),
    "too few names": put("feature_names", value=["a"]),
    "names are text": put("feature_names", value="abcde"),
    "names are numbers": put("feature_names", value=[1, 2, 3, 4, 5]),
    "solved is none": put("solved", value=None),
    "residual is text": put("solved", "residual_", value="small"),
    "noise is negative": put("solved", "noise_", value=-1.0),
    "noise is nan": put("solved", "noise_", value=float("nan")),
    "no extra": drop("extra"),
}
CLASSIFIER_CHANGES: dict[str, Change] = {
    "no classes": drop("classes"),
    "two classes for three tables": put("classes", "values", value=[0, 1]),
    "one class": put("classes", "values", value=[0]),
    "no class": put("classes", "values", value=[]),
    "equal classes": put("classes", "values", value=[0, 1, 1]),
    "classes out of order": put("classes", "values", value=[2, 1, 0]),
    "classes in two dimensions": put("classes", "values", value=[[0, 1, 2]]),
    "classes of objects": put("classes", value={"dtype": "O", "values": [0, 1, {}]}),
    "classes of text as numbers": put("classes", value={"dtype": "<i8", "values": ["a", "b", "c"]}),
    "classes too large": put("classes", "values", value=[0, 1, 10**30]),
    "classes of a huge type": put("classes", value={"dtype": "<U500000000", "values": ["a", "b", "c"]}),
    "classes of 19.5 GiB": put("classes", value={"dtype": "<U262144", "values": [f"{k:05}" for k in range(20_000)]}),
    "classes of a short type": put("classes", value={"dtype": "<U1", "values": ["aa", "ab", "c"]}),
    "classes of a wrong type": put("classes", "dtype", value="rubbish"),
    "classes of records": put("classes", "dtype", value=[["a", "<i8"]]),
    "sharpness is nan": put("extra", "sharpness", value=float("nan")),
    "sharpness is negative": put("extra", "sharpness", value=-1.0),
    "sharpness is text": put("extra", "sharpness", value="1"),
    "sharpness is huge": put("extra", "sharpness", value=10**400),
    "known are huge": put("extra", "known", value=10**400),
    "known are none": put("extra", "known", value=0),
    "known are out of order": tensor("scores_both", lambda a: -a),
    "a regressor with classes": put("estimator", value="GPRegressor"),
}
REGRESSOR_CHANGES: dict[str, Change] = {
    "two offsets": put("extra", "offset", value=[0.0, 0.0]),
    "offset is text": put("extra", "offset", value=["a"]),
    "offset is nan": put("extra", "offset", value=[float("nan")]),
    "offset is a number": put("extra", "offset", value=0.0),
    "scale is zero": put("extra", "scale", value=[0.0]),
    "two scales": put("extra", "scale", value=[1.0, 1.0]),
    "no flat": drop("extra", "flat"),
    "a classifier without classes": put("estimator", value="GPClassifier"),
}
PIECEWISE_CHANGES: dict[str, Change] = {
    "starts beyond the end": tensor("level_starts", at(-1, 10**6)),
    "starts negative": tensor("level_starts", at(1, -3)),
    "starts late": tensor("level_starts", at(0, 1)),
    "starts fall": tensor("level_starts", lambda a: np.concatenate([a[:1], a[2:0:-1], a[3:]])),
    "starts repeat": tensor("level_starts", lambda a: np.concatenate([a[:2], a[1:2], a[3:]])),
    "starts overflow": tensor("level_starts", at(1, -(2**63))),
    "starts in two dimensions": tensor("level_starts", lambda a: a[None]),
    "starts empty": tensor("level_starts", lambda a: a[:0]),
    "one start": tensor("level_starts", lambda a: a[:1]),
    "starts short": tensor("level_starts", lambda a: np.concatenate([a[:-2], a[-1:]])),
    "starts of another type": tensor("level_starts", as_type(np.int32)),
    "starts of floats": tensor("level_starts", as_type(np.float64)),
    "starts unsigned": tensor("level_starts", as_type(np.uint64)),
    "no starts": without("level_starts"),
    "levels short": tensor("levels", lambda a: a[:-1]),
    "levels of another type": tensor("levels", as_type(np.float32)),
    "levels not finite": tensor("levels", at(1, np.nan)),
    "levels infinite": tensor("levels", at(1, np.inf)),
    "levels fall": tensor("levels", at(2, 1e-12)),
    "levels negative": tensor("levels", at(1, -1.0)),
    "first level not zero": tensor("levels", at(0, 1e-9)),
    "levels in two dimensions": tensor("levels", lambda a: a[:, None]),
    "no levels": without("levels"),
    "tops short": tensor("tops", lambda a: a[:-1]),
    "tops negative": tensor("tops", lambda a: -a),
    "tops of another type": tensor("tops", as_type(np.float32)),
    "tops in two dimensions": tensor("tops", lambda a: a[None]),
    "no tops": without("tops"),
    "tables called a grid": put("tables", value="GridTables"),
}
GRID_CHANGES: dict[str, Change] = {
    "per unit negative": tensor("per_unit", lambda a: -a),
    "per unit nan": tensor("per_unit", at(0, np.nan)),
    "per unit short": tensor("per_unit", lambda a: a[:-1]),
    "per unit empty": tensor("per_unit", lambda a: a[:0]),
    "per unit of another type": tensor("per_unit", as_type(np.float32)),
    "per unit in two dimensions": tensor("per_unit", lambda a: a[None]),
    "one bin": tensor("T", lambda a: a[:5]),
    "no bin": tensor("T", lambda a: a[:0]),
    "grid called tables": put("tables", value="PiecewiseTables"),
}
TABLE_CHANGES: dict[str, Change] = {
    "T short": tensor("T", lambda a: a[:-1]),
    "T nan": tensor("T", at((0, 0), np.nan)),
    "T flat": tensor("T", lambda a: a[:, 0]),
    "T with more outputs": tensor("T", lambda a: np.hstack([a, a[:, :1]])),
    "T with no outputs": tensor("T", lambda a: a[:, :0]),
    "T of whole numbers": tensor("T", as_type(np.int64)),
    "T of halves": tensor("T", as_type(np.float16)),
    "no T": without("T"),
}


VARIANCE_CHANGES: dict[str, Change] = {
    "variance by another method": put("variance", "method", value="os.system"),
    "variance without a method": drop("variance", "method"),
    "variance is a list": put("variance", value=["lowrank"]),
    "variance starts beyond the end": tensor("variance_level_starts", at(-1, 10**6)),
    "variance starts of another type": tensor("variance_level_starts", as_type(np.int32)),
    "variance of fewer features": tensor("variance_level_starts", lambda a: np.delete(a, 1)),
    "variance levels fall": tensor("variance_levels", at(2, 1e-12)),
    "variance levels nan": tensor("variance_levels", at(2, np.nan)),
    "variance T short": tensor("variance_T", lambda a: a[:-1]),
    "variance T flat": tensor("variance_T", lambda a: a[:, 0]),
    "variance T of another type": tensor("variance_T", as_type(np.float64)),
    "variance T with no columns": tensor("variance_T", lambda a: a[:, :0]),
    "variance T infinite": tensor("variance_T", at((0, 0), np.inf)),
    "slack of one column": tensor("variance_slack", lambda a: a[:, :1]),
    "slack short": tensor("variance_slack", lambda a: a[:-1]),
    "slack negative": tensor("variance_slack", at((0, 0), -1.0)),
    "slack nan": tensor("variance_slack", at((0, 0), np.nan)),
    "slack of another type": tensor("variance_slack", as_type(np.float64)),
    "no slack": without("variance_slack"),
    "ranks that are too many": put("variance", "ranks", value=[10**6]),
    "a rank of nothing": put("variance", "ranks", value=[0]),
    "ranks of too many outputs": put("variance", "ranks", value=[1] * 60),
    "ranks in text": put("variance", "ranks", value="all"),
    "no variance T": without("variance_T"),
}


ONE_CLASS_CHANGES: dict[str, Change] = {
    "unknown measure": put("parameters", "measure", value="odd"),
    "unknown inference": put("parameters", "inference", value="odd"),
    "threshold is nan": put("extra", "offset", value=float("nan")),
    "threshold is text": put("extra", "offset", value="high"),
    "no threshold": drop("extra", "offset"),
    "known are huge": put("extra", "known", value=10**400),
    "known are half": put("extra", "known", value=0.5),
    "scores fall": tensor("scores_normal", lambda a: a[::-1]),
    "scores are none": tensor("scores_normal", lambda a: a[:0]),
    "scores in two dimensions": tensor("scores_normal", lambda a: a[None]),
    "scores of another type": tensor("scores_normal", as_type(np.float32)),
    "no scores": without("scores_normal"),
}


def changes() -> list[Any]:
    groups = {
        "one class": HEADER_CHANGES | ONE_CLASS_CHANGES | TABLE_CHANGES | PIECEWISE_CHANGES | VARIANCE_CHANGES,
        "classifier": HEADER_CHANGES | CLASSIFIER_CHANGES | TABLE_CHANGES | PIECEWISE_CHANGES | VARIANCE_CHANGES,
        "regressor": HEADER_CHANGES | REGRESSOR_CHANGES | TABLE_CHANGES | PIECEWISE_CHANGES,
        "grid": CLASSIFIER_CHANGES | TABLE_CHANGES | GRID_CHANGES,
    }
    return [
        pytest.param(kind, change, id=f"{kind}: {name}") for kind, g in groups.items() for name, change in g.items()
    ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sound")
    classifier = GPClassifier(random_state=0).fit(X, NUMBER)
    models = {
        "one class": OneClassGP(random_state=0).fit(X),
        "classifier": classifier,
        "regressor": GPRegressor().fit(X, X.sum(1)),
        "grid": classifier.quantized(16),
    }
    for name, model in models.items():
        model.save(folder / name)
    return {name: folder / name for name in models}


@pytest.mark.parametrize(("kind", "change"), changes())
def test_what_does_not_fit_is_refused(sound: dict[str, Path], tmp_path: Path, kind: str, change: Change) -> None:
    header, tensors = model_file.read(sound[kind])
    change(header, tensors)
    model_file.write(tmp_path / "odd", header, tensors)
    model_file.read(tmp_path / "odd")  # the digest is right
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load(tmp_path / "odd")


@pytest.mark.parametrize("kind", ["classifier", "regressor", "grid"])
def test_without_a_change_it_loads(sound: dict[str, Path], tmp_path: Path, kind: str) -> None:
    model_file.write(tmp_path / "same", *model_file.read(sound[kind]))
    same(load(tmp_path / "same").predict(NEW), load(sound[kind]).predict(NEW))


def test_a_variance_of_the_version_before_says_how_to_convert(sound: dict[str, Path], tmp_path: Path) -> None:
    header, tensors = model_file.read(sound["classifier"])
    header["variance"] = {"method": "rough", "top": 1.0, "ones": 1.0}
    model_file.write(tmp_path / "old", header, tensors)
    with pytest.raises(ModelFileError, match='Fit it again with variance="lowrank"'):
        load(tmp_path / "old")
