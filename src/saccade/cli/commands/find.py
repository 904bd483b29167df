"""`saccade find`: where in pictures an object is, in few looks by a model of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from saccade._core import limits
from saccade.cli import console
from saccade.cli import options as o
from saccade.cli.option_groups import grouped
from saccade.cli.tables.boxes_out import Result, check_ending, write_boxes
from saccade.cli.targets import check_targets

if TYPE_CHECKING:
    from saccade.cli.find_search import ObjectSearch
    from saccade.localize.judges import ModelJudge

NAMED = 20  # boxes that the terminal shows


@dataclass(frozen=True)
class SearchOptions:
    """How every picture is searched."""

    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            metavar="CLASS",
            help="What to look for. Default with two classes: the one that is not background.",
        ),
    ] = None
    looks: Annotated[int, typer.Option(metavar="N", min=1, help="Most crops to judge per picture.")] = 60
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Crops to judge at a time.")] = 10
    sure: Annotated[
        float,
        typer.Option(
            metavar="P",
            min=0.0,
            max=1.0,
            help="Stop when the box is right with this probability. With 1, all looks are used.",
        ),
    ] = 1.0
    size: Annotated[
        str | None,
        typer.Option(metavar="WIDTHxHEIGHT", help="Size of the object in pixels, if it is known, such as 90x60."),
    ] = None
    situation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where such objects tend to be: a file that SituationModel.save wrote."),
    ] = None
    seed: o.Seed = 0


@grouped
def find(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model of pictures that `saccade fit` wrote.")],
    pictures: Annotated[
        list[Path], typer.Argument(metavar="PICTURES", help="Pictures, slides, or folders of pictures.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The boxes: .json (COCO), .csv, or .geojson (pixels, as in QuPath)."
        ),
    ] = Path("boxes.json"),
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also an .html page that shows each search step by step."),
    ] = None,
    *,
    options: SearchOptions,
    force: o.Force = False,
) -> None:
    """Find in each of PICTURES the box that MODEL takes most for an object, by looking at few crops of it.

    Every look is a crop that the model judges; where to look next follows from what the looks so far have shown. One
    box per picture, with the probability that it overlaps the object by a half or more, if there is one. In Python a
    model can be trained for this: see saccade.localize.judges.
    """
    check_ending(out)
    check_targets({"--out": out} | ({} if report is None else {"--report": report}), force, (model, *pictures))
    sides = None if options.size is None else _sides(options.size)
    with console.progress():
        judge = _judge(model, options.label)
        plan = Plan(judge, str(options.label or judge.label or "object"), sides, options)
        found = list(_searched(pictures, plan, report is not None))
    if not found:
        from saccade._core.errors import InvalidInput

        raise InvalidInput("None of the pictures could be searched. Give at least one that can be read.")
    results = [_result(each) for each in found]
    write_boxes(out, results, plan.label)
    _summarise(results, plan.label, out)
    if report is not None:
        from saccade.cli.reports.find import write_report

        with console.progress():
            write_report(report, found, plan.label)
        console.note(f"Report in {report}.")


class Plan(NamedTuple):
    """What is searched for in every picture."""

    judge: ModelJudge
    label: str
    size: tuple[float, float] | None
    options: SearchOptions


def _sides(size: str) -> tuple[float, float]:
    from saccade._core.errors import InvalidInput

    try:
        width, height = (float(side) for side in size.lower().replace("×", "x").split("x"))
        if not (0 < width < float("inf") and 0 < height < float("inf")):
            raise ValueError
    except ValueError:
        raise InvalidInput(f"--size must be WIDTHxHEIGHT in pixels, such as 90x60, got {size!r}.") from None
    return width, height


def _judge(path: Path, label: str | None) -> ModelJudge:
    from saccade._core.errors import InvalidInput
    from saccade.estimators.model_file import load
    from saccade.features import load_features
    from saccade.localize.judges import model_judge

    model = load(path)
    if hasattr(model, "offset_"):
        raise InvalidInput(f"{path} knows one class and tells what is not of it. Give a model that knows two or more.")
    features = load_features(path)
    if not hasattr(model, "classes_"):
        return model_judge(model, features)
    try:
        return model_judge(model, features, label)
    except InvalidInput as error:
        raise InvalidInput(str(error).replace("`label`", "--label")) from None


def _searched(paths: list[Path], plan: Plan, keep: bool) -> Iterator[ObjectSearch]:
    """The search of each picture that can be read; the others are named."""
    from saccade._core.errors import InvalidInput
    from saccade.cli.pictures import printable
    from saccade.localize import SituationModel
    from saccade.localize.sources.base import open_picture

    model = None if plan.options.situation is None else SituationModel.load(plan.options.situation)
    for number, (name, path) in enumerate(_named(paths)):
        try:
            picture = open_picture(path)
            search = _search(name, picture, plan, model, keep and number < limits.REPORT_SEARCHES)
        except (InvalidInput, OSError) as error:
            console.warn(f"Skipped {printable(name)}: {console.explain(error)}")
            continue
        yield search


def _search(name: str, picture: Any, plan: Plan, situation: Any, keep: bool) -> ObjectSearch:
    from saccade.cli.find_search import search
    from saccade.localize import Localizer

    bounds, wish = (picture.shape[1], picture.shape[0]), plan.options
    prior = None if situation is None else situation.prior(plan.label, None, bounds)
    localizer = Localizer(bounds, prior, size=plan.size, scores=plan.judge.scores, random_state=wish.seed)
    return search(name, picture, plan.judge, localizer, looks=wish.looks, batch=wish.batch, sure=wish.sure, keep=keep)


def _named(paths: list[Path]) -> Iterator[tuple[str, Path]]:
    """Names and paths of the pictures; a folder stands for those in it, however deep."""
    from saccade.cli.pictures import printable
    from saccade.features.folder import find_pictures

    for path in paths:
        if not path.is_dir() or path.suffix.lower() == ".zarr":
            yield str(path), path
            continue
        files, skipped = find_pictures(str(path), by_class=False)
        for name, reason in skipped:
            console.warn(f"Skipped {printable(str(path / name))}: {reason}.")
        for file in files:
            yield str(path / file.name), Path(file.path)


def _result(search: ObjectSearch) -> Result:
    found, (height, width) = search.found, search.picture.shape[:2]
    x0, y0, x1, y1 = found.box.tolist()
    return Result(search.name, width, height, (x0, y0, x1, y1), found.probability, found.score, found.looks)


def _summarise(results: list[Result], label: str, out: Path) -> None:
    from saccade.cli.pictures import printable
    from saccade.cli.reports.find import sure_text

    for each in results[:NAMED]:
        box = ", ".join(f"{v:.0f}" for v in each.box)
        console.note(
            f"{printable(each.name)}: {label} at {box} (x0, y0, x1, y1), {sure_text(each.probability)} after "
            f"{console.count(each.looks, 'look')}."
        )
    more = f"{len(results) - NAMED:,} more are not shown here. " if len(results) > NAMED else ""
    console.note(f"{more}{console.count(len(results), 'box', 'boxes')} in {out}.")
