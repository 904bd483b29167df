"""The decision records: one form, and an index that misses none."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_record_has_one_form_and_stands_in_the_index(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    number, title = re.match(r"# (\d{3}) (\S.*)", text).groups()  # type: ignore[union-attr]
    assert record.name.startswith(f"{number}-")
    assert "What would change our mind" in text
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"| [{number} {title}]({record.name}) | " in index


def test_index_names_no_record_that_is_gone() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\d{3}-.*?\.md)\)", index)) == [record.name for record in RECORDS]
