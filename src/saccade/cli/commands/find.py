"""`saccade find`: where in pictures an object is, in few looks by a model of pictures."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from saccade import localize
from saccade._core import limits
from saccade._core.errors import InvalidInput
from saccade.cli import console
from saccade.cli import options as o
from saccade.cli.tables.boxes_out import Result, check_ending, files_of, write_boxes
from saccade.cli.targets import check_targets
from saccade.features.files import find_pictures

NAMED = 20  # boxes that the terminal shows


@dataclass(frozen=True)
class SearchOptions:
    """How every picture is searched, and what is written."""

    out: Path = o.option(
        Path("boxes.json"),
        "The file of boxes: .json (COCO), .csv or .geojson (pixels, for QuPath; one file per picture).",
        *("--out", "-o"),
        metavar="FILE",
    )
    report: Path | None = o.option(
        None, "Also write an .html page that shows each search step by step.", metavar="FILE"
    )
    label: str | None = o.option(
        None, "Class to look for. Default with two classes: the one that is not background.", metavar="CLASS"
    )
    looks: int = o.option(60, "Largest number of crops to judge per picture.", metavar="N", min=1)
    batch: int = o.option(10, "Crops to judge at a time.", metavar="N", min=1)
    sure: float = o.option(
        1.0,
        "Stop when the box is right with this probability. With 1, all looks are used.",
        metavar="P",
        **{"min": 0.0, "max": 1.0},
    )
    size: str | None = o.option(
        None, "Size of the object in pixels, if it is known, such as 90x60.", metavar="WIDTHxHEIGHT"
    )
    situation: Path | None = o.option(
        None, "Where such objects mostly are: a file that SituationModel.save wrote.", metavar="FILE"
    )
    seed: o.Seed = 0


@o.grouped
def find(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model of pictures that `saccade fit` wrote.")],
    pictures: Annotated[
        list[Path], typer.Argument(metavar="PICTURES", help="Pictures, slides, or folders of pictures.")
    ],
    options: SearchOptions,
    force: o.Force = False,
) -> None:
    """Find the object in each of PICTURES: the box that MODEL takes most for one, after a look at few crops.

    A look is a crop that the model judges. The looks so far decide where to look next. Each picture gets one box, with
    the probability that it overlaps the object by a half or more, if there is one. In Python a model can be trained
    for this: see saccade.localize.judges.
    """
    out, report = options.out, options.report
    check_ending(out)
    named = list(_named(pictures))
    files = {f"--out {file}": file for file in files_of(out, [name for name, _ in named]) if file != out}
    check_targets({"--out": out, "--report": report, **files}, force, (model, *pictures))
    sides = None if options.size is None else _sides(options.size)
    with console.progress():
        judge = _judge(model, options.label)
        label = str(options.label or judge.label or "object")
        found = _searched(named, judge, label, sides, options)
    if not found:
        raise InvalidInput("None of the pictures could be searched. Give at least one that can be read.")
    results = [_result(each) for each in found]
    _summarise(results, label, write_boxes(out, results, label))
    if report is not None:
        from saccade.cli.reports.find import write_report

        with console.progress():
            write_report(report, found, label)
        console.note(f"Report in {report}.")


def _sides(size: str) -> tuple[float, float]:
    try:
        width, height = (float(side) for side in size.lower().replace("×", "x").split("x"))
        if not (0 < width < float("inf") and 0 < height < float("inf")):
            raise ValueError
    except ValueError:
        raise InvalidInput(f"--size must be WIDTHxHEIGHT in pixels, such as 90x60, got {size!r}.") from None
    return width, height


def _judge(path: Path, label: str | None) -> Any:
    from saccade.estimators.model_file import load
    from saccade.features import load_features

    model = load(path)
    if hasattr(model, "offset_"):
        raise InvalidInput(f"{path} is a model of what is normal. Give a model of two classes or more.")
    features = load_features(path)
    if not hasattr(model, "classes_"):
        return localize.judges.model_judge(model, features)
    try:
        return localize.judges.model_judge(model, features, label)
    except InvalidInput as error:
        raise InvalidInput(str(error).replace("`label`", "--label")) from None


def _searched(
    named: list[tuple[str, Path]], judge: Any, label: str, size: tuple[float, float] | None, options: SearchOptions
) -> list[Any]:
    """The search of each picture that can be read; the others are named."""
    from saccade.cli.find_search import search

    situation = None if options.situation is None else localize.SituationModel.load(options.situation)
    limit: dict[str, Any] = {"looks": options.looks, "batch": options.batch, "sure": options.sure}
    found: list[Any] = []
    for number, (name, path) in enumerate(named):
        keep = options.report is not None and number < limits.REPORT_SEARCHES
        try:
            picture = localize.open_picture(path)
            bounds = (picture.shape[1], picture.shape[0])
            prior = None if situation is None else situation.prior(label, None, bounds)
            localizer = localize.Localizer(bounds, prior, size=size, scores=judge.scores, random_state=options.seed)
            found.append(search(name, picture, judge, localizer, keep=keep, **limit))
        except (InvalidInput, OSError) as error:
            console.warn(f"Skipped {console.printable(name)}: {console.explain(error)}")
    return found


def _named(paths: list[Path]) -> Iterator[tuple[str, Path]]:
    """Names and paths of the pictures; a folder stands for those in it, however deep."""
    for path in paths:
        if not path.is_dir() or path.suffix.lower() == ".zarr":
            yield str(path), path
            continue
        files, skipped = find_pictures(str(path), by_class=False)
        for name, reason in skipped:
            console.warn(f"Skipped {console.printable(str(path / name))}: {reason}.")
        for file in files:
            yield str(path / file.name), Path(file.path)


def _result(search: Any) -> Result:
    found, (height, width) = search.found, search.picture.shape[:2]
    x0, y0, x1, y1 = found.box.tolist()
    return Result(search.name, width, height, (x0, y0, x1, y1), found.probability, found.score, found.looks)


def _summarise(results: list[Result], label: str, files: list[Path]) -> None:
    from saccade.cli.reports.find import sure_text

    for each in results[:NAMED]:
        box = ", ".join(f"{v:.0f}" for v in each.box)
        console.note(
            f"{console.printable(each.name)}: {label} at {box} (x0, y0, x1, y1), {sure_text(each.probability)} after "
            f"{console.count(each.looks, 'look')}."
        )
    more = f"{len(results) - NAMED:,} more are not shown here. " if len(results) > NAMED else ""
    console.note(f"{more}{console.count(len(results), 'box', 'boxes')} in {_files(files)}.")


def _files(files: list[Path]) -> str:
    shown = [console.printable(str(file)) for file in files[:NAMED]]
    rest = [f"{len(files) - NAMED:,} more"] if len(files) > NAMED else []
    return ", ".join(shown + rest)
