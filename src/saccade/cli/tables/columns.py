"""Which columns of a table are features, which is the label, which the id."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from saccade._core.errors import InvalidInput
from saccade.cli import console

LABEL_NAMES = ("label", "class", "target")  # what a label column is called, if nobody says otherwise
NOT_A_FEATURE = "Leave the column out with --drop, or name it with --label or --id."


@dataclass(frozen=True)
class TableReading:
    """How a file is to be read; what is None or empty is guessed from the file."""

    label: str | None = None  # a column, by name or by number from 1
    labels: tuple[Path, ...] = ()  # files with one label per row, or with names of examples and labels
    x: str | None = None  # arrays of an .npz
    y: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    header: bool | None = None
    zero_based: bool = False  # svmlight
    lenient: bool = False  # columns that are named here need not be there


@dataclass(frozen=True)
class Columns:
    """Column numbers."""

    label: int | None
    id: int | None
    features: tuple[int, ...]
    ignored: tuple[str, ...]  # names of columns that the model does not know


def choose_columns(
    source: Path,
    names: list[str],
    how: TableReading,
    *,
    named: bool,  # False: `names` are only numbers, made up
    wanted: tuple[str, ...] = (),  # the features of a model
) -> Columns:
    """Sort the columns of a table by what they are for."""
    asked = partial(_asked, source, names, how)
    label = _usual(source, names, LABEL_NAMES, "--label") if how.label is None else asked(how.label)
    id_ = _index(source, names) if how.id is None else asked(how.id)
    taken = {label, id_, *map(asked, how.drop)}
    rest = [k for k in range(len(names)) if k not in taken]
    if not named or not wanted:
        return Columns(label, id_, tuple(rest), ())
    features = tuple(_trained_with(source, names, name) for name in wanted)
    return Columns(label, id_, features, tuple(names[k] for k in rest if k not in features))


def _trained_with(source: Path, names: list[str], column: str) -> int:
    if column in names:
        return names.index(column)
    raise InvalidInput(f"{source} has no column {column!r}, which the model was trained with; it has {listed(names)}.")


def find(source: Path, names: list[str], column: str) -> int:
    """The column of that name, or of that number: 1 is the first, -1 the last."""
    if column in names:
        return names.index(column)
    number = int(column) if column.removeprefix("-").isdecimal() else 0
    if 1 <= abs(number) <= len(names):
        return number - 1 if number > 0 else len(names) + number
    raise InvalidInput(f"{source} has no column {column!r}; it has {listed(names)}.")


def _asked(source: Path, names: list[str], how: TableReading, column: str) -> int | None:
    by_name = not column.removeprefix("-").isdecimal()
    return None if how.lenient and by_name and column not in names else find(source, names, column)


def _usual(source: Path, names: list[str], usual: tuple[str, ...], option: str) -> int | None:
    found = [k for k, name in enumerate(names) if name.strip().casefold() in usual]
    if len(found) > 1:
        both = " and ".join(repr(names[k]) for k in found[:2])
        raise InvalidInput(f"{source} has the columns {both}. Say with {option} which one to use.")
    return found[0] if found else None


def _index(source: Path, names: list[str]) -> int | None:
    """A column called id, or the nameless first one that pandas writes."""
    if names and not names[0].strip():
        return 0
    return _usual(source, names, ("id",), "--id")


def listed(names: list[str]) -> str:
    """
    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    return console.few([repr(name) for name in names])
