"""Compiled loops on any account: no folder for a cache, another user, and no compiler at all."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saccade
from tests.tolerances import assert_close

SOURCE = Path(saccade.__file__).parent
NOBODY = 65534
FIT = """
import sys, warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import numpy as np
    from saccade import GPClassifier
    X = np.random.default_rng(0).random((20, 3))
    for options in {options!r}:
        model = GPClassifier(**options).fit(X, X[:, 0] > X[:, 1])
        print(*model.decision_function(X).tolist())
print(*(str(w.message) for w in said), sep="\\n", file=sys.stderr)
"""


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder with a copy of the package in which nobody, not even root, can keep compiled code."""
    folder = Path(tempfile.mkdtemp())  # pytest's own folders cannot be read by other users
    package = folder / "saccade"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    rooms = [folder, package, *(path for path in package.rglob("*") if path.is_dir())]
    for room in rooms:
        (room / "__pycache__").touch()  # a file where the folder should be
        room.chmod(0o555)
    yield folder
    for room in rooms:
        room.chmod(0o755)
    shutil.rmtree(folder)


def run(code: str, account: dict[str, Any], **environment: str) -> subprocess.CompletedProcess[str]:
    keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT") if name in os.environ}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=keep | environment, cwd="/", capture_output=True, text=True, check=False, **account
    )


def another_user() -> dict[str, Any]:
    """Nobody, where we are root and the interpreter can be reached by others; else the same user."""
    account: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        return account if run("import numba, sklearn", account, HOME="/nonexistent").returncode == 0 else {}
    except OSError:
        return {}


def decisions(options: list[dict[str, Any]]) -> list[Any]:
    X = np.random.default_rng(0).random((20, 3))
    return [saccade.GPClassifier(**o).fit(X, X[:, 0] > X[:, 1]).decision_function(X) for o in options]


def printed(done: subprocess.CompletedProcess[str]) -> list[list[float]]:
    assert done.returncode == 0, done.stderr
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def test_without_a_folder_for_the_cache_it_compiles_and_says_so_once(read_only: Path) -> None:
    options: list[dict[str, Any]] = [{"variance": None}]
    places = {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/dev/null", "PYTHONPATH": str(read_only)}
    done = run(FIT.format(options=options), another_user(), **places)
    assert_close(printed(done), decisions(options))
    assert done.stderr.count("No folder for compiled code") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_without_a_compiler_answers_are_the_same() -> None:
    options: list[dict[str, Any]] = [
        {},
        {"levels": 4},
        {"solver": "cg", "tol": 1e-11, "random_state": 0},
        {"inference": "ep"},
    ]
    done = run(FIT.format(options=options), {}, NUMBA_DISABLE_JIT="1", HOME=str(Path.home()))
    assert_close(printed(done), decisions(options))


COUNTED = """
import atexit, sys
from numba.core import event
class Counter(event.Listener):
    count = 0
    def on_start(self, event): self.count += 1
    def on_end(self, event): pass
counter = Counter()
event.register("numba:compile", counter)
atexit.register(lambda: print("compiled:", counter.count))
"""


def test_the_readme_example_compiles_little_says_so_once_and_never_again(tmp_path: Path) -> None:
    """Numba takes a quarter of a second for each function, so that the number of them is the time (decision 040)."""
    readme = (SOURCE.parents[1] / "README.md").read_text("utf-8")
    example = (
        readme.split("```python")[1].split("```")[0].replace('"digits.saccade"', f'"{tmp_path}/digits.saccade"', 1)
    )
    cold, warm = (run(COUNTED + example, {}, NUMBA_CACHE_DIR=str(tmp_path), HOME=str(tmp_path)) for _ in range(2))
    assert cold.returncode == warm.returncode == 0, cold.stderr + warm.stderr
    compiled = int(cold.stdout.rsplit("compiled:", 1)[1])
    assert 0 < compiled <= 30
    assert cold.stderr.count("Compiling once") == 1
    assert warm.stdout.rsplit("compiled:", 1)[1].strip() == "0"
    assert "Compiling" not in warm.stderr
    assert cold.stdout.splitlines()[:-1] == warm.stdout.splitlines()[:-1]


def test_every_loop_goes_through_the_one_decorator() -> None:
    users = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"\bn?jit\b", path.read_text("utf-8"))
    }
    assert users == {"_core/compiled.py"}
