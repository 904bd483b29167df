"""Arguments and options that several commands share."""

from collections.abc import Container
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from saccade._core.errors import InvalidInput

PANEL = "Reading the data"

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Examples: .csv, .tsv (also .csv.gz), .npz, .npy, .parquet, .svm, .svmlight or .libsvm; or a folder of "
        "pictures.",
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="The column with the labels, by name or number (-1: the last). Default: label, class or target.",
        rich_help_panel=PANEL,
    ),
]
Labels = Annotated[
    list[Path] | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Labels from a .npy, .csv or .txt file, one per row; or from .csv files that name the examples by the "
        "column file, row or id, such as the questions of `saccade ask`. May be repeated.",
        rich_help_panel=PANEL,
    ),
]
XName = Annotated[
    str | None,
    typer.Option(
        "--x", metavar="NAME", help="The array with the features in an .npz. Default: X.", rich_help_panel=PANEL
    ),
]
YName = Annotated[
    str | None,
    typer.Option(
        "--y", metavar="NAME", help="The array with the labels in an .npz. Default: y.", rich_help_panel=PANEL
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="A column that names the examples. Default: id.", rich_help_panel=PANEL
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="A column to leave out; may be repeated.", rich_help_panel=PANEL),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether a .csv begins with names. Default: judged by its first rows.",
        rich_help_panel=PANEL,
    ),
]
ZeroBased = Annotated[
    bool,
    typer.Option("--zero-based", help="Features of a svmlight file count from 0, not 1.", rich_help_panel=PANEL),
]
Noise = Annotated[
    float | None,
    typer.Option(
        metavar="VARIANCE", help="Of the label noise; more is smoother. Default: learned for classes, else 0.1."
    ),
]
Eta = Annotated[
    float | None,
    typer.Option(metavar="ETA", help="Raise every feature to this power first; 0.5 suits counts."),
]
Bend = Annotated[float | None, typer.Option(metavar="ETA", help="Bend every feature exponentially first.")]
Levels = Annotated[
    str | None,
    typer.Option(
        metavar="exact|N",
        help="Exact, or N levels per feature (2 to 255): 255 for large data. Default: exact for tables; 64 for "
        "pictures, or 16 where vectors are wide.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="For everything random.")]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="classic|pyramid|deep",
        help="What to see in pictures. Default: classic; deep is better for photographs of things, and needs the extra "
        "`deep`.",
    ),
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The .csv file to write; - is the terminal.")]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", metavar="FOLDER", help="Keep the features of pictures here; a second run is then quick."),
]
MaxPixels = Annotated[
    int, typer.Option("--max-pixels", metavar="N", min=1, help="A larger picture is refused by its header.")
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite a file that is there already.")]


def given(context: Any, names: Container[str]) -> list[str]:
    """The options of these parameters that the person gave to the command that runs, as one would type them again."""
    found = list[str]()
    for parameter in context.command.params:
        value = context.params.get(parameter.name)
        if parameter.name not in names or context.get_parameter_source(parameter.name).name != "COMMANDLINE":
            continue
        if isinstance(value, bool):
            found.append((parameter.opts if value else parameter.secondary_opts)[0])
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            found += [parameter.opts[0], str(one)]
    return found


def quoted(parts: list[str]) -> str:
    """A command as one would type it: what has blanks is quoted, in the way of the system's shell."""
    import os
    import shlex
    import subprocess

    return subprocess.list2cmdline(parts) if os.name == "nt" else shlex.join(parts)


def kernel(power: float | None, exponential: float | None) -> Any:
    """HIK with what its options say."""
    from saccade._core.checks import check_positive
    from saccade.kernels import HIK, Exponential, Power

    transforms = [Power(check_positive("power", power, "0.5 suits counts."))] if power is not None else []
    transforms += [Exponential(exponential)] if exponential is not None else []
    return HIK(transforms or None)


def chosen_kernel(name: str, power: float | None, exponential: float | None) -> Any:
    """The kernel that --kernel names: "auto" as it is, or HIK with what its options say."""
    from saccade._core.checks import check_choice
    from saccade._core.errors import InvalidParameter

    check_choice("kernel", name, ("hik", "auto"))
    if name == "hik":
        return kernel(power, exponential)
    if (power, exponential) != (None, None):
        raise InvalidParameter("--kernel auto takes features as they are. Leave out --power and --exponential.")
    return name


def level_count(levels: str | None) -> int | None:
    """None for exact."""
    from saccade._core.checks import check_levels

    known = None if levels in (None, "exact") else levels
    return check_levels(int(known) if known is not None and known.isdecimal() else known)


def picture_levels(levels: str | None) -> int | Literal["usual"] | None:
    """The same for pictures, where it is usual not to be exact."""
    return "usual" if levels is None else level_count(levels)


def check_targets(
    targets: dict[str, Path],  # by option
    force: bool,
    sources: tuple[Path, ...],
) -> None:
    """`check_target` of each; no two may be the same file."""
    for path in targets.values():
        check_target(path, force, sources)
    seen: dict[Path, str] = {}
    for option, path in targets.items():
        other = seen.setdefault(path.resolve(), option)
        if other != option:
            raise InvalidInput(f"{other} and {option} are both {path}. Give them different names.")


def check_target(
    path: Path,
    force: bool,
    sources: tuple[Path, ...],  # files that are read, which no option may overwrite
) -> None:
    """Raise InvalidInput for a file that must not or cannot be written: before the work begins."""
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
