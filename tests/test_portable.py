"""The floors that `make portable` installs are those of pyproject.toml."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_dependency_and_extra_has_its_floor_in_the_constraints() -> None:
    run = subprocess.run([sys.executable, ROOT / ".ci" / "floors.py"], capture_output=True, text=True, check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [extra for name, extra in project["optional-dependencies"].items() if name != "peers"]
    wanted = {*project["dependencies"], *(one for extra in extras for one in extra)}
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in run.stdout.splitlines())
    assert {line.replace("==", ">=") for line in run.stdout.splitlines()} == {w for w in wanted if "saccade[" not in w}
