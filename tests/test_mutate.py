"""`make mutate` tells faults that tests notice from those that they do not, and leaves the checkout as it was."""

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "mutate.py"
SOURCE = '''"""A module with 1 + 1."""

LIMIT = 10


def larger(a: float, b: float, *, step: int = 2) -> float:
    if a == b:
        raise ValueError(f"equal: {a + b}")
    return max(a, b)  # α < β


def unused(a: float, more: int = 4) -> float:
    return -a


def half(n: int) -> int:
    α, left = 0, n
    while left > 1:
        left -= 2
        α += 1
    return α if isinstance(n, int) or not (n > 0) else 0


def seen(n: int) -> int:
    return n + 1
'''
TESTS = """
import pytest
from tiny.room.numbers import LIMIT, half, larger, seen


def endless(n):
    return endless(n + 1)


def test_a_recursion_without_end_stops_no_notes_of_later_tests():
    with pytest.raises(RecursionError):
        half(endless(0))


def test_larger():
    assert larger(1.0, 2.0) == 2.0


def test_equal_numbers():
    with pytest.raises(ValueError, match="equal"):
        larger(1.0, 1.0)


def test_limit():
    assert LIMIT == 10


def test_half():
    assert half(7) == 3


def test_fails_also_without_a_mutation():
    assert larger(1.0, 2.0) == 1.0


runs = []


def test_fails_when_it_runs_again():
    runs.append(seen(1))
    assert len(runs) == 1
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    settings = "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n"
    files = {"src/tiny/room/numbers.py": SOURCE, "tests/room/test_numbers.py": TESTS, "pyproject.toml": settings}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def start(root: Path, *arguments: str) -> "subprocess.Popen[str]":
    """The script with its temporary files beside the checkout."""
    command = [sys.executable, SCRIPT, "room", "--root", root, *arguments]
    (root.parent / "temporary").mkdir()
    settings = os.environ | {"TMPDIR": str(root.parent / "temporary")}
    return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True)


def test_killed_surviving_and_endless_mutations(checkout: Path) -> None:
    before = contents(checkout)
    with start(checkout, "--count", "100", "--grace", "3") as process:
        output, _ = process.communicate()
    assert process.returncode == 1
    heading, failed, *verdicts = output.partition("\n\n")[0].splitlines()
    assert heading == f"== room: {len(verdicts)} mutations, 6 tests"
    assert failed.endswith("test_fails_also_without_a_mutation")
    found = {int(line.split(":")[1]): line.split()[0] for line in verdicts}
    assert found[3] == found[7] == found[9] == "killed"  # at import, by a fork
    assert found[6] == "survived"  # the default
    assert found[12] == found[13] == "survived"  # no test reaches it
    assert found[25] == "survived"  # its test fails also without a mutation when it runs again
    assert "src/tiny/room/numbers.py:6: 2 → 3\n" in output.partition("Survivors")[2]
    assert contents(checkout) == before
    assert not [*(checkout.parent / "temporary").iterdir()]


def test_an_endless_mutation_is_stopped(checkout: Path) -> None:
    with start(checkout, "--line", "numbers.py:19", "--grace", "2") as process:
        output, _ = process.communicate()
    assert "endless  src/tiny/room/numbers.py:19: - → +" in output


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_nothing_behind(checkout: Path, stop: signal.Signals) -> None:
    before = contents(checkout)
    with start(checkout, "--line", "numbers.py:19", "--grace", "1000") as process:
        assert process.stdout is not None
        process.stdout.readline()  # now it is at work
        process.send_signal(stop)
        process.communicate()
    assert contents(checkout) == before
    assert not [*(checkout.parent / "temporary").iterdir()]


def test_what_is_mutated() -> None:
    found = runpy.run_path(str(SCRIPT))["Finder"]("numbers.py", SOURCE.encode()).found
    assert [str(one).removeprefix("numbers.py:") for one in found] == [
        "3: 10 → 11",
        "6: 2 → 3",
        "7: a == b → False",
        "7: == → !=",
        "9: max(a, b) → None",
        "9: max → min",
        "12: 4 → 5",
        "13: -a → None",
        "13: - → nothing",
        "17: 0 → 1",
        "18: > → >=",
        "18: > → <",
        "18: 1 → 0",
        "19: - → +",
        "19: 2 → 3",
        "20: + → -",
        "20: 1 → 0",
        "21: α if isinstance(n, int) or not (n > 0) else 0 → None",
        "21: or → and",
        "21: not → nothing",
        "21: > → >=",
        "21: > → <",
        "21: 0 → 1",
        "21: 0 → 1",
        "25: n + 1 → None",
        "25: + → -",
        "25: 1 → 0",
    ]
    for one in found:
        changed = one.applied(SOURCE.encode()).decode()
        compile(changed, "numbers.py", "exec")
        assert SOURCE.splitlines()[one.line - 1] != changed.splitlines()[one.line - 1]
