"""What every user meets first: a light import, the type marker, one version."""

import ast
import json
import subprocess
import sys
from collections import Counter
from importlib import metadata, resources
from pathlib import Path

import saccade

# Loaded where they are used, and never for `import saccade` alone.
HEAVY = {"numba", "matplotlib", "torch", "fastapi", "dask", "pandas", "typer", "jinja2"}


def test_import_is_light():
    """A fresh interpreter, because this one has long loaded everything."""
    code = "import json, sys, saccade; print(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    loaded = {name.partition(".")[0] for name in json.loads(run.stdout)}
    assert loaded & HEAVY == set()


def test_type_marker_ships():
    assert resources.files("saccade").joinpath("py.typed").is_file()


def test_version_is_the_installed_one():
    assert saccade.__version__ == metadata.version("saccade")


def test_no_two_classes_share_a_name() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(saccade.__file__).parent.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []
