"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from saccade._core.errors import InvalidInput

PANEL = "Reading the data"

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Examples: .csv, .tsv, .npz, .npy, .parquet, .svm, .svmlight or .libsvm; or a folder of pictures.",
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="The column with the labels, by name or number (-1: the last). Usually label, class or target.",
        rich_help_panel=PANEL,
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", metavar="FILE", help="Labels from a .npy, .csv or .txt file.", rich_help_panel=PANEL),
]
XName = Annotated[
    str | None,
    typer.Option(
        "--x", metavar="NAME", help="The array with the features in an .npz. Usually X.", rich_help_panel=PANEL
    ),
]
YName = Annotated[
    str | None,
    typer.Option("--y", metavar="NAME", help="The array with the labels in an .npz. Usually y.", rich_help_panel=PANEL),
]
Id = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="A column that names the examples. Usually id.", rich_help_panel=PANEL),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="A column to leave out; may be repeated.", rich_help_panel=PANEL),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a .csv begins with names. Usually seen.", rich_help_panel=PANEL),
]
ZeroBased = Annotated[
    bool,
    typer.Option("--zero-based", help="Features of a svmlight file count from 0, not 1.", rich_help_panel=PANEL),
]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", metavar="FOLDER", help="Keep the features of pictures here; a second run is then quick."),
]
PIXELS = 100_000_000
MaxPixels = Annotated[
    int, typer.Option("--max-pixels", metavar="N", min=1, help="A larger picture is refused by its header.")
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite a file that is there already.")]


def check_target(
    path: Path,
    force: bool,
    sources: tuple[Path, ...],  # files that are read, which no option may overwrite
) -> None:
    """Complain of a file that must not or cannot be written, before the work and not after it."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {path.parent} for {path.name}. Make it first.")
    if path.exists():
        if any(source.exists() and path.samefile(source) for source in sources):
            raise InvalidInput(f"{path} is read by this command and cannot be its output too. Choose another name.")
        if not force:
            raise InvalidInput(f"{path} is there already. Add --force to overwrite it, or choose another name.")
    _check_writable(path.parent)


def _check_writable(folder: Path) -> None:
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInput(f"Cannot write in the folder {folder}: {error.strerror}. Choose another one.") from None
