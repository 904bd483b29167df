"""Data-dependent bins for the pyramid match: the nodes of a tree of k-means (K §5; Grauman and Darrell 2006)."""

from collections import deque
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.blas import one_blas_thread
from saccade._core.progress import report
from saccade.features.base import DescriptorEncoder
from saccade.features.codebook import distinct_rows
from saccade.features.descriptor_arrays import values_of
from saccade.features.lazy import Items
from saccade.features.learner import Learner
from saccade.features.sample import sample_of
from saccade.features.state import State, part

FALL = 0.5  # how much a match counts, of one a level further down


@dataclass(eq=False, repr=False)
class VocabularyBins(Learner, DescriptorEncoder):
    """A point lies in one node at every level of the tree; each node has a column.

    A match in a node counts with the node's weight w, and only if it is no match in a child already. Regrouped:
    Σ_nodes (w_node − w_parent) min(n_node(x), n_node(z)). Weights double with every step down: those of Grauman and
    Darrell, one over the bin's diameter, hardly grow in 128 dimensions and were 2 to 5 points worse on test
    pictures of 15-Scenes.
    """

    depth: int = 5
    _: KW_ONLY
    branch: int = 10
    sample: int = 200_000
    random_state: Any = None
    cache: Any = None
    n_jobs: int | None = None

    def _learn(self, items: Items, labels: Array | None, seed: int) -> State:
        values, _ = sample_of(items, self.sample, seed, self.n_jobs)
        with one_blas_thread():  # many small products
            centres, children = _grown(values, self.branch, self.depth, seed)
        return {"centres": centres, "children": children}

    def nodes_of(self, values: Annotated[Array, "k, d"]) -> Annotated[Array, "k, deepest_ + 1"]:
        """The nodes of each point from the root down; −1 below a leaf."""
        way = np.full((len(values), self.deepest_ + 1), -1, np.int64)
        way[:, 0] = 0
        for first in range(0, len(values), limits.DESCRIPTORS_AT_ONCE):
            rows = slice(first, first + limits.DESCRIPTORS_AT_ONCE)
            for level in range(self.deepest_):
                way[rows, level + 1] = self._step(values[rows], way[rows, level])
        return way

    def _step(self, X: Annotated[Array, "k, d"], node: Annotated[Array, "k"]) -> Annotated[Array, "k"]:
        """The nearest child of each point's node; −1 where there is none."""
        below = np.full(len(X), -1, np.int64)
        inner = np.flatnonzero((node >= 0) & (self.children_[node] > 0))
        at = node[inner]
        offset = np.arange(int(self.children_[at].max(initial=0)))
        child = np.minimum(self._first[at][:, None] + offset, len(self.centres_) - 1)
        closeness = (self._shifted[child] @ (X[inner] - self._origin)[:, :, None])[:, :, 0] - self._half[child]
        closeness[offset >= self.children_[at][:, None]] = -np.inf
        if len(inner):
            below[inner] = self._first[at] + closeness.argmax(axis=1)
        return below

    def occurrences(self, item: Any) -> tuple[Array, Array]:
        way = self.nodes_of(values_of(item, self.centres_.shape[1]))
        return np.maximum(way, 0), np.where(way >= 0, self._share[way], 0.0)

    def width(self) -> int:
        return len(self.centres_)

    def state(self) -> State:
        if not self.__sklearn_is_fitted__():
            return {}
        return {"centres": self.centres_, "children": self.children_}

    def restore(self, state: State) -> Self:
        centres = part(state, "centres", "f", None, None).astype(np.float32)
        children = part(state, "children", "iu", len(centres)).astype(np.int64)
        if not centres.size or not 0 <= children.min() <= children.max() < len(centres) == children.sum() + 1:
            raise ValueError("the nodes do not make one tree")
        first = 1 + np.cumsum(children) - children  # children stand in the order of their parents
        if (first[children > 0] <= np.flatnonzero(children)).any():
            raise ValueError("a node comes before its parent")
        parent = np.append(0, np.repeat(np.arange(len(centres)), children))
        level = _levels(parent)
        if level.max() >= self.depth:
            raise ValueError(f"the tree is deeper than its {self.depth} levels")
        # A leaf that could not be divided is its own only part at every finer level, so a match there is a finest one.
        w = np.where(children == 0, 1.0, FALL ** (self.depth - 1 - level))
        self.centres_, self.children_, self.deepest_ = centres, children, int(level.max())
        self._first, self._share = first, np.append(w[0], w[1:] - w[parent[1:]])
        self._origin = centres[0]
        self._shifted = centres - self._origin
        self._half = np.einsum("wd,wd->w", self._shifted, self._shifted) / 2
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "centres_")


def _grown(values: Annotated[Array, "m, d"], branch: int, depth: int, seed: int) -> tuple[Array, Array]:  # (N, d), (N,)
    """The centre and the number of children of every node, level after level."""
    centres: list[Array] = []
    children: list[int] = []
    waiting = deque([(np.arange(len(values)), 0)])
    while waiting:
        rows, level = waiting.popleft()
        points = values[rows]
        groups = _divided(points, branch, seed) if level + 1 < depth else []
        waiting.extend((rows[group], level + 1) for group in groups)
        centres.append(points.mean(axis=0, dtype=np.float64).astype(np.float32))
        children.append(len(groups))
        report("a tree of words", len(centres) / (len(centres) + len(waiting)))
    return np.array(centres), np.array(children)


def _divided(points: Annotated[Array, "m, d"], branch: int, seed: int) -> list[Array]:
    """The rows of each of `branch` clusters; fewer where fewer points are distinct, none for a single one."""
    from sklearn.cluster import KMeans

    count = distinct_rows(points, branch)
    if count < 2:
        return []
    label = KMeans(count, n_init=1, max_iter=20, random_state=seed).fit(points).labels_
    groups = [np.flatnonzero(label == g) for g in range(count)]
    return [group for group in groups if len(group)]


def _levels(parent: Array) -> Annotated[Array, "N"]:
    """The level of every node; the root has 0."""
    level = np.zeros(len(parent), np.int64)
    for node in range(1, len(parent)):
        level[node] = level[parent[node]] + 1
    return level
