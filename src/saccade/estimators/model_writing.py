"""Fitted estimators to model files: tables, or training rows where the answers do not fit into tables.

A file of tables holds parameters, kernel, classes, the tables of `gp_`, and the parts of the estimator that
`file_parts` names. A file of an inducing approximation holds the rows that carry it in place of tables. A file with all
training rows holds rows, targets, weights and parameters; reading it fits the model again, and the same data and the
same random numbers give the same answers. Of SVDD it holds the support vectors.
"""

import warnings
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from saccade._core import limits, model_file
from saccade._core.arrays import Array, FilePath
from saccade._core.checks import check_flag
from saccade._core.declared import check_sides
from saccade._core.errors import InvalidInput, ModelFileError
from saccade._core.random_state import DrawnSeed
from saccade.estimators.part import Part
from saccade.inference.posterior.base import Posterior
from saccade.inference.posterior.compressed_file import write_tables
from saccade.inference.posterior.gp import GP
from saccade.inference.posterior.supported import Supported, write_support
from saccade.kernels import Kernel
from saccade.kernels.gram import Gram, TabledGram
from saccade.kernels.serialize import describe_kernel, write_kernel

PREFIX = "examples_"  # of training rows, targets and weights
SUPPORT = "support_"  # of the rows that carry an inducing approximation, and its arrays
LABELS = "biufU"  # bool, int, unsigned, float, text


class Saved(Protocol):
    """What a file says of a fitted estimator."""

    kernel: Any
    kernel_: Kernel
    n_features_in_: int
    feature_names_in_: Array  # where rows had names
    n_iter_: int
    residual_: float
    converged_: bool
    file_parts: ClassVar[dict[str, type[Part]]]
    settable: ClassVar[tuple[str, ...]]
    file_tables: ClassVar[str]

    @property
    def noise_(self) -> float: ...

    @property
    def tuning_(self) -> object: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


def save(
    model: Saved,
    path: FilePath,
    features: Any = None,  # the fitted transformer of `saccade.features` that made X, or the Pipeline of them
    compact: bool = False,  # smaller tables
) -> None:
    """Write tables and parts; `saccade.load` gives them back, with the transformer in front."""
    gp = getattr(model, model.file_tables).compressed()
    written, tensors = write_tables(gp, check_flag("compact", compact))
    kernel = write_kernel(gp.kernel, model.kernel if model.tuning_ is None else gp.kernel)
    _write_with_parts(model, path, {"kernel": kernel, **written}, tensors, features)


def save_support(model: Saved, path: FilePath, gp: Supported, features: Any, why: str) -> None:
    """Write the rows that carry the posterior, weights, factors and parts; `why` says why rows are kept."""
    X = _joined(gp.gram)
    written, arrays = write_support(gp)
    tensors = {SUPPORT + name: _stored(array) for name, array in (_matrix(X) | arrays).items()}
    check_sides(X.shape, sum(array.nbytes for array in tensors.values()), path)  # else it could not be loaded
    header = {
        "examples": int(X.shape[0]),
        "described": describe_kernel(gp.kernel),
        "given": describe_kernel(_to_describe(model)),
        "support": written,
        **_inducing(model),
    }
    _write_with_parts(model, path, header, tensors, features)
    _warn_of_rows(path, X.shape[0], why)


def _write_with_parts(
    model: Saved, path: FilePath, header: dict[str, Any], tensors: dict[str, Array], features: Any
) -> None:
    header = _shared_header(model) | header
    header["solved"] = {name: getattr(model, name) for name in ("n_iter_", "residual_", "converged_", "noise_")}
    header["extra"] = {}
    for name in model.file_parts:
        part: Part | None = getattr(model, name)
        if part is not None:
            extra, arrays = part.to_file()
            header["extra"] |= extra
            tensors |= arrays
    _write(path, header, tensors, features)


def save_with_examples(
    model: Saved,
    path: FilePath,
    X: Annotated[Any, "n, d"],
    arrays: dict[str, Array | None],  # targets and weights
    features: Any,
    why: str | None,  # why rows are kept though nobody asked for it
    extra: dict[str, Any] | None = None,
) -> None:
    """Write training rows, targets, parameters and kernel."""
    known = {name: array for name, array in (_matrix(X) | arrays).items() if array is not None}
    tensors = {PREFIX + name: _stored(array) for name, array in known.items()}
    check_sides(X.shape, sum(array.nbytes for array in tensors.values()), path)  # else it could not be loaded
    header = _shared_header(model) | {
        "examples": int(X.shape[0]),
        "described": describe_kernel(_to_describe(model)),
        "extra": extra or {},
        "set": {name: float(getattr(model, name)) for name in model.settable},
        **_inducing(model),
        **_seed(model),
    }
    if "noise" in header["parameters"]:  # what was learned is not learned again
        header["parameters"]["noise"] = model.noise_
    _write(path, header, tensors, features)
    if why is not None:
        _warn_of_rows(path, X.shape[0], why)


def _matrix(X: Annotated[Any, "n, d"]) -> dict[str, Array | None]:
    return {"X": X} if not sp.issparse(X) else {"data": X.data, "indices": X.indices, "indptr": X.indptr}


def _to_describe(model: Saved) -> Kernel:
    """The kernel as it was given, so that "auto" is found again; the one that was learned where there is none."""
    learned = model.tuning_ is not None or not isinstance(model.kernel, Kernel) or "nu" in model.get_params()
    return model.kernel_ if learned else model.kernel


def _inducing(model: Saved) -> dict[str, Any]:
    """The numbers of inducing examples, where they were given as such."""
    given = getattr(model, "inducing", None)
    return {"inducing": np.asarray(given).tolist()} if isinstance(given, np.ndarray | list | tuple) else {}


def _seed(model: Saved) -> dict[str, Any]:
    """What was drawn from a random state that is no number."""
    state, gp = getattr(model, "random_state", None), getattr(model, "gp_", None)
    drawn = isinstance(state, DrawnSeed | np.random.RandomState | np.random.Generator)
    return {"seed": gp.solving.seed} if drawn and isinstance(gp, GP) else {}


def _warn_of_rows(path: FilePath, count: int, why: str) -> None:
    warnings.warn(
        f"{path} keeps {count} training rows, because {why}. Give it only to those who may see them.",
        UserWarning,
        stacklevel=4,
    )


def _shared_header(model: Saved) -> dict[str, Any]:
    header = {
        "estimator": type(model).__name__,
        "parameters": _parameters(model),
        "features": int(model.n_features_in_),
        "feature_names": list(map(str, getattr(model, "feature_names_in_", []))),
    }
    return header | ({"classes": _classes(model.classes_)} if hasattr(model, "classes_") else {})


def _parameters(model: Saved) -> dict[str, Any]:
    """Those a constructor takes; a tuned model is read as one that was given what it learned."""
    every = {name: value for name, value in model.get_params(deep=False).items() if name != "kernel"}
    every = {name: value.item() if isinstance(value, np.generic) else value for name, value in every.items()}
    plain = {
        name: value
        for name, value in every.items()
        if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, DrawnSeed))
    }
    return plain | {"noise": model.noise_, "tune": None} if model.tuning_ is not None else plain


def _write(path: FilePath, header: dict[str, Any], tensors: dict[str, Array], features: Any) -> None:
    if features is not None:
        header["pictures"], learned = model_file.describe(features)
        tensors |= learned
    model_file.write(path, header, tensors)


def _stored(array: Any) -> Array:
    found: Array = np.asarray(array)
    return found.astype(np.int64) if found.dtype.kind in "biu" else found.astype(np.float64, copy=False)


def rows_of(gp: Posterior) -> Annotated[Any, "n, d"]:
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
    return _joined(gp.gram)


def _joined(gram: Gram) -> Any:
    """The rows, whose negative parts the kernel matrix may hold as columns of their own."""
    X = gram.all_rows()
    width = gram.width if isinstance(gram, TabledGram) else X.shape[1]
    return X if X.shape[1] == width else X[:, :width] - X[:, width:]


def why_examples(gp: Posterior, examples: bool | None) -> str | None:
    """Why a file must keep training rows though nobody asked for it; None where it need not or must not."""
    if examples is not None:
        check_flag("examples", examples)
        return None
    has_rows = isinstance(gp, Supported) or (isinstance(gp, GP) and not isinstance(gp.gram, TabledGram))
    return f"{type(gp.kernel).__name__} has no tables" if has_rows else None


def _classes(classes: Annotated[Array, "M"]) -> dict[str, Any]:
    if classes.dtype == object and all(isinstance(c, str) for c in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in LABELS:
        raise ModelFileError(f"Labels of type {classes.dtype} cannot be saved. Use text or numbers as labels.")
    if classes.nbytes > limits.LABEL_BYTES:
        raise ModelFileError(f"{classes.size} labels of type {classes.dtype} cannot be saved. Use shorter labels.")
    return {"dtype": classes.dtype.str, "values": classes.tolist()}
