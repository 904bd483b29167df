"""Labels as they stand in files, and as the estimators want them."""

from pathlib import Path
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.cli.tables.columns import LABEL_NAMES, TableReading, choose_columns
from saccade.cli.tables.csv_file import is_csv, layout_of, read_frame, texts_of
from saccade.cli.tables.foreign import load_array


def typed(labels: list[str], source: str) -> Annotated[Array, "n"]:
    """Whole numbers if every label is written as one, else numbers, else text.

    >>> typed(["3", "12"], "a.csv"), typed(["3", "1.5"], "a.csv"), typed(["3", "007"], "a.csv")
    (array([ 3, 12]), array([3. , 1.5]), array(['3', '007'], dtype='<U3'))
    """
    distinct = set(labels)
    if "" in distinct:
        raise InvalidInput(
            f"{source} has no label for example {labels.index('') + 1:,}. Fill it in or leave the row out."
        )
    for kind in (int, float):
        try:
            numbers = {label: kind(label) for label in distinct}
        except ValueError:
            continue
        if all(_written_so(label, number) for label, number in numbers.items()):
            return np.array([numbers[label] for label in labels])
    return np.array(labels, str)


def _written_so(label: str, number: int | float) -> bool:
    """007, 1_000 and nan are names rather than numbers."""
    if isinstance(number, int):
        return str(number) == label and abs(number) < 2**63
    start = label.removeprefix("-")
    return "_" not in label and not (start[:1] == "0" and start[1:2].isdecimal()) and bool(np.isfinite(number))


def read_labels(path: Path, how: TableReading) -> Annotated[Array, "n"]:
    """One label per row, from .npy, .csv or .txt."""
    if path.suffix.lower() == ".npy":
        return checked(load_array(path), str(path))
    texts = label_texts(path, how)
    while path.suffix.lower() == ".txt" and texts and not texts[-1]:
        texts.pop()  # blank lines at the end
    return typed(texts, str(path))


def label_texts(path: Path, how: TableReading) -> list[str]:
    """One label per row as it is written; an empty text where there is none. NaN in an .npy file is none."""
    kind = path.suffix.lower()
    if kind == ".npy":
        y = load_array(path)
        missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, bool)
        known = checked(np.where(missing, np.zeros((), y.dtype), y), str(path))
        return ["" if gap else str(value) for gap, value in zip(missing.ravel(), whole(known).tolist(), strict=True)]
    if is_csv(path):
        return _label_column(path, how)
    if kind == ".txt":
        try:
            text = path.read_text("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise InvalidInput(f"{path} is not a text file in UTF-8. Save it again in UTF-8.") from None
        if text and text[0].strip().casefold() in LABEL_NAMES:
            text = text[1:]
        return [line.strip() for line in text]
    raise InvalidInput(f"{path} cannot be read as labels. Give an .npy, .csv or .txt file with one label per row.")


def _label_column(path: Path, how: TableReading) -> list[str]:
    """The label column of a CSV file, or the only one."""
    layout = layout_of(path, how)
    place = (
        0
        if layout.width == 1
        else choose_columns(path, layout.names, TableReading(how.label), named=layout.named).label
    )
    if place is None:
        raise InvalidInput(f"{path} has {layout.width} columns: name the one with the labels with --label.")
    return texts_of(read_frame(layout), place)


def checked(y: Array, source: str) -> Annotated[Array, "n"]:
    """Labels from an array: one per row, text or numbers, none missing."""
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise InvalidInput(f"The labels in {source} must be one column, got the shape {y.shape}.")
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8")
    if y.dtype.kind not in "biufU":
        raise InvalidInput(f"The labels in {source} must be text or numbers, got the type {y.dtype}.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        place = int(np.flatnonzero(~np.isfinite(y))[0])
        raise InvalidInput(f"{source} has the label {y[place]} for example {place + 1:,}. Leave such rows out.")
    return y


def whole(y: Array) -> Array:
    """Floats that are whole numbers as integers, which is how people write classes."""
    is_whole = y.dtype.kind == "f" and (y == np.rint(y)).all() and np.abs(y).max(initial=0) < 2**53
    return y.astype(np.int64) if is_whole else y
