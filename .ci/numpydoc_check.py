"""Docstrings of everything public, by numpydoc's own validator: `make check` runs it.

Public is what `__all__` of a public package names, and the methods and properties of these classes that are ours.
Every object needs a summary, its parameters and what it returns; every class a runnable example.
"""

import importlib
import inspect
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from numpydoc.validate import validate

PACKAGES = ["saccade", "saccade.kernels", "saccade.features", "saccade.active", "saccade.localize"]
PACKAGES += ["saccade.localize.judges", "saccade.inference", "saccade.datasets"]
LEFT_OUT = {
    "ES01",  # no extended summary
    "EX01",  # no example: asked of classes alone, below
    "GL01",  # the summary begins on the first line here
    "SA01",  # no "See Also"
    "SS05",  # the summary need not begin with a verb
    "SS06",  # the summary may take two lines
    "RT02",  # names of what is returned
    "PR06",  # types as we write them
    "PR08",  # a description may begin with `name`
    "PR09",  # ... and with several sentences, or end with a formula
    "RT04",
    "RT05",
    "YD01",  # "Yields" where a function is a generator
}


def public() -> Iterator[tuple[str, Any]]:
    """Dotted name and object, each once however many classes inherit it."""
    seen = set[tuple[str, str]]()
    for package in PACKAGES:
        module = importlib.import_module(package)
        names = getattr(module, "__all__", None) or [n for n, v in vars(module).items() if _ours(v, n)]
        for name in names:
            thing = getattr(module, name)
            if not callable(thing):
                continue
            key = (thing.__module__, thing.__qualname__)
            if key not in seen:
                seen.add(key)
                yield f"{package}.{name}", thing
            if inspect.isclass(thing):
                for member in _members(thing):
                    static = inspect.getattr_static(thing, member)
                    function = getattr(static, "fget", None) or getattr(static, "__func__", static)
                    key = (function.__module__, function.__qualname__)
                    if key not in seen:
                        seen.add(key)
                        yield f"{package}.{name}.{member}", function


def _ours(value: Any, name: str) -> bool:
    return callable(value) and not name.startswith("_") and getattr(value, "__module__", "").startswith("saccade")


def _members(kind: type) -> list[str]:
    """Methods and properties that a class of ours defines; an override without a docstring has that of its base."""
    found = []
    for name in dir(kind):
        owner = next((base for base in kind.__mro__ if name in vars(base)), None)
        if name.startswith("_") or owner is None or not owner.__module__.startswith("saccade"):
            continue
        static = inspect.getattr_static(kind, name)
        function = getattr(static, "fget", None) or getattr(static, "__func__", static)
        inherited = not function.__doc__ and any(
            getattr(vars(base).get(name), "__doc__", None) for base in kind.__mro__
        )
        metadata = name.startswith("set_") and name.endswith("_request")  # scikit-learn makes these
        if inspect.isfunction(function) and not inherited and not metadata:
            found.append(name)
    return found


def findings(name: str, thing: Any) -> list[str]:
    """What is wrong with the docstring of one object."""
    found = [f"{code} {text}" for code, text in validate(name)["errors"] if code not in LEFT_OUT]
    if inspect.isclass(thing) and ">>>" not in (thing.__doc__ or "") and not issubclass(thing, Exception):
        found.append("EX01 No runnable example")
    return found


def main(arguments: list[str]) -> int:
    warnings.simplefilter("ignore")
    total = wrong = 0
    for name, thing in public():
        if arguments and not any(name.startswith(each) for each in arguments):
            continue
        total += 1
        found = findings(name, thing)
        wrong += bool(found)
        for each in found:
            print(f"{name}: {each}")
    print(f"{total} public objects, {wrong} with findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
