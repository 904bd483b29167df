"""Model files that keep the training rows: for models whose answers do not fit into tables.

Such a file holds rows, targets, weights and parameters, and loading it fits the model again. The same data and the same
random numbers give the same answers, and the loaded model can do all that the saved one could. SVDD is not fitted
again: its support vectors are all it needs.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from saccade._core import model_file
from saccade._core.arrays import Array
from saccade._core.declared import check_sides
from saccade._core.errors import InvalidInput, ModelFileError
from saccade._core.feature_steps import describe
from saccade.estimators.repeats import unseen
from saccade.inference.posterior.gp import GP
from saccade.kernels.base import Kernel
from saccade.kernels.describe import describe_kernel, described_kernel

PREFIX = "examples_"


def rows_of(gp: Any) -> Any:  # (n, d)
    """All training rows as they came; an error where they are not there any more."""
    if not isinstance(gp, GP):
        raise InvalidInput("A loaded model without training rows has none to save. Leave `examples` out.")
    if gp.grid is not None:
        raise ModelFileError("A quantised model keeps no training row in its file. Save the model it was made of.")
    if gp.gram.given is not None:
        raise ModelFileError(
            "The training rows were rounded to `levels` and are not there as they came, so a file cannot keep them. "
            "Fit with levels=None to save them."
        )
    return gp.gram.all_rows()


def save_examples(
    model: Any,  # a fitted estimator
    path: Any,
    X: Any,  # (n, d)
    arrays: dict[str, Array],  # targets and weights
    header: dict[str, Any],  # what else the kind of estimator needs
    features: Any,
    why: str | None,  # why rows are kept though nobody asked for it
) -> None:
    """Write rows, targets, parameters and kernel."""
    given = model.kernel if isinstance(model.kernel, Kernel) and model.tuning_ is None else model.kernel_
    matrix = {"X": X} if not sp.issparse(X) else {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    tensors = {PREFIX + name: _stored(array) for name, array in (matrix | arrays).items()}
    check_sides(X.shape, _bytes(tensors), path)  # else it could not be loaded
    told = {
        "estimator": type(model).__name__,
        "examples": int(X.shape[0]),
        "described": describe_kernel(given if type(model).__name__ != "SVDD" else model.kernel_),
        "features": int(model.n_features_in_),
        "feature_names": list(map(str, getattr(model, "feature_names_in_", []))),
        **header,
    }
    if features is not None:
        told["pictures"], learned = describe(features)
        tensors |= learned
    model_file.write(path, told, tensors)
    if why is not None:
        warnings.warn(
            f"{path} keeps {X.shape[0]} training rows, because {why}. Give it only to those who may see them.",
            UserWarning,
            stacklevel=3,
        )


def _stored(array: Any) -> Array:
    found: Array = np.asarray(array)
    return found.astype(np.int64) if found.dtype.kind in "biu" else found.astype(np.float64, copy=False)


def _bytes(arrays: dict[str, Array]) -> int:
    return sum(array.nbytes for array in arrays.values())


def restore(model: Any, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Make the saved model of a new estimator; a ValueError or a relative where the parts do not fit together."""
    from saccade.estimators.classifier import GPClassifier
    from saccade.estimators.regressor import GPRegressor
    from saccade.estimators.svdd import SVDD

    model.kernel = described_kernel(header["described"])
    parts = {name.removeprefix(PREFIX): array for name, array in tensors.items() if name.startswith(PREFIX)}
    X, weight = _read_rows(header, parts), parts.get("weight")
    n = X.shape[0]
    if any(len(parts[name]) != n for name in ("y", "weight", "apart", "dual") if name in parts):
        raise ValueError(f"other numbers of targets or weights than {n} rows")
    if not all(np.isfinite(array).all() for array in parts.values()):
        raise ValueError("rows or targets are not finite")
    if isinstance(model, SVDD):
        model._restore_support(X, parts["dual"], parts["support"], header["extra"])
    elif isinstance(model, GPClassifier):
        y, classes = parts["y"], model.classes_
        if y.ndim != 1 or not 0 <= y.min() <= y.max() < classes.size:
            raise ValueError("labels beyond the classes")
        X = model._begin(X, y, np.arange(classes.size), weight)  # by number: one forged label may have megabytes
        model.classes_ = classes
        model._calibrate(model._learn(X, model._targets()))
    elif isinstance(model, GPRegressor):
        model._function = model._prior = None
        model._y, model._weight, model._apart = parts["y"], weight, parts.get("apart")
        model._keys = unseen(X, model._y, [], model._y[:0])[1] if model.noise == 0 else None
        model._learn(X, model._normalised())
    else:
        model.fit(X)


def _read_rows(header: dict[str, Any], parts: dict[str, Array]) -> Any:
    shape = (int(header["examples"]), int(header["features"]))
    check_sides(shape, _bytes(parts), "the file")
    if "X" in parts:
        X: Any = parts["X"]
    else:
        matrix = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
        matrix.check_format(full_check=True)
        X = matrix
    if X.shape != shape or 0 in shape:
        raise ValueError(f"rows of shape {X.shape} where the header has {shape}")
    return X
