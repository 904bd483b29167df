"""How states and models are written and read: a class says its fields and their bounds once, and all checks live here.

A `Record` names the fields of a class. `to_json` and `from_json` keep arrays as lists, for states; `to_file` and
`from_file` keep them as tensors beside a header, for model files. Whatever is wrong with what is read is a
`ModelFileError` of one sentence: another kind, another version, a missing field, a number out of bounds, a size that
does not fit. Nothing is imported or run by name: only the classes that a record or a table of kinds lists are made.

>>> import numpy as np
>>> from saccade._core.fields import Numbers, text
>>> @dataclass
... class Spot:
...     name: str
...     places: np.ndarray
>>> SPOT = Record(Spot, {"name": text(), "places": Numbers("n", 2, least=0.0)}, version=1)
>>> to_json(SPOT, Spot("a", np.array([[1.0, 2.0]])))
{'estimator': 'Spot', 'version': 1, 'name': 'a', 'places': [[1.0, 2.0]]}
>>> from_json(SPOT, {"estimator": "Spot", "version": 1, "name": "a", "places": [[1.0, -2.0]]})
Traceback (most recent call last):
saccade._core.errors.ModelFileError: This does not describe Spot: `places` must be from 0 to inf. Save it again.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from saccade._core import limits
from saccade._core.arrays import Array, FilePath
from saccade._core.atomic import replacing
from saccade._core.checks import shown
from saccade._core.errors import ModelFileError
from saccade._core.fields import ABSENT, Field, Maybe, Out, Reading, Unsound

# What a constructor or NumPy may raise when it is given what somebody made up.
UNSOUND = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Record(Field):
    """The fields of a class. With a version, a state says whose it is."""

    make: Callable[..., Any]  # the class, or what makes it of the fields by keyword
    fields: Mapping[str, Field]
    version: int | None = None
    name: str = ""  # of the class, unless given
    key: str = "estimator"  # of the name in a state
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] | None = None  # older spellings to those of today
    take: Callable[[Any], Mapping[str, Any]] | None = None  # the fields of an object; its attributes, unless given

    @property
    def title(self) -> str:
        return self.name or self.make.__name__

    def write(self, value: Any, out: Out, at: str) -> dict[str, Any]:
        found = {name: getattr(value, name) for name in self.fields} if self.take is None else self.take(value)
        state = {} if self.version is None else {self.key: self.title, "version": self.version}
        for name, field in self.fields.items():
            written = field.write(found[name], out, f"{at}.{name}" if at else name)
            state |= {} if written is ABSENT else {name: written}
        return state

    def read(self, written: Any, r: Reading) -> Any:
        r.need(isinstance(written, Mapping), "named values", written)
        state = self.upgrade(dict(written)) if self.upgrade is not None else written
        kind = state.get(self.key), state.get("version")
        if self.version is not None and kind != (self.title, self.version):
            raise ModelFileError(
                f"This is {shown(kind[0])} of version {shown(kind[1])}, and {self.title} of version {self.version} is "
                "needed. Use what this version of saccade saved."
            )
        others = set(state) - {*self.fields, self.key, "version"} if r.at else None
        r.need(not others, "without further fields", sorted(map(str, others or ())))
        r, values = replace(r, sizes={}), {}
        for name, field in self.fields.items():
            inner, given = r.inside(name), state.get(name, ABSENT)
            in_header = r.tensors is None and not (isinstance(field, Maybe) and field.default is not ABSENT)
            if given is ABSENT and in_header:
                raise Unsound(f"`{inner.at}` is missing")
            values[name] = field.read(given, inner)
        return None if r.layout else self.make(**values)


@dataclass(frozen=True)
class OneOf(Field):
    """One of the classes that a table lists; the state says which."""

    kinds: Mapping[str, Record]  # by the name of the class
    key: str = "kind"

    def write(self, value: Any, out: Out, at: str) -> Any:
        name = type(value).__name__
        if name not in self.kinds:
            raise ModelFileError(f"{shown(value)} cannot be saved. A file knows {', '.join(self.kinds)}.")
        return {self.key: name, **self.kinds[name].write(value, out, at)}

    def read(self, written: Any, r: Reading) -> Any:
        name = written.get(self.key) if isinstance(written, Mapping) else None
        r.need(isinstance(name, str) and name in self.kinds, f"one of {', '.join(self.kinds)}", name)
        return self.kinds[str(name)].read({key: value for key, value in written.items() if key != self.key}, r)


class Stateful:
    """An object that goes through JSON and back, by the record of its class."""

    record: ClassVar[Record]

    def to_state(self) -> dict[str, Any]:
        """The whole object as plain values for JSON.

        Returns
        -------
        dict
            What `from_state` takes.
        """
        return to_json(self.record, self)

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """The object that `to_state` was called on; a search asks for the same next.

        Parameters
        ----------
        state : dict
            What `to_state` returned.

        Returns
        -------
        object
            Of this class.

        Raises
        ------
        ModelFileError
            If the state is of another kind or version, or damaged.
        """
        found: Self = from_json(cls.record, state)
        return found


def to_json(record: Record, value: Any) -> dict[str, Any]:
    """The state as values for JSON."""
    return record.write(value, None, "")


def from_json(record: Record, state: Any, source: Any = "This") -> Any:
    """What `to_json` wrote; `source` names the state in errors."""
    return _read(record, state, Reading(None, {}), source)


def to_file(record: Record, value: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the tensors of a model file."""
    tensors: dict[str, Array] = {}
    return record.write(value, tensors, ""), tensors


def from_file(record: Record, header: Any, tensors: Mapping[str, Array], source: Any = "This") -> Any:
    """What `to_file` wrote."""
    return _read(record, header, Reading(tensors, {}), source)


def check_layout(record: Record, header: Any, layout: Mapping[str, Any], source: Any = "This") -> None:
    """Refuse by the header and the types and shapes of the tensors alone, before a tensor is read."""
    _read(record, header, Reading(layout, {}, layout=True), source)


def write_json(path: FilePath, state: dict[str, Any]) -> None:
    with replacing(Path(path)) as file:
        file.write(json.dumps(state).encode())


def read_json(path: FilePath) -> Any:
    """The values of a JSON file; a ModelFileError where it is none or too large."""
    path = Path(path)
    if (size := path.stat().st_size) > limits.STATE_BYTES:
        raise ModelFileError(f"{path} has {size:,} bytes, and a state has at most {limits.STATE_BYTES:,}.")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is no JSON ({error}). Use a file that saccade wrote.") from None


def _read(record: Record, state: Any, reading: Reading, source: Any) -> Any:
    try:
        return record.read(state, reading)
    except ModelFileError:
        raise
    except UNSOUND as error:
        why = (str(error) if isinstance(error, ValueError) else repr(error))[:300]
        raise ModelFileError(f"{source} does not describe {record.title}: {why.rstrip('.')}. Save it again.") from None
