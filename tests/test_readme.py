"""What README shows must run as it stands."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_python_of_the_readme_runs(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[0]) > 0.9
    assert (tmp_path / "digits.saccade").is_file()


def test_pictures_and_pages_of_the_readme_are_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("page", ["README.md", "docs/measured.md"])
def test_tables_are_what_the_results_say(page: str, monkeypatch: Any) -> None:
    """`python benchmarks/readme_table.py` makes the tables from the committed results: the pages have just those."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    with_tables, text = importlib.import_module("readme_table").with_tables, (ROOT / page).read_text()
    assert with_tables(text) == text
    for line in [line for line in text.splitlines() if line.startswith("| ") and "%" in line][:1]:
        assert with_tables(text.replace(line, "| apples |", 1)) == text  # a table is found, and made anew


def test_readme_is_one_screen() -> None:
    assert len(README.splitlines()) <= 60
