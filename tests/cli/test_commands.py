"""What each command says and writes."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from importlib import import_module, metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from sklearn.metrics import log_loss

from saccade import SVDD, GPClassifier, GPRegressor, Tune, cli, load
from saccade._core import limits
from saccade.cli import SUMMARIES
from saccade.cli.commands.fit import _split, fit
from saccade.inference.tuning.options import METHODS, OBJECTIVES
from saccade.kernels import HIK, RBF, Exponential, Monotone, Power
from tests.cli.conftest import Data, Saccade, refused


def facts(result: Any) -> dict[str, str]:
    """The table of a command as a dictionary."""
    assert result.exit_code == 0, result.output
    return dict(re.split(r"\s{3,}", line, maxsplit=1) for line in result.stdout.splitlines())


@pytest.fixture
def npz(data: Data, saccade: Saccade) -> str:
    np.savez("a.npz", X=data.X, y=data.y)
    return "a.npz"


def test_fit_reports(data: Data, npz: str, saccade: Saccade) -> None:
    table = facts(saccade("fit", npz, "m.saccade"))
    model = GPClassifier(random_state=0).fit(data.X, data.y)
    share = (model.leave_one_out_decision_.argmax(axis=1) == data.y).mean()
    even = (120 * share + 1.0) / 122
    expected = f"{share:.4f} ± {np.sqrt(even * (1.0 - even) / 120):.4f}"
    assert list(table) == [
        *("examples", "features", "classes", "iterations", "converged", "residual", "leave-one-out accuracy"),
        *("training time", "model file"),
    ]
    assert [table[k] for k in ("examples", "features", "classes", "converged")] == ["120", "6", "3", "yes"]
    assert table["leave-one-out accuracy"] == expected
    assert table["model file"].startswith("m.saccade, ")


def test_two_classes_leave_one_out(data: Data, saccade: Saccade) -> None:
    np.savez("a.npz", X=data.X, y=data.y > 0)
    table = facts(saccade("fit", "a.npz", "m.saccade"))
    model = GPClassifier(random_state=0).fit(data.X, data.y > 0)
    share = ((model.leave_one_out_decision_ > 0) == (data.y > 0)).mean()
    assert table["leave-one-out accuracy"].startswith(f"{share:.4f} ± ")


@pytest.mark.parametrize(
    ("options", "model"),
    [
        (["--power", "0.5"], GPClassifier(HIK(Power(0.5)))),
        (["--exponential", "-1"], GPClassifier(HIK(Exponential(-1.0)))),
        (["--power", "2", "--exponential", "1"], GPClassifier(HIK([Power(2.0), Exponential(1.0)]))),
        (
            ["--power", "1", "--tune", "loo"],
            GPClassifier(HIK(Power(1.0)), tune=Tune(objective="loo"), random_state=0),
        ),
        (["--noise", "1.5", "--balanced"], GPClassifier(noise=1.5, balanced=True)),
        (["--levels", "4"], GPClassifier(levels=4)),
        (["--kernel", "hik"], GPClassifier()),
        (["--kernel", "auto"], GPClassifier("auto", random_state=0)),
        (["--levels", "exact", "--seed", "3"], GPClassifier(random_state=3)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_fit_options(options: list[str], model: GPClassifier, data: Data, npz: str, saccade: Saccade) -> None:
    assert saccade("fit", npz, "m.saccade", *options).exit_code == 0
    np.testing.assert_array_equal(
        load("m.saccade").predict_proba(data.new), model.fit(data.X, data.y).predict_proba(data.new)
    )


@pytest.mark.parametrize("word", [*METHODS, *OBJECTIVES])
def test_tune_takes_the_words_of_python(word: str, data: Data, npz: str, saccade: Saccade) -> None:
    done = saccade("fit", npz, "m.saccade", "--power", "1", "--tune", word)
    assert done.exit_code == 0, done.stderr
    model = GPClassifier(HIK(Power(1.0)), tune=word, random_state=0).fit(data.X, data.y)
    assert word in (model.tuning_.method, model.tuning_.objective)
    np.testing.assert_array_equal(load("m.saccade").predict_proba(data.new), model.predict_proba(data.new))


def test_the_kernel_that_was_chosen_is_said(saccade: Saccade) -> None:
    """Columns of units of their own, as the guide recommends it for: HIK sees the largest alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y, X = (X[:, 0] * X[:, 1] > 0).astype(int), X * np.array([1.0, 1e-3, 1e3])
    np.savez("a.npz", X=X, y=y)
    plain = facts(saccade("fit", "a.npz", "p.saccade", "--test-share", "0.3"))
    chosen = saccade("fit", "a.npz", "m.saccade", "--kernel", "auto", "--test-share", "0.3")
    assert "kernel" not in plain
    assert facts(chosen)["kernel"].startswith("exp(-")
    assert "deviations" in facts(chosen)["kernel"]
    assert "m.saccade keeps 112 training rows" in chosen.stderr
    assert float(facts(chosen)["held-out accuracy"]) > float(plain["held-out accuracy"]) + 0.2
    assert saccade("predict", "m.saccade", "a.npz").exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--kernel", "rbf"], "--kernel must be one of 'hik', 'auto', got 'rbf'"),
        (["--kernel", "auto", "--power", "0.5"], "Leave out --power"),
        (["--kernel", "auto", "--tune", "loo"], "Leave --tune out"),
        (["--kernel", "auto", "--regression"], "--regression has none"),
    ],
)
def test_kernels_that_cannot_be_chosen(options: list[str], words: str, npz: str, saccade: Saccade) -> None:
    refused(saccade("fit", npz, "m.saccade", *options), words)


def test_help_names_defaults() -> None:
    """They say "Default: X", not "Usually X": a reader wants to know what happens without the option."""
    for path in Path(cli.__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r'help="[^"]*[Uu]sually', text), path
        assert "Usually" not in text, path


def test_tune_names_its_words(npz: str, saccade: Saccade) -> None:
    words = (*METHODS, *OBJECTIVES)
    assert get_type_hints(fit, include_extras=True)["tune"].__metadata__[0].metavar == "|".join(words)
    refused(saccade("fit", npz, "m.saccade", "--tune", "both"), "--tune must", *words, "'both'")


def test_test_share(data: Data, npz: str, saccade: Saccade) -> None:
    table = facts(saccade("fit", npz, "m.saccade", "--test-share", "0.25", "--seed", "5"))
    train, test = _split(data.y, 0.25, 5, regression=False)
    model = GPClassifier(random_state=5).fit(data.X[train], data.y[train])
    p = model.predict_proba(data.X[test])
    assert table["examples"] == str(len(train))
    assert table["held-out examples"] == str(len(test))
    assert table["held-out accuracy"] == f"{model.score(data.X[test], data.y[test]):.4f}"
    assert table["held-out log loss"] == f"{log_loss(data.y[test], p):.4f}"
    assert 0 <= float(table["held-out calibration error"]) < 0.5
    np.testing.assert_array_equal(load("m.saccade").predict_proba(data.new), model.predict_proba(data.new))


def test_test_share_of_measurements(data: Data, saccade: Saccade) -> None:
    y = data.X @ np.arange(6) * 1.1
    np.savez("a.npz", X=data.X, y=y)
    table = facts(saccade("fit", "a.npz", "m.saccade", "--test-share", "0.5", "--regression"))
    assert table["held-out examples"] == "60"
    train, test = _split(y, 0.5, 0, regression=True)
    model = GPRegressor(random_state=0).fit(data.X[train], y[train])
    assert table["held-out R²"] == f"{model.score(data.X[test], y[test]):.4f}"
    assert float(table["held-out error (RMS)"]) == pytest.approx(
        np.sqrt(np.mean((model.predict(data.X[test]) - y[test]) ** 2)), rel=1e-3
    )
    assert "classes" not in table


def test_measurements_as_they_are(data: Data, saccade: Saccade) -> None:
    np.savez("a.npz", X=data.X, y=data.X @ np.arange(6) * 1.1)
    saccade("fit", "a.npz", "m.saccade", "--regression", "--no-normalize-y", "--noise", "0.5")
    model = GPRegressor(noise=0.5, normalize_y=False, random_state=0).fit(data.X, data.X @ np.arange(6) * 1.1)
    np.testing.assert_array_equal(load("m.saccade").predict(data.new), model.predict(data.new))
    refused(saccade("fit", "a.npz", "n.saccade", "--no-normalize-y"), "--regression")


def test_every_class_is_held_out_in_its_share() -> None:
    y = np.repeat(["a", "b", "c", "d"], [100, 10, 2, 1])
    train, test = _split(y, 0.4, 0, regression=False)
    assert sorted([*train, *test]) == list(range(113))
    assert [int((y[test] == c).sum()) for c in "abcd"] == [40, 4, 1, 0]
    assert _split(y, 0.0, 0, regression=False)[1].size == 0


def test_many_numbers_make_one_wonder(data: Data, saccade: Saccade) -> None:
    np.savez("a.npz", X=data.X, y=np.arange(120) // 2)
    result = saccade("fit", "a.npz", "m.saccade")
    assert result.exit_code == 0
    assert "Warning: The labels are 60 different numbers." in result.stderr


def test_labels_that_are_all_different_numbers_are_measurements(data: Data, saccade: Saccade) -> None:
    np.savez("a.npz", X=data.X[:20], y=np.arange(20))
    assert "All labels are different numbers. If they" in saccade("fit", "a.npz", "m.saccade").stderr
    np.savez("b.npz", X=data.X[:20], y=[f"n{k}" for k in range(20)])
    assert saccade("fit", "b.npz", "n.saccade").stderr == ""


def test_a_library_warning_is_one_line(npz: str, saccade: Saccade, monkeypatch: Any) -> None:
    import warnings

    def fit(self: Any, X: Any, y: Any) -> Any:
        warnings.warn("The solver stopped early.", stacklevel=1)
        return original(self, X, y)

    original = GPClassifier.fit
    monkeypatch.setattr(GPClassifier, "fit", fit)
    assert saccade("fit", npz, "m.saccade").stderr == "Warning: The solver stopped early.\n"


def test_predict_to_a_file_is_what_the_terminal_shows(data: Data, npz: str, model: Path, saccade: Saccade) -> None:
    shown = saccade("predict", model, npz)
    written = saccade("predict", model, npz, "--out", "out.csv")
    assert written.stdout == ""
    assert written.stderr == "120 predictions in out.csv.\n"
    assert Path("out.csv").read_text() == shown.stdout
    assert not list(Path().glob("*.part"))


def test_predict_in_blocks(data: Data, npz: str, model: Path, saccade: Saccade, monkeypatch: Any) -> None:
    whole = saccade("predict", model, npz, "--all").stdout
    monkeypatch.setattr(limits, "ROWS_AT_ONCE", 7)
    assert saccade("predict", model, npz, "--all").stdout == whole


def test_score_compares_numbers_with_text(data: Data, saccade: Saccade) -> None:
    np.savez("a.npz", X=data.X, y=data.y.astype(str))
    np.savez("b.npz", X=data.X, y=data.y)
    assert saccade("fit", "a.npz", "m.saccade").exit_code == 0
    scores = [saccade("predict", "m.saccade", name, "--score").stderr for name in ("a.npz", "b.npz")]
    assert scores[0] == scores[1]
    assert scores[0].startswith("accuracy 0.")


def test_predict_ignores_labels_it_does_not_need(data: Data, model: Path, saccade: Saccade) -> None:
    rows = "".join(",".join(map(str, row)) + ",\n" for row in data.new.tolist())
    Path("a.csv").write_text("a,b,c,d,e,f,label\n" + rows)
    result = saccade("predict", model, "a.csv")
    assert len(list(csv.reader(io.StringIO(result.stdout)))) == len(data.new) + 1


def test_info(model: Path, saccade: Saccade) -> None:
    table = facts(saccade("info", model))
    assert table["estimator"] == "GPClassifier"
    assert table["kernel"].startswith("HIK(scale=")
    assert table["classes"] == "3: ant, bee, cow"
    assert table["features"] == "6"
    assert table["tables"].startswith("PiecewiseTables, ")
    assert table["digest"].startswith("ok")
    assert metadata.version("saccade") in table["file"]


def test_a_file_with_training_rows(data: Data, npz: str, saccade: Saccade) -> None:
    """It is shown what it holds, and it predicts like any other."""
    with pytest.warns(UserWarning, match="keeps 120 training rows"):
        GPClassifier(RBF()).fit(data.X, data.y).save("m.saccade")
    table = facts(saccade("info", "m.saccade"))
    assert table["training rows"] == "120 are in this file: it has no tables"
    assert table["kernel"] == "RBF()"
    done = saccade("predict", "m.saccade", npz)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("row,label,probability,variance")
    refused(saccade("predict", "m.saccade", npz, "--why", "w.html"), "training rows")


def test_info_for_programs(model: Path, saccade: Saccade) -> None:
    found = json.loads(saccade("info", model, "--json").stdout)
    assert found["classes"] == ["ant", "bee", "cow"]
    assert found["digest"] == "ok"
    assert found["bytes"] == model.stat().st_size
    assert found["tables"]["outputs"] == 3
    assert (found["features"], found["parameters"]["noise"]) == (6, "auto")
    assert found["noise"] > 0.0  # what was learned


@pytest.mark.parametrize("bins", [None, 16])
def test_info_of_other_models(data: Data, tmp_path: Path, saccade: Saccade, bins: int | None) -> None:
    model = GPClassifier(HIK([Power(0.5), Exponential(1.0)]), random_state=0).fit(data.X, np.arange(120) % 12)
    (model if bins is None else model.quantized(bins)).save(tmp_path / "m")
    table = facts(saccade("info", "m"))
    assert table["kernel"].startswith("HIK(Power(0.5), Exponential(1.0), scale=")
    assert table["classes"] == "12: 0, 1, 2, 3, 4, 5, 6, 7 and 4 more"
    assert table["tables"].startswith("GridTables" if bins else "PiecewiseTables")


def test_info_of_a_sum(data: Data, tmp_path: Path, saccade: Saccade) -> None:
    GPClassifier(HIK(Power(0.5), scale=2.0) + HIK(scale=0.5), random_state=0).fit(data.X, data.y).save(tmp_path / "m")
    assert facts(saccade("info", "m"))["kernel"] == "HIK(HIK(Power(0.5), scale=2) + HIK(scale=0.5), scale=1)"


def test_version(saccade: Saccade) -> None:
    assert saccade("--version").stdout == f"saccade {metadata.version('saccade')}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["fit", "--help"], ["predict", "-h"], ["info", "--help"]])
def test_help(arguments: list[str], saccade: Saccade) -> None:
    assert "Usage:" in saccade(*arguments).output


@pytest.mark.parametrize("name", SUMMARIES)
def test_help_is_broken_where_the_terminal_ends(name: str, saccade: Saccade, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    shown = saccade(name, "--help").output
    said = shown.partition("Usage:")[2].partition("╭")[0]
    lines = [[line.strip() for line in part.splitlines()] for part in re.split(r"\n *\n", said)[1:] if part.strip()]
    assert lines
    for part in lines:  # a line ends only where the next word would not fit
        assert all(len(a) + len(b.split()[0]) >= 86 for a, b in pairwise(part)), part
    if name not in ("find", "info"):
        assert "─ Reading the data ─" in shown


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['saccade', '--help']\n"
        "from saccade.cli import main\n"
        "try: main()\n"
        "finally: print(*{m.partition('.')[0] for m in sys.modules}, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0
    assert not {"numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib", "jinja2"} & set(run.stderr.split())


def test_the_overview_says_what_the_commands_say() -> None:
    for name, summary in SUMMARIES.items():
        command = getattr(import_module(f"saccade.cli.commands.{name}"), name)
        assert command.__doc__.startswith(summary + "\n") or command.__doc__ == summary


def test_a_wrong_option(saccade: Saccade) -> None:
    for arguments in (["fitt"], ["fit"], ["fit", "a", "b", "--nose", "1"], ["fit", "a", "b", "--noise", "x"]):
        result = saccade(*arguments)
        assert result.exit_code == 2
        assert "Traceback" not in result.output


def test_the_installed_script(data: Data, npz: str, tmp_path: Path) -> None:
    """A pipe that closes early is no error; the results alone go into it."""
    script = Path(sys.executable).with_name("saccade")
    fit = subprocess.run([script, "fit", npz, "m.saccade"], capture_output=True, text=True, cwd=tmp_path)
    assert (fit.returncode, fit.stderr) == (0, "")
    command = f"'{script}' predict m.saccade {npz} | head -n 1"
    piped = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert piped.stdout == "row,label,probability,variance,novelty\n"
    assert "Traceback" not in piped.stderr


def test_colour_on_a_terminal_only(tmp_path: Path) -> None:
    main, other = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {
        "TERM": "xterm-256color",
        "COLUMNS": "200",
    }
    run = subprocess.run([sys.executable, "-m", "saccade", "info", "none"], stderr=other, env=environment, cwd=tmp_path)
    os.close(other)
    shown = os.read(main, 10_000).decode()
    os.close(main)
    assert run.returncode == 2
    assert "\x1b[1;31mError:\x1b[0m There is no model file none." in shown


def test_info_of_a_ball_and_of_pieces(data: Data, tmp_path: Path, saccade: Saccade) -> None:
    kernel = HIK(Monotone(knots=[[1.0, 2.0]] * data.X.shape[1], slopes=[[1.0, 0.5]] * data.X.shape[1]))
    SVDD(kernel, nu=0.2).fit(np.abs(data.X)).save("ball")
    table = facts(saccade("info", "ball"))
    assert table["novelty"] == "distance from the centre of a ball"
    assert table["threshold"].endswith("for nu 0.2")
    assert "Monotone(2 pieces)" in table["kernel"]
