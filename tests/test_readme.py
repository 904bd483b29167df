"""What README shows must run as it stands."""

import importlib
import re
from pathlib import Path
from typing import Any

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_python_of_the_readme_runs(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[0]) > 0.9
    assert (tmp_path / "digits.saccade").is_file()


def test_pictures_and_pages_of_the_readme_are_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target


def test_table_is_what_the_results_say(monkeypatch: Any) -> None:
    """`python benchmarks/readme_table.py` makes the table from the committed results: README has just that."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    with_table = importlib.import_module("readme_table").with_table
    assert with_table(README) == README
    assert with_table(README.replace(" units |", " apples |", 1)) == README  # the table is found, and made anew
