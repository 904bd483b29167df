"""`make mutate` finds the faults that tests notice and those that they do not, and leaves the checkout as it was."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = '''"""A module."""

LIMIT = 10


def larger(a: float, b: float, *, step: int = 2) -> float:
    """One of both. # + is no sign here"""
    if a == b:
        raise ValueError(f"equal: {a + b}")
    best = max(a, b)  # α
    while step > 9:
        step += 0
    return best


def unused(a: float) -> float:
    return -a


def countdown(n: int) -> int:
    while n > 0:
        n -= 1
    return n
'''
TESTS = """
import pytest
from tiny.room.numbers import LIMIT, countdown, larger


def test_larger():
    assert larger(1.0, 2.0) == 2.0


def test_equal_numbers():
    with pytest.raises(ValueError, match="equal"):
        larger(1.0, 1.0)


def test_limit():
    assert LIMIT == 10


def test_countdown():
    assert countdown(3) == 0


def test_fails_without_any_mutation():
    assert larger(1.0, 2.0) == 1.0
"""


def mutate(root: Path, *arguments: str) -> list[str]:
    command = [sys.executable, ROOT / ".ci" / "mutate.py", "room", "--root", root, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    return run.stdout.splitlines()


def test_killed_and_surviving_mutations_are_told_apart(tmp_path: Path) -> None:
    source, tests = tmp_path / "src" / "tiny" / "room" / "numbers.py", tmp_path / "tests" / "room" / "test_numbers.py"
    for path, text in ((source, SOURCE), (tests, TESTS)):
        path.parent.mkdir(parents=True)
        path.write_text(text, "utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    lines = mutate(tmp_path, "--count", "100")
    verdicts = {line[9:].split(" ")[0] + line[9:].split(":", 2)[2].split("  [")[0]: line[:9].strip() for line in lines if "→" in line}
    print(verdicts)
    assert False
