"""Boxes that people drew, as other programs write them: COCO JSON, CSV, a folder of Pascal VOC XML or of YOLO text."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from saccade._core import limits
from saccade._core.errors import InvalidInput

NAMES = {"image": ("image", "file", "filename", "file_name"), "label": ("label", "class", "name")}
CORNERS = (("xmin", "ymin", "xmax", "ymax"), ("x0", "y0", "x1", "y1"), ("x1", "y1", "x2", "y2"))
CLASSES = ("classes.txt", "obj.names", "labels.txt")  # names of YOLO's numbers, in their order


@dataclass(frozen=True)
class DrawnBox:
    """A box in a picture."""

    label: str
    box: tuple[float, float, float, float]  # x0, y0, x1, y1 in pixels, or in shares of the picture


@dataclass
class DrawnBoxes:
    """What a file or folder says of pictures, by their names; stems are names without an ending."""

    pictures: dict[str, list[DrawnBox]] = field(default_factory=dict)
    stems: bool = False
    shares: bool = False

    def of(self, name: str) -> list[DrawnBox]:
        return self.pictures.setdefault(name, [])

    def labels(self) -> dict[str, int]:
        """How many boxes there are of each label, the most frequent first."""
        found = dict[str, int]()
        for boxes in self.pictures.values():
            for each in boxes:
                found[each.label] = found.get(each.label, 0) + 1
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def read_boxes(path: Path) -> DrawnBoxes:
    """By the ending, or by what is in the folder."""
    if path.is_dir():
        for ending, read in ((".xml", _voc), (".txt", _yolo)):
            files = [file for file in sorted(path.rglob(f"*{ending}")) if file.name not in CLASSES]
            if files:
                return read(path, files)
        raise InvalidInput(f"The folder {path} has neither .xml (Pascal VOC) nor .txt (YOLO). Name the one that has.")
    if not path.is_file():
        raise InvalidInput(f"There is no file or folder {path} with boxes. Check the name.")
    if path.stat().st_size > limits.STATE_BYTES:
        raise InvalidInput(
            f"{path} has {path.stat().st_size:,} bytes; a file of boxes has {limits.STATE_BYTES:,} at most."
        )
    if path.suffix.lower() not in (".json", ".csv"):
        raise InvalidInput(
            f"Boxes are read from .json (COCO), .csv, or a folder of .xml (VOC) or .txt (YOLO), not {path}."
        )
    return _coco(path) if path.suffix.lower() == ".json" else _csv(path)


def _coco(path: Path) -> DrawnBoxes:
    try:
        whole = json.loads(path.read_bytes())
        names = {image["id"]: str(image["file_name"]) for image in whole["images"]}
        labels = {each["id"]: str(each["name"]) for each in whole["categories"]}
        found = DrawnBoxes({name: [] for name in names.values()})
        for each in whole["annotations"]:
            if each.get("iscrowd"):
                continue  # a region, not an object
            x, y, width, height = (float(v) for v in each["bbox"])
            found.of(names[each["image_id"]]).append(
                DrawnBox(labels[each["category_id"]], (x, y, x + width, y + height))
            )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(
            f"{path} is no COCO file of images, annotations and categories ({error!r:.100}). Export it again."
        ) from None
    if len(found.pictures) < len(names):
        raise InvalidInput(f"{path} lists a picture of one name twice. Give every picture a name of its own.")
    return found


def _csv(path: Path) -> DrawnBoxes:
    found = DrawnBoxes()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            rows.fieldnames = [name.strip().lower() for name in rows.fieldnames or ()]
            image, label, corners = _columns(path, list(rows.fieldnames))
            for row in rows:
                boxes, values = found.of(str(row[image] or "")), [str(row[name] or "").strip() for name in corners]
                if any(values):  # a picture without the object has none
                    box = _numbers(values, f"{path}, line {rows.line_num}")
                    boxes.append(DrawnBox(str(row[label]) if label else "object", box))
    except (UnicodeError, csv.Error) as error:
        raise InvalidInput(f"{path} is not a CSV file ({error}). Save it again as CSV, UTF-8.") from None
    return found


def _columns(path: Path, header: list[str]) -> tuple[str, str | None, tuple[str, ...]]:
    """Names of the columns with picture, label and corners."""
    image, label = (next((name for name in names if name in header), None) for names in NAMES.values())
    corners = next((names for names in CORNERS if set(names) <= set(header)), None)
    if image is None or corners is None:
        raise InvalidInput(f"{path} needs the columns image, xmin, ymin, xmax and ymax; it has {', '.join(header)}.")
    return image, label, corners


def _voc(folder: Path, files: list[Path]) -> DrawnBoxes:
    """By the names of the .xml files: what they say of the picture's name is often that of another folder."""
    from xml.etree import ElementTree

    found = DrawnBoxes(stems=True)
    for file, text in _texts(folder, files):
        if "<!doctype" in text.lower():
            raise InvalidInput(f"{file} declares a document type, and boxes need none. Remove the line <!DOCTYPE …>.")
        try:
            root = ElementTree.fromstring(text)
        except (ElementTree.ParseError, ValueError) as error:
            raise InvalidInput(f"{file} is no Pascal VOC file ({error}). Export it again.") from None
        boxes = found.of(_stem(folder, file))
        for each in root.iter("object"):
            values = [each.findtext(f"bndbox/{name}", "") for name in CORNERS[0]]
            boxes.append(DrawnBox(each.findtext("name", "object"), _numbers(values, str(file))))
    return found


def _yolo(folder: Path, files: list[Path]) -> DrawnBoxes:
    """Lines of class, x and y of the centre, width, height, in shares of the picture."""
    names = [
        line.strip()
        for name in CLASSES
        for _, text in _texts(folder, _there(folder / name))
        for line in text.split("\n")
    ]
    found = DrawnBoxes(stems=True, shares=True)
    for file, text in _texts(folder, files):
        boxes = found.of(_stem(folder, file))
        for number, line in enumerate(text.splitlines(), 1):
            kind, *values = line.split() or [""]
            if not kind:
                continue
            x, y, width, height = _numbers(values[:4], f"{file}, line {number}")
            label = names[int(kind)] if kind.isdecimal() and int(kind) < len(names) and names[int(kind)] else kind
            corners = (x - 0.5 * width, y - 0.5 * height, x + 0.5 * width, y + 0.5 * height)
            boxes.append(DrawnBox(label, corners))
    return found


def _there(file: Path) -> list[Path]:
    return [file] if file.is_file() else []


def _stem(folder: Path, file: Path) -> str:
    return file.relative_to(folder).with_suffix("").as_posix()


def _texts(folder: Path, files: list[Path]) -> Iterator[tuple[Path, str]]:
    for file in files:
        if file.stat().st_size > limits.NOTE_BYTES:
            raise InvalidInput(
                f"{file} has {file.stat().st_size:,} bytes; boxes of a picture have {limits.NOTE_BYTES:,} at most."
            )
        try:
            yield file, file.read_bytes().decode("utf-8-sig")
        except UnicodeError:
            raise InvalidInput(f"{file} is not text in UTF-8. Save it again as UTF-8.") from None


def _numbers(values: list[Any], where: str) -> tuple[float, float, float, float]:
    try:
        a, b, c, d = (float(value) for value in values)
    except ValueError:
        raise InvalidInput(f"{where}: a box needs four numbers, got {', '.join(map(str, values))!r}.") from None
    return a, b, c, d
