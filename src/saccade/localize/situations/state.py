"""A situation model as plain values and back: a dict for JSON, or tensors with a header. Reading runs no code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade._core import model_file
from saccade._core.arrays import Array
from saccade._core.errors import ModelFileError
from saccade.localize.priors.densities import Block, Density, Normals

if TYPE_CHECKING:
    from saccade.localize.situations.model import SituationModel

NAME = "SituationModel"
VERSION = 1
PARAMETERS = ("kind", "components", "doubt")


def parts(model: SituationModel) -> tuple[dict[str, Any], dict[str, Array]]:
    """What JSON holds, and the arrays: for a file of its own, or within the file of something larger."""
    header = {
        "estimator": NAME,
        "version": VERSION,
        "parameters": {name: getattr(model, name) for name in PARAMETERS},
        "objects": model.objects_,
        "situations": model.n_situations_,
        "shrinkage": model.shrinkage_,
    }
    return header, dict(vars(model.density_))


def from_parts(kind: type[SituationModel], header: Mapping[str, Any], tensors: Mapping[str, Any]) -> SituationModel:
    """The model of these parts; a ModelFileError where they do not fit each other."""
    if header.get("estimator") != NAME or header.get("version") != VERSION:
        raise ModelFileError(
            f"This is a {header.get('estimator')!r} of version {header.get('version')!r}, and a {NAME} of version "
            f"{VERSION} is needed. Use what `to_dict` or `save` of this version of saccade made."
        )
    try:
        model = kind(**{name: header["parameters"][name] for name in PARAMETERS})
        model.objects_ = [str(name) for name in header["objects"]]
        model.n_situations_ = int(header["situations"])
        model.shrinkage_ = None if header["shrinkage"] is None else float(header["shrinkage"])
        if not model.objects_ or len(set(model.objects_)) < len(model.objects_):
            raise ValueError("it has no objects, or one twice")
        arrays = {name: np.array(values, np.float64) for name, values in tensors.items()}
        model.density_ = _density(model.kind == "uniform", arrays, 4 * len(model.objects_))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, np.linalg.LinAlgError) as error:
        raise ModelFileError(f"This does not describe a {NAME} ({error!r}). Save it again.") from None
    return model


def as_dict(model: SituationModel) -> dict[str, Any]:
    header, tensors = parts(model)
    return header | {"density": {name: values.tolist() for name, values in tensors.items()}}


def from_dict(kind: type[SituationModel], state: Mapping[str, Any]) -> SituationModel:
    if not isinstance(state, Mapping) or not isinstance(state.get("density"), Mapping):
        raise ModelFileError(f"This does not describe a {NAME}: it has no density. Use what `to_dict` made.")
    return from_parts(kind, state, state["density"])


def load(kind: type[SituationModel], path: Any) -> SituationModel:
    return from_parts(kind, *model_file.read(path))


def _density(uniform: bool, arrays: dict[str, Array], d: int) -> Density:
    """The density with d coordinates, or a ValueError."""
    if not all(np.isfinite(values).all() for values in arrays.values()):
        raise ValueError("a number is not finite")
    if uniform:
        block = Block(**arrays)
        if block.low.shape != (d,) or block.high.shape != (d,) or not (block.high > block.low).all():
            raise ValueError("the ranges do not fit the objects")
        return block
    normals = Normals(**arrays)
    k = normals.weights.size
    if normals.weights.shape != (k,) or normals.means.shape != (k, d) or normals.covariances.shape != (k, d, d):
        raise ValueError("the normals do not fit the objects")
    if not (normals.weights > 0).all() or abs(normals.weights.sum() - 1.0) > 1e-9:
        raise ValueError("the weights are not shares")
    if not np.allclose(normals.covariances, normals.covariances.transpose(0, 2, 1), rtol=1e-9, atol=0.0):
        raise ValueError("a covariance is not symmetric")
    np.linalg.cholesky(normals.covariances)
    return normals
