"""`saccade predict --why`: the page of what spoke for each answer."""

import base64
import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.pipeline import make_pipeline

from saccade import GPClassifier, GPRegressor
from saccade.cli.reports.html_page import percent
from saccade.cli.reports.why import AGAINST, FEATURES, FOR, overlay
from saccade.features import HOG, BagOfWords, DenseSIFT
from tests.features.textures import textures, write_folder

pytestmark = pytest.mark.filterwarnings("ignore:.*found.*words")
PICTURES, LABELS = textures(each=4)


def save(path: Path, *steps: Any) -> None:
    features = make_pipeline(*steps)
    GPClassifier().fit(features.fit_transform(PICTURES), LABELS).save(path, features=features)


def test_pictures_with_their_heat_maps(tmp_path: Path, saccade: Any) -> None:
    save(tmp_path / "m.saccade", DenseSIFT(), BagOfWords(20))
    write_folder(tmp_path / "new", each=2, seed=1)
    done = saccade("predict", "m.saccade", "new", "--out", "a.csv", "--why", "why.html")
    assert done.exit_code == 0, done.stderr
    assert "What spoke for each answer is in why.html" in done.stderr
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        answers = list(csv.DictReader(file))
    assert page.count("<figure>") == len(answers) == 6
    assert [row["label"] for row in answers] == re.findall(r"<figcaption><b>(\w+)</b>", page)
    assert [percent(float(row["probability"])) for row in answers] == [
        said.replace("&gt;", ">") for said in re.findall(r"</b> ([^,]+%), then", page)
    ]
    maps = re.findall(r"data:image/png;base64,([^\"]+)", page)
    assert len(maps) == 6
    assert Image.open(io.BytesIO(base64.b64decode(maps[0]))).size == (64, 64)
    assert not re.search(r"(src|href)=\"(?!data:)", page)  # nothing is loaded from elsewhere


def test_colours_tell_for_from_against() -> None:
    heat = np.zeros((40, 40))
    heat[5:15, 5:15], heat[25:35, 25:35] = 1.0, -1.0
    found = Image.open(io.BytesIO(base64.b64decode(overlay(heat, 360).partition(",")[2])))
    pixels = np.array(found)
    assert tuple(pixels[10, 10, :3]) == FOR
    assert tuple(pixels[30, 30, :3]) == AGAINST
    assert pixels[10, 10, 3] > 150 < pixels[30, 30, 3]
    assert pixels[5, 35, 3] == 0
    nothing = Image.open(io.BytesIO(base64.b64decode(overlay(np.zeros((4, 4)), 360).partition(",")[2])))
    assert not np.array(nothing)[..., 3].any()


@pytest.mark.parametrize("regression", [False, True])
def test_a_table_lists_the_largest_shares(tmp_path: Path, saccade: Any, regression: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((30, 20)).round(3)
    X[:, 4] = np.arange(30) % 2 + 0.5
    y = X[:, 4] if regression else np.where(X[:, 4] > 1, "ant", "bee")
    model: Any = (GPRegressor() if regression else GPClassifier()).fit(X, y)
    names = [f"size {k}" for k in range(20)]
    model.feature_names_in_ = np.array(names, object)
    model.save(tmp_path / "m.saccade")
    lines = [",".join(names), *(",".join(map(str, row)) for row in X[:3])]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = saccade("predict", "m.saccade", "t.csv", "--out", "a.csv", "--why", "why.html")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == 3
    listed = re.findall(r"<b>([^<]+)</b><i[^>]*></i><span>([+-][\d.]+)</span>", page)
    assert len(listed) == 3 * (FEATURES + 1)
    del model.feature_names_in_
    found, best = model.explain(X[:1]), int(model.predict(X[:1])[0] == "bee") if not regression else 0
    shares = found.of(0) if regression else found.of(0, best, against=1 - best)
    order = np.argsort(-np.abs(shares.data), kind="stable")
    for (name, share), column in zip(listed[:FEATURES], shares.indices[order], strict=False):
        assert name == f"size {column} = {X[0, column]:.4g}"
        assert share == f"{shares[0, column]:+.3f}"
    assert listed[FEATURES] == ("8 others", f"{shares.data[order[FEATURES:]].sum():+.3f}")


def test_one_class_in_every_example(tmp_path: Path, saccade: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 4)).round(3), np.repeat(["ant", "bee", "cat"], 20)
    X[np.arange(60), np.repeat([0, 1, 2], 20)] += 1.0
    model = GPClassifier().fit(X, y)
    model.save(tmp_path / "m.saccade")
    rows = X[[0, 20, 40]]
    (tmp_path / "t.csv").write_text("a,b,c,d\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    done = saccade("predict", "m.saccade", "t.csv", "-o", "a.csv", "--why", "why.html", "--why-class", "bee")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert re.findall(r"<figcaption><b>(\w+)</b> [^,]+%, against (\w+)", page) == [
        ("bee", "ant"),
        ("bee", str(model.classes_[[0, 2]][model.predict_proba(rows[1:2])[0, [0, 2]].argmax()])),
        ("bee", "cat"),
    ]
    margins = [float(text) for text in re.findall(r"margin (-?[\d.]+)", page)]
    assert margins[1] > 0 > max(margins[0], margins[2])
    expected = model.explain(rows[:1]).of(0, 1, against=0).sum()
    assert margins[0] == pytest.approx(expected, abs=0.006)
    for arguments, words in (
        (["--why", "w.html", "--why-class", "dog"], "It knows ant, bee, cat"),
        (["--why-class", "bee"], "Add --why"),
    ):
        refused = saccade("predict", "m.saccade", "t.csv", "-o", "b.csv", *arguments)
        assert refused.exit_code == 2
        assert words in " ".join(refused.stderr.split())
        assert not (tmp_path / "b.csv").exists()


def test_what_cannot_be_painted_is_said_before_the_work(tmp_path: Path, saccade: Any) -> None:
    save(tmp_path / "m.saccade", HOG((64, 64)))
    write_folder(tmp_path / "new", each=1)
    done = saccade("predict", "m.saccade", "new", "--out", "a.csv", "--why", "why.html")
    assert done.exit_code == 2
    assert "places behind the features of HOG" in done.stderr
    assert not (tmp_path / "a.csv").exists()
    assert not (tmp_path / "why.html").exists()


def test_pages_must_differ(tmp_path: Path, saccade: Any) -> None:
    save(tmp_path / "m.saccade", DenseSIFT(), BagOfWords(20))
    write_folder(tmp_path / "new", each=1)
    done = saccade("predict", "m.saccade", "new", "--sheet", "s.html", "--why", "s.html")
    assert done.exit_code == 2
    assert "different names" in done.stderr
