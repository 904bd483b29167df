"""`saccade novelty`: faces among other pictures, digits among other digits, and whatever may be wrong."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from skimage import data as pictures
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from saccade import GPClassifier, OneClassGP, load
from saccade._core import limits
from saccade._core.arrays import Array
from saccade.cli import app
from saccade.cli.reports import novelty as novelty_report
from saccade.cli.reports.novelty_figure import BARS, figure
from saccade.kernels import HIK, Power
from tests.cli.conftest import Saccade, refused

pytestmark = pytest.mark.filterwarnings("ignore:.*found.*words")
KNOWN, NEW = 24, 8  # faces to learn from, and faces among as many other pictures


class Run(NamedTuple):
    """What the command left and said."""

    folder: Path
    stderr: str
    rows: list[dict[str, str]]
    page: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Faces are known, some of them in a folder of their own; then come other faces, and no faces."""
    folder = tmp_path_factory.mktemp("novelty")
    both = (np.clip(pictures.lfw_subset(), 0, 1) * 255).astype(np.uint8)
    for i in range(KNOWN):
        write(folder / "known" / ("", "more")[i % 2] / f"{i}.png", both[i])
    for i in range(NEW):
        write(folder / "new" / f"face {i}.png", both[KNOWN + i])
        write(folder / "new" / f"other <{i}>.png", both[100 + i])
    (folder / "new" / "broken.jpg").write_bytes(b"no picture")
    outputs = {name: str(folder / file) for name, file in OUTPUTS.items()}
    arguments = [part for output in outputs.items() for part in output]
    done = CliRunner().invoke(app, ["novelty", str(folder / "known"), str(folder / "new"), *arguments])
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    page = (folder / "r.html").read_text(encoding="utf-8")
    return Run(folder, done.stderr, rows((folder / "a.csv").read_text()), page)


OUTPUTS = {"--out": "a.csv", "--report": "r.html", "--save": "m.saccade", "--cache": "kept"}


def write(path: Path, picture: Array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).resize((48, 48)).save(path)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def column(found: list[dict[str, str]], name: str) -> list[float]:
    return [float(row[name]) for row in found]


def test_other_pictures_are_novel(run: Run) -> None:
    assert list(run.rows[0]) == ["file", "score", "normal", "novel"]
    score, normal = column(run.rows, "score"), column(run.rows, "normal")
    assert len(run.rows) == 2 * NEW
    assert score == sorted(score)
    assert normal == sorted(normal)
    is_face = [row["file"].startswith("face") for row in run.rows]
    assert roc_auc_score(is_face, score) > 0.95
    novel = np.array([row["novel"] == "True" for row in run.rows])
    assert novel[~np.array(is_face)].mean() > 0.8 > 0.3 > novel[is_face].mean()


def test_what_is_said(run: Run) -> None:
    novel = sum(row["novel"] == "True" for row in run.rows)
    assert "Skipped 1 file" in run.stderr
    assert "broken.jpg" in run.stderr
    assert f"Learned from {KNOWN} pictures" in run.stderr
    assert f"{novel} of {2 * NEW} pictures are novel." in run.stderr
    assert "Most novel: " + ", ".join(row["file"] for row in run.rows[:3]) + "." in run.stderr


def test_the_page_ranks_the_pictures(run: Run) -> None:
    sheets = run.page[: run.page.index("for comparison")]
    cards = re.findall(
        r'<figure class="(novel|normal)"><a [^>]+><img src="data:image/jpeg;base64,[^"]+" alt="([^"]*)"', sheets
    )
    expected = [("novel" if row["novel"] == "True" else "normal", row["file"]) for row in run.rows]
    assert [(kind, name.replace("&lt;", "<").replace("&gt;", ">")) for kind, name in cards] == expected
    assert "other <" not in run.page
    assert re.findall(r'class="rank">(\d+)<', sheets) == [str(k + 1) for k in range(2 * NEW)]
    known = re.findall(r"<figure class", run.page[run.page.index("for comparison") :])
    assert len(known) == 2 * novelty_report.TYPICAL


def test_the_page_needs_nothing_else(run: Run) -> None:
    links = re.findall(r'src="(?!data:)[^"]*"|href="(?!new/)[^"]*"|url\([^)]*\)|https?://\S+', run.page)
    assert links == []  # but to the files of the pictures


def test_the_nearest_known_pictures_are_beside_the_novel_ones(run: Run) -> None:
    """The likeness is that of the kernel of the model."""
    novel = [row["file"] for row in run.rows if row["novel"] == "True"]
    near = re.findall(r'alt="known: ([^"]*)"', run.page)
    assert len(near) == 3 * len(novel)
    model = load(run.folder / "m.saccade")
    kernel, chain = model[-1].kernel_, model[:-1]
    files = sorted((run.folder / "known").rglob("*.png"))
    names = [path.relative_to(run.folder / "known").as_posix() for path in files]
    known = chain.transform(files)
    x = chain.transform([run.folder / "new" / novel[0]])
    likeness = kernel(x, known)[0] / np.sqrt(kernel.diag(known))
    assert likeness[names.index(near[0])] == pytest.approx(likeness.max(), rel=1e-9)
    assert "$" not in re.sub(r"base64,[^\"]*", "", run.page)
    assert run.page.count("<svg") == 1


def test_the_model_file_says_the_same_without_the_pictures(run: Run, saccade: Saccade) -> None:
    again = saccade("novelty", run.folder / "m.saccade", run.folder / "new", "--report", "r.html")
    assert again.exit_code == 0, again.stderr
    assert rows(again.stdout) == run.rows
    page = Path("r.html").read_text(encoding="utf-8")
    assert "for comparison" not in page
    assert page.count("<figure class") == 2 * NEW + 1
    one = saccade("novelty", run.folder / "m.saccade", run.folder / "new" / "face 0.png")
    assert rows(one.stdout)[0]["score"] == next(r["score"] for r in run.rows if r["file"] == "face 0.png")
    assert " of 1 picture is novel" in one.stderr


def test_other_commands_know_the_file(run: Run, saccade: Saccade) -> None:
    model = run.folder / "m.saccade"
    shown = saccade("info", model).stdout
    assert re.search(r"novelty +probability by regression", shown)
    assert re.search(r"threshold +-?[\d.]+, for contamination 0.05", shown)
    assert "Resize → DenseSIFT → SpatialPyramid" in shown
    refused(saccade("predict", model, run.folder / "new"), "saccade novelty", str(model))


def test_a_folder_against_itself(run: Run, saccade: Saccade) -> None:
    """Each picture is judged by the others: none is known because it is there itself."""
    done = saccade(
        *("novelty", run.folder / "known", run.folder / "known", "--cache", run.folder / "kept"),
        *("--contamination", "0.25", "--report", "r.html"),
    )
    assert done.exit_code == 0, done.stderr
    found = rows(done.stdout)
    assert {row["file"] for row in found} == {f"{('', 'more/')[i % 2]}{i}.png" for i in range(KNOWN)}
    assert sum(row["novel"] == "True" for row in found) == KNOWN // 4
    np.testing.assert_allclose(column(found, "normal"), np.arange(1, KNOWN + 1) / KNOWN, rtol=1e-5)
    page = Path("r.html").read_text(encoding="utf-8")
    assert "What is odd in known" in page
    assert page.count("<figure class") == KNOWN + 1


class Digits(NamedTuple):
    zeros: Array
    new: Array


@pytest.fixture
def digits(saccade: Saccade) -> Digits:
    """Zeros to learn from; zeros and sevens to judge."""
    X, y = load_digits(return_X_y=True)
    zeros, sevens = X[y == 0], X[y == 7]
    found = Digits(zeros[:80], np.concatenate([zeros[80:120], sevens[:40]]))
    np.savez("zeros.npz", X=found.zeros)
    np.savez("new.npz", X=found.new, y=np.zeros(len(found.new)))
    return found


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ([], {}),
        (["--measure", "mean", "--noise", "0.5"], {"measure": "mean", "noise": 0.5}),
        (["--inference", "laplace", "--measure", "ratio"], {"inference": "laplace", "measure": "ratio"}),
        (["--approximation", "diagonal", "--contamination", "0"], {"approximation": "diagonal", "contamination": 0.0}),
        (["--levels", "8", "--power", "0.5"], {"levels": 8, "kernel": HIK(Power(0.5))}),
        (["--approximation", "fitc", "--seed", "3"], {"approximation": "fitc", "random_state": 3}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_tables_and_options(options: list[str], parameters: Any, digits: Digits, saccade: Saccade) -> None:
    done = saccade("novelty", "zeros.npz", "new.npz", "--in-order", *options)
    assert done.exit_code == 0, done.stderr
    model = OneClassGP(**{"measure": "probability", "random_state": 0, **parameters}).fit(digits.zeros)
    found = rows(done.stdout)
    assert [row["row"] for row in found] == [str(k + 1) for k in range(80)]
    np.testing.assert_allclose(column(found, "score"), model.score_samples(digits.new), rtol=1e-5)
    np.testing.assert_allclose(column(found, "normal"), model.predict_proba(digits.new)[:, 1], rtol=1e-5)
    assert [row["novel"] for row in found] == [str(bool(p < 0)) for p in model.predict(digits.new)]
    ranked = saccade("novelty", "zeros.npz", "new.npz", *options)
    assert rows(ranked.stdout) == sorted(found, key=lambda row: float(row["score"]))


def test_another_threshold_for_a_model_file(digits: Digits, saccade: Saccade) -> None:
    assert saccade("novelty", "zeros.npz", "new.npz", "--save", "m.saccade").exit_code == 0
    model = load("m.saccade")
    for share in (0.0, 0.3):
        done = saccade("novelty", "m.saccade", "new.npz", "--contamination", share)
        expected = OneClassGP(measure="probability", approximation="lowrank", contamination=share, random_state=0).fit(
            digits.zeros
        )
        novel = sum(row["novel"] == "True" for row in rows(done.stdout))
        assert novel == (model.score_samples(digits.new) < expected.offset_).sum()


def test_a_file_that_keeps_another_variance_says_so(digits: Digits, saccade: Saccade) -> None:
    done = saccade("novelty", "zeros.npz", "new.npz", "--save", "m.saccade", "--approximation", "exact")
    assert done.exit_code == 0, done.stderr
    assert "keeps a low-rank variance instead of the exact one" in done.stderr


def test_a_variance_that_no_file_can_hold_is_refused_before_the_work(digits: Digits, saccade: Saccade) -> None:
    options = ("--save", "m.saccade", "--approximation", "diagonal")
    done = saccade("novelty", "zeros.npz", "new.npz", *options)
    assert done.exit_code == 2
    assert "cannot keep the variance of --approximation diagonal" in done.stderr
    assert not Path("m.saccade").exists()
    assert saccade("novelty", "zeros.npz", "new.npz", *options, "--measure", "mean").exit_code == 0


def test_columns_of_the_known_need_not_be_there_again(digits: Digits, saccade: Saccade) -> None:
    """Features go by their names, and what was left out of the known may be missing or present."""
    names = [f"f{k}" for k in range(64)]
    with Path("zeros.csv").open("w") as file:
        lines = [["day", "kind", *names], *(["mon", "zero", *map(str, row)] for row in digits.zeros)]
        csv.writer(file).writerows(lines)
    with Path("new.csv").open("w") as file:
        lines = [["id", *names[::-1], "extra"], *([f"n{i}", *row[::-1], 1.0] for i, row in enumerate(digits.new))]
        csv.writer(file).writerows(lines)
    done = saccade("novelty", "zeros.csv", "new.csv", "--drop", "day", "--label", "kind", "--in-order")
    assert done.exit_code == 0, done.stderr
    assert "Left out 1 column" in done.stderr
    found, plain = rows(done.stdout), rows(saccade("novelty", "zeros.npz", "new.npz", "--in-order").stdout)
    assert [row["id"] for row in found] == [f"n{i}" for i in range(80)]
    assert column(found, "score") == column(plain, "score")


def test_a_page_for_a_table(digits: Digits, saccade: Saccade, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "REPORT_FIRST", 4)
    monkeypatch.setattr(limits, "REPORT_LAST", 2)
    done = saccade("novelty", "zeros.npz", "new.npz", "--report", "r.html")
    found = rows(done.stdout)
    novel = sum(row["novel"] == "True" for row in found)
    page = Path("r.html").read_text(encoding="utf-8")
    shown = re.findall(r'<tr><th scope="row">(\d+)</th><td>(\d+)</td>', page)
    wanted = [*range(4), *range(novel - 2, novel + 4), *range(78, 80)]
    assert shown == [(str(k + 1), found[k]["row"]) for k in wanted]
    assert f"{novel - 6:,} between them are not shown" in page
    assert f"{80 - novel - 6:,} between them are not shown" in page


def test_unequal_sums_are_not_for_the_variance(digits: Digits, saccade: Saccade) -> None:
    assert (
        "--measure variance takes rows with small sums"
        in saccade("novelty", "zeros.npz", "new.npz", "--measure", "variance").stderr
    )
    np.savez("equal.npz", X=digits.zeros / digits.zeros.sum(axis=1, keepdims=True))
    assert "Warning" not in saccade("novelty", "equal.npz", "new.npz", "--measure", "variance").stderr


def test_an_empty_row_has_nothing_to_compare(digits: Digits, saccade: Saccade) -> None:
    np.savez("none.npz", X=np.zeros((1, 64)))
    ran = saccade("novelty", "zeros.npz", "none.npz")
    assert rows(ran.stdout)[0]["novel"] == "False"
    assert "1 of 1 examples have nothing to compare" in " ".join(ran.stderr.split())


def test_columns_of_a_table_are_scaled(saccade: Saccade) -> None:
    known = np.random.default_rng(0).random((60, 3)) * [1.0, 1.0, 1e6]
    np.savez("table.npz", X=known)
    np.savez("odd.npz", X=known[:5] + np.array([4.0, 0.0, 0.0]))
    for more in ((), ("--measure", "variance")):
        ran = saccade("novelty", "table.npz", "odd.npz", "--save", "table.saccade", "--force", *more)
        assert {row["novel"] for row in rows(ran.stdout)} == {"True"}
        assert "Warning" not in ran.stderr
        assert rows(saccade("novelty", "table.saccade", "odd.npz").stdout) == rows(ran.stdout)


SCORES = arrays(float, st.integers(1, 30), elements=st.floats(-1e3, 1e3, width=16))


@given(SCORES, SCORES, st.integers(0, 29))
def test_every_score_is_in_a_bar_of_its_colour(known: Array, new: Array, place: int) -> None:
    offset = float(np.sort(known)[place % known.size])
    drawn = figure(known, new, offset, "pictures")
    bars = re.findall(
        r'y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="var\(--(\w+)\)".*?<title>([\d,]+) ', drawn
    )
    counts: dict[str, int] = {}
    for _, _, _, colour, count in bars:
        counts[colour] = counts.get(colour, 0) + int(count)
    novel = int((new < offset).sum())
    assert counts.get("quiet", 0) == known.size
    assert (counts.get("c1", 0), counts.get("c3", 0)) == (novel, new.size - novel)
    assert len(bars) <= 2 * (BARS + 2)
    assert "nan" not in drawn
    alone = figure(None, new, offset, "pictures")
    assert 'fill="var(--quiet)" opacity' not in alone


def table(name: str, X: Any) -> Callable[[Path], None]:
    return lambda folder: np.savez(folder / name, X=np.asarray(X, float))


def classifier(folder: Path) -> None:
    GPClassifier().fit(np.eye(4), [0, 0, 1, 1]).save(folder / "c.saccade")


def nothing(folder: Path) -> None:
    """As it is."""


def folders(*names: str) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).mkdir() for name in names] and None


def single(folder: Path) -> None:
    write(folder / "one" / "a.png", np.zeros((8, 8), np.uint8))
    (folder / "one" / "b.png").write_bytes(b"no picture")


BAD: list[tuple[str, Callable[[Path], Any], list[str], list[str]]] = [
    ("no FIT", nothing, ["none.csv", "b.npz"], ["no file or folder none.csv"]),
    ("no SCORE", nothing, ["a.npz", "none"], ["no file or folder none."]),
    ("empty folders", folders("e", "f"), ["e", "f"], ["no picture in 'e'"]),
    ("a table and a folder", folders("e"), ["a.npz", "e"], ["a.npz has a table of features", "same kind"]),
    ("a folder and a table", folders("e"), ["e", "a.npz"], ["e has pictures", "same kind"]),
    ("a folder for tables", folders("e"), ["m.saccade", "e"], ["e has pictures", "Give a table"]),
    ("other features", table("b.npz", np.eye(3)), ["a.npz", "b.npz"], ["3 features", "trained on 6"]),
    ("one example", table("a.npz", [[1.0, 2.0]]), ["a.npz", "b.npz"], ["only 1 example", "at least 2"]),
    ("no example", table("a.npz", np.zeros((0, 6))), ["a.npz", "b.npz"], ["a.npz has no examples"]),
    ("nan", table("a.npz", [[1.0, np.nan]]), ["a.npz", "b.npz"], ["nan in example 1, column 2"]),
    ("infinity", table("b.npz", np.full((2, 6), np.inf)), ["a.npz", "b.npz"], ["inf in example 1"]),
    ("too contaminated", nothing, ["a.npz", "b.npz", "--contamination", "0.6"], ["--contamination", "0 to 0.5", "0.6"]),
    ("contamination below 0", nothing, ["a.npz", "b.npz", "--contamination", "-1"], ["--contamination"]),
    ("no such measure", nothing, ["a.npz", "b.npz", "--measure", "loud"], ["--measure", "'loud'", "'ratio'"]),
    ("no such inference", nothing, ["a.npz", "b.npz", "--inference", "mcmc"], ["--inference", "'ep'"]),
    ("no such approximation", nothing, ["a.npz", "b.npz", "--approximation", "x"], ["--approximation", "'fitc'"]),
    ("noise", nothing, ["a.npz", "b.npz", "--noise", "0"], ["--noise must be positive"]),
    ("levels", nothing, ["a.npz", "b.npz", "--levels", "1"], ["--levels", "2 to 255"]),
    ("a classifier", classifier, ["c.saccade", "b.npz"], ["GPClassifier", "--save", "saccade predict"]),
    ("no model", lambda f: (f / "x.saccade").write_bytes(b"hello"), ["x.saccade", "b.npz"], ["not a model file"]),
    ("unknown ending", lambda f: (f / "x.txt").write_text("1 2"), ["a.npz", "x.txt"], ["unknown ending '.txt'"]),
    ("a measure for a model", nothing, ["m.saccade", "b.npz", "--measure", "mean"], ["--measure", "learned already"]),
    ("features for a model", nothing, ["m.saccade", "b.npz", "--features", "deep"], ["--features", "learned already"]),
    ("saved again", nothing, ["m.saccade", "b.npz", "--save", "n.saccade"], ["--save", "learned already"]),
    ("two outputs in one", nothing, ["a.npz", "b.npz", "-o", "r", "--report", "r"], ["--out and --report are both r"]),
    ("over the input", nothing, ["a.npz", "b.npz", "--save", "b.npz", "-f"], ["This command reads"]),
    ("over a file", nothing, ["a.npz", "b.npz", "--report", "m.saccade"], ["m.saccade exists already"]),
]


@pytest.mark.parametrize(("make", "arguments", "words"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
def test_bad_input(
    make: Callable[[Path], Any], arguments: list[str], words: list[str], saccade: Saccade, tmp_path: Path, data: Any
) -> None:
    np.savez("a.npz", X=data.X)
    np.savez("b.npz", X=data.new)
    OneClassGP().fit(data.X).save("m.saccade")
    make(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    done = saccade("novelty", *arguments)
    refused(done, *words)
    assert done.stdout == ""
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_single_picture_is_no_class(saccade: Saccade, tmp_path: Path) -> None:
    single(tmp_path)
    done = saccade("novelty", "one", "one")
    assert done.exit_code == 2
    assert "Skipped 1 file" in done.stderr
    assert "one has only 1 example" in done.stderr


def test_a_failure_later_loses_nothing(digits: Digits, saccade: Saccade) -> None:
    """What was learned is kept before the new examples are read."""
    np.savez("bad.npz", X=np.full((2, 64), np.nan))
    refused(saccade("novelty", "zeros.npz", "bad.npz", "--save", "m.saccade"), "nan in example 1")
    assert saccade("novelty", "m.saccade", "new.npz").exit_code == 0


def drawn(shape: str, seed: int) -> Array:
    """A disc, stripes or a chessboard, each a little different."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:64, :64].astype(float)
    if shape == "disc":
        inside = (x - 32 - rng.normal(0, 4)) ** 2 + (y - 32 - rng.normal(0, 4)) ** 2 < rng.uniform(12, 22) ** 2
    elif shape == "stripes":
        inside = np.sin(2 * np.pi * (y + rng.uniform(0, 16)) / rng.uniform(9, 12)) > 0
    else:
        side = rng.uniform(7, 10)
        inside = ((x // side) + (y // side)) % 2 > 0
    return np.clip(60 + 120 * inside + rng.normal(0, 6, (64, 64)), 0, 255).astype(np.uint8)


def test_folders_of_classes_are_pointed_to_predict(saccade: Saccade, tmp_path: Path) -> None:
    """The commands that it names tell the new kind from a rare known one."""
    kinds = {"disc": 30, "stripes": 6}
    for kind, count in kinds.items():
        for i in range(count):
            write(tmp_path / "PHOTOS" / kind / f"{i}.png", drawn(kind, i))
    for kind in ("disc", "stripes", "board"):
        for i in range(4):
            write(tmp_path / "NEW" / f"{kind} {i}.png", drawn(kind, 100 + i))
    said = saccade("novelty", "PHOTOS", "NEW", "--features", "classic")
    assert said.exit_code == 0, said.output
    assert "The 2 folders of PHOTOS (disc, stripes) are taken as one kind" in " ".join(said.stderr.split())
    told = re.findall(r"`saccade (.*?)`", " ".join(said.stderr.split()))
    assert [line.split()[0] for line in told] == ["fit", "predict"]
    for line in told:
        words = [{"MODEL": "m.saccade", "SCORE": "NEW"}.get(word, word) for word in line.split()]
        done = saccade(*words, *(("--out", "a.csv") if words[0] == "predict" else ()))
        assert done.exit_code == 0, done.output
    found = rows((tmp_path / "a.csv").read_text())
    newest = sorted(found, key=lambda row: -float(row["novelty"]))
    assert all(row["file"].startswith("board") for row in newest[:4])


def test_one_kind_in_one_folder_is_not_pointed_anywhere(run: Run) -> None:
    assert "predict" not in run.stderr
