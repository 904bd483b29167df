"""Fields of a state: how each kind of value is written, read and checked. `codec` makes classes of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import is_number, shown

ABSENT: Final = object()  # in place of what a header does not hold
Out = dict[str, Array] | None  # tensors by name; None: arrays are written as lists


class Unsound(ValueError):
    """What is wrong with a field, in words that go into the error of the whole."""


@dataclass(frozen=True)
class Reading:
    """Where a field is read: its path, the tensors, and the sizes that earlier fields have set."""

    tensors: Mapping[str, Any] | None  # None: arrays are lists
    sizes: dict[str, int]
    at: str = ""
    layout: bool = False  # `tensors` are only types and shapes: nothing is made of them

    def inside(self, name: object) -> Self:
        return replace(self, at=f"{self.at}.{name}" if self.at else str(name))

    def need(self, good: Any, what: str, value: Any = ABSENT) -> None:
        """An error, unless it is good: `what` the field must be, and what it is."""
        if not good:
            got = "" if value is ABSENT else f", got {shown(value)}"
            raise Unsound(f"`{self.at or 'the state'}` must be {what}{got}")


class Field:
    """One field: how it is written, and how it is read and checked."""

    def write(self, value: Any, out: Out, at: str) -> Any:
        return value.item() if isinstance(value, np.generic) else value

    def read(self, written: Any, r: Reading) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Plain(Field):
    """A value of JSON that passes a test. A whole number may be a size of arrays that are read later, by its name."""

    good: Callable[[Any], bool]
    what: str
    real: bool = False  # read as float

    def read(self, written: Any, r: Reading) -> Any:
        if written is ABSENT:
            raise Unsound(f"`{r.at}` is missing")
        r.need(self.good(written), self.what, written)
        if type(written) is int:
            r.sizes[r.at.rpartition(".")[2]] = written
        return float(written) if self.real else written


def number(least: float = -np.inf, most: float = np.inf, above: float = -np.inf) -> Field:
    """A finite number from `least`, or from just above `above`, to `most`."""
    what = f"a number from {least:g} to {most:g}" if above == -np.inf else f"a number above {above:g}, up to {most:g}"
    return Plain(lambda v: is_number(v) and abs(v) < np.inf and least <= v <= most and v > above, what, real=True)


def whole(least: int = 0, most: int = limits.KNOWN_EXAMPLES) -> Field:
    return Plain(lambda v: type(v) is int and least <= v <= most, f"a whole number from {least:,} to {most:,}")


def flag() -> Field:
    return Plain(lambda v: isinstance(v, bool), "true or false")


def text(*choices: str, most: int = limits.LABEL_BYTES) -> Field:
    what = f"one of {', '.join(choices)}" if choices else f"a text of at most {most:,} letters"
    return Plain(lambda v: isinstance(v, str) and len(v) <= most and (not choices or v in choices), what)


def plain() -> Field:
    """None, True, False, a number or a text: who takes it checks which."""
    short = f"a number, a text of at most {limits.LABEL_BYTES:,} letters, true, false or null"
    return Plain(
        lambda v: (
            v is None or is_number(v) or isinstance(v, bool) or (isinstance(v, str) and len(v) <= limits.LABEL_BYTES)
        ),
        short,
    )


@dataclass(frozen=True)
class Maybe(Field):
    """A field that may be None. With a default, for None and in files that do not have the field."""

    field: Field
    default: Any = ABSENT

    def write(self, value: Any, out: Out, at: str) -> Any:
        return None if value is None else self.field.write(value, out, at)

    def read(self, written: Any, r: Reading) -> Any:
        if written is None:
            return None if self.default is ABSENT else self.default
        lacks = written is ABSENT and not any(f"{name}.".startswith(f"{r.at}.") for name in r.tensors or ())
        return self.default if lacks and self.default is not ABSENT else self.field.read(written, r)


class Numbers(Field):
    """An array of finite numbers. A size is a number, or a name that stands for one size within its record."""

    def __init__(
        self,
        *shape: int | str,
        dtype: Any = np.float64,
        least: float = -np.inf,
        most: float = np.inf,
        below: str | None = None,  # the size that whole numbers must stay below
        count: int = limits.FILE_BYTES,  # numbers in all, at most
    ) -> None:
        self.shape, self.dtype, self.below, self.count = shape, np.dtype(dtype), below, count
        self.least, self.most = least if below is None else 0, most

    def write(self, value: Any, out: Out, at: str) -> Any:
        found = np.asarray(value, self.dtype)
        if out is None:
            return found.tolist()
        out[at] = found
        return ABSENT

    def read(self, written: Any, r: Reading) -> Any:
        found: Any
        if r.tensors is None:
            r.need(isinstance(written, list | tuple), "a list of numbers", written)
            found = np.array(written)
            r.need(found.dtype.kind in "iuf", "numbers")
            found = found.astype(np.float64)
            if found.shape == (0,):  # an empty list does not say how wide it is
                found = found.reshape(
                    0, *(size if isinstance(size, int) else r.sizes.get(size, 0) for size in self.shape[1:])
                )
        else:
            r.need(r.at in r.tensors, "among the tensors")
            found = r.tensors[r.at]
            r.need(found.dtype == self.dtype, f"numbers of type {self.dtype}", str(found.dtype))
        self._check_shape(found.shape, r)
        return None if r.layout else self._bounded(found, r)

    def _check_shape(self, shape: tuple[int, ...], r: Reading) -> None:
        """Names of sizes that are not known yet are given to those of the array."""
        r.need(len(shape) == len(self.shape), f"an array of {len(self.shape)} dimensions", len(shape))
        for size, side in zip(self.shape, shape, strict=True):
            want = r.sizes.setdefault(size, side) if isinstance(size, str) else size
            r.need(side == want, f"of size {want:,}", side)
        r.need(prod(shape) <= self.count, f"at most {self.count:,} numbers", prod(shape))

    def _bounded(self, found: Array, r: Reading) -> Array:
        r.need(self.dtype.kind not in "f" or np.isfinite(found).all(), "finite numbers")
        r.need(self.dtype.kind == "f" or (np.isfinite(found) & (found == np.rint(found))).all(), "whole numbers")
        most = self.most if self.below is None else r.sizes[self.below] - 1
        most = most if self.dtype.kind == "f" else min(most, limits.WHOLE_NUMBER)
        within = (self.least, most) == (-np.inf, np.inf) or ((found >= self.least) & (found <= most)).all()
        r.need(within, f"from {self.least:g} to {most:g}")
        return np.asarray(found, self.dtype)


@dataclass(frozen=True)
class Many(Field):
    """A list of fields of one kind, at most so many."""

    field: Field
    most: int = limits.KNOWN_EXAMPLES

    def write(self, value: Any, out: Out, at: str) -> Any:
        return [self.field.write(each, out, f"{at}.{i}") for i, each in enumerate(value)]

    def read(self, written: Any, r: Reading) -> list[Any]:
        r.need(isinstance(written, list | tuple) and len(written) <= self.most, f"a list of at most {self.most:,}")
        return [self.field.read(each, r.inside(i)) for i, each in enumerate(written)]


@dataclass(frozen=True)
class Named(Field):
    """Fields of one kind by name."""

    field: Field

    def write(self, value: Any, out: Out, at: str) -> Any:
        return {str(name): self.field.write(each, out, f"{at}.{name}") for name, each in value.items()}

    def read(self, written: Any, r: Reading) -> dict[str, Any]:
        r.need(isinstance(written, Mapping), "named values", written)
        return {str(name): self.field.read(each, r.inside(name)) for name, each in written.items()}


@dataclass(frozen=True)
class InHeader(Field):
    """A field whose arrays are lists in the header, also where others are tensors."""

    field: Field

    def write(self, value: Any, out: Out, at: str) -> Any:
        return self.field.write(value, None, at)

    def read(self, written: Any, r: Reading) -> Any:
        return self.field.read(written, replace(r, tensors=None, layout=False))


@dataclass(frozen=True)
class Row(Field):
    """A short list with a field for each place, such as a name and a number."""

    places: tuple[Field, ...]
    make: Callable[..., Any] = lambda *values: values

    def write(self, value: Any, out: Out, at: str) -> Any:
        return [field.write(each, None, at) for field, each in zip(self.places, value, strict=True)]

    def read(self, written: Any, r: Reading) -> Any:
        good = isinstance(written, list | tuple) and len(written) == len(self.places)
        r.need(good, f"a list of {len(self.places)} values")
        inner = replace(r, tensors=None)
        values = [
            field.read(each, inner.inside(i)) for i, (field, each) in enumerate(zip(self.places, written, strict=True))
        ]
        return self.make(*values)
