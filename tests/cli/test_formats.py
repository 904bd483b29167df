"""Every format gives what the Python interface gives for the same numbers."""

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from saccade import GPClassifier, GPRegressor, load
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.cli.tables.columns import TableReading
from saccade.cli.tables.csv_file import _is_header
from saccade.cli.tables.read import read
from tests.cli.conftest import Data, Saccade

NAMES = [f"word {k}" for k in range(6)]


def write_csv(path: Path, X: Array, y: Array | None, *, header: bool = True, delimiter: str = ",") -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        if header:
            writer.writerow([*NAMES, *(["label"] if y is not None else [])])
        for k, row in enumerate(X.tolist()):
            writer.writerow([*row, *([y[k]] if y is not None else [])])


def write(folder: Path, kind: str, name: str, X: Array, y: Array) -> tuple[str, list[str]]:
    """The file's name, and the options that reading its labels takes."""
    path = folder / name
    if kind in ("csv", "csv.gz", "semicolons", "tsv", "no header"):
        path = path.with_suffix(".tsv" if kind == "tsv" else ".csv")
        write_csv(path, X, y, header=kind != "no header", delimiter={"semicolons": ";", "tsv": "\t"}.get(kind, ","))
        if kind == "csv.gz":
            Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
            return f"{path.name}.gz", []
        return path.name, ["--label", "-1"] if kind == "no header" else []
    if kind in ("npz", "npz by name"):
        names = ("X", "y") if kind == "npz" else ("pixels", "kind")
        np.savez(path.with_suffix(".npz"), **dict(zip(names, (X, y), strict=True)))
        return f"{name}.npz", [] if kind == "npz" else ["--x", "pixels", "--y", "kind"]
    if kind == "parquet":
        pd = pytest.importorskip("pandas")
        pd.DataFrame(X, columns=NAMES).assign(target=y).to_parquet(path.with_suffix(".parquet"))
        return f"{name}.parquet", []
    if kind == "svmlight":
        dump_svmlight_file(X, y, str(path.with_suffix(".svm")), zero_based=False)
        return f"{name}.svm", []
    ending = kind.partition(" ")[2]
    if ending == "npy":
        np.save(folder / f"{name}-labels.npy", y)
    else:
        mark = '"' if ending == "csv" else ""
        (folder / f"{name}-labels.{ending}").write_text("".join(f"{mark}{v}{mark}\n" for v in ["label", *y]), "utf-8")
    if kind.startswith("npy"):
        np.save(path.with_suffix(".npy"), X)
        return f"{name}.npy", ["--labels", f"{name}-labels.{ending}"]
    sp.save_npz(
        path.with_suffix(".npz"), {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "coo": sp.coo_array}[kind[:3]](X)
    )
    return f"{name}.npz", ["--labels", f"{name}-labels.{ending}"]


KINDS = ["csv", "csv.gz", "semicolons", "tsv", "no header", "npz", "npz by name", "parquet", "svmlight"]
KINDS += ["npy npy", "npy csv", "npy txt", "csr npy", "csc csv", "coo txt"]
LABELS = {"numbers": np.array([0, 1, 2]), "text": np.array(["ant", "bee, or two", "cöw"])}


@pytest.mark.parametrize(("kind", "labels"), [(k, v) for k in KINDS for v in LABELS if (k, v) != ("svmlight", "text")])
def test_round_trip(kind: str, labels: str, data: Data, tmp_path: Path, saccade: Saccade) -> None:
    y, truth = LABELS[labels][data.y], LABELS[labels][data.truth]
    train, options = write(tmp_path, kind, "train", data.X, y)
    trained = saccade("fit", train, "m.saccade", *options)
    assert trained.exit_code == 0, trained.output
    new, options = write(tmp_path, kind, "new", data.new, truth)
    result = saccade("predict", "m.saccade", new, *options, "--all", "--score")
    assert result.exit_code == 0, result.output

    expected = GPClassifier(random_state=0).fit(data.X, y)
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["row", "label", "probability", "variance", "novelty", *(f"p({c})" for c in expected.classes_)]
    assert [row[0] for row in rows[1:]] == [str(k + 1) for k in range(len(data.new))]
    assert [row[1] for row in rows[1:]] == [str(label) for label in expected.predict(data.new)]
    p, file = expected.predict_proba(data.new), load("m.saccade")
    doubts = (file.latent_mean_and_variance(data.new)[1], file.novelty(data.new))
    found = np.array([row[2:] for row in rows[1:]], float)
    np.testing.assert_allclose(found, np.column_stack([p.max(axis=1), *doubts, p]), rtol=1e-5)
    assert f"accuracy {expected.score(data.new, truth):.4f}" in result.stderr


def test_regression_round_trip(data: Data, tmp_path: Path, saccade: Saccade) -> None:
    y = data.X @ np.arange(6) + 0.25
    write_csv(tmp_path / "train.csv", data.X, y)
    write_csv(tmp_path / "new.csv", data.new, None)
    assert saccade("fit", "train.csv", "m.saccade", "--regression", "--noise", 0.01).exit_code == 0
    result = saccade("predict", "m.saccade", "new.csv")
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["row", "value", "deviation"]
    expected = GPRegressor(noise=0.01, random_state=0).fit(data.X, y).predict(data.new)
    np.testing.assert_allclose([float(row[1]) for row in rows[1:]], expected, rtol=1e-9)
    deviation = load("m.saccade").predict(data.new, return_std=True)[1]
    np.testing.assert_allclose([float(row[2]) for row in rows[1:]], deviation, rtol=1e-5)


def table(path: Path, text: str) -> Any:
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_found_by_name(data: Data, tmp_path: Path, saccade: Saccade) -> None:
    """New columns, another order and ids do not matter when there are names."""
    write_csv(tmp_path / "train.csv", data.X, data.y)
    assert saccade("fit", "train.csv", "m.saccade").exit_code == 0
    with (tmp_path / "new.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "colour", *NAMES[::-1]])
        writer.writerows([f"picture {k}", "red", *row[::-1]] for k, row in enumerate(data.new.tolist()))
    result = saccade("predict", "m.saccade", "new.csv")
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0][0] == "id"
    assert rows[1][0] == "picture 0"
    assert [row[1] for row in rows[1:]] == GPClassifier().fit(data.X, data.y).predict(data.new).astype(str).tolist()
    assert "Left out 1 column that the model does not know: 'colour'." in result.stderr


@pytest.mark.parametrize(
    ("text", "how", "names", "X", "y"),
    [
        ("a,b,label\n1,2,x\n3,4,y\n", {}, ("a", "b"), [[1, 2], [3, 4]], ["x", "y"]),
        ("\ufeffa,b,Class\r\n1,2,x\r\n\r\n3,4,y\r\n", {}, ("a", "b"), [[1, 2], [3, 4]], ["x", "y"]),
        ("1,2,x\n3,4,y\n", {"label": "3"}, (), [[1, 2], [3, 4]], ["x", "y"]),
        ("x,1,2\ny,3,4\n", {"label": "1"}, (), [[1, 2], [3, 4]], ["x", "y"]),
        ("1,2,0\n3,4,1\n", {"label": "-1"}, (), [[1, 2], [3, 4]], [0, 1]),
        ("0,1,2,3,label\n1,2,3,4,x\n", {}, ("0", "1", "2", "3"), [[1, 2, 3, 4]], ["x"]),
        (",a,target\n0,5,x\n1,6,y\n", {}, ("a",), [[5], [6]], ["x", "y"]),
        ('"a ""q"", b";label\n1e-3;"x;y"\n', {}, ('a "q", b',), [[0.001]], ["x;y"]),
        ("a,b,kind\n1,2,x\n", {"label": "kind", "drop": ("b",)}, ("a",), [[1]], ["x"]),
        ("a,label\n 1 , 007 \n2,8\n", {}, ("a",), [[1], [2]], ["007", "8"]),
        ("a,label\n1,0.5\n2,8\n", {}, ("a",), [[1], [2]], [0.5, 8]),
        ("a,label\n1,nan\n2,8\n", {}, ("a",), [[1], [2]], ["nan", "8"]),
        ("3,4,label\n1,2,5\n", {"header": True}, ("3", "4"), [[1, 2]], [5]),
        ("a,a,label\n1,2,5\n", {}, (), [[1, 2]], [5]),
        ("a,b,label\nTrue,2,False\nfalse,3,True\n", {}, ("a", "b"), [[1, 2], [0, 3]], ["False", "True"]),
        ("a,label\n1,'=x\n2,-1\n", {}, ("a",), [[1], [2]], ["=x", "-1"]),
    ],
)
def test_csv(tmp_path: Path, text: str, how: Any, names: tuple[str, ...], X: Any, y: Any) -> None:
    found = read(table(tmp_path / "a.csv", text), TableReading(**how))
    assert found.names == names
    assert found.X.tolist() == X
    assert found.y is not None
    assert found.y.tolist() == y


@pytest.mark.parametrize(
    ("text", "header", "rows"),
    [
        ("1,2\n3,4\n", None, 2),
        ("a,b\n3,4\n", None, 1),
        ("0,1,2,3\n5,6,7,8\n", None, 1),
        ("0,1\n3,4\n", None, 2),
        ("0,1,2,3\n5,6,7,8\n", False, 2),
        ("x\n3\n", None, 1),
        ("1,2\n", None, 1),
        ("True,False\nFalse,TRUE\n", None, 2),
        ("old,new\nFalse,TRUE\n", None, 1),
    ],
)
def test_csv_header_is_seen(tmp_path: Path, text: str, header: bool | None, rows: int) -> None:
    found = read(table(tmp_path / "a.csv", text), TableReading(header=header), need_labels=False)
    assert found.X.shape[0] == rows


def test_csv_keeps_every_digit(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((50, 3)) * 10.0 ** np.arange(-9, 9, 6)
    text = "".join(",".join(map(repr, row)) + "\n" for row in X.tolist())
    np.testing.assert_array_equal(read(table(tmp_path / "a.csv", text), TableReading(), need_labels=False).X, X)


@pytest.mark.parametrize("change", [lambda whole: whole[:-20], lambda whole: b"a,label\n1,x\n"], ids=["cut", "no gzip"])
def test_a_damaged_gzip_file(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.csv.gz").write_bytes(change(gzip.compress(b"a,label\n" + b"1,x\n2,y\n" * 99)))
    with pytest.raises(InvalidInput, match="not made by gzip"):
        read(tmp_path / "a.csv.gz", TableReading())


def test_svmlight_counts_from_one_unless_told(tmp_path: Path) -> None:
    path = table(tmp_path / "a.svm", "1 0:1 2:3 # first\n-1 1:2\n")
    with pytest.raises(InvalidInput, match="--zero-based"):
        read(path, TableReading())
    assert read(path, TableReading(zero_based=True)).X.toarray().tolist() == [[1, 0, 3], [0, 2, 0]]
    path = table(tmp_path / "b.svm", "1 1:1 3:3\n-1 2:2\n")
    assert read(path, TableReading(), width=5).X.toarray().tolist() == [[1, 0, 3, 0, 0], [0, 2, 0, 0, 0]]
    with pytest.raises(InvalidInput, match="beyond the 2"):
        read(path, TableReading(), width=2)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float32, ">f8"])
def test_numbers_of_any_type(tmp_path: Path, dtype: Any) -> None:
    np.savez(tmp_path / "a.npz", X=np.array([[0, 1], [1, 0]], dtype), y=np.array([b"a", b"b"]))
    found = read(tmp_path / "a.npz", TableReading())
    assert found.X.tolist() == [[0, 1], [1, 0]]
    assert found.X.dtype in (np.float32, np.float64)
    assert found.y is not None
    assert found.y.tolist() == ["a", "b"]


def test_parquet_types(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": pd.array([1, 2], "Int64"), "id": ["p", "q"]})
    frame["label"] = pd.Categorical(["x", "y"])
    frame.to_parquet(tmp_path / "a.parquet")
    found = read(tmp_path / "a.parquet", TableReading())
    assert found.X.tolist() == [[1, 1, 1], [2, 0, 2]]
    assert found.y is not None
    assert (found.y.tolist(), found.ids, found.names) == (["x", "y"], ["p", "q"], ("a", "b", "c"))


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ("cat", "dog", False),  # one column of labels
        ("file,kind", "a.png,cat", True),  # nothing but text, in two columns
        ("file,kind", None, True),
        ("1.5,cat", "2.5,dog", False),  # an example above another
        ("1.5,cat", None, False),
        ("size,cat", "2.5,dog", True),  # a name above a number
        ("1.5,weight", "2.5,3", True),
        ("size,weight", "2.5,3", True),
        ("size,cat", "", True),  # all of the first row is text
        ("kind", "3", True),
        ("1,2", "3,4", False),
        ("0,1,2,3", "5,6,7,8", True),  # as pandas writes
        ("0,1,2", "5,6,7", False),
        ("7,label", "8,dog", True),  # a name that we look for
    ],
)
def test_the_first_row_is_a_header(first: str, second: str | None, named: bool) -> None:
    below = None if second is None else second.split(",")
    assert _is_header(first.split(","), below, how=TableReading()) is named


@pytest.mark.parametrize("outputs", [True, False])
def test_regression_is_scored_in_units_of_the_target(
    outputs: bool, data: Data, tmp_path: Path, saccade: Saccade
) -> None:
    y, truth = (rows @ np.arange(6) + 0.25 for rows in (data.X, data.new))
    model = GPRegressor(noise=0.01, variance="auto" if outputs else None).fit(data.X, y)
    model.save(tmp_path / "m.saccade")
    write_csv(tmp_path / "new.csv", data.new, truth + 3.0)
    result = saccade("predict", "m.saccade", "new.csv", "--score")
    assert result.stdout.split("\n")[0] == ("row,value,deviation" if outputs else "row,value")
    assert len(result.stdout.split("\n")[1].split(",")) == (3 if outputs else 2)
    off = model.predict(data.new) - truth - 3.0
    assert f"R² {model.score(data.new, truth + 3.0):.4f}, error (RMS) {np.sqrt((off**2).mean()):.4g}" in result.stderr
    write_csv(tmp_path / "new.csv", data.new, np.array(["cat"] * len(truth)))
    wrong = saccade("predict", "m.saccade", "new.csv", "--score")
    assert wrong.exit_code == 2
    assert "The model predicts numbers, and the label 'cat' is not a number" in wrong.stderr


def test_several_numbers_have_columns_of_their_own(data: Data, tmp_path: Path, saccade: Saccade) -> None:
    model = GPRegressor(noise=0.01).fit(data.X, np.column_stack([data.X[:, 0], data.X @ np.arange(6)]))
    model.save(tmp_path / "m.saccade")
    write_csv(tmp_path / "new.csv", data.new, None)
    rows = list(csv.reader(io.StringIO(saccade("predict", "m.saccade", "new.csv").stdout)))
    assert rows[0] == ["row", "value 1", "value 2", "deviation 1", "deviation 2"]
    found = np.array([row[1:] for row in rows[1:]], float)
    np.testing.assert_allclose(found, np.hstack(load("m.saccade").predict(data.new, return_std=True)), rtol=1e-5)
