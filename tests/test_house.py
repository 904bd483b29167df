"""The check of sizes and private names sees what it is for."""

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, for a source folder of the test."""
    spec = importlib.util.spec_from_file_location("house", ROOT / ".ci" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SOURCE", tmp_path)
    return module


def found(house: ModuleType, text: str, name: str = "some.py") -> list[str]:
    path = house.SOURCE / name
    path.write_text(text)
    return list(house.findings(path, Counter()))


FAULTS = {
    "lines without docstrings": "x = 1\n" * 301,
    "51 lines": "def f():\n" + "    x = 1\n" * 50,
    "13 branches": "def f(a):\n" + "    if a:\n        pass\n" * 12,
    "9 parameters": "def f(a, b, c, d, e, g, *, h, i, j): ...\n",
    "private to another file": "def f(a):\n    return a._hidden\n",
    "The same": 'def f():\n    """The same as g."""\n',
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, house: ModuleType) -> None:
    (finding,) = found(house, FAULTS[fault])
    assert fault in finding


SOUND = {
    "at the limit": "x = 1\n" * 300,
    "a long docstring": 'def f():\n    """Say.\n' + "    more\n" * 400 + '    """\n',
    "twelve branches": "def f(a):\n" + "    if a:\n        pass\n" * 11,
    "eight parameters of a method": "class A:\n    def f(self, a, b, c, d, e, g, *, h, i): ...\n",
    "a constructor": "class A:\n    def __init__(self, a, b, c, d, e, g, *, h, i, j): ...\n",
    "own private names": "class A:\n    def copy(self):\n        new = A()\n        new._x = 1\n        self._x = 2\n",
}


@pytest.mark.parametrize("case", SOUND)
def test_what_is_allowed_passes(case: str, house: ModuleType) -> None:
    assert found(house, SOUND[case]) == []


def test_compiled_loops_take_many_arrays(house: ModuleType) -> None:
    assert found(house, FAULTS["9 parameters"], "loops.py") == []
