"""Every page shows names as text, whatever they hold, and no part of a template is left in it."""

import ntpath
import os
import re
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image

from examples.demo.figures import DRAWN
from examples.demo.find import FaceSearch
from examples.demo.report import page
from examples.demo.trials import Demo, Faces, FaceTrial, Growing, Saving, Split, Trial
from saccade import GPClassifier, OneClassGP
from saccade.cli.detector import Detector
from saccade.cli.duplicates import Pairs
from saccade.cli.find_search import ObjectSearch, search
from saccade.cli.reports import html_page
from saccade.cli.reports.contact_sheet import Answers, write_sheet
from saccade.cli.reports.find import write_report as write_found
from saccade.cli.reports.fit import HeldOut, write_fit_report
from saccade.cli.reports.novelty import Verdicts, write_report
from saccade.cli.reports.questions import write_sheet as write_questions
from saccade.cli.reports.why import write_why
from saccade.cli.tables.questions import Question
from saccade.cli.tables.read import Examples
from saccade.features import read_pictures
from saccade.localize import Localizer
from saccade.localize.sources.base import open_picture
from tests.examples.test_demo import Reader

EVIL = '<script>alert("1")</script>'
NOT_UTF8 = "na\udcefve"  # a byte of a file name that is not UTF-8


class Shown(list[Any]):
    """Pictures with names."""

    names = (EVIL, NOT_UTF8, "c", "d")


PICTURES = Shown(np.zeros((4, 8, 8, 3), np.uint8))
X = np.random.default_rng(0).uniform(size=(4, 5))


def sheet(path: Path) -> None:
    label = np.array([EVIL, NOT_UTF8, "other", "other"])
    write_sheet(path, Path(EVIL.replace("/", "")), PICTURES, Answers(label, np.full(4, 0.5), np.full(4, 0.1)))  # type: ignore[arg-type]


def novelty_of_pictures(path: Path) -> None:
    examples = Examples(X, ids=list(PICTURES.names), id_name="file")
    _novelty(path, Detector(_model(), np.arange(4.0), EVIL, examples, PICTURES), examples)


def novelty_of_a_table(path: Path) -> None:
    examples = Examples(X, ids=list(PICTURES.names), id_name=EVIL)
    _novelty(path, Detector(_model(), np.arange(4.0), EVIL), examples)


def _model() -> Any:
    return OneClassGP(random_state=0).fit(X)


def _novelty(path: Path, detector: Detector, examples: Examples) -> None:
    judged = Verdicts(np.arange(4.0), np.full(4, 0.5), np.array([True, True, False, False]))
    write_report(path, path.parent / EVIL, path.parent / NOT_UTF8, detector, examples, judged)


def demo(path: Path) -> None:
    y, P = np.arange(30) % 10, np.full((30, 10), 0.1)
    digits = [Trial(name, EVIL, True, 3, *[0.5] * 6, EVIL, P) for name in DRAWN]
    faces = Faces([FaceTrial(EVIL, NOT_UTF8, True, 0.5, 0.1, 0.1, P[:, 0])], 2, np.zeros((30, 5, 5)), y % 2)
    data = Split(P, y, P, y, np.zeros((30, 8, 8)))
    growing = Growing([0, 1], [0.0, 1.0], [1.0, 1.0], 1.0, 0.0)
    finding = FaceSearch(1, 1, 10, 0.5, 0.5, 10, None, 1.0, _search(EVIL))
    html_page.write(path, page(Demo(data, digits, faces, Saving(1, 1, True, 1.0), growing, finding, EVIL, 1.0, 1.0)))


def _search(name: str) -> ObjectSearch:
    """Ten looks at an empty picture."""
    localizer = Localizer((40, 30), random_state=0)
    picture = open_picture(np.zeros((30, 40, 3), np.uint8))
    return search(name, picture, lambda crops: np.zeros(len(crops)), localizer, looks=10, batch=5, sure=1.0, keep=True)


def found(path: Path) -> None:
    write_found(path, [_search(EVIL), _search(NOT_UTF8)], EVIL)


def questions(path: Path) -> None:
    asked = [Question(i, name, str(i), guess=(EVIL, 0.5)) for i, name in enumerate(PICTURES.names)]
    write_questions(path, path.parent / "photos", EVIL, PICTURES, asked, [EVIL])  # type: ignore[arg-type]


def why_of_a_table(path: Path) -> None:
    model = GPClassifier().fit(X, [EVIL, NOT_UTF8, EVIL, "other"])
    write_why(path, Path(EVIL.replace("/", "")), model, Examples(X, names=(EVIL, *"bcde"), ids=list(PICTURES.names)))


def fitted(path: Path) -> None:
    classes, y = np.array([EVIL, NOT_UTF8]), np.array([0, 1, 0, 1])
    tested = HeldOut(PICTURES, y, np.array([1, 1, 0, 0]), np.full(4, 0.5))  # type: ignore[arg-type]
    pairs = Pairs(np.array([0]), np.array([1]))
    write_fit_report(path, path.parent / "photos", [(EVIL, EVIL)], classes, tested, PICTURES, classes[y], pairs)  # type: ignore[arg-type]


PAGES = (why_of_a_table, sheet, fitted, questions, novelty_of_pictures, novelty_of_a_table, demo, found)
PLAYED = (demo, found, sheet, fitted)  # have a script of our own


@pytest.mark.parametrize("write", PAGES, ids=lambda write: write.__name__)
def test_names_are_text(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write(path)
    source = path.read_text(encoding="utf-8")
    reader = Reader(source)
    assert reader.open == []
    assert "script" not in reader.tags or write in PLAYED
    assert "<script>alert" not in source
    assert "&lt;script&gt;alert(&#34;1&#34;)" in source
    text = "".join(reader.text)
    assert EVIL in text
    assert r"na\udcefve" in text
    assert not re.search(r"\{\{|\{%|\{#|%\}|\}\}|&lt;(svg|div|figure)", source)


@pytest.mark.parametrize("write", PAGES, ids=lambda write: write.__name__)
def test_nothing_but_the_page_is_in_its_head(write: Callable[[Path], None], tmp_path: Path) -> None:
    """Text in the head would be shown above the page."""
    write(tmp_path / "page.html")
    head = (tmp_path / "page.html").read_text(encoding="utf-8").partition("</head>")[0]
    inside = re.sub(r"<(title|style)>.*?</\1>|<[^>]*>", "", head, flags=re.DOTALL)
    assert inside.strip() == ""


@pytest.mark.parametrize("write", PAGES, ids=lambda write: write.__name__)
def test_percentages_are_written_one_way(write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path / "page.html")
    source = (tmp_path / "page.html").read_text(encoding="utf-8")
    text = "".join(Reader(re.sub(r"<(style|script)>.*?</\1>", "", source, flags=re.DOTALL)).text)
    assert not re.search(r"\d%", text)


def test_links_lead_from_the_page_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    names = ["x#1.png", "100%.png", 'q"<.png']
    for name in names:
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "a b" / name)
    pictures = read_pictures(tmp_path / "a b", by_class=False)
    found = html_page.links(tmp_path / "pages" / "p.html", pictures)
    for link, path in zip(found, pictures.paths or [], strict=True):
        assert (tmp_path / "pages" / unquote(link)).resolve() == path
        assert re.fullmatch(r"[\w./%-]+", link)


def test_links_lead_to_another_drive_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No relative path leads there, and Python says so by a ValueError."""
    monkeypatch.setattr(os.path, "relpath", ntpath.relpath)
    page = PureWindowsPath("C:/pages")
    assert html_page.address(PureWindowsPath("C:/a b/x#1.png"), page) == "../a%20b/x%231.png"
    assert html_page.address(PureWindowsPath("D:/a b/x#1.png"), page) == "file:///D:/a%20b/x%231.png"


def test_a_missing_value_is_an_error() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="source"):
        html_page.render("contact_sheet.html")
