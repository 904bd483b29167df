"""Arguments and options that several commands share, in groups.

A command takes one dataclass for all options that belong together, and the terminal sees single options.
"""

import os
import shlex
import subprocess
from collections.abc import Callable, Container
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from saccade._core import limits
from saccade.cli import console
from saccade.cli.tables.columns import TableReading

PANEL = "Reading the data"
RECIPE = "classic"  # default features of pictures: no network, and good for textures, letters and drawings


def option(default: Any, text: str, *flags: str, **settings: Any) -> Any:
    """A field of a group: default and help of the option, its names if it has others, and what else typer takes."""
    return field(default=default, metadata={"typer": typer.Option(*flags, help=text, **settings)})


Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Examples: .csv, .tsv (also .csv.gz), .npz, .npy, .parquet, .svm, .svmlight or .libsvm; or a folder of "
        "pictures.",
    ),
]
Labels = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Labels from a .npy, .csv or .txt file, one per row; or from .csv files that name the examples in the "
        "column file, row or id, such as the questions of `saccade ask`. May be repeated.",
        rich_help_panel=PANEL,
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of all random numbers.")]
Out = Annotated[
    str, typer.Option("--out", "-o", metavar="FILE", help="The .csv file to write; - writes to the terminal.")
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite files that exist already.")]

_column = partial(option, rich_help_panel=PANEL)


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns of a table are which."""

    label: str | None = _column(
        None,
        "Column with the labels, by name or number (-1: the last). Default: label, class or target.",
        metavar="COLUMN",
    )
    x: str | None = _column(None, "Array with the features in an .npz file. Default: X.", "--x", metavar="NAME")
    id_: str | None = _column(None, "Column that names the examples. Default: id.", "--id", metavar="COLUMN")
    drop: list[str] | None = _column(None, "Column to leave out. May be repeated.", metavar="COLUMN")  # noqa: RUF009
    header: bool | None = _column(
        None,
        "Whether the first line of a .csv file holds the names of the columns. Default: judged by its first two lines.",
        "--header/--no-header",
    )
    zero_based: bool = _column(
        False, "The features of a svmlight file are numbered from 0, not from 1.", "--zero-based"
    )

    def reading(self, labels: tuple[Path, ...] = (), y: str | None = None) -> TableReading:
        return TableReading(
            self.label, labels, self.x, y, self.id_, tuple(self.drop or ()), self.header, self.zero_based
        )


@dataclass(frozen=True)
class TableOptions(ColumnOptions):
    """Which columns of a table are which, and where labels come from."""

    labels: Labels = None
    y: str | None = _column(None, "Array with the labels in an .npz file. Default: y.", "--y", metavar="NAME")

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(self.labels or ())

    @property
    def how(self) -> TableReading:
        return self.reading(self.files, self.y)


@dataclass(frozen=True)
class PictureOptions:
    """How pictures are read."""

    cache: Path | None = option(
        None, "Folder to keep the features of pictures in. A second run is then quick.", metavar="FOLDER"
    )
    max_pixels: int = option(limits.PICTURE_PIXELS, "Skip pictures with more pixels than this.", metavar="N", min=1)


@dataclass(frozen=True)
class FeatureOptions(PictureOptions):
    """How pictures are read, and which features are made of them."""

    features: str | None = option(
        None,
        "Features of pictures. Default: classic. deep is better for photographs of things, and needs the extra `deep`.",
        metavar="classic|pyramid|deep",
    )

    @property
    def recipe(self) -> str:
        return self.features or RECIPE

    def chain(self, seed: int) -> Any:
        """The transformers, not fitted yet."""
        from saccade.features import image_features

        return image_features(self.recipe, cache=self.cache, random_state=seed)

    def crops_chain(self, seed: int) -> Any:
        """The transformers for crops of pictures: those of `deep` see them smaller, in a third of the time."""
        from saccade.localize.finder.finder import default_features

        chain = self.chain(seed)
        return chain if self.recipe != "deep" else default_features().set_params(cache=self.cache)

    def vectors(self, chain: Any, pictures: Any, y: Any = None) -> Any:
        """Fit the transformers to these pictures. Says which they are if the user did not."""
        X = chain.fit_transform(pictures, y)
        if self.features is None:
            console.note(
                f"The pictures were described by {RECIPE} features, the default. For photographs of things --features "
                "deep is mostly better."
            )
        return X


@dataclass(frozen=True)
class KernelOptions:
    """How examples are compared."""

    noise: float | None = option(
        None,
        "Variance of the label noise; a larger one makes a smoother model. Default: learned for classes, else 0.1.",
        metavar="VARIANCE",
    )
    power: float | None = option(None, "Raise every feature to this power first. 0.5 suits counts.", metavar="ETA")
    exponential: float | None = option(None, "Apply exp(ETA x) − 1, scaled, to every feature first.", metavar="ETA")
    levels: str | None = option(
        None,
        "Round every feature to N levels (2 to 255), or keep it exact. 255 suits large data. Default: exact for "
        "tables; 64 for pictures, or 16 where vectors are wide.",
        metavar="exact|N",
    )
    seed: Seed = 0

    @property
    def level_count(self) -> int | None:
        """Levels of a table; None for exact."""
        from saccade._core.checks import check_levels

        known = None if self.levels in (None, "exact") else self.levels
        return check_levels(int(known) if known is not None and known.isdecimal() else known)

    def hik(self) -> Any:
        """HIK with the transforms of these options."""
        from saccade._core.checks import check_positive
        from saccade.kernels import HIK, Exponential, Power

        transforms: list[Any] = []
        if self.power is not None:
            transforms.append(Power(check_positive("power", self.power, "0.5 suits counts.")))
        if self.exponential is not None:
            transforms.append(Exponential(self.exponential))
        return HIK(transforms or None)

    def for_pictures(self, width: Annotated[int, "features of a picture"]) -> dict[str, Any]:
        """Parameters of an estimator for features of pictures. Without --levels as many levels as suit them."""
        from saccade.features import recommended_settings

        return recommended_settings(width, "usual" if self.levels is None else self.level_count)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every parameter that is a dataclass replaced by the fields of that dataclass, for typer."""
    hints = get_type_hints(command, include_extras=True)
    flat: list[Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in signature(command).parameters.values():
        kind = hints[parameter.name]
        if not is_dataclass(kind):
            flat.append(parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name], own = kind, get_type_hints(kind, include_extras=True)
        for each in fields(kind):
            extra = each.metadata.get("typer")
            hint = own[each.name] if extra is None else Annotated[own[each.name], extra]
            flat.append(Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=hint))

    @wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
        command(**given)

    run.__signature__ = Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return run


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
    return subprocess.list2cmdline(parts) if os.name == "nt" else shlex.join(parts)
