"""Labels that a person tells, checked before anything changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput

Label = Any  # text or a number; None: nobody can tell
UNASKED = ("unasked",)  # in place of a label


@dataclass(frozen=True)
class Told:
    """One call of `tell`: the rows, their labels, and what they were before."""

    rows: tuple[int, ...]
    labels: tuple[Label, ...]
    before: tuple[Label, ...]  # UNASKED where there was none

    @classmethod
    def of(cls, rows: Any, labels: Any, n: int, known: Mapping[int, Label]) -> Self:
        """Answers about a pool of n rows of which some are `known`; an error if they are impossible."""
        found = check_answers(rows, labels, n, known)
        return cls(tuple(found), tuple(found.values()), tuple(known.get(row, UNASKED) for row in found))

    def added_to(self, labels: Mapping[int, Label]) -> dict[int, Label]:
        return {**labels, **dict(zip(self.rows, self.labels, strict=True))}

    def taken_from(self, labels: Mapping[int, Label]) -> dict[int, Label]:
        """The labels before these answers came."""
        before = {**labels, **dict(zip(self.rows, self.before, strict=True))}
        return {row: label for row, label in before.items() if label != UNASKED}


def check_answers(rows: Any, labels: Any, n: int, known: Mapping[int, Any]) -> dict[int, Any]:
    """Label by row; None, NaN and an empty text are None. An error if they are impossible, alone or with `known`."""
    numbers = np.atleast_1d(np.asarray(rows))
    values = _values(labels)
    if numbers.ndim != 1 or numbers.size != len(values):
        raise InvalidInput(
            f"`rows` and `labels` must be equally many, got {numbers.size} rows and {len(values)} labels."
        )
    if numbers.size and numbers.dtype.kind not in "iu":
        raise InvalidInput(f"`rows` must be row numbers, got {numbers.tolist()[:3]!r:.100}.")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < n):
        bad = numbers[(numbers < 0) | (numbers >= n)][0]
        raise InvalidInput(f"`rows` has row {bad}, and the pool has rows 0 to {n - 1}. Nothing was changed.")
    found: dict[int, Any] = {}
    for row, value in zip(numbers.tolist(), values, strict=True):
        if row in found and found[row] != value:
            raise InvalidInput(
                f"Row {row} has two labels in one call, {found[row]!r} and {value!r}. Nothing was changed; tell one."
            )
        found[row] = value
    label_array(label for label in {**known, **found}.values() if label is not None)
    return found


def _values(labels: Any) -> list[Any]:
    single = labels.ndim == 0 if isinstance(labels, np.ndarray) else not isinstance(labels, Iterable)
    one = single or isinstance(labels, str | bytes)
    return [value if has_value(value) and value != "" else None for value in plain([labels] if one else labels)]


def plain(labels: Any) -> list[Any]:
    """Labels as a list, numbers and texts of numpy as those of Python."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "mM":  # its list may be numbers of nanoseconds
        raise InvalidInput(f"Labels must be all text or all numbers, got {labels.dtype}. Pass labels.astype(str).")
    every = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if any(issubclass(kind, np.generic) for kind in set(map(type, every))):
        every = [value.item() if isinstance(value, np.generic) else value for value in every]
    return every


def has_value(value: Any) -> bool:
    """Whether it is neither None nor NaN, nor what pandas has in their place: these do not equal themselves."""
    return value is not None and (value == value) is True


def label_array(labels: Iterable[Any]) -> Annotated[Array, "l"]:
    """Labels as one array; an error if some are text and others numbers, or a number cannot name a class."""
    every = plain(labels)
    _check_kinds(every)
    found = np.asarray(every) if every else np.zeros(0)
    if found.dtype.kind == "O":  # a Python integer of any size
        large = next(value for value in every if abs(value) >= 2**63)
        raise InvalidInput(f"Labels that are numbers must fit into 64 bits, got {large!r:.100}. Pass them as text.")
    broken = found[np.isinf(found) | (found != np.floor(found))] if found.dtype.kind == "f" else found[:0]
    if broken.size:
        raise InvalidInput(f"Labels must be text or whole numbers, the names of classes, got {broken[0].item()!r}.")
    return found


def _check_kinds(labels: list[Any]) -> None:
    """An error if some are text and others numbers, or one is neither."""
    kinds = set(map(type, labels))
    text = [kind for kind in kinds if issubclass(kind, str)]
    odd = [kind for kind in kinds if not issubclass(kind, str | int | float)]
    if odd or (text and len(text) < len(kinds)):
        shown = [next(value for value in labels if type(value) is kind) for kind in (odd or kinds)]
        raise InvalidInput(f"Labels must be all text or all numbers, got {shown!r}.")
