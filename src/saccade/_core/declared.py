"""Sizes that a file declares, checked before memory is asked for: a few forged bytes can declare any size."""

from pathlib import Path
from typing import Any

from saccade._core import limits
from saccade._core.errors import InvalidInput


def check_sides(
    shape: tuple[int, int],  # rows, features
    size: int,  # bytes of the file or of its arrays
    what: Any,  # who declares it, for the message
) -> None:
    """Refuse a sparse matrix with more rows or features than so many bytes can have."""
    for count, name in zip(shape, ("rows", "features"), strict=True):
        if count > max(limits.SPARSE_SIDE, size):
            raise InvalidInput(
                f"{what} has {count:,} {name} in {size:,} bytes. More than {limits.SPARSE_SIDE:,} must have a byte "
                f"each. Leave out the {name} that are zero throughout."
            )


def check_unpacked(path: Path, unpacked: int) -> None:
    """Refuse a compressed file that unpacks to far more than it has."""
    size = path.stat().st_size
    if unpacked > max(limits.UNPACKED_BYTES, limits.UNPACKED_TIMES * size):
        raise InvalidInput(
            f"{path} has {size:,} bytes and unpacks to {unpacked:,} or more: over {limits.UNPACKED_TIMES} times as "
            "many. Save it without compression, or rows that are mostly zero as a sparse matrix."
        )
