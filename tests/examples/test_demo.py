"""The demo: run once, then its files are read as a newcomer and as a program would."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import saccade
from examples.demo.figures import most_doubtful, reliability_bins
from examples.demo.find import EMPTY, LOOKS, WINDOWS, face_judge
from examples.demo.report import COLUMNS, WHAT_NEXT, best_text
from examples.demo.run import run_demo
from examples.demo.trials import NEW_CLASS, edges, split_digits
from saccade._core.errors import InvalidInput
from saccade.datasets import embedded

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Outcome(NamedTuple):
    folder: Path
    printed: str
    page: str
    results: dict[str, Any]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("demo") / "not" / "there"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run_demo(folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    return Outcome(folder, printed.getvalue(), page, json.loads((folder / "results.json").read_text(encoding="utf-8")))


class Reader(HTMLParser):
    """Collects text, attributes and resources, and insists that every element is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "poster")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            self.text.append(data)


def test_files(outcome: Outcome) -> None:
    names = {path.name for path in outcome.folder.iterdir()}
    assert names == {"report.html", "results.json", "figure.png", "find.png", "digits.saccade"}
    figure = (outcome.folder / "figure.png").read_bytes()
    assert figure.startswith(b"\x89PNG")
    assert len(figure) < 200_000
    found = (outcome.folder / "find.png").read_bytes()
    assert found.startswith(b"\x89PNG")
    assert len(found) < 400_000
    assert len(outcome.page) < 500_000


def test_page_is_sound_html(outcome: Outcome) -> None:
    reader = Reader(outcome.page)
    assert reader.open == []
    assert reader.tags.count("svg") == 2
    assert reader.tags.count("img") > 50
    text = "".join(reader.text)
    assert "$" not in text
    assert "nan" not in text.lower().replace("nanosecond", "")


def test_page_loads_nothing_from_elsewhere(outcome: Outcome) -> None:
    reader = Reader(outcome.page)
    assert all(link.startswith(("data:image/png;base64,", "data:image/jpeg;base64,", "#")) for link in reader.links)
    assert not {"link", "iframe", "object"} & set(reader.tags)
    for word in ("http://", "https://", "@import", "url(//"):
        assert word not in outcome.page


def test_page_and_terminal_show_every_row(outcome: Outcome) -> None:
    text = "".join(Reader(outcome.page).text)
    rows = outcome.results["digits"]["rows"]
    assert {"saccade HIK", "saccade exp-HIK", "GPC tuned", "SVC sigmoid", "SVC HIK sigmoid"} <= {
        row["method"] for row in rows
    }
    for row in rows:
        assert row["method"] in text
        assert row["code"] in text
        assert row["method"] in outcome.printed
        assert f"{100 * row['accuracy']:.1f} %" in outcome.printed
    for row in outcome.results["faces"]["rows"]:
        assert f"{row['method']}, {row['features']}" in text
    assert outcome.results["machine"] in text


def test_who_got_fewer_examples_says_so(outcome: Outcome) -> None:
    train = outcome.results["digits"]["train"]
    for row in outcome.results["digits"]["rows"]:
        assert row["examples"] == train or f"only {row['examples']} of the {train}" in row["note"]


def test_numbers_are_sane(outcome: Outcome) -> None:
    for row in outcome.results["digits"]["rows"]:
        assert 0.85 <= row["accuracy"] <= 1.0
        assert 0.1 <= row["confidence"] <= 1.0
        assert 0.0 <= row["calibration_error"] <= 1.0
        assert row["log_loss"] > 0.0
        assert row["fit_seconds"] > 0.0
        assert row["predict_microseconds"] > 0.0
        if row["ours"]:
            assert row["accuracy"] >= 0.95
            assert row["calibration_error"] <= 0.03
            assert row["log_loss"] <= 0.15
    for row in outcome.results["faces"]["rows"]:
        assert row["accuracy"] >= 0.93
        assert 0.0 <= row["spread"] <= 0.05


def test_the_saved_model_is_the_reported_one(outcome: Outcome) -> None:
    saving = outcome.results["saving"]
    path = outcome.folder / "digits.saccade"
    assert saving["identical"]
    assert saving["bytes"] == path.stat().st_size
    data = split_digits()
    accuracy = (saccade.load(path).predict(data.X_test) == data.y_test).mean()
    assert accuracy == outcome.results["digits"]["rows"][0]["accuracy"]


def test_the_new_class_is_learned_and_the_old_are_kept(outcome: Outcome) -> None:
    growing = outcome.results["growing"]
    assert growing["examples"][0] == 0
    assert growing["examples"][-1] == (split_digits().y == NEW_CLASS).sum()
    assert growing["new_right"][0] == 0.0
    assert growing["new_right"][-1] >= 0.9
    assert growing["old_right"][-1] >= growing["old_right"][0] - 0.02
    assert growing["difference"] < 1e-6


def test_the_search_is_told_as_it_went(outcome: Outcome) -> None:
    finding = outcome.results["finding"]
    text = " ".join("".join(Reader(outcome.page).text).split())
    assert finding["looks"] == LOOKS
    assert 0.0 <= finding["probability"] <= 1.0
    found = finding["looks_to_half"] is not None
    assert found == (finding["overlap"] >= 0.5)
    assert found
    assert finding["looks_to_half"] <= 40
    word = f"found after {finding['looks_to_half']} looks (overlap {finding['overlap']:.2f}"
    assert word in text
    assert word in " ".join(outcome.printed.split())
    assert finding["windows"] == 50 * 50  # places of 120 × 120 in 512 × 512, 8 apart
    assert f'"looks":{LOOKS},' in outcome.page  # the last step of the player


def test_the_face_judge_knows_held_out_faces() -> None:
    """Crops of faces that it did not learn from score above background."""
    X, y = embedded.faces()
    pictures = np.rint(255.0 * X).astype(np.uint8).reshape(-1, *embedded.FACE_SHAPE)
    faces, backgrounds = pictures[y == 1], pictures[y == 0]
    judge, crops = face_judge(faces[:60], backgrounds[:60], np.random.default_rng(0))
    assert crops == 60 * (2 + WINDOWS) + EMPTY
    seen, nothing = judge(list(faces[60:])), judge(list(backgrounds[60:]))
    assert (seen[:, None] > nothing).mean() > 0.95


def test_plain_when_nobody_watches_and_ends_with_the_report(outcome: Outcome) -> None:
    assert "\x1b" not in outcome.printed
    words = outcome.printed.split("The report: ")
    assert words[-1].strip() == str(outcome.folder / "report.html")


def test_what_next_runs(outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(WHAT_NEXT, names)
    assert (tmp_path / "digits.saccade").exists()
    assert names["model"].score(names["X_new"], names["y_new"]) > 0.9


def test_edges_of_a_ramp() -> None:
    ramp = np.tile(np.arange(4.0), (1, 4, 1))  # grows to the right by one a pixel
    across, down, falling, rising = edges(ramp).reshape(4, 4, 4)[:, 1:-1, 1:-1]
    np.testing.assert_array_equal(across, 1.0)
    np.testing.assert_array_equal(down, 0.0)
    np.testing.assert_array_equal(falling, 1.0)
    np.testing.assert_array_equal(rising, -1.0)


def test_missing_packages_are_named_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"matplotlib and scikit-image: `pip install 'saccade\[demo\]'`"):
        run_demo(tmp_path)


def test_reliability_bins_hold_every_example_once() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 500)
    P, y = np.column_stack([p, 1 - p]), (rng.uniform(size=500) > p).astype(int)
    confidence, accuracy, number = reliability_bins(P, y)
    assert number.sum() == 500
    assert number.min() >= 20
    assert (np.diff(confidence) > 0).all()
    assert (confidence * number).sum() == pytest.approx(p.sum())
    assert (accuracy * number).sum() == pytest.approx((y == 0).sum())


def test_reliability_bins_of_few_examples_are_one() -> None:
    confidence, accuracy, number = reliability_bins(np.array([[0.2, 0.8], [1.0, 0.0]]), np.array([1, 1]))
    np.testing.assert_allclose(confidence, [0.9])
    np.testing.assert_allclose(accuracy, [0.5])
    assert number.tolist() == [2]


def test_doubt_is_lack_of_a_favourite() -> None:
    P = np.array([[0.9, 0.1], [0.5, 0.5], [0.3, 0.7]])
    assert most_doubtful(P, 2).tolist() == [1, 2]


def test_best_of_a_column() -> None:
    class Row(NamedTuple):
        accuracy: float
        log_loss: float
        confidence: float

    rows = [Row(0.9, 0.2, 0.5), Row(0.8, 0.1, 0.6)]
    by_head = {column.head: column for column in COLUMNS}
    assert best_text(rows, by_head["accuracy"]) == "90.0 %"
    assert best_text(rows, by_head["log loss"]) == "0.100"
    assert best_text(rows, by_head["mean confidence"]) is None
