"""Estimators to and from model files: tables, kernel and classes; training rows only where there are no tables."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from saccade._core import limits, model_file
from saccade._core.arrays import Array
from saccade._core.checks import check_choice, check_count, check_flag, check_positive, check_share
from saccade._core.errors import ModelFileError
from saccade._core.feature_steps import describe
from saccade.estimators.columns import ColumnScales
from saccade.estimators.unknown_classes import EVEN
from saccade.inference.likelihoods.sites import METHODS as INFERENCES
from saccade.inference.posterior.compressed import Compressed
from saccade.inference.posterior.compressed_file import read_tables, write_tables
from saccade.kernels.serialize import read_kernel, write_kernel
from saccade.scores.novelty import MEASURES

if TYPE_CHECKING:
    from saccade.estimators.classifier import GPClassifier
    from saccade.estimators.one_class import OneClassGP
    from saccade.estimators.regressor import GPRegressor
    from saccade.estimators.svdd import SVDD

LABEL_KINDS = "biufU"  # bool, int, unsigned, float, text
TABLE_TYPES = (np.float64, np.float32, np.float16, np.int64)


class Saved(Protocol):
    """What a file says of an estimator beside its tables."""

    kernel: Any
    n_features_in_: int
    feature_names_in_: Array  # where rows had names
    n_iter_: int
    residual_: float
    converged_: bool

    @property
    def noise_(self) -> float: ...

    @property
    def tuning_(self) -> object: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


def save(
    model: Saved,
    gp: Compressed,
    path: Any,
    extra: dict[str, Any],
    classes: Array | None = None,
    features: Any = None,
    arrays: dict[str, Array] | None = None,
    compact: bool = False,
) -> None:
    """Write a fitted estimator; `extra` and `arrays` are further numbers its class needs to predict.

    `features` is the fitted transformer of `saccade.features`, or the Pipeline of them, that made X; it lies in the
    file beside the model, and `saccade.load` gives both back.
    """
    written, tables = write_tables(gp, check_flag("compact", compact))
    header = {
        "estimator": type(model).__name__,
        "parameters": _parameters(model),
        "kernel": write_kernel(gp.kernel, model.kernel if model.tuning_ is None else gp.kernel),
        "features": int(model.n_features_in_),
        "feature_names": list(map(str, getattr(model, "feature_names_in_", []))),
        "solved": {
            "n_iter_": model.n_iter_,
            "residual_": model.residual_,
            "converged_": model.converged_,
            "noise_": model.noise_,
        },
        "extra": extra,
        **written,
    }
    tables |= {f"scores_{name}": array for name, array in (arrays or {}).items()}
    if classes is not None:
        header["classes"] = _write_classes(classes)
    if features is not None:
        header["pictures"], learned = describe(features)
        tables |= learned
    model_file.write(path, header, tables)


def load(path: Any) -> Any:
    """The estimator saved at `path`. It predicts; it can be trained further where the file keeps the training rows."""
    return load_with_header(path)[0]


def load_with_header(path: Any) -> tuple[Any, dict[str, Any]]:
    """The estimator, and what the file says beside it."""
    from saccade.estimators.classifier import GPClassifier
    from saccade.estimators.one_class import OneClassGP
    from saccade.estimators.regressor import GPRegressor
    from saccade.estimators.svdd import SVDD

    kinds = {kind.__name__: kind for kind in (GPClassifier, GPRegressor, OneClassGP, SVDD)}
    try:
        header, tensors = model_file.read(path, _judge)
        model: GPClassifier | GPRegressor | OneClassGP | SVDD = kinds[header["estimator"]](**header["parameters"])
        model.n_features_in_ = int(header["features"])
        if "examples" in header:
            _read_examples(model, header, tensors)
            return model, header
        width = _width(header, tensors)
        model.kernel_, model.kernel = read_kernel(header["kernel"], width)
        _read_names(model, header["feature_names"])
        for name, as_ in (("n_iter_", int), ("residual_", float), ("converged_", bool), ("noise_", float)):
            setattr(model, name, as_(header["solved"][name]))
        if not 0.0 <= model.noise_ < np.inf:
            raise ValueError(f"a noise of {model.noise_}")
        gp = read_tables(header, tensors, model.kernel_, width)
        model._restore_tables(gp)
        outputs = _read_rest(model, header, tensors)
        if gp.tables.T.shape[1] != outputs:
            raise ValueError(f"{gp.tables.T.shape[1]} tables for {outputs} outputs")
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} does not describe a model ({error!r}). Save the model again.") from None
    return model, header


def _read_examples(model: Any, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    from saccade.estimators.examples_file import restore

    if "classes" in header:
        model.classes_ = _classes(header)
    if "inducing" in header:
        model.inducing = np.array(header["inducing"])
    restore(model, header, tensors)
    _read_names(model, header["feature_names"])  # after the fit, whose rows have none


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


def _label_type(written: dict[str, Any]) -> np.dtype[Any]:
    """The type of the labels, when all of them together are no more than a file may ask for."""
    dtype: np.dtype[Any] = np.dtype(written["dtype"])
    if dtype.kind not in LABEL_KINDS or dtype.itemsize * len(written["values"]) > limits.LABEL_BYTES:
        raise ValueError(f"{len(written['values'])} labels of type {dtype}")
    return dtype


def _read_rest(
    model: GPClassifier | GPRegressor | OneClassGP | SVDD, header: dict[str, Any], tensors: dict[str, Array]
) -> int:
    """Sets what each kind of estimator needs beside its tables; returns the number of outputs."""
    from saccade.estimators.classifier import GPClassifier
    from saccade.estimators.one_class import OneClassGP
    from saccade.estimators.regressor import GPRegressor

    if isinstance(model, GPClassifier):
        return _read_classes(model, header, tensors)
    if isinstance(model, GPRegressor):
        return _read_targets(model, header["extra"])
    if isinstance(model, OneClassGP):
        return _read_scores(model, header["extra"], tensors)
    model._restore(header["extra"])
    return 1


def _read_names(model: Saved, names: list[str]) -> None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("feature names are not text")
    if len(names) not in (0, model.n_features_in_):
        raise ValueError(f"{len(names)} names for {model.n_features_in_} features")
    if names:
        model.feature_names_in_ = np.array(names, object)


def _read_classes(model: GPClassifier, header: dict[str, Any], tensors: dict[str, Array]) -> int:
    model.classes_ = _classes(header)
    M = model.classes_.size
    check_choice("inference", model.inference, INFERENCES)
    model.sharpness_ = check_positive("sharpness", header["extra"]["sharpness"], "Save the model again.")
    if "known" in header["extra"]:
        model._n_known = _read_count(header["extra"]["known"])
        weight = header["extra"].get("confidence_weight", EVEN)  # not in files of earlier versions
        model._confidence_weight = check_share("confidence_weight", weight, 1.0, "Save the model again.")
        model._known_scores = {name: _ascending(tensors, name) for name in ("explained", "confidence", "both")}
    return 1 if M == 2 else int(M)


def _classes(header: dict[str, Any]) -> Array:
    classes = np.array(header["classes"]["values"], _label_type(header["classes"]))
    if classes.ndim != 1 or classes.size < 2 or not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes are not two or more in ascending order")
    return classes


def _read_targets(model: GPRegressor, extra: dict[str, Any]) -> int:
    model._offset, model._scale = (np.array(extra[name], np.float64) for name in ("offset", "scale"))
    model._flat = bool(extra["flat"])
    m = model._offset.size
    sound = model._offset.shape == model._scale.shape == (m,) and (m == 1 or not model._flat)
    if not sound or not np.isfinite([model._offset, model._scale]).all() or (model._scale <= 0).any():
        raise ValueError("offset and scale of the targets do not fit together")
    assert isinstance(model.gp_, Compressed)
    model.gp_ = replace(model.gp_, prior_mean=model._target_mean)
    return int(m)


def _read_scores(model: OneClassGP, extra: dict[str, Any], tensors: dict[str, Array]) -> int:
    check_choice("inference", model.inference, INFERENCES)
    check_choice("measure", model.measure, MEASURES)
    model.offset_ = float(extra["offset"])
    model.normal_scores_ = _ascending(tensors, "normal")
    model.n_known_ = _read_count(extra["known"])
    if "scores_spread" in tensors:
        model.columns_, model.scale = _read_columns(tensors, model.n_features_in_), "columns"
    if "least_prior" in extra:  # not in files of earlier versions
        model._least_prior, model._middle_score = float(extra["least_prior"]), float(extra["middle"])
    if not np.isfinite([model.offset_, model._least_prior, model._middle_score]).all():
        raise ValueError("the threshold is not finite")
    return 1


def _read_columns(tensors: dict[str, Array], features: int) -> ColumnScales:
    numbers = [tensors[f"scores_{name}"] for name in ("spread", "low", "high")]
    if any(part.shape != (features,) or not np.isfinite(part).all() for part in numbers) or (numbers[0] <= 0).any():
        raise ValueError("columns cannot be scaled by these numbers")
    return ColumnScales(*numbers)


def _read_count(written: Any) -> int:
    count = check_count("known", written, "Save the model again.")
    if count > limits.KNOWN_EXAMPLES:
        raise ValueError("more known examples than there can be")
    return count


def _ascending(tensors: dict[str, Array], name: str) -> Array:
    scores = tensors[f"scores_{name}"]
    if scores.ndim != 1 or not scores.size or scores.dtype != np.float64 or (np.diff(scores) < 0).any():
        raise ValueError("scores of known examples are not in order")
    return scores


def save_with_examples(
    model: Any,
    path: Any,
    X: Any,
    arrays: dict[str, Array | None],
    features: Any,
    why: str | None,
    extra: dict[str, Any] | None = None,
) -> None:
    """Write the training rows instead of tables; see examples_file.py."""
    from saccade.estimators.examples_file import save_examples

    header: dict[str, Any] = {"parameters": _parameters(model), "extra": extra or {}}
    if hasattr(model, "classes_"):
        header["classes"] = _write_classes(model.classes_)
    if isinstance(getattr(model, "inducing", None), np.ndarray | list | tuple):
        header["inducing"] = np.asarray(model.inducing).tolist()
    known = {name: array for name, array in arrays.items() if array is not None}
    save_examples(model, path, X, known, header, features, why)


def _write_classes(classes: Array) -> dict[str, Any]:
    if classes.dtype == object and all(isinstance(c, str) for c in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in LABEL_KINDS:
        raise ModelFileError(f"Labels of type {classes.dtype} cannot be saved. Use text or numbers as labels.")
    if classes.nbytes > limits.LABEL_BYTES:
        raise ModelFileError(f"{classes.size} labels of type {classes.dtype} cannot be saved. Use shorter labels.")
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def _parameters(model: Saved) -> dict[str, Any]:
    """Those a constructor takes; a tuned model is read as one that was given what it learned."""
    plain = {k: v for k, v in model.get_params(deep=False).items() if _plain(v) and k != "kernel"}
    return plain | {"noise": model.noise_, "tune": None} if model.tuning_ is not None else plain


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
