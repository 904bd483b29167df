"""Names of a package that load when they are first used, with the packages they need."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(
    package: str,
    homes: dict[str, str],  # name -> the module below the package that has it
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the package."""
    names = sys.modules[package].__dict__

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        names[name] = getattr(import_module(f"{package}.{homes[name]}"), name)
        return names[name]

    return get, lambda: sorted({*names, *homes})
