"""Estimators to and from model files: tables, kernel and classes, nothing of the training data."""

from __future__ import annotations

from typing import Any

import numpy as np

from saccade._core import model_file
from saccade._core.errors import ModelFileError
from saccade.kernels import HIK, Exponential, Power, Weights
from saccade.operators.tables import GridTables, PiecewiseTables

Array = np.ndarray[Any, np.dtype[Any]]
TRANSFORMS = {kind.__name__: kind for kind in (Power, Exponential, Weights)}
LABEL_KINDS = "biufU"  # bool, int, unsigned, float, text


def save(model: Any, path: Any, extra: dict[str, Any], classes: Array | None = None) -> None:
    """Write a fitted estimator; `extra` are further numbers its class needs to predict."""
    if model.tables_ is None:
        raise ModelFileError(
            f"A {type(model.kernel_).__name__} model predicts from its training examples, which a model file never "
            "holds. Use HIK(), or keep the whole object with joblib.dump."
        )
    tables = {name: getattr(model.tables_, name) for name in model.tables_.__dataclass_fields__}
    header = {
        "estimator": type(model).__name__,
        "parameters": {k: v for k, v in model.get_params(deep=False).items() if _plain(v) and k != "kernel"},
        "kernel": {"scale": float(model.kernel_.scale), "transforms": _write_transforms(model.kernel_)},
        "tables": type(model.tables_).__name__,
        "features": int(model.n_features_in_),
        "feature_names": list(map(str, getattr(model, "feature_names_in_", []))),
        "solved": {"n_iter_": model.n_iter_, "residual_": model.residual_, "converged_": model.converged_},
        "extra": extra,
    }
    if not isinstance(model.tables_, GridTables):
        tables["tops"] = model._tops
    if classes is not None:
        header["classes"] = _write_classes(classes)
    model_file.write(path, header, tables)


def load(path: Any) -> Any:
    """The estimator saved at `path`. It predicts; it holds no training example, so it cannot be trained further."""
    from saccade.estimators.classifier import GPClassifier
    from saccade.estimators.regressor import GPRegressor

    header, tensors = model_file.read(path)
    kinds = {kind.__name__: kind for kind in (GPClassifier, GPRegressor)}
    try:
        model = kinds[header["estimator"]](**header["parameters"])
        model.kernel_ = HIK(_read_transforms(header["kernel"]["transforms"]), scale=header["kernel"]["scale"])
        model.kernel = HIK(model.kernel_.transform, scale=model.kernel_.scale)
        model.n_features_in_ = int(header["features"])
        if header["feature_names"]:
            model.feature_names_in_ = np.array(header["feature_names"], object)
        for name in ("n_iter_", "residual_", "converged_"):
            setattr(model, name, header["solved"][name])
        model.tables_ = _read_tables(header["tables"], tensors, model.n_features_in_)
        if "tops" in tensors:
            model._tops = tensors["tops"]
        _read_extra(model, header)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{path} does not describe a model ({error!r}). Save the model again.") from None
    return model


def _read_extra(model: Any, header: dict[str, Any]) -> None:
    extra, outputs = header["extra"], model.tables_.T.shape[1]
    if "classes" in header:
        model.classes_ = np.array(header["classes"]["values"], header["classes"]["dtype"])
        model.sharpness_ = float(extra["sharpness"])
        expected = 1 if model.classes_.size == 2 else model.classes_.size
    else:
        model._offset, model._scale = np.array(extra["offset"]), np.array(extra["scale"])
        model._flat = bool(extra["flat"])
        expected = model._offset.size
    if outputs != expected:
        raise ValueError(f"{outputs} tables for {expected} outputs")


def _read_tables(kind: str, tensors: dict[str, Array], features: int) -> PiecewiseTables | GridTables:
    """The tables, with every bound checked that the compiled loops rely on."""
    if kind == "GridTables":
        grid = GridTables(tensors["per_unit"], tensors["T"])
        D = grid.per_unit.size
        sound = grid.T.ndim == 2 and grid.per_unit.dtype == np.float64 and grid.T.dtype == np.float32
        sound = sound and D > 0 and grid.T.shape[0] == D * grid.bins and grid.bins >= 2
        tables: PiecewiseTables | GridTables = grid
    elif kind == "PiecewiseTables":
        piecewise = PiecewiseTables(tensors["level_starts"], tensors["levels"], tensors["T"])
        starts, levels, T = piecewise.level_starts, piecewise.levels, piecewise.T
        D = starts.size - 1
        sound = starts.dtype == np.int64 and levels.dtype == T.dtype == np.float64 and T.ndim == 2 and starts.ndim == 1
        sound = sound and D > 0 and starts[0] == 0 and starts[-1] == levels.size == len(T)
        sound = sound and bool((np.diff(starts) >= 1).all()) and tensors["tops"].size == D
        tables = piecewise
    else:
        raise ValueError(f"unknown tables {kind!r}")
    if not sound or D not in (features, 2 * features) or not all(np.isfinite(t).all() for t in tensors.values()):
        raise ValueError("tables do not fit together")
    return tables


def _write_transforms(kernel: HIK) -> list[dict[str, Any]]:
    written = []
    for transform in kernel.transforms():
        if type(transform).__name__ not in TRANSFORMS:
            raise ModelFileError(f"{transform!r} cannot be saved: a model file knows {', '.join(TRANSFORMS)}.")
        parameters = {k: np.asarray(v).tolist() for k, v in transform.get_params().items()}
        written.append({"name": type(transform).__name__, **parameters})
    return written


def _read_transforms(written: list[dict[str, Any]]) -> list[Any] | None:
    return [TRANSFORMS[t["name"]](**{k: v for k, v in t.items() if k != "name"}) for t in written] or None


def _write_classes(classes: Array) -> dict[str, Any]:
    if classes.dtype == object and all(isinstance(c, str) for c in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in LABEL_KINDS:
        raise ModelFileError(f"Labels of type {classes.dtype} cannot be saved. Use text or numbers as labels.")
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
