"""One file a model: safetensors with a JSON header. Reading it never runs code.

The header says what wrote it and carries a digest of everything else, so that a truncated, foreign or changed file is
told apart before a number of it is used.
"""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from saccade._core.atomic import replacing
from saccade._core.errors import ModelFileError

Array = np.ndarray[Any, np.dtype[Any]]
FORMAT = 2


def write(path: Any, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Write atomically: the old file stays until the new one is whole."""
    from safetensors.numpy import save

    path = Path(path)
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    text = json.dumps({"format": FORMAT, "saccade": version("saccade"), **header}, sort_keys=True)
    data = save(tensors, {"saccade": text, "digest": _digest(text, tensors)})
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise ModelFileError(
            f"Cannot write {path}: {error.strerror}. Choose a folder that exists and is yours."
        ) from None


def read(path: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the tensors, checked against the digest."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no model file {path}. Check the name.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(metadata["saccade"])
        if not isinstance(header, dict):
            raise TypeError("a model is described by named values")
    except SafetensorError as error:
        raise ModelFileError(
            f"{path} is not a model file, or not a whole one ({error}). Save the model again."
        ) from None
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise ModelFileError(f"{path} was not written by saccade. Use a file made with `model.save`.") from None
    if metadata.get("digest") != _digest(metadata["saccade"], tensors):
        raise ModelFileError(f"{path} was changed after it was written. Save the model again.")
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} has format {header.get('format')!r} and this version reads {FORMAT}. Read it with the version "
            f"that wrote it, saccade {header.get('saccade')}."
        )
    return header, tensors


def _digest(text: str, tensors: dict[str, Array]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).data)
    return digest.hexdigest()
