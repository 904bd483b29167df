"""`saccade find`: where in pictures an object is, in few looks by a model of pictures."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from saccade import localize
from saccade._core import limits, model_file
from saccade._core.errors import InvalidInput
from saccade.cli import console
from saccade.cli import options as o
from saccade.cli.tables.boxes_out import Result, check_ending, files_of, write_boxes
from saccade.cli.targets import check_targets
from saccade.features.files import find_pictures

LOOKS = 60
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
    looks: int | None = o.option(
        None,
        f"Largest number of crops to judge per picture. Default: {LOOKS}, or what a model of boxes was trained with.",
        metavar="N",
        min=1,
    )
    absent: float | None = o.option(
        None,
        "Share of the pictures that do not show the object, as far as you know. With it pictures may be answered by "
        '"not found". Default: 0.5 for a model of boxes, else 0.',
        metavar="P",
        **{"min": 0.0, "max": 0.999},
    )
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
    the probability that it overlaps the object by a half or more. A model of `saccade fit --boxes` was made for this:
    it says "not found" where the object is not, and its probabilities were learned on pictures that it had not seen.
    """
    out, report = options.out, options.report
    check_ending(out)
    named = list(_named(pictures))
    files = {f"--out {file}": file for file in files_of(out, [name for name, _ in named]) if file != out}
    check_targets({"--out": out, "--report": report, **files}, force, (model, *pictures))
    sides = None if options.size is None else _sides(options.size)
    with console.progress():
        way = _trained(model, options) or _by_judge(_judge(model, options.label), sides, options)
        label = way.label
        found = _searched(named, way, options)
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


@dataclass(frozen=True)
class Way:
    """How every picture is searched, and what the looks then mean."""

    judge: Any
    label: str
    looks: int
    begin: "Callable[[tuple[int, int]], localize.Localizer]"  # by width and height
    answer: "Callable[[localize.Localizer], localize.Found]"


def _trained(path: Path, options: SearchOptions) -> Way | None:
    """The way of a model of boxes; None where it is another model."""
    from saccade.loading import KEY, load

    if KEY not in model_file.read(path)[0]:
        return None
    finder: localize.Finder = load(path)
    for name in ("size", "situation"):
        if getattr(options, name) is not None:
            raise InvalidInput(f"{path} has learned size and place from boxes. Leave --{name} out.")
    looks = options.looks or finder.looks
    if looks != finder.looks or options.sure < 1.0:
        console.warn(f"Probabilities of this model hold after {finder.looks} looks. Leave --looks and --sure out.")
    absent = 0.5 if options.absent is None else options.absent
    begin, answer = partial(finder.search, random_state=options.seed), partial(finder.answer, absent=absent)
    return Way(finder.judge_, options.label or finder.label, looks, begin, answer)


def _by_judge(judge: Any, size: tuple[float, float] | None, options: SearchOptions) -> Way:
    """The way of any other model of pictures."""
    from saccade.cli.find_search import by_search

    label = str(options.label or judge.label or "object")
    situation = None if options.situation is None else localize.SituationModel.load(options.situation)

    def begin(bounds: tuple[int, int]) -> localize.Localizer:
        prior = None if situation is None else situation.prior(label, None, bounds)
        common: dict[str, Any] = {"scores": judge.scores, "random_state": options.seed}
        return localize.Localizer(bounds, prior, size=size, absent=options.absent or 0.0, **common)

    return Way(judge, label, options.looks or LOOKS, begin, by_search)


def _searched(named: list[tuple[str, Path]], way: Way, options: SearchOptions) -> list[Any]:
    """The search of each picture that can be read; the others are named."""
    from saccade.cli.find_search import search

    limit: dict[str, Any] = {"looks": way.looks, "batch": options.batch, "sure": options.sure, "answer": way.answer}
    found: list[Any] = []
    for number, (name, path) in enumerate(named):
        keep = options.report is not None and number < limits.REPORT_SEARCHES
        try:
            picture = localize.open_picture(path)
            localizer = way.begin((picture.shape[1], picture.shape[0]))
            found.append(search(name, picture, way.judge, localizer, keep=keep, **limit))
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
    answer = found.probability, found.score, found.looks, found.present, found.found
    return Result(search.name, width, height, (x0, y0, x1, y1), *answer)


def _summarise(results: list[Result], label: str, files: list[Path]) -> None:
    from saccade.cli.reports.find import sure_text

    for each in results[:NAMED]:
        box = ", ".join(f"{v:.0f}" for v in each.box)
        said = f"{label} at {box} (x0, y0, x1, y1), {sure_text(each.probability)}"
        missing = f"{label} not found, present with {sure_text(each.present)}"
        looks = console.count(each.looks, "look")
        console.note(f"{console.printable(each.name)}: {said if each.found else missing} after {looks}.")
    more = f"{len(results) - NAMED:,} more are not shown here. " if len(results) > NAMED else ""
    boxes = sum(each.found for each in results)
    none = f" Not found in {console.count(len(results) - boxes, 'picture')}." if boxes < len(results) else ""
    console.note(f"{more}{console.count(boxes, 'box', 'boxes')} in {_files(files)}.{none}")


def _files(files: list[Path]) -> str:
    shown = [console.printable(str(file)) for file in files[:NAMED]]
    rest = [f"{len(files) - NAMED:,} more"] if len(files) > NAMED else []
    return ", ".join(shown + rest)
