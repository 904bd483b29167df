"""One file per model: safetensors with a JSON header. Reading it never runs code.

The header says what wrote it and carries a digest of everything else, so that a truncated, foreign or changed file is
told apart before a number of it is used.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array, FilePath
from saccade._core.atomic import replacing
from saccade._core.errors import ModelFileError
from saccade._core.tensor_file import Place, chunks, read_head, read_tensor

Layout = dict[str, Place]
Judge = Callable[[dict[str, Any], Layout], None]
FORMAT = 2
PICTURES = "pictures"  # in front of the names of what transformers learned


def write(path: FilePath, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Write atomically: the old file stays until the new one is whole."""
    from safetensors.numpy import save

    path = Path(path)
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    text = json.dumps({"format": FORMAT, "saccade": version("saccade"), **header}, sort_keys=True)
    size = sum(tensor.nbytes for tensor in tensors.values())
    if 2 * len(text) > limits.HEADER_BYTES or size > limits.FILE_BYTES - limits.HEADER_BYTES:
        raise ModelFileError(
            f"The model has {size:,} bytes of tables and {len(text):,} of names and weights: too much for a file. "
            "Use `levels` or `quantized()`, and shorter names."
        )
    data = save(tensors, {"saccade": text, "digest": _digest(text, tensors, lambda tensor: [tensor.data])})
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise ModelFileError(
            f"Cannot write {path}: {error.strerror}. Choose a folder that exists, is yours and has room."
        ) from None


def read(path: FilePath, judge: Judge | None = None) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the tensors. First the header is judged, then the digest, and only then are tensors made.

    `judge` may refuse more by header and layout, with an error of its own.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no model file {path}. Check the name.")
    with path.open("rb") as file:
        metadata, layout = _head(path, file)
        header = _header(path, metadata)
        if judge is not None:
            judge(header, layout)
        try:
            digest = _digest(metadata["saccade"], layout, partial(chunks, file))
            if metadata.get("digest") == digest:
                return header, {name: read_tensor(file, place) for name, place in layout.items()}
        except ValueError:
            pass  # it became shorter meanwhile
    raise ModelFileError(f"{path} was changed after it was written. Save the model again.")


def digest_of(path: Path) -> str:
    """The digest that a file names: another one for any other content. The tensors are not read."""
    with path.open("rb") as file:
        return str(_head(path, file)[0].get("digest"))


def _head(path: Path, file: BinaryIO) -> tuple[dict[str, Any], Layout]:
    try:
        return read_head(file)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is not a model file, or not a whole one ({error}). Save the model again."
        ) from None


def _header(path: Path, metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        header = json.loads(metadata["saccade"])
        if not isinstance(header, dict):
            raise TypeError("a model is described by named values")
    except (KeyError, ValueError, TypeError, RecursionError):
        raise ModelFileError(f"{path} was not written by saccade. Use a file made with `model.save`.") from None
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} has format {header.get('format')!r} and this version reads {FORMAT}. Read it with the version "
            f"that wrote it, saccade {header.get('saccade')}."
        )
    return header


def _digest(text: str, tensors: Mapping[str, Any], content: Callable[[Any], Iterable[Any]]) -> str:
    """SHA-256 of the text and of every tensor: name, type, shape and `content`, its bytes in parts."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}".encode(errors="surrogatepass"))
        for part in content(tensors[name]):
            digest.update(part)
    return digest.hexdigest()


def describe(
    features: Any,  # a fitted transformer of saccade.features, or a Pipeline of them
) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """The steps in front of a model as values for JSON, and what they learned as arrays.

    Estimators write them and `saccade.features` reads them. Neither knows the other: a transformer describes itself.
    """
    steps = [step for _, step in features.steps] if hasattr(features, "steps") else [features]
    described: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    for k, step in enumerate(steps):
        if not hasattr(step, "description"):
            raise ModelFileError(
                f"{step!r} cannot be saved beside a model. Pass a transformer of saccade.features, or a Pipeline of "
                "such transformers alone."
            )
        described.append(step.description())
        arrays |= {f"{PICTURES}/{k}/{name}": array for name, array in step.state().items()}
    return described, arrays
