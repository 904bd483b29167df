"""Whatever is wrong with the input: status 2, one line that says what to do, no traceback, nothing written or run."""

import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save_file

from saccade._core import model_file
from tests.cli.conftest import Data, Saccade, refused
from tests.features.textures import write_folder


def text(name: str, content: str) -> Callable[[], None]:
    return lambda: (Path(name).write_text(content, encoding="utf-8"), None)[1]


def raw(name: str, content: bytes) -> Callable[[], None]:
    return lambda: (Path(name).write_bytes(content), None)[1]


def npz(**arrays: Any) -> Callable[[], None]:
    return lambda: np.savez("a.npz", **arrays)


def npy(array: Any) -> Callable[[], None]:
    return lambda: np.save("a.npy", array)


def parquet(**columns: Any) -> Callable[[], None]:
    def write() -> None:
        pytest.importorskip("pandas").DataFrame(columns).to_parquet("a.parquet")

    return write


def broken_sparse() -> None:
    """Column numbers beyond the width, which compiled loops would follow out of their arrays."""
    X = sp.csr_matrix(np.eye(4))
    X.indices[2] = 10**6
    np.savez("a.npz", format=b"csr", shape=X.shape, data=X.data, indices=X.indices, indptr=X.indptr)


def falling_pointers() -> None:
    """The last pointer says that there is no entry, and SciPy then checks nothing."""
    X = sp.csr_matrix(np.eye(4))
    X.indptr[-1] = 0
    np.savez("a.npz", format=b"csr", shape=X.shape, data=X.data, indices=X.indices, indptr=X.indptr)


def bad_header() -> bytes:
    """A bracket that is never closed: NumPy's reader raises a TokenError."""
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4, 4"
    return b"\x93NUMPY\x01\x00" + len(head + b"\n").to_bytes(2, "little") + head + b"\n" + bytes(128)


GOOD = "a,b,label\n1,2,x\n2,1,y\n3,0,x\n"
X, Y = np.eye(4), np.arange(4) % 2

FIT: list[tuple[str, Callable[[], None], list[str], list[str]]] = [
    (
        "labels too large for classes",
        npz(X=X, y=1e308 * (1 - 2.0 * Y)),
        ["a.npz"],
        ["The label 1e+308 is a measurement"],
    ),
    ("a format that is no text", npz(format=1, shape=2), ["a.npz"], ["not a whole sparse matrix"]),
    ("an index beyond int64", text("a.svm", f"1 {10**20}:1\n2 1:1\n"), ["a.svm"], ["not a svmlight file"]),
    ("an array without its header's end", raw("a.npy", bad_header()), ["a.npy"], ["damaged"]),
    (
        "lists as labels",
        parquet(a=[1.0, 2.0], label=[[1], [2]]),
        ["a.parquet"],
        ["one value per example"],
    ),
    ("missing file", lambda: None, ["none.csv"], ["There is no file none.csv"]),
    ("an empty folder", lambda: Path("a.csv").mkdir(), ["a.csv"], ["no picture in 'a.csv'"]),
    ("unknown ending", text("a.docx", GOOD), ["a.docx"], ["'.docx'", ".parquet"]),
    ("no ending", text("data", GOOD), ["data"], ["unknown ending"]),
    ("empty csv", text("a.csv", ""), ["a.csv"], ["is empty"]),
    ("header alone", text("a.csv", "a,b,label\n"), ["a.csv"], ["no examples"]),
    ("nan in csv", text("a.csv", GOOD + "nan,1,x\n"), ["a.csv"], ["line 5: column 'a' is missing (nan)"]),
    ("infinity in csv", text("a.csv", GOOD + "1,-inf,x\n"), ["a.csv"], ["-inf in example 4, column 'b'"]),
    ("gap in csv", text("a.csv", GOOD + ",1,x\n"), ["a.csv"], ["line 5", "column 'a' is empty"]),
    ("NA in csv", text("a.csv", GOOD + "NA,1,x\n"), ["a.csv"], ["missing (NA)"]),
    ("text in a number", text("a.csv", GOOD + "1,red,x\n2,blue,y\n"), ["a.csv"], ["line 5", "column 'b' holds 'red'"]),
    ("short line", text("a.csv", GOOD + "1,2\n"), ["a.csv"], ["line 5: 2 values, but the first line has 3"]),
    ("no label column", text("a.csv", "a,b\n1,2\n"), ["a.csv"], ["has no labels", "--label", "'a', 'b'"]),
    ("no label, no header", text("a.csv", "1,2\n3,4\n"), ["a.csv"], ["--label -1"]),
    (
        "unknown label column",
        text("a.csv", GOOD),
        ["a.csv", "--label", "kind"],
        ["no column 'kind'", "'a', 'b', 'label'"],
    ),
    ("unknown drop", text("a.csv", GOOD), ["a.csv", "--drop", "9"], ["no column '9'"]),
    ("two label columns", text("a.csv", "a,label,target\n1,2,3\n"), ["a.csv"], ["'label' and 'target'"]),
    ("nothing but labels", text("a.csv", "label,id\nx,1\n"), ["a.csv"], ["no column of features"]),
    ("missing label", text("a.csv", GOOD + "1,1,\n"), ["a.csv"], ["no label for example 4"]),
    ("one class", text("a.csv", "a,label\n1,x\n2,x\n"), ["a.csv"], ["at least two classes", "'x'"]),
    ("measurements as classes", text("a.csv", "a,label\n1,0.5\n2,0.7\n"), ["a.csv"], ["0.5", "--regression"]),
    ("regression on text", text("a.csv", GOOD), ["a.csv", "--regression"], ["--regression needs numbers", "'x'"]),
    ("latin-1 csv", raw("a.csv", "a,label\n1,caf\xe9\n".encode("latin-1")), ["a.csv"], ["UTF-8"]),
    ("binary csv", raw("a.csv", bytes(range(128)) * 4), ["a.csv"], ["a.csv"]),
    ("utf-16 csv", raw("a.csv", GOOD.encode("utf-16")), ["a.csv"], ["UTF-8"]),
    ("noise not positive", text("a.csv", GOOD), ["a.csv", "--noise", "0"], ["--noise must be positive, got 0.0"]),
    ("power not positive", text("a.csv", GOOD), ["a.csv", "--power", "-1"], ["--power must be positive"]),
    ("levels of text", text("a.csv", GOOD), ["a.csv", "--levels", "many"], ["--levels", "'many'"]),
    ("too many levels", text("a.csv", GOOD), ["a.csv", "--levels", "256"], ["2 to 255"]),
    ("balanced regression", npz(X=X, y=Y), ["a.npz", "--regression", "--balanced"], ["--balanced"]),
    ("share too small", text("a.csv", GOOD), ["a.csv", "--test-share", "0.01"], ["nothing to test on"]),
    ("nan in npz", npz(X=np.where(X > 0, np.nan, X), y=Y), ["a.npz"], ["nan in example 1, column 1"]),
    ("nan label", npz(X=X, y=np.array([0, 1, np.nan, 1])), ["a.npz"], ["label nan for example 3"]),
    ("no X", npz(images=X, y=Y), ["a.npz"], ["'images'", "--x"]),
    ("no y", npz(X=X), ["a.npz"], ["no labels", "--y"]),
    ("unknown x", npz(X=X, y=Y), ["a.npz", "--x", "Z"], ["no array 'Z'"]),
    ("too few labels", npz(X=X, y=Y[:3]), ["a.npz"], ["3 labels for the 4 examples"]),
    ("labels in two columns", npz(X=X, y=X), ["a.npz"], ["one column", "(4, 4)"]),
    ("pictures not flat", npz(X=np.ones((4, 3, 2)), y=Y), ["a.npz"], ["Reshape it to (4, 6)"]),
    ("one row", npz(X=np.ones(4), y=Y), ["a.npz"], ["one row per example"]),
    ("text features", npz(X=np.array([["a"], ["b"]]), y=Y[:2]), ["a.npz"], ["must be numbers"]),
    ("complex features", npz(X=X * 1j, y=Y), ["a.npz"], ["must be numbers"]),
    ("dates as labels", npz(X=X, y=Y.astype("M8[D]")), ["a.npz"], ["text or numbers"]),
    ("no rows", npz(X=X[:0], y=Y[:0]), ["a.npz"], ["no examples"]),
    ("npy without labels", npy(X), ["a.npy"], ["no labels", "--labels"]),
    ("missing labels file", npy(X), ["a.npy", "--labels", "none.txt"], ["none.txt: No such file"]),
    ("labels of another kind", npy(X), ["a.npy", "--labels", "a.docx"], ["a.docx cannot be read as labels"]),
    ("npz that is none", raw("a.npz", b"PK\x03\x04 rubbish"), ["a.npz"], ["damaged"]),
    ("npy that is none", raw("a.npy", b"hello"), ["a.npy"], ["a.npy"]),
    ("empty npy", raw("a.npy", b""), ["a.npy"], ["damaged"]),
    ("npy cut short", raw("a.npy", b"\x93NUMPY\x01\x00\x10\x00"), ["a.npy"], ["damaged"]),
    ("broken sparse", broken_sparse, ["a.npz"], ["a.npz is not sound", "indices has 1000000"]),
    (
        "falling pointers",
        falling_pointers,
        ["a.npz"],
        ["a.npz is not sound", "indptr must begin with 0"],
    ),
    ("parquet that is none", raw("a.parquet", b"PAR1rubbishPAR1"), ["a.parquet"], ["not a parquet file"]),
    ("text in parquet", parquet(a=["1", "red"], label=[0, 1]), ["a.parquet"], ["column 'a' holds '1'"]),
    ("gap in parquet", parquet(a=[1.0, None], label=[0, 1]), ["a.parquet"], ["nan in example 2, column 'a'"]),
    ("no label in parquet", parquet(a=[1.0, 2.0], label=[0, None]), ["a.parquet"], ["no label for example 2"]),
    ("svmlight that is none", text("a.svm", "hello world\n"), ["a.svm"], ["not a svmlight file"]),
    ("nan in svmlight", text("a.svm", "1 1:nan\n0 2:1\n"), ["a.svm"], ["nan in example 1, column 1"]),
    ("empty svmlight", text("a.svm", ""), ["a.svm"], ["a.svm"]),
]


@pytest.mark.parametrize(("make", "arguments", "words"), [c[1:] for c in FIT], ids=[c[0] for c in FIT])
def test_fit(
    make: Callable[[], None], arguments: list[str], words: list[str], saccade: Saccade, tmp_path: Path
) -> None:
    make()
    before = {p.name for p in tmp_path.iterdir()}
    refused(saccade("fit", arguments[0], "m.saccade", *arguments[1:]), *words)
    assert {p.name for p in tmp_path.iterdir()} == before


PREDICT: list[tuple[str, Callable[[], None], list[str], list[str]]] = [
    ("missing file", lambda: None, ["none.csv"], ["There is no file none.csv"]),
    ("too few columns", text("a.csv", "1,2,3\n"), ["a.csv"], ["3 features", "trained on 6"]),
    ("too many columns", text("a.csv", "1,2,3,4,5,6,7\n"), ["a.csv"], ["7 features", "trained on 6"]),
    ("wrong width", npz(X=np.eye(4)), ["a.npz"], ["4 features", "trained on 6"]),
    ("svmlight too wide", text("a.svm", "0 7:1\n"), ["a.svm"], ["beyond the 6"]),
    ("nan", text("a.csv", "1,2,3,4,5,nan\n"), ["a.csv"], ["line 1: column '6' is missing (nan)"]),
    ("text", text("a.csv", "1,2,3,4,5,6\n1,2,3,4,5,x\n"), ["a.csv"], ["line 2", "column '6' holds 'x'"]),
    ("score without labels", text("a.csv", "1,2,3,4,5,6\n"), ["a.csv", "--score"], ["no labels"]),
]


@pytest.mark.parametrize(("make", "arguments", "words"), [c[1:] for c in PREDICT], ids=[c[0] for c in PREDICT])
@pytest.mark.parametrize("out", ["-", "out.csv"])
def test_predict(
    make: Callable[[], None], arguments: list[str], words: list[str], out: str, model: Path, saccade: Saccade
) -> None:
    make()
    result = saccade("predict", model, *arguments, "--out", out)
    refused(result, *words)
    assert result.stdout == ""
    assert not list(model.parent.glob("out.csv*"))


def test_predict_names_the_missing_column(saccade: Saccade) -> None:
    text("a.csv", GOOD)()
    assert saccade("fit", "a.csv", "m.saccade").exit_code == 0
    text("b.csv", "a,c\n1,2\n")()
    refused(saccade("predict", "m.saccade", "b.csv"), "no column 'b'", "'a', 'c'")


class Evil:
    """Unpickling it makes a file."""

    def __reduce__(self) -> Any:
        return open, ("marker", "w")


def pickled_npy(name: str) -> None:
    np.save(name, np.array([[Evil(), 1], [2, 3]], object), allow_pickle=True)


def pickled_npz(name: str) -> None:
    np.savez(name, X=np.array([[Evil(), 1], [2, 3]], object), y=np.array([0, 1]))


def plain_pickle(name: str) -> None:
    Path(name).write_bytes(pickle.dumps(Evil()))


@pytest.mark.parametrize(
    ("make", "name"),
    [(pickled_npy, "a.npy"), (pickled_npz, "a.npz"), (plain_pickle, "a.npy"), (plain_pickle, "a.npz")],
)
def test_a_pickle_is_never_run(make: Callable[[str], None], name: str, saccade: Saccade) -> None:
    make(name)
    Path("marker").unlink(missing_ok=True)  # that the file above is dangerous is the next test
    np.save("y.npy", np.array([0, 1]))
    np.save("x.npy", np.eye(2))
    refused(saccade("fit", name, "m.saccade", "--labels", "y.npy"), "Python objects")
    if name == "a.npy":
        refused(saccade("fit", "x.npy", "m.saccade", "--labels", name), "Python objects")
    refused(saccade("info", name))
    refused(saccade("predict", name, "x.npy"))
    assert not Path("marker").exists()


def test_the_pickle_is_dangerous_elsewhere(saccade: Saccade) -> None:
    pickled_npy("a.npy")
    np.load("a.npy", allow_pickle=True)[0, 0].close()
    assert Path("marker").exists()


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def tamper(path: Path) -> None:
    """With a digest that is right."""
    header, tensors = model_file.read(path)
    tensors["level_starts"][1] = -5
    model_file.write(path, header, tensors)


MODELS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (Path.unlink, "no model file"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "no model file"),
    "empty": (lambda path: path.write_bytes(b""), "not a model file, or not a whole one"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-10]), "not a model file, or not a whole one"),
    "cut in the header": (
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        "not a model file, or not a whole one",
    ),
    "random bytes": (
        lambda path: path.write_bytes(np.random.default_rng(0).bytes(999)),
        "not a model file, or not a whole one",
    ),
    "of somebody else": (lambda path: save_file({"weight": np.ones(3)}, path), "not written by saccade"),
    "a byte flipped": (lambda path: flip(path, -1), "was changed after it was written"),
    "inconsistent": (tamper, "does not describe a model"),
}


@pytest.mark.parametrize("what", MODELS)
@pytest.mark.parametrize("command", ["info", "predict"])
def test_bad_models(what: str, command: str, model: Path, saccade: Saccade) -> None:
    spoil, words = MODELS[what]
    spoil(model)
    text("a.csv", "1,2,3,4,5,6\n")()
    refused(saccade(command, model, *(["a.csv"] if command == "predict" else [])), words)


def test_nothing_is_overwritten_unasked(data: Data, model: Path, saccade: Saccade) -> None:
    np.savez("a.npz", X=data.X, y=data.y)
    before = model.read_bytes()
    refused(saccade("fit", "a.npz", model), "exists already", "--force")
    assert model.read_bytes() == before
    assert saccade("fit", "a.npz", model, "--force").exit_code == 0
    assert model.read_bytes() != before
    text("out.csv", "mine")()
    refused(saccade("predict", model, "a.npz", "--out", "out.csv"), "exists already", "--force")
    assert Path("out.csv").read_text() == "mine"
    assert saccade("predict", model, "a.npz", "--out", "out.csv", "--force").exit_code == 0
    assert Path("out.csv").read_text().startswith("row,label,probability,variance,novelty\n1,")


def test_no_input_is_overwritten_even_when_asked(data: Data, model: Path, saccade: Saccade) -> None:
    np.savez("a.npz", X=data.X, y=data.y)
    os.link("a.npz", "b.npz")
    for arguments in (("fit", "a.npz", "b.npz"), ("predict", model, "a.npz", "--out", "./a.npz")):
        refused(saccade(*arguments, "--force"), "This command reads")
    refused(saccade("predict", model, "a.npz", "--out", model, "--force"), "This command reads")


def test_folders(data: Data, model: Path, saccade: Saccade, monkeypatch: Any) -> None:
    np.savez("a.npz", X=data.X, y=data.y)
    refused(saccade("fit", "a.npz", "none/m.saccade"), "There is no folder none")
    refused(saccade("fit", "a.npz", "."), "is a folder")
    refused(saccade("predict", model, "a.npz", "--out", "none/out.csv"), "There is no folder none")

    def deny(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "x")

    monkeypatch.setattr(tempfile, "TemporaryFile", deny)  # the super-user may write anywhere
    refused(saccade("fit", "a.npz", "m.saccade"), "Cannot write in the folder .: Permission denied")
    refused(saccade("predict", model, "a.npz", "--out", "out.csv"), "Permission denied")


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_full_disk(data: Data, model: Path, saccade: Saccade, monkeypatch: Any, step: str) -> None:
    np.savez("a.npz", X=data.X, y=data.y)
    before = sorted(p.name for p in model.parent.iterdir())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    refused(saccade("fit", "a.npz", "m.saccade"), "No space left on device")
    refused(saccade("predict", model, "a.npz", "--out", "out.csv"), "No space left on device")
    assert sorted(p.name for p in model.parent.iterdir()) == before


def test_a_missing_extra(saccade: Saccade, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    raw("a.parquet", b"PAR1")()
    refused(saccade("fit", "a.parquet", "m.saccade"), "needs pyarrow", "saccade[tables]")


def test_the_extra_that_brings_everything(tmp_path: Path, saccade: Saccade, monkeypatch: Any) -> None:
    """Deep features need more than Pillow."""
    write_folder(tmp_path / "known", each=1)
    present = importlib.util.find_spec
    monkeypatch.setattr("saccade.cli.pictures.find_spec", lambda name: None if name == "PIL" else present(name))
    refused(saccade("fit", "known", "m.saccade"), "saccade[pictures]")
    refused(saccade("fit", "known", "m.saccade", "--features", "deep"), "saccade[deep]")


def test_what_python_says_of_parameters_is_said_of_options(data: Data, saccade: Saccade) -> None:
    np.savez("a.npz", X=data.X, y=data.y)
    line = refused(saccade("fit", "a.npz", "m.saccade", "--noise", "-1"), "--noise must be positive", "--noise 1e-10")
    assert "`noise`" not in line
    refused(saccade("novelty", "a.npz", "a.npz", "--measure", "size"), "--measure must be")


def test_memory(data: Data, saccade: Saccade, monkeypatch: Any) -> None:
    from saccade import GPClassifier

    def fit(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(GPClassifier, "fit", fit)
    np.savez("a.npz", X=data.X, y=data.y)
    refused(saccade("fit", "a.npz", "m.saccade"), "memory", "--levels 255")


@pytest.mark.parametrize("error", [ValueError, RuntimeError, TypeError, KeyError, IndexError])
def test_our_own_mistakes_say_so(error: type[Exception], data: Data, saccade: Saccade, monkeypatch: Any) -> None:
    """A ValueError of NumPy is ours too: nobody can mend operands that "could not be broadcast" from outside."""
    from saccade import GPClassifier

    def fit(*_: Any) -> None:
        if error is ValueError:
            np.ones(2) + np.ones(3)
        raise error("no such luck")

    monkeypatch.setattr(GPClassifier, "fit", fit)
    np.savez("a.npz", X=data.X, y=data.y)
    result = saccade("fit", "a.npz", "m.saccade")
    *lines, last = result.stderr.strip().splitlines()
    assert result.exit_code == 1
    assert last.startswith("Error: This is a mistake in saccade (" + error.__name__)
    assert last.endswith("Please report it, with the lines above, where you got saccade from.")
    assert lines[0] == "Traceback (most recent call last):"
    assert any("test_bad_input.py" in line for line in lines)
    assert not Path("m.saccade").exists()


def test_a_module_of_ours_that_is_missing_is_our_mistake(data: Data, saccade: Saccade, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "saccade.cli.commands.fit", None)
    np.savez("a.npz", X=data.X, y=data.y)
    result = saccade("fit", "a.npz", "m.saccade")
    assert result.exit_code == 1
    assert "mistake in saccade" in result.stderr


def test_as_a_process(tmp_path: Path) -> None:
    """Once for real: the status, one line, and the traceback for those who ask."""
    command = [sys.executable, "-m", "saccade", "info", "none.saccade"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "Error: There is no model file none.saccade. Check the name.\n"
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "SACCADE_DEBUG": "1"}
    )
    assert run.returncode == 1
    assert "Traceback" in run.stderr
