"""Names of a package that load when they are first used, with the packages they need."""

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, str] = MappingProxyType({})


def lazy_names(
    package: str,
    homes: Mapping[str, str],  # name -> the module below the package that has it, or is it
    renamed: Mapping[str, str] = NOTHING,  # old name -> new one
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the package. An old name warns and gives what has the new one."""
    names = sys.modules[package].__dict__

    def get(name: str) -> Any:
        if name in renamed:
            text = f"{package}.{name} is called {renamed[name]} now, and the old name will go in version 0.3."
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return get(renamed[name])
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes[name]}")
        names[name] = module if homes[name] == name else getattr(module, name)
        return names[name]

    return get, lambda: sorted({*names, *homes})
