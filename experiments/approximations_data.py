"""The one-class tasks of A §7.1 on three collections of ours, as kernel blocks.

A task is 100 training pictures of one class (or half of the class where that is less); the other pictures of the class
are to be told from all pictures of all other classes. Every picture is a histogram of 1,000 visual words of dense SIFT
without positions, of sum 1; the descriptors are RootSIFT, which the committed results were measured with. Words are
learned without labels: on the standard training part of 15-Scenes, on five pictures of each class of Caltech-101, on
the training part of Fashion-MNIST. The latter has its own test part, so that training pictures come from the one and
test pictures from the other; beside it, the plain pixels are a fourth set.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from common import Array, all_pictures

TRAIN = 100
WORDS = 1000
BETA = 1.0  # A §7.1


class Collection(NamedTuple):
    X: Any  # (N, D)
    y: Array  # (N,)
    trains: Array  # (N,) bool: may be drawn for training
    tests: Array  # (N,) bool: is tested with, unless it trained


class Blocks(NamedTuple):
    """What every method is given; k(x, x) = 1."""

    K: Array  # (n, n)
    k_star: Array  # (n, t)
    normal: Array  # (t,) bool
    train: Array  # (n,) numbers of the examples in their collection
    tested: Array  # (t,)


def scenes(options: Any) -> Collection:
    import scipy.sparse as sp
    from scenes15 import chain

    from saccade.datasets.on_disk import scenes15

    (train, y), (test, z) = scenes15("train"), scenes15("test")
    words = chain("words", WORDS, options.cache, root=True)  # RootSIFT, which the committed results were measured with
    parts = words.fit_transform(all_pictures(train, options.cache)), words.transform(all_pictures(test, options.cache))
    every = np.ones(len(y) + len(z), bool)
    return Collection(sp.vstack(parts, format="csr"), np.concatenate([y, z]), every, every)


def caltech(options: Any) -> Collection:
    from sklearn.pipeline import make_pipeline

    from saccade.datasets.on_disk import caltech101
    from saccade.features import BagOfWords, DenseSIFT

    paths, y = caltech101()
    rng = np.random.default_rng(0)
    some = np.concatenate([np.sort(rng.permutation(np.flatnonzero(y == c))[:5]) for c in np.unique(y)])
    words = make_pipeline(DenseSIFT(root=True), BagOfWords(WORDS, cache=options.cache, random_state=0))
    words.fit(all_pictures([paths[k] for k in some], options.cache))
    every = np.ones(len(y), bool)
    return Collection(words.transform(all_pictures(paths, options.cache)), y, every, every)


def fashion_words(options: Any) -> Collection:
    import scipy.sparse as sp
    from small_pictures import histograms

    made = histograms("fashion-mnist", options.data, options.cache)
    return _two_parts(sp.vstack([made.train, made.test], format="csr"), made.y, made.y_test)


def fashion_pixels(options: Any) -> Collection:
    import scipy.sparse as sp
    from small_pictures import load

    pictures = load("fashion-mnist", options.data)
    flat = [part.reshape(len(part), -1) / 255.0 for part in (pictures.train, pictures.test)]
    return _two_parts(sp.csr_matrix(np.concatenate(flat)), pictures.y, pictures.y_test)


def _two_parts(X: Any, y: Array, y_test: Array) -> Collection:
    trains = np.arange(len(y) + len(y_test)) < len(y)
    return Collection(X, np.concatenate([y, y_test]), trains, ~trains)


COLLECTIONS: dict[str, Callable[[Any], Collection]] = {
    "Caltech-101": caltech,
    "15-Scenes": scenes,
    "Fashion-MNIST": fashion_words,
    "Fashion-MNIST, pixels": fashion_pixels,
}


def tasks(data: Collection, label: Any, splits: int) -> Iterator[Blocks]:
    """The task of one class with several random training sets; the kernel is computed once for all of them."""
    from saccade.kernels import HIK, GeneralizedRBF

    own, tests = np.flatnonzero((data.y == label) & data.trains), np.flatnonzero(data.tests)
    size = min(TRAIN, len(own) // 2)
    orders = [np.random.default_rng([split, int(own[0])]).permutation(own)[:size] for split in range(splits)]
    columns = np.unique(orders)
    kernel = GeneralizedRBF(HIK(), BETA).resolved(data.X[columns])  # a scale of 1 where rows sum to 1: the paper's
    rows = np.union1d(tests, columns)
    block = kernel(data.X[columns], data.X[rows])
    for train in orders:
        mine = np.searchsorted(columns, train)
        others = np.setdiff1d(tests, train)
        K = block[np.ix_(mine, np.searchsorted(rows, train))]
        k_star = block[np.ix_(mine, np.searchsorted(rows, others))]
        yield Blocks((K + K.T) / 2, k_star, data.y[others] == label, train, others)
