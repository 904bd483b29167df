"""Stage 1 of the experiments of O §6: the tasks of Caltech-101, and the small kernel blocks that each needs.

A task is some training pictures of one class; the rest of the class is to be told from all pictures of another, the
background unless said otherwise. The representations have k(x, x) = 1 and the kernel as it is (no scale, no transform):
"phog" (grey), "colour" (Opponent-SIFT every 10 px; words of a random forest grown on the task's training pictures
alone; spatial pyramid of 1, 4, 16 cells with Lazebnik's weights) and, which the paper does not have, "sift" (the same
with the third of the descriptors that is grey), "both" (the mean of the kernels of PHOG and colour) and "deep"
(EfficientNet-Lite0, rows that sum to 1). PHOG and deep features learn nothing here, so a class has one matrix; words
have a vocabulary a task, and

    python experiments/one_class_kernels.py --cache FOLDER [--splits 50]

fills the cache with the blocks of both kinds (a third of a second a task on one core, 101 tasks a split); it can be
stopped and started again, and the other experiments do the same for tasks that are missing.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from common import all_pictures, arguments
from numba import njit

from saccade._core.arrays import Array

REPRESENTATIONS = ("phog", "colour", "sift", "both", "deep")
WORDS = ("colour", "sift")
TRAIN = 15
TREES, LEAVES = 5, 200
SIDES = (1, 2, 4)  # cells along a picture, a grid each
LAZEBNIK = np.array([0.25, 0.25, 0.5])  # of the grids: 1/2^L, 1/2^L, …, 1/2
SIFT_NORM = 512  # our plain descriptors are OpenCV's bytes divided by this


@dataclass(frozen=True)
class Task:
    """Which pictures train, which are to be ranked, and which of these belong to the class."""

    label: str
    split: int
    train: Array  # (n,) numbers of pictures
    test: Array  # (t,)
    normal: Array  # (t,) bool


@dataclass(frozen=True)
class Blocks:
    """What any kernel method needs; k(x, x) = 1 for every picture."""

    K: Array  # (n, n)
    cross: Array  # (t, n)
    normal: Array  # (t,) bool


@dataclass(frozen=True)
class Sifts:
    """Opponent-SIFT of all pictures, one under the other."""

    values: Array  # (m, 384) uint8, in a file
    positions: Array  # (m, 2)
    first: Array  # (pictures + 1,)

    def of(self, i: int) -> tuple[Array, Array]:
        rows = slice(self.first[i], self.first[i + 1])
        return self.values[rows], self.positions[rows]


class Grey(Sifts):
    """SIFT of the intensity alone: the last of the three opponent planes."""

    def of(self, i: int) -> tuple[Array, Array]:
        values, positions = super().of(i)
        return np.ascontiguousarray(values[:, -128:]), positions


@dataclass
class Caltech:
    """The pictures with their classes, and every representation made when it is asked for."""

    cache: Path
    made: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from saccade.datasets.on_disk import BACKGROUND, caltech101

        if self.cache is None:
            raise SystemExit("--cache FOLDER is needed: 3 GB of descriptors lie there.")
        self.paths, self.y = caltech101(background=True)
        self.background = BACKGROUND
        self.classes = [str(c) for c in np.unique(self.y) if c != BACKGROUND]

    @cached_property
    def pictures(self) -> Any:
        return all_pictures(self.paths, self.cache)

    def task(self, label: str, split: int, size: int = TRAIN, against: str | None = None) -> Task:
        """Training sets of one split contain one another: the first `size` of one random order."""
        own = np.flatnonzero(self.y == label)
        own = np.random.default_rng([split, int(own[0])]).permutation(own)
        others = np.flatnonzero(self.y == (against or self.background))
        test = np.concatenate([own[size:], others])
        return Task(label, split, own[:size], test, np.arange(len(test)) < len(own) - size)

    def blocks(self, representation: str, task: Task) -> Blocks:
        """The kernel of the paper for the task."""
        if representation == "both":
            phog, colour = self.blocks("phog", task), self.blocks("colour", task)
            return Blocks((phog.K + colour.K) / 2, (phog.cross + colour.cross) / 2, task.normal)
        if representation in WORDS:
            return weighted(self.words(representation, task), LAZEBNIK, task)
        whole, at = self._class_matrix(representation, task.label, str(self.y[task.test[-1]]))
        columns = at[task.train]
        return Blocks(tidy(whole[np.ix_(columns, columns)]), whole[np.ix_(at[task.test], columns)], task.normal)

    def words(self, representation: str, task: Task) -> tuple[Array, Array]:  # (grids, n, n), (grids, t, n)
        """The intersections of the three grids, kept in the cache folder."""
        from saccade.features.cache import Cache
        from saccade.features.lazy import digest_of

        key = digest_of(f"one-class {representation} 1 {TREES} {LEAVES} {task.split}", task.train, task.test)
        with Cache(self.cache) as kept:
            known = kept.get(key)
            if known is None:
                sifts = self.sifts if representation == "colour" else Grey(**vars(self.sifts))
                known = word_blocks(sifts, task, TREES, LEAVES)
                kept.put(key, known)
        return known["K"], known["cross"]

    def vectors(self, representation: str) -> Any:
        """The rows of all pictures, each with sum 1."""
        from sklearn.preprocessing import normalize

        from saccade.features import PHOG, DeepFeatures

        if representation not in self.made:
            encoder = (PHOG if representation == "phog" else DeepFeatures)(cache=self.cache, n_jobs=1)
            self.made[representation] = normalize(encoder.fit_transform(self.pictures).astype(float), norm="l1")
        return self.made[representation]

    def _class_matrix(self, representation: str, label: str, against: str) -> tuple[Array, Array]:
        """k of the class and the pictures against it with the class, and where in it a picture's number is found."""
        from saccade.kernels import HIK

        key = representation, label, against
        if key not in self.made:
            X = self.vectors(representation)
            own = np.flatnonzero(self.y == label)
            rows = np.concatenate([own, np.flatnonzero(self.y == against)])
            at = np.full(len(self.y), -1)
            at[rows] = np.arange(len(rows))
            self.made[key] = HIK(scale=1.0).resolved(X[own])(X[rows], X[own]), at
        return self.made[key]

    @cached_property
    def sifts(self) -> Sifts:
        """All descriptors as bytes, mapped from a file that is made once."""
        whole = self.cache / "opponent_sift.npy"
        if not whole.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            write_sifts(self.pictures, self.cache)
        rest = np.load(self.cache / "opponent_sift_positions.npz")
        return Sifts(np.load(whole, mmap_mode="r"), rest["positions"], rest["first"])


def write_sifts(pictures: Any, folder: Path) -> None:
    """Plain descriptors: a tree compares single values, and these are exact bytes."""
    from saccade._core.progress import report
    from saccade.features import OpponentSIFT
    from saccade.features.lazy import stream

    items = OpponentSIFT(root=False).fit_transform(pictures)
    positions, partial = [], folder / "opponent_sift.partial"
    with partial.open("wb") as file:
        for i, made in enumerate(stream(lambda i: items[i], range(len(items)), 1)):
            np.rint(made.values * SIFT_NORM).astype(np.uint8).tofile(file)
            positions.append(made.positions)
            report("descriptors", (i + 1) / len(items))
    first = np.append(0, np.cumsum([len(p) for p in positions]))
    np.savez(folder / "opponent_sift_positions.npz", positions=np.concatenate(positions), first=first)
    flat = np.memmap(partial, np.uint8, "r").reshape(first[-1], -1)
    np.save(folder / "opponent_sift.unfinished.npy", flat)
    (folder / "opponent_sift.unfinished.npy").rename(folder / "opponent_sift.npy")
    partial.unlink()


def weighted(
    levels: tuple[Array, Array],  # (grids, n, n), (grids, t, n)
    weights: Array,  # (grids,), their sum 1
    task: Task,
) -> Blocks:
    """The kernel of the pyramid with these weights of its grids."""
    K, cross = (np.tensordot(weights, part.astype(float), 1) for part in levels)
    return Blocks(tidy(K), cross, task.normal)


def tidy(K: Array) -> Array:
    """Without the rounding of sums: symmetric, and 1 on the diagonal."""
    K = (K + K.T) / 2
    K[np.diag_indices_from(K)] = 1.0
    return K


def word_blocks(sifts: Sifts, task: Task, trees: int, leaves: int) -> dict[str, Array]:
    """Grow the forest on the training pictures, and intersect every picture's pyramid with theirs."""
    forest = grown(sifts, task, trees, leaves)
    table = pyramids(sifts, task.train, forest)
    seen = np.zeros(len(table), np.int32)
    starts = np.cumsum([0] + [forest.n_words_ * side**2 for side in SIDES])
    trees_of = nodes(forest)
    made = [
        np.stack([intersected(*sifts.of(i), *trees_of, seen, table, starts) for i in which], axis=1)
        for which in (task.train, task.test)
    ]
    return {"K": made[0], "cross": made[1]}


def pyramids(
    sifts: Sifts,
    which: Array,  # (n,)
    forest: Any,
) -> Array:  # (columns, n)
    """The spatial pyramids of some pictures, without the weights of the grids: each grid sums to 1."""
    table = np.zeros((forest.n_words_ * sum(side**2 for side in SIDES), len(which)), np.float32)
    for j, i in enumerate(which):
        values, positions = sifts.of(i)
        seen = np.zeros(len(table), np.int32)
        counted(values, positions, *nodes(forest), seen)
        table[:, j] = seen / np.float32(len(values) * len(forest.root_))
    return table


def nodes(forest: Any) -> tuple[Any, ...]:
    """The forest for compiled loops, small enough for the nearest cache; thresholds are bytes, leaves need none."""
    threshold = np.minimum(forest.threshold_, 255).astype(np.uint8)
    feature, child, root, word = (
        part.astype(np.int32) for part in (forest.feature_, forest.child_, forest.root_, forest.word_)
    )
    return feature, threshold, child, root, word, forest.n_words_


def grown(sifts: Sifts, task: Task, trees: int, leaves: int) -> Any:
    """The codebook of O §5: random features, split at the median of what arrives."""
    from saccade.features import ForestCodebook

    training = [np.asarray(sifts.of(i)[0], np.float32) for i in task.train]
    return ForestCodebook(trees, leaves, random_state=task.split, n_jobs=1).fit(training)


@njit(cache=True, nogil=True)
def counted(values, positions, feature, threshold, child, root, word, words, seen):
    """Add the picture's words to `seen`, a cell after another; the columns that are no longer 0."""
    touched = np.empty(len(values) * len(root) * len(SIDES), np.int64)
    found = 0
    for i in range(len(values)):
        for tree in range(len(root)):
            node = root[tree]
            while child[node] != node:
                node = child[node] + (1 if values[i, feature[node]] > threshold[node] else 0)
            start = 0
            for side in SIDES:
                x = min(int(positions[i, 0] * side), side - 1)
                y = min(int(positions[i, 1] * side), side - 1)
                column = start + (y * side + x) * words + word[node]
                start += side * side * words
                if seen[column] == 0:
                    touched[found] = column
                    found += 1
                seen[column] += 1
    return touched[:found]


@njit(cache=True, nogil=True)
def intersected(values, positions, feature, threshold, child, root, word, words, seen, table, starts):  # (grids, n)
    """Σ_d min(x_d, z_d) over the columns of each grid, with every training picture z."""
    touched = counted(values, positions, feature, threshold, child, root, word, words, seen)
    sums = np.zeros((len(starts) - 1, table.shape[1]), np.float32)
    share = np.float32(1.0 / (len(values) * len(root)))
    for column in touched:
        grid = 0
        while column >= starts[grid + 1]:
            grid += 1
        x = seen[column] * share
        seen[column] = 0
        for j in range(table.shape[1]):
            sums[grid, j] += min(x, table[column, j])
    return sums


def tasks(data: Caltech, splits: int, labels: list[str] | None = None) -> Iterator[Task]:
    """Every class of split 0, then of split 1, …: what is done first is a whole experiment with fewer splits."""
    for split in range(splits):
        for label in labels or data.classes:
            yield data.task(label, split)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--only", choices=WORDS, nargs="+", default=WORDS)
    options = parser.parse_args()
    data, start = Caltech(options.cache), time.perf_counter()
    for task in tasks(data, options.splits):
        for representation in options.only:
            data.words(representation, task)
        if task.label == data.classes[-1]:
            print(f"split {task.split}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
