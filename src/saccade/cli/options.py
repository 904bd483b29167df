"""Arguments and options that several commands share, in groups."""

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from saccade._core import limits
from saccade.cli.pictures import TrainingPictures
from saccade.cli.tables.columns import Reading

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
    typer.Option("--zero-based", help="Features of a svmlight file are numbered from 0, not 1.", rich_help_panel=PANEL),
]
Noise = Annotated[
    float | None,
    typer.Option(
        metavar="VARIANCE",
        help="Variance of the label noise; more is smoother. Default: learned for classes, else 0.1.",
    ),
]
Eta = Annotated[
    float | None,
    typer.Option(metavar="ETA", help="Raise every feature to this power first. 0.5 suits counts."),
]
Bend = Annotated[
    float | None, typer.Option(metavar="ETA", help="Apply exp(ETA x) − 1, scaled, to every feature first.")
]
Levels = Annotated[
    str | None,
    typer.Option(
        metavar="exact|N",
        help="Exact, or N levels per feature (2 to 255): 255 for large data. Default: exact for tables; 64 for "
        "pictures, or 16 where vectors are wide.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of all random numbers.")]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="classic|pyramid|deep",
        help="Features of pictures. Default: classic; deep is better for photographs of things, and needs the extra "
        "`deep`.",
    ),
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The .csv file to write; - is the terminal.")]
Cache = Annotated[
    Path | None,
    typer.Option(
        "--cache", metavar="FOLDER", help="Folder to keep features of pictures in; a second run is then quick."
    ),
]
MaxPixels = Annotated[
    int, typer.Option("--max-pixels", metavar="N", min=1, help="Refuse pictures with more pixels than this.")
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite a file that is there already.")]


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns of a table are which."""

    label: Label = None
    x: XName = None
    id_: Id = None
    drop: Drop = None
    header: Header = None
    zero_based: ZeroBased = False

    def reading(self, labels: tuple[Path, ...] = (), y: str | None = None) -> Reading:
        """How to read a file."""
        return Reading(self.label, labels, self.x, y, self.id_, tuple(self.drop or ()), self.header, self.zero_based)


@dataclass(frozen=True)
class TableOptions(ColumnOptions):
    """Which columns of a table are which, and where labels come from."""

    labels: Labels = None
    y: YName = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with labels."""
        return tuple(self.labels or ())

    @property
    def how(self) -> Reading:
        """How to read a file."""
        return self.reading(self.files, self.y)


@dataclass(frozen=True)
class PictureOptions:
    """How pictures are read."""

    cache: Cache = None
    max_pixels: MaxPixels = limits.PICTURE_PIXELS


@dataclass(frozen=True)
class FeatureOptions:
    """Which features are made of pictures, and how these are read."""

    features: Features = None
    cache: Cache = None
    max_pixels: MaxPixels = limits.PICTURE_PIXELS


@dataclass(frozen=True)
class KernelOptions:
    """How examples are compared."""

    noise: Noise = None
    power: Eta = None
    exponential: Bend = None
    levels: Levels = None
    seed: Seed = 0

    @property
    def level_count(self) -> int | None:
        """Levels of a table; None for exact."""
        from saccade._core.checks import check_levels

        known = None if self.levels in (None, "exact") else self.levels
        return check_levels(int(known) if known is not None and known.isdecimal() else known)

    def hik(self) -> Any:
        """HIK with what the options say."""
        from saccade._core.checks import check_positive
        from saccade.kernels import HIK, Exponential, Power

        power = None if self.power is None else check_positive("power", self.power, "0.5 suits counts.")
        transforms = ([] if power is None else [Power(power)]) + (
            [] if self.exponential is None else [Exponential(self.exponential)]
        )
        return HIK(transforms or None)

    def pictures(self, asked: FeatureOptions) -> TrainingPictures:
        """How pictures become vectors; without --levels as many levels as suit the features."""
        levels: int | Literal["usual"] | None = "usual" if self.levels is None else self.level_count
        return TrainingPictures(asked.features, asked.cache, asked.max_pixels, self.seed, levels)


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
