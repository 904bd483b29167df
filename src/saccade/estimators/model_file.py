"""Estimators to and from model files: tables, kernel and classes, nothing of the training data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from saccade._core import model_file
from saccade._core.arrays import Array
from saccade._core.checks import check_choice, check_count, check_positive
from saccade._core.errors import ModelFileError
from saccade._core.feature_steps import describe
from saccade.inference.compressed import Compressed
from saccade.inference.sites import METHODS as INFERENCES
from saccade.kernels.serialize import read_kernel, write_kernel
from saccade.operators.norms import NormTables
from saccade.operators.tables import GridTables, PiecewiseTables
from saccade.scores.novelty import MEASURES

LABEL_KINDS = "biufU"  # bool, int, unsigned, float, text
MOST_LABELS = 1 << 26  # bytes of all labels together
TABLE_TYPES = (np.float64, np.float32, np.int64)
MOST_KNOWN = 1 << 53  # beyond, float64 cannot count


class Saved(Protocol):
    """What a file says of an estimator beside its tables."""

    kernel: Any
    n_features_in_: int
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
) -> None:
    """Write a fitted estimator; `extra` and `arrays` are further numbers its class needs to predict.

    `features` is the fitted transformer of `saccade.features`, or the Pipeline of them, that made X; it lies in the
    file beside the model, and `saccade.load` gives both back.
    """
    tables = {field.name: getattr(gp.tables, field.name) for field in fields(gp.tables)}
    header = {
        "estimator": type(model).__name__,
        "parameters": _parameters(model),
        "kernel": write_kernel(gp.kernel, model.kernel if model.tuning_ is None else gp.kernel),
        "tables": type(gp.tables).__name__,
        "features": int(model.n_features_in_),
        "feature_names": list(map(str, getattr(model, "feature_names_in_", []))),
        "solved": {
            "n_iter_": model.n_iter_,
            "residual_": model.residual_,
            "converged_": model.converged_,
            "noise_": model.noise_,
        },
        "extra": extra,
    }
    if not isinstance(gp.tables, GridTables):
        tables["tops"] = gp.tops
    if gp.norms is not None:
        header["variance"] = {"method": "lowrank", "ranks": [int(norms.T.shape[1]) for norms in gp.norms]}
        first = gp.norms[0]  # all have the same nodes
        tables |= {"variance_level_starts": first.level_starts, "variance_levels": first.levels}
        tables |= {
            f"variance_{name}": np.hstack([getattr(norms, name) for norms in gp.norms]) for name in ("T", "slack")
        }
    tables |= {f"scores_{name}": array for name, array in (arrays or {}).items()}
    if classes is not None:
        header["classes"] = _write_classes(classes)
    if features is not None:
        header["pictures"], learned = describe(features)
        tables |= learned
    model_file.write(path, header, tables)


def load(path: Any) -> Any:
    """The estimator saved at `path`. It predicts; it holds no training example, so it cannot be trained further."""
    from saccade.estimators.classifier import GPClassifier
    from saccade.estimators.one_class import OneClassGP
    from saccade.estimators.regressor import GPRegressor
    from saccade.estimators.svdd import SVDD

    kinds: dict[str, tuple[Any, Callable[[Any, dict[str, Any], dict[str, Array]], int]]] = {
        "GPClassifier": (GPClassifier, _read_classes),
        "GPRegressor": (GPRegressor, _read_targets),
        "OneClassGP": (OneClassGP, _read_scores),
        "SVDD": (SVDD, _read_ball),
    }
    try:
        header, tensors = model_file.read(path, _judge)
        kind, read_rest = kinds[header["estimator"]]
        model: Any = kind(**header["parameters"])
        model.n_features_in_ = int(header["features"])
        model.kernel_, model.kernel = read_kernel(header["kernel"], model.n_features_in_)
        _read_names(model, header["feature_names"])
        for name, as_ in (("n_iter_", int), ("residual_", float), ("converged_", bool), ("noise_", float)):
            setattr(model, name, as_(header["solved"][name]))
        if not 0.0 <= model.noise_ < np.inf:
            raise ValueError(f"a noise of {model.noise_}")
        tables = _read_tables(header["tables"], tensors, model.n_features_in_)
        norms = (
            _read_variance(header["variance"], tensors, model.n_features_in_, tables.T.shape[1])
            if "variance" in header
            else None
        )
        model._restore_tables(Compressed(model.kernel_, tables, norms, tensors.get("tops", np.zeros(0))))
        outputs = read_rest(model, header, tensors)
        if tables.T.shape[1] != outputs:
            raise ValueError(f"{tables.T.shape[1]} tables for {outputs} outputs")
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} does not describe a model ({error!r}). Save the model again.") from None
    return model


def _judge(header: dict[str, Any], layout: model_file.Layout) -> None:
    """What can be refused before a tensor is read: labels that need too much, tables that cannot be ours."""
    if "classes" in header:
        _label_type(header["classes"])
    for name, place in layout.items():
        if name.startswith("pictures/"):
            continue  # the transformers judge these
        if place.dtype not in TABLE_TYPES or len(place.shape) > 2:
            raise ValueError(f"{name} is a table of {place.dtype} in {len(place.shape)} dimensions")
        if name.endswith("level_starts") and place.shape[0] - 1 not in (header["features"], 2 * header["features"]):
            raise ValueError(f"{name} has {place.shape[0] - 1} dimensions for {header['features']} features")


def _label_type(written: dict[str, Any]) -> np.dtype[Any]:
    """The type of the labels, when all of them together are no more than a file may ask for."""
    dtype: np.dtype[Any] = np.dtype(written["dtype"])
    if dtype.kind not in LABEL_KINDS or dtype.itemsize * len(written["values"]) > MOST_LABELS:
        raise ValueError(f"{len(written['values'])} labels of type {dtype}")
    return dtype


def _read_names(model: Any, names: list[str]) -> None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("feature names are not text")
    if len(names) not in (0, model.n_features_in_):
        raise ValueError(f"{len(names)} names for {model.n_features_in_} features")
    if names:
        model.feature_names_in_ = np.array(names, object)


def _read_classes(model: Any, header: dict[str, Any], tensors: dict[str, Array]) -> int:
    """Sets what a classifier needs; returns the number of outputs."""
    model.classes_ = np.array(header["classes"]["values"], _label_type(header["classes"]))
    M = model.classes_.size
    if model.classes_.ndim != 1 or M < 2 or not np.array_equal(np.unique(model.classes_), model.classes_):
        raise ValueError("classes are not two or more in ascending order")
    check_choice("inference", model.inference, INFERENCES)
    model.sharpness_ = check_positive("sharpness", header["extra"]["sharpness"], "Save the model again.")
    if "known" in header["extra"]:
        model._n_known = _read_count(header["extra"]["known"])
        model._known_scores = {name: _ascending(tensors, name) for name in ("explained", "confidence", "both")}
    return 1 if M == 2 else int(M)


def _read_targets(model: Any, header: dict[str, Any], tensors: dict[str, Array]) -> int:
    """Sets what a regressor needs; returns the number of outputs."""
    extra = header["extra"]
    model._offset, model._scale = (np.array(extra[name], np.float64) for name in ("offset", "scale"))
    model._flat = bool(extra["flat"])
    m = model._offset.size
    sound = model._offset.shape == model._scale.shape == (m,) and (m == 1 or not model._flat)
    if not sound or not np.isfinite([model._offset, model._scale]).all() or (model._scale <= 0).any():
        raise ValueError("offset and scale of the targets do not fit together")
    return int(m)


def _read_scores(model: Any, header: dict[str, Any], tensors: dict[str, Array]) -> int:
    """Sets what a one-class model needs; returns the number of outputs."""
    check_choice("inference", model.inference, INFERENCES)
    check_choice("measure", model.measure, MEASURES)
    model.offset_ = float(header["extra"]["offset"])
    model.normal_scores_ = _ascending(tensors, "normal")
    model.n_known_ = _read_count(header["extra"]["known"])
    if not np.isfinite(model.offset_):
        raise ValueError("the threshold is not finite")
    return 1


def _read_ball(model: Any, header: dict[str, Any], tensors: dict[str, Array]) -> int:
    """Sets what SVDD needs; returns the number of outputs."""
    model._restore(header["extra"])
    return 1


def _read_count(written: Any) -> int:
    count = check_count("known", written, "Save the model again.")
    if count > MOST_KNOWN:
        raise ValueError("more known examples than there can be")
    return count


def _ascending(tensors: dict[str, Array], name: str) -> Array:
    scores = tensors[f"scores_{name}"]
    if scores.ndim != 1 or not scores.size or scores.dtype != np.float64 or (np.diff(scores) < 0).any():
        raise ValueError("scores of known examples are not in order")
    return scores


def _read_tables(kind: str, tensors: dict[str, Array], features: int) -> PiecewiseTables | GridTables:
    """The tables, with every bound checked that the compiled loops rely on."""
    if not all(np.isfinite(t).all() for t in tensors.values()):
        raise ValueError("tables are not finite")
    if kind == "GridTables":
        grid = GridTables(tensors["per_unit"], tensors["T"])
        D, sound = grid.per_unit.size, _grid_is_sound(grid)
        tables: PiecewiseTables | GridTables = grid
    elif kind == "PiecewiseTables":
        piecewise = PiecewiseTables(tensors["level_starts"], tensors["levels"], tensors["T"])
        tops = tensors["tops"]
        D = piecewise.level_starts.size - 1
        sound = _piecewise_is_sound(piecewise) and tops.shape == (D,) and tops.dtype == np.float64 and tops.min() >= 0
        tables = piecewise
    else:
        raise ValueError(f"unknown tables {kind!r}")
    if not sound or D not in (features, 2 * features):
        raise ValueError("tables do not fit together")
    return tables


def _read_variance(
    written: dict[str, Any], tensors: dict[str, Array], features: int, outputs: int
) -> tuple[NormTables, ...]:
    """The tables of the variance, with every bound checked that the compiled loops rely on."""
    if written["method"] == "rough":
        raise ModelFileError(
            'This model was saved with variance="rough", which this version does not have: low-rank tables are as fast '
            'and far nearer. Fit it again with variance="lowrank" and save it.'
        )
    if written["method"] != "lowrank":
        raise ValueError(f"unknown variance {written['method']!r}")
    starts, levels, T, slack = (tensors[f"variance_{name}"] for name in ("level_starts", "levels", "T", "slack"))
    sound = _nodes_are_sound(starts, levels, T) and starts.size - 1 in (features, 2 * features)
    ranks = [check_count("rank", rank, "Save the model again.") for rank in written.get("ranks", [T.shape[-1]])]
    sound = sound and len(ranks) in (1, outputs) and sum(ranks) == T.shape[1] > 0
    sound = sound and T.dtype == slack.dtype == np.float32 and slack.shape == (len(T), 2 * len(ranks))
    if not sound or not bool(slack.min() >= 0):
        raise ValueError("tables of the variance do not fit together")
    parts = zip(np.split(T, np.cumsum(ranks)[:-1], axis=1), np.hsplit(slack, len(ranks)), strict=True)
    return tuple(NormTables(starts, levels, *map(np.ascontiguousarray, part)) for part in parts)


def _grid_is_sound(tables: GridTables) -> bool:
    per_unit, T = tables.per_unit, tables.T
    if per_unit.dtype != np.float64 or T.dtype != np.float32 or per_unit.ndim != 1 or T.ndim != 2:
        return False
    D = per_unit.size
    return D > 0 and len(T) == D * tables.bins and tables.bins >= 2 and bool(per_unit.min() >= 0)


def _piecewise_is_sound(tables: PiecewiseTables) -> bool:
    return tables.T.dtype == np.float64 and _nodes_are_sound(tables.level_starts, tables.levels, tables.T)


def _nodes_are_sound(starts: Array, levels: Array, T: Array) -> bool:
    if starts.dtype != np.int64 or levels.dtype != np.float64:
        return False
    if starts.ndim != 1 or levels.ndim != 1 or T.ndim != 2 or starts.size < 2:
        return False
    if starts[0] != 0 or not starts[-1] == levels.size == len(T) or (starts[1:] <= starts[:-1]).any():
        return False
    rises = np.diff(levels) >= 0
    rises[starts[1:-1] - 1] = True  # from one dimension to the next
    return bool(rises.all() and (levels[starts[:-1]] == 0).all())


def _write_classes(classes: Array) -> dict[str, Any]:
    if classes.dtype == object and all(isinstance(c, str) for c in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in LABEL_KINDS:
        raise ModelFileError(f"Labels of type {classes.dtype} cannot be saved. Use text or numbers as labels.")
    if classes.nbytes > MOST_LABELS:
        raise ModelFileError(f"{classes.size} labels of type {classes.dtype} cannot be saved. Use shorter labels.")
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def _parameters(model: Saved) -> dict[str, Any]:
    """Those a constructor takes; a tuned model is read as one that was given what it learned."""
    plain = {k: v for k, v in model.get_params(deep=False).items() if _plain(v) and k != "kernel"}
    return plain | {"noise": model.noise_, "tune": None} if model.tuning_ is not None else plain


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
