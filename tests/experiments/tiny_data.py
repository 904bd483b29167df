"""Small made-up collections in the layout of the research data, so that every experiment can run anywhere."""

import gzip
import json
from pathlib import Path

import numpy as np
from PIL import Image

from saccade._core.arrays import Array
from tests.features.textures import textures
from tests.localize.objects import scene

CALTECH = ("BACKGROUND_Google", "airplanes", "Faces", "Leopards", "chair", "windsor_chair")
EACH = 12  # pictures of a class
SIDE = 48  # px


def write_all(folder: Path) -> None:
    """caltech101/, scenes15/, fashion-mnist/, cifar10/, portland/, boxes/ and keel/ inside the folder."""
    _pictures(folder / "caltech101" / "101_ObjectCategories", CALTECH, 0)
    _boxes(folder / "caltech101" / "boxes.csv", "Faces")
    for seed, part in enumerate(("train", "test"), 1):
        _pictures(folder / "scenes15" / part, ("coast", "forest", "street"), seed)
    rng = np.random.default_rng(0)
    _fashion(folder / "fashion-mnist", rng)
    _cifar10(folder / "cifar10", rng)
    _portland(folder / "portland", rng)
    _photographs(folder / "boxes" / "blood_cells", ("WBC", "Platelets"), rng)
    _drawn(folder / "boxes" / "raccoon")
    _keel(folder / "keel", rng)


def _pictures(folder: Path, classes: tuple[str, ...], seed: int) -> None:
    """Pieces of three textures; classes beyond the third are the same ones turned by a quarter."""
    pieces, labels = textures(EACH, SIDE, seed)
    kinds = [
        [piece for piece, label in zip(pieces, labels, strict=True) if label == kind] for kind in np.unique(labels)
    ]
    for place, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number, piece in enumerate(kinds[place % 3], 1):
            Image.fromarray(np.rot90(piece, place // 3)).save(folder / name / f"image_{number:04}.jpg")


def _boxes(place: Path, name: str) -> None:
    """One in the middle of every picture of a class, and one without height."""
    rows = [f"{name},image_{number:04}.jpg,10.5,12.0,{30 + number},36.5" for number in range(1, EACH)]
    place.write_text(
        "\n".join(["class,image,xmin,ymin,xmax,ymax", *rows, f"{name},image_{EACH:04}.jpg,9,9,20,9"]) + "\n"
    )


def _photographs(folder: Path, labels: tuple[str, ...], rng: np.random.Generator) -> None:
    """Four grey pictures with a red square of each label."""
    folder.mkdir(parents=True)
    rows = ["image,label,xmin,ymin,xmax,ymax"]
    for number in range(4):
        picture = rng.integers(90, 120, (120, 160, 3), np.uint8)
        for place, label in enumerate(labels):
            x, y = 20 + 70 * place, int(rng.integers(10, 70))
            picture[y : y + 30, x : x + 40] = (220, 40, 40)
            rows.append(f"{number}.jpg,{label},{x},{y},{x + 40},{y + 30}")
        Image.fromarray(picture).save(folder / f"{number}.jpg")
    (folder / "boxes.csv").write_text("\n".join(rows) + "\n")


def _drawn(folder: Path, count: int = 24) -> None:
    """Scenes with one object each, and boxes.csv."""
    folder.mkdir(parents=True)
    lines = ["image,label,xmin,ymin,xmax,ymax"]
    for number in range(count):
        picture, box = scene(number)
        Image.fromarray(picture).save(folder / f"{number}.jpg")
        lines.append(",".join([f"{number}.jpg", "raccoon", *(f"{v:g}" for v in box)]))
    (folder / "boxes.csv").write_text("\n".join(lines) + "\n")


def _shapes(count: int, side: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Noise, with a bright column at a place that depends on the class; a tenth of the pictures of each."""
    labels = np.arange(count) % 10
    made = rng.integers(0, 120, (count, side, side), np.uint8)
    for picture, label in zip(made, labels, strict=True):
        picture[:, 2 * label : 2 * label + 4] += 120
    return made, labels.astype(np.uint8)


def _fashion(place: Path, rng: np.random.Generator, count: int = 400) -> None:
    place.mkdir()
    for part, size in (("train", count), ("t10k", count // 2)):
        pictures, labels = _shapes(size, 28, rng)
        for name, array in ((f"{part}-images-idx3-ubyte", pictures), (f"{part}-labels-idx1-ubyte", labels)):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
            (place / f"{name}.gz").write_bytes(gzip.compress(head + array.tobytes()))


def _cifar10(place: Path, rng: np.random.Generator, sheet: int = 40) -> None:
    place.mkdir()
    made, labels = _shapes(6 * sheet, 32, rng)
    sheets = np.repeat(made[..., None], 3, axis=3).reshape(6, sheet, 32 * 32, 3)
    for name, pixels in zip([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"], sheets, strict=True):
        Image.fromarray(pixels).save(place / f"{name}.png")
    for part, some in (("train", labels[: 5 * sheet]), ("test", labels[5 * sheet :])):
        (place / f"{part}_lables.json").write_text(json.dumps(some.tolist()))


def _portland(place: Path, rng: np.random.Generator, count: int = 40) -> None:
    """Boxes of three objects beside each other, and proposals anywhere in pictures of 800 × 600."""
    place.mkdir()
    objects, names = ["dog", "dog_walker", "leash"], [f"dog-walking{number}" for number in range(count)]
    lines = ["image,object,x,y,w,h,max_abs_iou_error,n_overlapping"]
    boxes = np.zeros((count, 3, 4))
    for i, name in enumerate(names):
        start = rng.uniform([50, 300], [450, 450])
        for j, thing in enumerate(objects):
            boxes[i, j] = [*(start + j * np.array([80, -30]) + rng.normal(0, 5, 2)), *rng.uniform(40, 90, 2)]
            lines.append(",".join([name, thing, *(f"{number:.2f}" for number in boxes[i, j]), "0.001", "50"]))
    (place / "ground_truth.csv").write_text("\n".join(lines) + "\n")
    corner, side = rng.uniform(0, [600, 400], (count, 3, 30, 2)), rng.uniform(20, 200, (count, 3, 30, 2))
    props = np.concatenate([corner, side, rng.random((count, 3, 30, 2))], axis=3)
    props[:, 0, 0, :4] = [0, 0, 800, 600]
    np.savez(place / "proposals.npz", props=props, names=np.array(names), objects=np.array(objects))


def _keel(place: Path, rng: np.random.Generator) -> None:
    """Tables of three classes, as one fold of training and test rows."""
    place.mkdir()
    for name in ("penbased", "satimage", "texture", "vehicle"):
        y = np.arange(60) % 3
        X = rng.normal(y[:, None], 0.5, (60, 5))
        parts = {"x_train": X[:40], "y_train": y[:40], "x_test": X[40:], "y_test": y[40:]}
        np.savez(place / f"{name}.npz", **{f"fold0-{part}": values for part, values in parts.items()})
