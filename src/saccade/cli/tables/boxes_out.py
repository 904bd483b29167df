"""Boxes that were found, as files that other programs read: COCO JSON, CSV, GeoJSON."""

import csv
import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from saccade._core.errors import InvalidInput
from saccade.cli.tables.csv_out import cell, path_cell, writing

ENDINGS = (".json", ".csv", ".geojson")
COLUMNS = ("file", "label", "x0", "y0", "x1", "y1", "probability", "score", "looks", "found", "present")


class Result(NamedTuple):
    """The box found in one picture; where the object was not found, nothing but `present` and `looks` is written."""

    name: str  # of the file
    width: int
    height: int
    box: tuple[float, float, float, float]  # x0, y0, x1, y1
    probability: float  # that it overlaps an object by a half or more
    score: float  # by the judge
    looks: int
    present: float = 1.0  # probability that the picture shows an object
    found: bool = True


def check_ending(path: Path) -> None:
    if path.suffix.lower() not in ENDINGS:
        raise InvalidInput(f"--out {path} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}: the format to write.")


def write_boxes(path: Path, results: Sequence[Result], label: str) -> list[Path]:
    """The files that were written, in the format that the ending says."""
    if path.suffix.lower() != ".geojson":
        return [_write_all(path, results, label)]
    files = files_of(path, [each.name for each in results])
    return [_write_all(file, [each], label) for file, each in zip(files, results, strict=True)]


def files_of(path: Path, names: Sequence[str]) -> list[Path]:
    """One GeoJSON file per picture, as QuPath opens them: boxes-NAME.geojson; the one file in other formats.

    >>> [str(file) for file in files_of(Path("b.geojson"), ["a/one.png", "c/one.png"])]
    ['b-one.geojson', 'b-one-2.geojson']
    """
    if path.suffix.lower() != ".geojson" or len(names) < 2:
        return [path]
    taken = dict[str, str]()  # by its small letters: some file systems know no others
    for stem in (Path(name).stem for name in names):
        tries = (stem if k == 1 else f"{stem}-{k}" for k in count(1))
        free = next(name for name in tries if name.lower() not in taken)
        taken[free.lower()] = free
    return [path.with_name(f"{path.stem}-{name}{path.suffix}") for name in taken.values()]


def _write_all(path: Path, results: Sequence[Result], label: str) -> Path:
    kind = path.suffix.lower()
    with writing(str(path)) as file:
        if kind == ".csv":
            _write_csv(file, results, label)
        else:
            made = coco(results, label) if kind == ".json" else geojson(results, label)
            file.write(json.dumps(made, indent=1, allow_nan=False) + "\n")
    return path


def coco(results: Sequence[Result], label: str) -> dict[str, Any]:
    """Numbers begin at 1: tools take an annotation with the number 0 for none. `bbox` is x, y, width, height."""
    images = []
    for k, each in enumerate(results, 1):
        image = {"id": k, "file_name": each.name, "width": each.width, "height": each.height}
        missing = {} if each.found else {"found": False, "present": round(each.present, 6)}
        images.append(image | missing)
    annotations: list[dict[str, Any]] = []
    for number, each in enumerate(results, 1):
        if not each.found:
            continue
        k = len(annotations) + 1
        x0, y0, x1, y1 = each.box
        bbox = [round(v, 2) for v in (x0, y0, x1 - x0, y1 - y0)]
        annotations.append(
            {
                **{"id": k, "image_id": number, "category_id": 1, "bbox": bbox, "area": round(bbox[2] * bbox[3], 2)},
                **{"iscrowd": 0, "segmentation": [outline(each.box)], "score": round(each.probability, 6)},
                "attributes": {"judge_score": round(each.score, 6), "looks": each.looks},
            }
        )
    return {
        "info": {"description": "Boxes found by saccade. score: probability of an overlap of a half or more."},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 1, "name": label, "supercategory": ""}],
    }


def outline(box: Sequence[float]) -> list[float]:
    """The corners x, y, x, y, … of a box, from which pycocotools makes a mask."""
    x0, y0, x1, y1 = (round(v, 2) for v in box)
    return [x0, y0, x1, y0, x1, y1, x0, y1]


def geojson(results: Sequence[Result], label: str) -> dict[str, Any]:
    """A FeatureCollection (RFC 7946) of polygons in pixels of the full picture, as QuPath reads and writes them."""
    features = []
    for each in (each for each in results if each.found):
        x0, y0, x1, y1 = (round(v, 2) for v in each.box)
        ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]  # closed; anticlockwise where y grows upwards
        features.append(
            {
                "type": "Feature",
                "geometry": {"type": "Polygon", "coordinates": [ring]},
                "properties": {
                    **{"objectType": "annotation", "name": label, "classification": {"name": label}},
                    **{"file": each.name, "probability": round(each.probability, 6), "score": round(each.score, 6)},
                    "looks": each.looks,
                },
            }
        )
    missing = [each.name for each in results if not each.found]
    return {"type": "FeatureCollection", "features": features} | ({"not_found": missing} if missing else {})


def _write_csv(file: Any, results: Sequence[Result], label: str) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in results:
        box = [*(f"{v:.2f}" for v in each.box), f"{each.probability:.6g}", f"{each.score:.6g}"]
        last = [each.looks, "yes" if each.found else "no", f"{each.present:.6g}"]
        writer.writerow([path_cell(each.name), cell(label), *(box if each.found else [""] * len(box)), *last])
