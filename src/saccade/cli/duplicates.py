"""Pictures that are nearly the same: they flatter every measure that leaves one out and keeps the other."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade._core.progress import report
from saccade.cli import console

SIDE = 16  # pixels of the small grey pictures that are compared
ALIKE = 0.995  # correlation of their pixels from which two are nearly the same ...
AS_BRIGHT = 0.05  # ... where brightness and contrast differ by no more than this share of white
FLAT = 0.01  # contrast below which a picture has no pattern to compare
NAMED = 5  # pairs in a message


class Pairs(NamedTuple):
    """Pairs of nearly equal pictures, the first of each before the second."""

    first: Annotated[Array, "p"]
    second: Annotated[Array, "p"]


def find_duplicates(pictures: Any) -> Pairs | None:
    """The pairs, by small grey copies of the pictures; None for more pictures than are compared."""
    if len(pictures) > limits.PICTURES_COMPARED:
        return None
    return alike(_small(pictures))


def _small(pictures: Any) -> Annotated[Array, "n, SIDE²"]:
    from saccade.features.pixels import resize, to_grey

    few = pictures.limited_to(4 * SIDE)
    small = np.empty((len(pictures), SIDE * SIDE), np.float32)
    for i in range(len(pictures)):
        small[i] = resize(to_grey(few[i]), (SIDE, SIDE)).ravel() / np.float32(255.0)
        report("comparing", (i + 1) / len(pictures))
    return small


def alike(small: Annotated[Array, "n, d: grey from 0 to 1"], at_once: int = limits.COMPARED_AT_ONCE) -> Pairs:
    """Pairs of rows with the same pattern, brightness and contrast; flat rows have brightness alone."""
    mean, contrast = small.mean(axis=1), small.std(axis=1)
    pattern = small - mean[:, None]
    pattern /= np.maximum(np.linalg.norm(pattern, axis=1), np.finfo(np.float32).tiny)[:, None]
    flat, found = contrast < FLAT, []
    for rows in batches(len(small), at_once):
        same = pattern[rows] @ pattern.T >= ALIKE
        same |= flat[rows, None] & flat
        same &= np.abs(mean[rows, None] - mean) <= AS_BRIGHT
        same &= np.abs(contrast[rows, None] - contrast) <= AS_BRIGHT
        first, second = np.nonzero(same)
        later = second > first + rows.start
        found.append((first[later] + rows.start, second[later]))
    return Pairs(*(np.concatenate(part) for part in zip(*found, strict=True)))


def warn_of(pairs: Pairs | None, pictures: Any, test: Annotated[Array, "numbers of those that were held out"]) -> None:
    """Name pictures that are nearly the same: one may be left out or held out while the other trains."""
    if pairs is None or not pairs.first.size:
        return
    held = np.zeros(len(pictures), bool)
    held[test] = True
    count, across = pairs.first.size, int((held[pairs.first] != held[pairs.second]).sum())
    named = [
        f"{console.printable(pictures.names[a])} and {console.printable(pictures.names[b])}"
        for a, b in zip(pairs.first[:NAMED].tolist(), pairs.second[:NAMED].tolist(), strict=True)
    ]
    also = f", {across:,} of them between training and held-out pictures" if across else ""
    more = f"; and {count - NAMED:,} more, which --report shows" if count > NAMED else ""
    console.warn(
        f"{console.count(count, 'pair')} of pictures {'is' if count == 1 else 'are'} nearly the same{also}, which "
        f"flatters the accuracies below: {'; '.join(named)}{more}."
    )
