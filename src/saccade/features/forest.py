"""Random trees as a codebook: a few comparisons give a descriptor its word, where k-means needs a thousand distances.

O §5: every inner node splits on a completely random feature at its median, so one class is enough to learn from.
The variant it extends splits by class (Moosmann et al. 2006, extremely randomised clustering forests).
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import cycle, islice
from typing import Annotated, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array, FilePath, RandomSource
from saccade._core.checks import check_choice, check_count
from saccade._core.progress import report
from saccade.features.codebook import Codebook
from saccade.features.lazy import Items
from saccade.features.learner import State, part, sample_of

Split = tuple[int, np.float32]  # (feature, threshold): x[feature] > threshold goes right
Splitter = Callable[[Array], Split | None]  # of the rows in a node; None for a leaf


@dataclass(eq=False, repr=False)
class ForestCodebook(Codebook):
    """Histograms over the leaves of a few random trees: each descriptor gives one word per tree.

    Parameters
    ----------
    trees : int
        Number of trees; their words stand side by side.
    leaves : int
        Leaves per tree, at least 2.
    supervised : bool
        False: a node splits a random feature at its median. True: a node tries `candidates` random pairs of feature
        and threshold, and takes the one that tells most about the picture's class; needs fit(X, y).
    candidates : int
        Pairs that a node tries if `supervised`.
    sample : int
        Descriptors that the trees grow from, at most, equally many per picture.
    norm : "l1" or None
        "l1" makes a row sum to 1, None counts.
    random_state : int, RandomState or None
        Seed of the random choices. None means the same random numbers at every fit.
    cache, n_jobs : path and int, optional
        Folder that keeps results, by content and settings (None: none); number of threads (None and -1: every core).

    Attributes
    ----------
    feature_, threshold_, child_, word_ : array of shape (nodes,)
        x[feature_] > threshold_ goes right, infinite in a leaf. Left child; the right one is the next node, and
        a leaf is its own child. The word of each leaf.
    root_, depth_ : array of shape (trees,), int
        First node of each tree; most steps from a root to a leaf.
    n_words_, dims_ : int
        Number of leaves, fewer than trees × leaves where nodes cannot be split; dimensions of a descriptor.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pictures = [rng.random((30, 8)) for _ in range(4)]
    >>> ForestCodebook(trees=2, leaves=4, n_jobs=1).fit_transform(pictures).shape
    (4, 8)
    """

    trees: int = 5
    leaves: int = 200
    supervised: bool = False
    _: KW_ONLY
    candidates: int = 20
    sample: int = 200_000
    norm: str | None = "l1"
    random_state: RandomSource = None
    cache: FilePath | None = None
    n_jobs: int | None = None

    def check(self) -> None:
        check_count("trees", self.trees, "Default: 5.")
        check_count("leaves", self.leaves, "200 leaves in each of 5 trees make 1,000 words.", least=2)
        check_count("candidates", self.candidates, "Default: 20; 1 splits at random.")
        check_count("sample", self.sample, "Default: 200,000 descriptors.")
        check_choice("supervised", self.supervised, (False, True))
        check_choice("norm", self.norm, ("l1", None))

    def _words_wanted(self) -> int:
        return self.trees * self.leaves

    def _learn(self, items: Items, labels: Array | None, seed: int) -> State:
        values, owners = sample_of(items, self.sample, seed, self.n_jobs)
        columns = np.asfortranarray(values)  # a node reads one feature of many descriptors
        classes = None if labels is None else labels[owners]
        grown = []
        for tree in range(self.trees):
            split = _splitter(columns, classes, self.candidates, np.random.default_rng([seed, tree]))
            grown.append(_grow(columns, self.leaves, split))
            report("random trees", (tree + 1) / self.trees)
        return {**_side_by_side(grown), "dims": np.array([values.shape[1]])}

    def words_of(self, values: Array) -> tuple[Array, Array]:
        # The leaf of each descriptor in every tree: all are descended at once, a level at a time; leaves lead to
        # themselves.
        check_is_fitted(self)
        every = np.arange(len(values))[:, None]
        node = np.broadcast_to(self.root_, (len(values), len(self.root_)))
        for _ in range(self.depth_):
            node = self.child_[node] + (values[every, self.feature_[node]] > self.threshold_[node])
        return self.word_[node], np.ones(node.shape, np.float32)

    def state(self) -> State:
        if not self.__sklearn_is_fitted__():
            return {}
        threshold = np.where(np.isinf(self.threshold_), 0, self.threshold_)
        named = {"feature": self.feature_, "threshold": threshold, "child": self.child_, "root": self.root_}
        return {**named, "dims": np.array([self.dims_])}

    def restore(self, state: State) -> Self:
        self.check()
        feature = part(state, "feature", "iu", None).astype(np.int64)
        every = np.arange(len(feature))
        threshold = part(state, "threshold", "f", len(feature)).astype(np.float32)
        child = part(state, "child", "iu", len(feature)).astype(np.int64)
        root = part(state, "root", "iu", None).astype(np.int64)
        dims = int(part(state, "dims", "iu", 1)[0])
        leaf = child == every
        below = child + ~leaf  # the right child of an inner node
        # A child comes after its parent, so that every way down ends.
        if not root.size or not _within(root, len(every)) or not _within(below, len(every)) or (child < every).any():
            raise ValueError("the nodes do not make trees")
        if not _within(feature, dims):
            raise ValueError(f"a node asks for a feature that {dims} dimensions do not have")
        self.feature_, self.child_, self.root_, self.dims_ = feature, child, root, dims
        self.threshold_ = np.where(leaf, np.float32(np.inf), threshold)  # nothing goes right of a leaf
        self.depth_ = _depth(child, leaf)
        self.word_ = np.cumsum(leaf) - 1
        self.n_words_ = int(leaf.sum())
        return self


def _splitter(columns: Array, classes: Array | None, candidates: int, rng: np.random.Generator) -> Splitter:
    if classes is None:
        return lambda rows: _median_split(columns, rows, rng)
    return lambda rows: _telling_split(columns, rows, classes, candidates, rng)


def _median_split(columns: Annotated[Array, "m, d"], rows: Array, rng: np.random.Generator) -> Split | None:
    """A random feature, of those that vary in the node, at its median."""
    for feature in _varying(columns, rows, rng):
        x = columns[rows, feature]
        middle = (len(x) - 1) // 2
        median = np.partition(x, middle)[middle]
        return feature, median if median < x.max() else x[x < median].max()  # at least one row goes right
    return None


def _telling_split(
    columns: Annotated[Array, "m, d"],
    rows: Array,
    classes: Annotated[Array, "m"],
    candidates: int,
    rng: np.random.Generator,
) -> Split | None:
    """Of some random features at random thresholds, the pair with the largest mutual information with the class."""
    here = classes[rows]
    if (here == here[0]).all():
        return None
    features = list(islice(_varying(columns, rows, rng), candidates))
    splits: list[tuple[float, Split]] = []
    for feature in islice(cycle(features), candidates if features else 0):
        x = columns[rows, feature]
        low, high = x.min(), x.max()
        threshold = np.float32(low + rng.random() * (high - low))
        threshold = threshold if threshold < high else low  # rounding
        splits.append((_information(here, x > threshold), (feature, threshold)))
    return max(splits)[1] if splits else None


def _varying(columns: Array, rows: Array, rng: np.random.Generator) -> Iterator[int]:
    """The features that are not the same for all of the rows, in random order."""
    for feature in rng.permutation(columns.shape[1]).tolist():
        x = columns[rows, feature]
        if x.min() < x.max():
            yield feature


def _information(classes: Annotated[Array, "m"], right: Annotated[Array, "m"]) -> float:
    """The mutual information of the class, a number from 0 on, and the side, in nats."""
    p = np.stack([np.bincount(classes[side], minlength=classes.max() + 1) for side in (right, ~right)]) / len(right)
    apart = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
    return float((p[p > 0] * np.log(p[p > 0] / apart[p > 0])).sum())


def _grow(columns: Annotated[Array, "m, d"], leaves: int, split: Splitter) -> tuple[Array, Array, Array]:
    """Feature, threshold and left child of every node, before the right one; the largest is split next."""
    feature, threshold, child = [0], [np.float32(0)], [0]
    waiting = [(-len(columns), 0, np.arange(len(columns)))]
    while waiting and (len(feature) + 1) // 2 < leaves:
        _, node, rows = heapq.heappop(waiting)
        found = split(rows)
        if found is None:
            continue
        feature[node], threshold[node], child[node] = *found, len(feature)
        right = columns[rows, found[0]] > found[1]
        for part_of in (rows[~right], rows[right]):
            heapq.heappush(waiting, (-len(part_of), len(feature), part_of))
            child.append(len(feature))
            feature.append(0)
            threshold.append(np.float32(0))
    return np.array(feature), np.array(threshold), np.array(child)


def _side_by_side(grown: list[tuple[Array, Array, Array]]) -> State:
    """All trees in one list of nodes, and where each begins."""
    root = np.concatenate([[0], np.cumsum([len(child) for *_, child in grown])[:-1]])
    return {
        "feature": np.concatenate([feature for feature, _, _ in grown]),
        "threshold": np.concatenate([threshold for _, threshold, _ in grown]),
        "child": np.concatenate([child + first for (*_, child), first in zip(grown, root, strict=True)]),
        "root": root,
    }


def _within(numbers: Array, n: int) -> bool:
    return bool(((numbers >= 0) & (numbers < n)).all())


def _depth(child: Array, leaf: Array) -> int:
    """The most steps from a root to a leaf; parents come before their children."""
    depth = np.zeros(len(child), np.int64)
    for node in np.flatnonzero(~leaf):
        below = slice(child[node], child[node] + 2)
        depth[below] = np.maximum(depth[below], depth[node] + 1)
    return int(depth.max())
