"""Model files to estimators: every size and number is checked before it is used, and nothing of a file is run."""

from collections.abc import Container
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core import limits, model_file
from saccade._core.arrays import Array, FilePath
from saccade._core.checks import check_choice, check_count
from saccade._core.codec import from_json
from saccade._core.declared import check_sides
from saccade._core.errors import ModelFileError
from saccade._core.random_state import DrawnSeed
from saccade.estimators.classifier import GPClassifier
from saccade.estimators.model_writing import LABELS, PREFIX, SUPPORT
from saccade.estimators.neighbours import Neighbours
from saccade.estimators.number_targets import NumberTargets
from saccade.estimators.one_class import OneClassGP
from saccade.estimators.regressor import GPRegressor
from saccade.estimators.svdd import SVDD, Ball
from saccade.estimators.targets import ClassTargets
from saccade.estimators.unlabelled import labelled_rows
from saccade.inference.likelihoods.sites import METHODS as INFERENCES
from saccade.inference.posterior.compressed import Compressed
from saccade.inference.posterior.compressed_file import read_tables
from saccade.inference.posterior.supported import Supported, read_support
from saccade.kernels.base import check_kernel
from saccade.kernels.serialize import described_kernel, read_kernel
from saccade.scores.novelty import MEASURES

TABLE_TYPES = (np.float64, np.float32, np.float16, np.int64)
Estimator = GPClassifier | GPRegressor | OneClassGP | SVDD
KINDS: dict[str, type[Estimator]] = {kind.__name__: kind for kind in (GPClassifier, GPRegressor, OneClassGP, SVDD)}
SOLVED = {"n_iter_": int, "residual_": float, "converged_": bool, "noise_": float}


def load(path: FilePath) -> Any:
    """The estimator saved at `path`. It predicts; it can be trained further where the file keeps the training rows."""
    return load_with_header(path)[0]


def load_with_header(path: FilePath) -> tuple[Any, dict[str, Any]]:
    """The estimator, and what the file says beside it."""
    try:
        header, tensors = model_file.read(path, _judge)
        model = KINDS[header["estimator"]](**header["parameters"])
        model.n_features_in_ = int(header["features"])
        if "inducing" in header:
            model.inducing = np.array(header["inducing"])
        if "examples" in header and "support" not in header:
            _read_examples(model, header, tensors, path)
        else:
            _read_fitted(model, header, tensors, path)
        _read_names(model, header["feature_names"])  # after a fit, whose rows have none
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} does not describe a model ({error!r}). Save the model again.") from None
    return model, header


def _judge(header: dict[str, Any], layout: model_file.Layout) -> None:
    """What can be refused before a tensor is read: labels that need too much, tables that cannot be ours."""
    if "classes" in header:
        _label_type(header["classes"])
    for name, place in layout.items():
        if name.startswith("pictures/"):
            continue  # the transformers judge these
        if place.dtype not in TABLE_TYPES or len(place.shape) > 2:
            raise ValueError(f"{name} is a table of {place.dtype} in {len(place.shape)} dimensions")
        width = _width(header, layout)
        if name.endswith("level_starts") and place.shape[0] - 1 not in (width, 2 * width):
            raise ValueError(f"{name} has {place.shape[0] - 1} dimensions for {header['features']} features")


def _width(header: dict[str, Any], parts: Container[str]) -> int:
    """The number of columns that the kernel sees: scaled columns come as two."""
    return int(header["features"]) * (2 if "scores_spread" in parts else 1)


def _read_names(model: Estimator, names: Any) -> None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("feature names are not text")
    if len(names) not in (0, model.n_features_in_):
        raise ValueError(f"{len(names)} names for {model.n_features_in_} features")
    if names:
        model.feature_names_in_ = np.array(names, object)


def _read_fitted(model: Estimator, header: dict[str, Any], tensors: dict[str, Array], path: FilePath) -> None:
    for name, as_ in SOLVED.items():
        setattr(model, name, as_(header["solved"][name]))
    if not 0.0 <= model.noise_ < np.inf:
        raise ValueError(f"a noise of {model.noise_}")
    check_choice("inference", getattr(model, "inference", "regression"), INFERENCES)
    check_choice("measure", getattr(model, "measure", "mean"), MEASURES)
    gp = (_read_support if "support" in header else _read_tables)(model, header, tensors, path)
    setattr(model, model.file_tables, gp)
    if isinstance(model, GPClassifier):
        model.classes_ = _read_classes(header["classes"])
    for name, kind in model.file_parts.items():
        setattr(model, name, kind.from_file(header["extra"], tensors, path))
    if isinstance(model, GPRegressor):
        model.gp_ = replace(gp, prior_mean=model.units_)
    if isinstance(model, OneClassGP) and model.columns_ is not None:
        model.scale = "columns"
        if model.columns_.spread.size != model.n_features_in_:
            raise ValueError(f"{model.columns_.spread.size} scales for {model.n_features_in_} columns")
    outputs = (gp.alpha if isinstance(gp, Supported) else gp.tables.T).shape[1]
    if outputs != model.n_outputs_:
        raise ValueError(f"{outputs} means for {model.n_outputs_} outputs")


def _read_tables(model: Estimator, header: dict[str, Any], tensors: dict[str, Array], path: FilePath) -> Compressed:
    width = _width(header, tensors)
    model.kernel_, model.kernel = read_kernel(header["kernel"], width)
    return read_tables(header, tensors, model.kernel_, width, path)


def _read_support(model: Estimator, header: dict[str, Any], tensors: dict[str, Array], path: FilePath) -> Supported:
    """The rows that carry an inducing approximation, and what goes with them."""
    if isinstance(model, SVDD):
        raise ValueError("SVDD has no inducing approximation")
    parts = {name.removeprefix(SUPPORT): array for name, array in tensors.items() if name.startswith(SUPPORT)}
    X = _read_rows(header, parts, _width(header, tensors))
    if not all(np.isfinite(array).all() for array in parts.values()):
        raise ValueError("rows are not finite")
    gp = read_support(described_kernel(header["described"]), X, header["support"], parts, path)
    model.kernel_, model.kernel = gp.kernel, described_kernel(header["given"])
    return gp


def _read_examples(model: Estimator, header: dict[str, Any], tensors: dict[str, Array], path: FilePath) -> None:
    model.kernel = described_kernel(header["described"])
    parts = {name.removeprefix(PREFIX): array for name, array in tensors.items() if name.startswith(PREFIX)}
    X = _read_rows(header, parts, int(header["features"]))
    n = X.shape[0]
    if any(len(parts[name]) != n for name in ("y", "weight", "apart", "dual") if name in parts):
        raise ValueError(f"other numbers of targets or weights than {n} rows")
    if not all(np.isfinite(array).all() for array in parts.values()):
        raise ValueError("rows or targets are not finite")
    if isinstance(model, SVDD):
        return _read_ball(model, X, parts, header["extra"], path)
    if "seed" in header:
        model.random_state = DrawnSeed(check_count("seed", header["seed"], "Save the model again.", least=0))
    if isinstance(model, GPClassifier):
        classes = _read_classes(header["classes"])
        # by number while it is fitted: one forged label may have megabytes
        known, others = labelled_rows(parts)
        targets = ClassTargets.from_state(known, np.arange(classes.size), model.balanced)
        model.hold(model.settings().learn(X if others is None else X[~others], targets), targets)
        if others is not None:
            model.take_votes(Neighbours.of(model.kernel_, X[others]))
        model.classes_, model.targets_ = classes, replace(targets, classes=classes)
    elif isinstance(model, GPRegressor):
        numbers = NumberTargets.from_state(X, parts, model.normalising(), exact=model.noise == 0)
        model.hold(model.settings().learn(X, numbers), numbers)
    else:
        model.fit(X)
    _set_by_hand(model, header.get("set", {}))


def _set_by_hand(model: Estimator, numbers: dict[str, Any]) -> None:
    """Numbers that a user may have set after the fit."""
    for name, value in numbers.items():
        if name not in model.settable or type(value) is not float or not np.isfinite(value):
            raise ValueError(f"{name} set to {value!r}")
        setattr(model, name, value)


def _read_rows(header: dict[str, Any], parts: dict[str, Array], width: int) -> Any:
    shape = (int(header["examples"]), width)
    check_sides(shape, sum(array.nbytes for array in parts.values()), "the file")
    if "X" in parts:
        X: Any = parts["X"]
    else:
        matrix = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
        matrix.check_format(full_check=True)
        X = matrix
    if X.shape != shape or 0 in shape:
        raise ValueError(f"rows of shape {X.shape} where the header has {shape}")
    return X


def _read_ball(model: SVDD, X: Any, parts: dict[str, Array], extra: dict[str, Any], path: FilePath) -> None:
    """The support vectors, which are all that SVDD needs."""
    model.ball_ = from_json(Ball.record, extra, path)
    model.kernel_, model.support_vectors_ = check_kernel("kernel", model.kernel), X
    model.dual_coef_, model.support_ = parts["dual"], parts["support"]
    model.n_iter_, model.residual_ = int(extra["n_iter"]), float(extra["residual"])
    model.converged_ = bool(extra["converged"])
    model.kernel_(X[:1], X[:1])  # complains of parameters out of range


def _label_type(written: dict[str, Any]) -> np.dtype[Any]:
    """The type of the labels, when all of them together are no more than a file may ask for."""
    dtype: np.dtype[Any] = np.dtype(written["dtype"])
    if dtype.kind not in LABELS or dtype.itemsize * len(written["values"]) > limits.LABEL_BYTES:
        raise ValueError(f"{len(written['values'])} labels of type {dtype}")
    return dtype


def _read_classes(written: dict[str, Any]) -> Annotated[Array, "M"]:
    """The labels; a ValueError where they name no classes."""
    classes = np.array(written["values"], _label_type(written))
    if classes.ndim != 1 or classes.size < 2 or not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes are not two or more in ascending order")
    return classes
