"""The frame of a safetensors file, checked before a tensor is read: its length, a JSON header, then the tensors.

A file may be forged, so nothing is allocated that its own bytes do not fill: sizes, types and places of all tensors
must follow from the header and fill the file, no more and no less.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array

DTYPES = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1"},
    **{"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1"},
}


@dataclass(frozen=True)
class Place:
    """What a tensor is and where its bytes lie in the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def read_head(file: BinaryIO) -> tuple[dict[str, Any], dict[str, Place]]:
    """The metadata and the places of all tensors; a ValueError or a relative where they do not fit the file."""
    total = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= total - 8:
        raise ValueError("it ends before its header does")
    if length > limits.HEADER_BYTES or total > limits.FILE_BYTES:
        raise ValueError(f"a header of {length:,} bytes in a file of {total:,} is more than any model has")
    header = json.loads(file.read(length))
    metadata = header.pop("__metadata__", {})
    places = {name: _place(entry, 8 + length) for name, entry in header.items()}
    end = 8 + length
    for place in sorted(places.values(), key=lambda place: (place.start, place.size)):
        if place.start != end:
            raise ValueError("tensors overlap or leave gaps")
        end += place.size
    if end != total:
        raise ValueError(f"tensors end at {end:,} in a file of {total:,} bytes")
    return metadata, places


def _place(entry: Any, start: int) -> Place:
    dtype, shape = np.dtype(DTYPES[entry["dtype"]]), entry["shape"]
    first, last = entry["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, first, last)):
        raise ValueError("shapes and places are not whole numbers")
    place = Place(dtype, tuple(shape), start + first)
    if place.size != last - first:
        raise ValueError(f"a tensor of shape {place.shape} does not fill {last - first} bytes")
    return place


def chunks(file: BinaryIO, place: Place) -> Iterator[bytes]:
    """The bytes of a tensor, some at a time."""
    file.seek(place.start)
    left = place.size
    while left:
        part = file.read(min(limits.FILE_BYTES_AT_ONCE, left))
        if not part:
            raise ValueError("it became shorter while it was read")
        left -= len(part)
        yield part


def read_tensor(file: BinaryIO, place: Place) -> Array:
    file.seek(place.start)
    return np.fromfile(file, place.dtype, prod(place.shape)).reshape(place.shape)
