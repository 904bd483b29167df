"""Objects by the name of their class and the parameters of their constructor, as kernels and transformers are kept."""

from collections.abc import Callable, Collection
from os import PathLike, fspath
from typing import Any

import numpy as np

from saccade._core import limits
from saccade._core.errors import ModelFileError
from saccade._core.fields import Field, Out, Reading, plain

PLAIN = plain()


class ByParameters(Field):
    """An object with `get_params` of one of the named classes; its parameters may be further such objects.

    It is made again by its constructor, and from numbers: nothing that a file names is imported or run.
    """

    def __init__(
        self,
        names: Collection[str],  # all that a file may ask for
        find: Callable[[str], Any],  # the class of a name
        *,
        keys: tuple[str, str] = ("given", "part"),  # of the parameters, and of an object among them
        parameters: Callable[[Any], dict[str, Any]] = lambda value: value.get_params(deep=False),
        make: Callable[[Any, dict[str, Any]], Any] = lambda kind, given: kind(**given),
        depth: int = limits.KERNEL_SUM_DEPTH,  # objects within each other
    ) -> None:
        self.names, self.find, self.keys, self.depth = names, find, keys, depth
        self.parameters, self.make = parameters, make

    def write(self, value: Any, out: Out, at: str, depth: int = 0) -> dict[str, Any]:
        name = type(value).__name__
        if name not in self.names or self.find(name) is not type(value) or depth > self.depth:
            raise ModelFileError(
                f"{value!r:.300} cannot be saved: a model file holds no code. It knows {', '.join(self.names)}, up to "
                f"{self.depth} within each other."
            )
        return {"name": name, self.keys[0]: {k: self._plain(v, depth) for k, v in self.parameters(value).items()}}

    def _plain(self, value: Any, depth: int) -> Any:
        """A parameter as JSON has it, with a mark on what JSON has not."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, PathLike):
            return fspath(value)
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # what it drew is in the arrays
        if hasattr(value, "get_params"):
            return {self.keys[1]: self.write(value, None, "", depth + 1)}
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            return {"array": value.tolist()}
        return {"list" if isinstance(value, list) else "tuple": [self._plain(each, depth) for each in value]}

    def read(self, written: Any, r: Reading, depth: int = 0) -> Any:
        r.need(depth <= self.depth, f"at most {self.depth} objects within each other")
        name, given = written["name"], written[self.keys[0]]
        r.need(isinstance(name, str) and name in self.names, f"one of {', '.join(self.names)}", name)
        return self.make(self.find(name), {k: self._value(v, r.inside(k), depth) for k, v in given.items()})

    def _value(self, value: Any, r: Reading, depth: int) -> Any:
        if not isinstance(value, dict):
            return PLAIN.read(value, r)
        ((kind, content),) = value.items()
        if kind == self.keys[1]:
            return self.read(content, r, depth + 1)
        if kind == "array":
            return np.array(content, np.float64)
        r.need(kind in ("list", "tuple", "parts"), "a known value", kind)
        if kind == "parts":  # of older files
            return [self.read(part, r, depth + 1) for part in content]
        found = [self._value(each, r, depth) for each in content]
        return found if kind == "list" else tuple(found)
