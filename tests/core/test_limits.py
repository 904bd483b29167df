"""Sizes and limits stand in _core/limits.py and nowhere else."""

import __future__

import ast
from contextlib import suppress
from pathlib import Path
from typing import Any

import saccade
from saccade._core import limits

ROOT = Path(saccade.__file__).parent
SOURCES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
OTHERS = {file: source for file, source in SOURCES.items() if file != "_core/limits.py"}
FROM = 1000  # smaller numbers are mostly no limits
NO_LIMITS = {
    ("features/torch_weights.py", "MAGIC"): "what a file begins with",
    ("inference/posterior/observed.py", "STEPS"): "steps of an algorithm",
    ("inference/approximations/optimized.py", "STEPS"): "steps of an algorithm",
}


def large(source: str) -> list[str]:
    """The constants of a module that are, or hold, whole numbers from `FROM` on."""
    known: dict[str, Any] = {"limits": limits}
    for line in ast.parse(source).body:
        if isinstance(line, ast.Assign | ast.AnnAssign):
            code = compile(ast.Module([line], []), "constant", "exec", __future__.annotations.compiler_flag)
            with suppress(Exception):  # made of more than numbers and earlier constants
                exec(code, {"__builtins__": {}}, known)
    return [name for name, value in known.items() if any(type(part) is int and part >= FROM for part in parts(value))]


def parts(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list | set) else [value]


def test_limits_stand_in_one_place() -> None:
    found = {(file, name) for file, source in OTHERS.items() for name in large(source)}
    assert found == set(NO_LIMITS), "Move a size or limit to _core/limits.py; name in NO_LIMITS what is none."


def test_the_search_finds_constants_of_every_form() -> None:
    source = """
A = 1 << 20
B, C = 16, 16_000_000
D: int = 2048
E = 4 * limits.FACTOR_UP_TO
F = (64, 1024)
G = 2 * D
H = {"all": 5000}
few, ratio, text, made = 999, 1e9, "2048", 5 > 4
I = 5 * unknown
def function(argument=5000): inside = 5000
"""
    assert large(source) == ["A", "C", "D", "E", "F", "G", "H"]


def test_every_limit_is_used() -> None:
    names = [name for name in vars(limits) if name.isupper()]
    assert len(names) > 50
    assert [name for name in names if not any(f"limits.{name}" in source for source in OTHERS.values())] == []
