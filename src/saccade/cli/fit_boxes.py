"""`saccade fit --boxes`: pictures with boxes to a model that finds the object, for `saccade find`."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.cli import console
from saccade.cli import options as o
from saccade.cli.tables.boxes_in import DrawnBoxes, read_boxes
from saccade.features.files import FoundFile, find_pictures

if TYPE_CHECKING:
    from saccade.localize import Finder

OVER = 0.02  # share of a side by which a box may cross the picture's edge; what crosses it is cut off
RELIABLE = 30  # searches in a bin of said and true


@dataclass(frozen=True)
class BoxOptions:
    """Where the object is in the pictures."""

    boxes: Path | None = o.option(
        None,
        "Train to find an object by the boxes in this file or folder: .json (COCO), .csv (image, label, xmin, ymin, "
        "xmax, ymax), or a folder of .xml (Pascal VOC) or .txt (YOLO). Pictures of DATA without a box are pictures "
        "without the object. --label names the object, where there are several.",
        metavar="FILE|FOLDER",
    )
    looks: int = o.option(
        60, "With --boxes: crops to judge in a picture, in training and by `saccade find`.", metavar="N", min=1
    )


@dataclass(frozen=True)
class Drawn:
    """Pictures that can be read, with the boxes of one label."""

    paths: list[Path]
    boxes: list[Array]  # (k, 4) each

    @property
    def with_it(self) -> int:
        return sum(len(each) > 0 for each in self.boxes)


def refuse_others(*groups: Any) -> None:
    """An error for options that mean nothing with --boxes: whatever differs from its default in these groups."""
    for group in groups:
        for each in fields(group):
            if getattr(group, each.name) != each.default and each.name not in ("seed", "label"):
                name = each.name.rstrip("_").replace("_", "-")
                raise InvalidInput(f"--{name} means nothing with --boxes. Leave one of them out.")


def fit_boxes(
    folder: Path, model: Path, drawn_in: BoxOptions, label: str | None, chain: Any, seed: int
) -> list[tuple[str, str]]:
    """Train, write the model, and say how it does on held-out pictures."""
    from saccade.localize import Finder

    boxes = drawn_in.boxes
    assert boxes is not None
    if not folder.is_dir():
        raise InvalidInput(f"With --boxes, DATA must be a folder of pictures, and {folder} is none.")
    drawn = read_boxes(boxes)
    label = _label(drawn, label, boxes)
    scenes = _matched(folder, drawn, label, boxes)
    watch = console.Stopwatch()
    finder = Finder(chain, looks=drawn_in.looks, random_state=seed, label=label).fit(scenes.paths, scenes.boxes)
    finder.save(model)
    count = sum(map(len, scenes.boxes))
    said = f"{scenes.with_it:,} pictures with {console.count(count, 'box', 'boxes')} of {label}, "
    return [
        ("pictures", f"{said}{len(scenes.paths) - scenes.with_it:,} without"),
        *_judged(finder),
        ("training time", str(watch)),
    ]


def _label(drawn: DrawnBoxes, label: str | None, path: Path) -> str:
    known = drawn.labels()
    if not known:
        raise InvalidInput(f"{path} has no boxes. Draw some around the object.")
    if label is None and len(known) == 1:
        return next(iter(known))
    if label is None or label not in known:
        named = ", ".join(f"{name} ({count:,})" for name, count in list(known.items())[:20])
        what = "several labels; say which to find with --label" if label is None else f"no label {label!r}"
        raise InvalidInput(f"{path} has {what}: {named}.")
    return label


def _matched(folder: Path, drawn: DrawnBoxes, label: str, source: Path) -> Drawn:
    """The pictures of the folder with their boxes; those of the file that are not in the folder are left out."""
    from saccade.localize import open_picture

    files = _files(folder, source)
    names = [file.name.rpartition(".")[0] if drawn.stems else file.name for file in files]
    places = _places(names, drawn, source)
    listed = {place: drawn.pictures[name] for name, place in places.items()}
    paths, boxes, faults = list[Path](), list[Array](), list[str]()
    for place, file in enumerate(files):
        try:
            height, width = open_picture(file.path).shape[:2]
        except (InvalidInput, OSError) as error:
            console.warn(f"Skipped {console.printable(file.name)}: {console.explain(error)}")
            continue
        given = np.array([each.box for each in listed.get(place, []) if each.label == label], np.float64).reshape(-1, 4)
        good, fault = _inside(given * ([width, height] * 2 if drawn.shares else 1.0), width, height)
        faults += [f"{file.name}: {each}" for each in fault]
        if not len(given) or len(good):  # else it shows the object, and nobody knows where
            paths.append(Path(file.path))
            boxes.append(good)
    _tell(len(drawn.pictures) - len(places), len(files) - len(places), faults, source, label)
    if not any(map(len, boxes)):
        raise InvalidInput(f"No picture of {folder} has a box of {label} in {source}. Check the names in both.")
    return Drawn(paths, boxes)


def _files(folder: Path, source: Path) -> list[FoundFile]:
    """The pictures; notes of boxes may lie beside them."""
    files, skipped = find_pictures(str(folder), by_class=False)
    for name, reason in skipped:
        if not (folder / name).resolve().is_relative_to(source.resolve()):
            console.warn(f"Skipped {console.printable(name)}: {reason}.")
    return files


def _places(names: list[str], drawn: DrawnBoxes, source: Path) -> dict[str, int]:
    """Where the pictures that the file names are: by their whole name below the folder, or by its last part."""
    whole = {name: place for place, name in enumerate(names)}
    last = dict[str, list[int]]()
    for place, name in enumerate(names):
        last.setdefault(name.rpartition("/")[2], []).append(place)
    found, taken = dict[str, int](), dict[int, str]()
    for name in drawn.pictures:
        key = name.replace("\\", "/").removeprefix("./")
        some = [whole[key]] if key in whole else last.get(key.rpartition("/")[2], [])
        if len(some) > 1:
            raise InvalidInput(f"{source} names {name}, and {len(some)} pictures have that name. Give each its own.")
        if some:
            if some[0] in taken:
                raise InvalidInput(f"{source} names {names[some[0]]} twice, as {taken[some[0]]} and as {name}.")
            found[name], taken[some[0]] = some[0], name
    return found


def _inside(boxes: Array, width: int, height: int) -> tuple[Array, list[str]]:
    """Boxes cut at the edge, and what is wrong with the others."""
    from saccade.localize.boxes import clip

    over, good, faults = OVER * np.array([width, height] * 2), [], list[str]()
    for box in boxes:
        shown = ", ".join(f"{v:g}" for v in box)
        outside = (box[:2] < -over[:2]).any() or (box[2:] > np.array([width, height]) + over[2:]).any()
        if not np.isfinite(box).all() or outside:
            faults.append(f"the box {shown} is outside the picture of {width} × {height}")
            continue
        cut, kept = clip(box[None], np.array([0.0, 0.0, width, height]))
        if not kept.size or (cut[0, 2:] - cut[0, :2]).min() < 1.0:
            faults.append(f"the box {shown} is empty")
            continue
        good.append(cut[0])
    return np.array(good).reshape(-1, 4), faults


def _tell(missing: int, unnamed: int, faults: list[str], source: Path, label: str) -> None:
    if missing:
        console.warn(f"{source} names {console.count(missing, 'picture')} that DATA does not have; left out.")
    if unnamed > 0:
        console.warn(
            f"{source} does not name {console.count(unnamed, 'picture')} of DATA: taken to be without {label}."
        )
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        console.warn(f"Left out {console.printable(faults[0])}{more}.")


def _judged(finder: "Finder") -> list[tuple[str, str]]:
    """Held-out figures: each search is judged by a calibrator that has not seen it."""
    from saccade.localize.finder.calibration import left_out

    trials = finder.trials_
    right, _, stands = left_out(trials)
    there = trials.there
    rows = [
        ("held-out searches", f"{there.sum()} with the object, {(~there).sum()} without, {finder.looks} looks each")
    ]
    rows.append(("answer right", f"{trials.hit[there].mean():.0%} of those with the object"))
    if there.all():
        rows.append(("not found", "never: no picture or part of a picture was without the object"))
        return rows
    rows.append(("not found", f"{(~stands[there]).mean():.0%} with the object, {(~stands[~there]).mean():.0%} without"))
    order = np.argsort(right, kind="stable")
    bins = np.array_split(order, max(1, len(order) // RELIABLE))
    pairs = ", ".join(f"{right[part].mean():.2f}/{trials.hit[part].mean():.2f}" for part in bins)
    return [*rows, ("probability said/true", pairs)]
