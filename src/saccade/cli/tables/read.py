"""Examples from any file we read, checked: finite numbers, one label per example."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli.tables.columns import NOT_A_FEATURE, TableReading, choose_columns, listed
from saccade.cli.tables.csv_file import CSV, is_csv, layout_of, numbers_of, read_frame, texts_of
from saccade.cli.tables.csv_out import plain_name
from saccade.cli.tables.foreign import load_archive, load_array, load_parquet, load_svmlight
from saccade.cli.tables.labels import checked, read_labels, typed, whole
from saccade.cli.tables.named_labels import names_examples, names_of, read_labelled


@dataclass(frozen=True)
class Examples:
    """Features, and labels, names and ids where the file has them."""

    X: Annotated[Any, "n, d"]  # float, dense or CSR
    y: Annotated[Array, "n"] | None = None
    names: tuple[str, ...] = ()
    ids: list[str] | None = None
    id_name: str = "row"
    ignored: tuple[str, ...] = ()  # columns that the model does not know

    def name(self, i: int) -> str:
        """Name of an example: its id, or the number of its row from 1 on."""
        return str(i + 1) if self.ids is None else self.ids[i]

    @property
    def what(self) -> str:
        return "picture" if self.id_name == "file" else "example"


def read(
    path: Path,
    how: TableReading,
    *,
    need_labels: bool = True,
    partly: bool = False,  # leave out the examples that --labels does not name, which is an error else
    width: int | None = None,  # features of the model that will predict
    wanted: tuple[str, ...] = (),  # their names
) -> Examples:
    """The examples of a .csv or .tsv (also with .gz), .npz, .npy, .parquet or svmlight file."""
    if not path.exists():
        raise InvalidInput(f"There is no file {path}. Check the name.")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder. Give a file of examples.")
    reader = next((READERS[end] for end in READERS if path.name.lower().endswith(end)), None)
    if reader is None:
        known = f"{', '.join(TABLES[:-1])} and {TABLES[-1]}"
        raise InvalidInput(f"{path} has the unknown ending {path.suffix.lower()!r}. Known are {known}.")
    report("reading", 0.0)
    examples = reader(path, how, _Need(need_labels and not how.labels, width, wanted))
    _check_finite(path, examples)
    if need_labels and how.labels and names_examples(how.labels, how, examples.id_name):
        return _with_named_labels(path, how, examples, partly)
    return _with_labels(path, how, examples) if need_labels else examples


def read_matching(
    path: Path,
    how: TableReading,
    model: Any,  # a fitted estimator
    *,
    need_labels: bool = False,
    of_pictures: bool = False,  # whether the model was trained on pictures
) -> Examples:
    """The examples with the features of the model, in its order."""
    try:
        return _read_matching(path, how, model, need_labels)
    except InvalidInput as error:
        if not of_pictures or not path.exists():
            raise
        raise InvalidInput(
            f"The model was trained on pictures, and {path} is a table. Give it a picture or a folder of pictures. A "
            f"table would need the {model.n_features_in_:,} features of each picture ({str(error).rstrip('.')})."
        ) from None


def _read_matching(path: Path, how: TableReading, model: Any, need_labels: bool) -> Examples:
    width = model.n_features_in_
    wanted = tuple(model.__dict__.pop("feature_names_in_", ()))  # else scikit-learn asks for a data frame
    examples = read(path, how, need_labels=need_labels, width=width, wanted=wanted)
    if examples.X.shape[1] != width:
        raise InvalidInput(
            f"{path} has {console.count(examples.X.shape[1], 'feature')} and the model was trained on {width:,}. "
            "Use the columns of the training data."
        )
    if examples.ignored:
        left = listed(list(examples.ignored))
        console.note(f"Left out {console.count(len(examples.ignored), 'column')} that the model does not know: {left}.")
    return examples


def _with_named_labels(path: Path, how: TableReading, examples: Examples, partly: bool) -> Examples:
    names = names_of(path, examples)
    rows, y = read_labelled(how.labels, how, names)
    if not partly and len(rows) < len(names.rows):
        missing = next(name for name, row in names.rows.items() if row not in set(rows.tolist()))
        raise InvalidInput(f"There is no label for {names.column} {missing} of {path} in {how.labels[0]}. Fill it in.")
    if len(rows) == len(names.rows):
        return replace(examples, y=y)
    ids = None if examples.ids is None else [examples.ids[row] for row in rows.tolist()]
    return replace(examples, X=examples.X[rows], y=y, ids=ids)


def _with_labels(path: Path, how: TableReading, examples: Examples) -> Examples:
    y = read_labels(how.labels[0], how) if how.labels else examples.y
    if y is None:
        remedy = "Give a file of them with --labels"
        if examples.names:
            remedy += f", or name their column with --label; the columns are {listed(list(examples.names))}"
        elif is_csv(path):
            remedy += ", or name their column by its number with --label, such as --label -1 for the last"
        elif path.suffix.lower() == ".npz":
            remedy += ", or name their array with --y"
        raise InvalidInput(f"{path} has no labels. {remedy}.")
    if len(y) != examples.X.shape[0]:
        source = how.labels[0] if how.labels else path
        raise InvalidInput(
            f"{source} has {len(y):,} labels for the {examples.X.shape[0]:,} examples of {path}. Give one per example."
        )
    return replace(examples, y=y)


class _Need(NamedTuple):
    """What a file must give."""

    labels: bool  # its own, not those of another file
    width: int | None  # features of the model that will predict
    wanted: tuple[str, ...]  # their names


def _from_csv(path: Path, how: TableReading, need: _Need) -> Examples:
    layout = layout_of(path, how)
    columns = choose_columns(path, layout.names, how, named=layout.named, wanted=need.wanted)
    if not columns.features:
        raise InvalidInput(f"{path} has no column of features, only {layout.names}.")
    frame = read_frame(layout, columns.features)
    X, y, ids, id_name = numbers_of(layout, frame, columns.features), None, None, "row"
    if columns.label is not None and need.labels and len(X):
        y = typed(texts_of(frame, columns.label), str(path))
    if columns.id is not None:
        id_name = layout.names[columns.id].strip() or "id"
        ids = [plain_name(text, layout.names[columns.id]) for text in frame[columns.id]]
    names = tuple(layout.names[k] for k in columns.features) if layout.named else ()
    return Examples(X, y, names if len(set(names)) == len(names) else (), ids, id_name, columns.ignored)


def _from_parquet(path: Path, how: TableReading, need: _Need) -> Examples:
    from pandas.api.types import is_numeric_dtype

    frame = load_parquet(path)
    names = [str(name) for name in frame.columns]
    columns = choose_columns(path, names, how, named=True, wanted=need.wanted)
    for k in columns.features:
        if not is_numeric_dtype(frame.dtypes.iloc[k]):
            value = next((v for v in frame.iloc[:, k] if not isinstance(v, int | float)), None)
            raise InvalidInput(f"{path}: column {names[k]!r} holds {value!r}, which is not a number. {NOT_A_FEATURE}")
    X = frame.iloc[:, list(columns.features)].to_numpy(np.float64, na_value=np.nan)
    ids = None if columns.id is None else [str(value) for value in frame.iloc[:, columns.id]]
    id_name = "row" if columns.id is None else names[columns.id]
    y = None if columns.label is None or not need.labels else _parquet_labels(path, frame.iloc[:, columns.label])
    return Examples(X, y, tuple(names[k] for k in columns.features), ids, id_name, columns.ignored)


def _parquet_labels(path: Path, column: Any) -> Array:
    if column.isna().any():
        raise InvalidInput(f"{path} has no label for example {int(column.isna().argmax()) + 1:,}. Leave the row out.")
    y = np.asarray(column)
    if y.dtype.kind == "O":
        if any(isinstance(value, list | dict | np.ndarray) for value in y):
            raise InvalidInput(f"The labels in {path} must be one value per example, got {str(y[0])!r:.100}.")
        y = np.array([str(value) for value in y])
    return checked(y, str(path))


def _from_numpy(path: Path, how: TableReading, need: _Need) -> Examples:
    X, y = load_archive(path, how) if path.suffix.lower() == ".npz" else (load_array(path), None)
    return Examples(_numbers(path, X), checked(y, str(path)) if y is not None and need.labels else None)


def _from_svmlight(path: Path, how: TableReading, need: _Need) -> Examples:
    X, y = load_svmlight(path, how.zero_based, need.width)
    return Examples(X, whole(checked(y, str(path))))


def _numbers(path: Path, X: Any) -> Any:
    """Floats as they are; other numbers as float64."""
    if X.dtype.kind not in "biuf":
        raise InvalidInput(f"The features in {path} must be numbers, got the type {X.dtype}.")
    if X.ndim != 2:
        n = X.shape[0] if X.ndim else 0
        flat = f" Reshape it to ({n}, {X.size // n}) first." if X.ndim > 2 and n else ""
        raise InvalidInput(f"The features in {path} must have one row per example, got the shape {X.shape}.{flat}")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _check_finite(path: Path, examples: Examples) -> None:
    X = examples.X
    if 0 in X.shape:
        raise InvalidInput(f"{path} has no {'features' if X.shape[0] else 'examples'}.")
    if not isinstance(X, np.ndarray):
        bad = np.flatnonzero(~np.isfinite(X.data))
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            raise InvalidInput(_not_finite(path, row, int(X.indices[bad[0]]), X.data[bad[0]], examples.names))
        return
    for first in range(0, len(X), limits.TABLE_ROWS_AT_ONCE):
        finite = np.isfinite(X[first : first + limits.TABLE_ROWS_AT_ONCE])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            row += first
            raise InvalidInput(_not_finite(path, row, column, X[row, column], examples.names))


def _not_finite(path: Path, row: int, column: int, value: float, names: tuple[str, ...]) -> str:
    name = repr(names[column]) if names else f"{column + 1:,}"
    return f"{path} has {float(value)} in example {row + 1:,}, column {name}. Fill such gaps or leave those rows out."


READERS = {
    **dict.fromkeys(CSV, _from_csv),
    **dict.fromkeys((".npz", ".npy"), _from_numpy),
    ".parquet": _from_parquet,
    **dict.fromkeys((".svm", ".svmlight", ".libsvm"), _from_svmlight),
}
TABLES = tuple(READERS)  # endings of what we read
