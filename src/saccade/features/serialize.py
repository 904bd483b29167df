"""Fitted transformers to and from plain values and arrays: what a model file keeps beside the model.

>>> from saccade._core.model_file import describe
>>> from saccade.features import HOG
>>> steps, arrays = describe(HOG())
>>> steps[0]["name"], restore(steps, arrays)[0]
('HOG', HOG())
"""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline, make_pipeline

from saccade._core import model_file
from saccade._core.arrays import Array, FilePath
from saccade._core.by_parameters import ByParameters
from saccade._core.codec import UNSOUND
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade._core.fields import Reading
from saccade.features.base import PLACE_AND_SPEED, PictureTransformer
from saccade.features.deep import DeepFeatures
from saccade.features.efficientnet import NAME as NETWORK

NAMES = (
    *("BagOfWords", "DeepFeatures", "DenseSIFT", "DescriptorPCA", "ForestCodebook", "HOG", "OpponentSIFT", "PHOG"),
    *("PyramidHistogram", "Resize", "SpatialPyramid"),
)  # all that a file may ask for


def described(step: PictureTransformer) -> dict[str, Any]:
    """The name and the parameters of a transformer as values for JSON."""
    return _codec(None).write(step, None, "")


def _codec(folder: Path | None) -> ByParameters:
    find = partial(getattr, import_module("saccade.features"))
    keys, make = ("parameters", "transformer"), partial(_made, folder)
    return ByParameters(NAMES, find, keys=keys, parameters=_parameters, make=make)


def restore(steps: list[dict[str, Any]], arrays: dict[str, Array], folder: Path | None = None) -> Pipeline:
    """The fitted transformers; raises ValueError or a relative where the description is unsound.

    `folder`: where the file of a network may lie, that of the model file.
    """
    made = []
    for k, step in enumerate(steps):
        transformer = _codec(folder).read(step, Reading(None, {}, "pictures"))
        own = f"{model_file.PICTURES}/{k}/"
        made.append(
            transformer.restore({name[len(own) :]: array for name, array in arrays.items() if name.startswith(own)})
        )
    return make_pipeline(*made)


def load_features(path: FilePath) -> Pipeline:
    """The transformers from pictures to vectors that a model file holds; `saccade.load` reads them and the model.

    Parameters
    ----------
    path : path
        A model file that was saved with its features.

    Returns
    -------
    Pipeline
        The fitted transformers.

    Raises
    ------
    InvalidInput
        If the model was trained on a table, or needs a network that is not beside the file.
    ModelFileError
        If the file is damaged or describes no such transformers.
    """
    header, arrays = model_file.read(path)
    if not header.get("pictures"):
        raise InvalidInput(f"{path} was trained on a table of features, not on pictures. Give it a table.")
    try:
        chain = restore(header["pictures"], arrays, Path(path).parent)
        makes = chain.steps[-1][1].width()  # only what gives vectors has one
    except InvalidParameter as error:
        raise ModelFileError(f"{path} does not describe a model of pictures: {error}") from None
    except InvalidInput:
        raise  # another network than the one it was trained with
    except UNSOUND as error:
        raise ModelFileError(f"{path} does not describe a model of pictures ({error!r}). Save it again.") from None
    if makes != header.get("features"):
        raise ModelFileError(
            f"{path} makes {makes:,} features of a picture and was trained on {header.get('features')}. Save it again."
        )
    return chain


def _parameters(step: Any) -> dict[str, Any]:
    found = {name: value for name, value in step.get_params(deep=False).items() if name not in PLACE_AND_SPEED}
    if isinstance(step, DeepFeatures):
        found["model"] = Path(found["model"]).name  # where a file lies is nobody's business
    return found


def _made(folder: Path | None, kind: Any, parameters: dict[str, Any]) -> Any:
    given = {k: v for k, v in _renamed(kind.__name__, parameters).items() if k not in PLACE_AND_SPEED}
    return kind(**given | ({"model": _network(given["model"], folder)} if kind is DeepFeatures else {}))


def _renamed(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Files of version 0.1 say `levels` for what is now `depth`, and those of PHOG do not count the first level."""
    if "levels" not in parameters:
        return parameters
    levels = parameters["levels"]
    rest = {k: v for k, v in parameters.items() if k != "levels"}
    return {**rest, "depth": levels + 1 if name == "PHOG" else levels}


def _network(name: Any, folder: Path | None) -> str:
    """The network of that name, or the file of that name beside the model file: a model file must not open others."""
    if name == NETWORK:
        return NETWORK
    if not isinstance(name, str) or name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
        raise ValueError(f"a network is named {name!r}, which is no plain file name")
    if folder is None or not (folder / name).is_file():
        raise InvalidInput(f"The model needs the network {name!r} in the folder of its file. Copy it there.")
    file = (folder / name).resolve()
    if file.parent != folder.resolve():
        raise ValueError(f"the network {name!r} is a link to another folder")
    return str(file)
