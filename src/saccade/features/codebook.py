"""Visual words: a codebook turns a picture's descriptors into words, and a picture into a histogram of them.

H §6.1 and A §7.1 use 1,000 words found by k-means.
"""

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Self

import numpy as np
from scipy.spatial import cKDTree
from sklearn.utils.validation import check_is_fitted

from saccade._core import limits
from saccade._core.arrays import Array, FilePath, RandomSource
from saccade._core.blas import one_blas_thread
from saccade._core.checks import check_choice, check_count
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.features.base import DescriptorEncoder, normed
from saccade.features.descriptor_arrays import values_of
from saccade.features.lazy import Items
from saccade.features.learner import Learner, State, part, sample_of

EQUAL = 1e-5  # share of the largest distance from the mean: nearer centres differ by rounding
SOFT_WORDS = 5  # a descriptor's nearest words that count


class Codebook(Learner, DescriptorEncoder):
    """A transformer from descriptors to words."""

    FITTED = "n_words_"
    norm: str | None
    n_words_: int
    dims_: int  # of a descriptor

    @abstractmethod
    def words_of(self, values: Annotated[Array, "k, d"]) -> tuple[Annotated[Array, "k, a"], Annotated[Array, "k, a"]]:
        """The numbers of the words of each descriptor, and how much each counts."""

    def occurrences(self, item: Any) -> tuple[Array, Array]:
        return self.words_of(values_of(item, self.dims_))

    def encode(self, item: Any) -> tuple[Array, Array]:
        return normed(*super().encode(item), self.norm)

    def width(self) -> int:
        return self.n_words_

    def fit(self, X: Any, y: Any = None) -> Self:
        super().fit(X, y)
        wanted = self._words_wanted()
        if self.n_words_ < wanted:
            warnings.warn(
                f"{type(self).__name__} found {self.n_words_} words, not the {wanted} asked for: the training "
                "pictures have no more distinct descriptors. Fit on more pictures, or ask for fewer words.",
                UserWarning,
                stacklevel=2,
            )
        return self

    @abstractmethod
    def _words_wanted(self) -> int:
        """Number of words that the parameters ask for."""


@dataclass(eq=False, repr=False)
class BagOfWords(Codebook):
    """How often each visual word occurs in a picture; the words are the centres of k-means.

    Parameters
    ----------
    words : int
        Number of words.
    assign : "hard" or "soft"
        "hard": each descriptor counts for its nearest word. "soft": for its five nearest, with Gaussian weights that
        sum to 1 (a kernel codebook); their width is taken from the training distances.
    sample : int
        Descriptors to cluster, at most, equally many per picture.
    norm : "l1" or None
        "l1" makes a row sum to 1, None counts.
    random_state : int, RandomState or None
        Seed of the random choices. None means the same random numbers at every fit.
    cache, n_jobs : path and int, optional
        Folder that keeps results, by content and settings (None: none); number of threads (None and -1: every core).

    Attributes
    ----------
    centres_ : array of shape (n_words_, dims_)
        The words.
    bandwidth_ : float
        Width of the weights of "soft".
    n_words_, dims_ : int
        Number of words, fewer than `words` where fewer descriptors are distinct; dimensions of a descriptor.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pictures = [rng.random((30, 8)) for _ in range(4)]
    >>> BagOfWords(5, n_jobs=1).fit_transform(pictures).sum(axis=1).A1.round(6)
    array([1., 1., 1., 1.], dtype=float32)
    """

    words: int = 1000
    assign: str = "hard"
    _: KW_ONLY
    sample: int = 200_000
    norm: str | None = "l1"
    random_state: RandomSource = None
    cache: FilePath | None = None
    n_jobs: int | None = None

    def check(self) -> None:
        check_count("words", self.words, "Default: 1,000.")
        check_count("sample", self.sample, "Default: 200,000 descriptors.")
        check_choice("assign", self.assign, ("hard", "soft"))
        check_choice("norm", self.norm, ("l1", None))

    def _words_wanted(self) -> int:
        return self.words

    def _learn(self, items: Items, labels: Array | None, seed: int) -> State:
        values, _ = sample_of(items, self.sample, seed, self.n_jobs)
        report("visual words", 0.0)
        centres = _clustered(values, self.words, seed)
        _, closeness = Nearest(centres).few(values, SOFT_WORDS)
        report("visual words", 1.0)
        # ‖x − c‖² differ by twice the closeness; of that, the last of the few words gets the share 1/e on average.
        return {"centres": centres, "bandwidth": (closeness[:, 0] - closeness[:, -1]).mean(keepdims=True)}

    def words_of(self, values: Array) -> tuple[Array, Array]:
        check_is_fitted(self)
        if self.assign == "hard":
            words, closeness = self._nearest.few(values, 1)
            return words, np.ones_like(closeness)
        words, closeness = self._nearest.few(values, SOFT_WORDS)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # bandwidth 0: only equals share
            weights = np.exp(np.nan_to_num((closeness - closeness[:, :1]) / self.bandwidth_, nan=0.0))
        return words, weights / weights.sum(axis=1, keepdims=True)

    def state(self) -> State:
        if not self.__sklearn_is_fitted__():
            return {}
        return {"centres": self.centres_, "bandwidth": np.array([self.bandwidth_], np.float32)}

    def restore(self, state: State) -> Self:
        self.check()
        centres = part(state, "centres", "f", None, None)
        bandwidth = part(state, "bandwidth", "f", 1)
        if not centres.size or bandwidth[0] < 0:
            raise ValueError("a codebook needs words, and a bandwidth that is not negative")
        self.centres_ = np.asarray(centres, np.float32)
        self.bandwidth_ = float(bandwidth[0])
        self.n_words_, self.dims_ = self.centres_.shape
        self._nearest = Nearest(self.centres_)
        return self


class Nearest:
    """The nearest of many points, by one product: ‖x − c‖² = ‖x‖² − 2 (x·c − ‖c‖²/2)."""

    def __init__(self, points: Annotated[Array, "w, d"]) -> None:
        self.origin = points.mean(axis=0, dtype=np.float64).astype(np.float32)  # float32 is finest around zero
        shifted = points - self.origin
        self.across = np.ascontiguousarray(shifted.T)
        self.half = np.einsum("wd,wd->w", shifted, shifted) / 2
        if not np.isfinite(self.half).all():
            raise InvalidInput("The descriptors are too large for float32. Scale them to about [0, 1].")
        _, first = np.unique(points, axis=0, return_index=True)
        self.half[np.delete(np.arange(len(points)), first)] = np.inf  # of equal points, the first is the nearest
        self.distinct = first.size

    def few(
        self, X: Annotated[Array, "k, d"], count: int, at_once: int = limits.DESCRIPTORS_AT_ONCE
    ) -> tuple[Array, Array]:
        """The `count` nearest of each x, nearest first, and their closeness x·c − ‖c‖²/2; both (k, count)."""
        count = min(count, self.distinct)
        numbers = np.empty((len(X), count), np.int64)
        closeness = np.empty((len(X), count), np.float32)
        block = np.empty((min(len(X), at_once), len(self.half)), np.float32)  # once: new pages cost as much as BLAS
        for first in range(0, len(X), at_once):
            rows = slice(first, first + at_once)
            x = np.subtract(X[rows], self.origin, dtype=np.float32)
            C = np.matmul(x, self.across, out=block[: len(x)])
            C -= self.half
            every = np.arange(len(C))
            for a in range(count):  # a few passes over the block are faster than to partition it
                best = C.argmax(axis=1)
                numbers[rows, a], closeness[rows, a] = best, C[every, best]
                C[every, best] = -np.inf
        return numbers, closeness


def _clustered(values: Annotated[Array, "m, d"], words: int, seed: int) -> Annotated[Array, "w, d"]:
    """Centres of mini-batch k-means; the distinct descriptors themselves where there are no more than words."""
    from sklearn.cluster import MiniBatchKMeans

    if distinct_rows(values, words + 1) <= words:
        return np.unique(values + np.float32(0), axis=0)
    sizes = {"batch_size": max(limits.KMEANS_BATCH, 2 * words), "init_size": max(limits.KMEANS_SEEDING, 3 * words)}
    found = MiniBatchKMeans(words, **sizes, n_init=1, max_iter=20, random_state=seed)
    with one_blas_thread():  # seeding makes thousands of small products
        return distinct_words(np.asarray(found.fit(values).cluster_centers_, np.float32))


def distinct_words(centres: Annotated[Array, "w, d"]) -> Annotated[Array, "w, d"]:
    """The centres; one that differs from an earlier one only by rounding becomes equal to it, and is then never used.

    k-means may leave a centre twice. Without this, rounding would decide which of the two is the nearest word.
    """
    shifted = centres - centres.mean(axis=0, dtype=np.float64)
    reach = EQUAL * float(np.sqrt(np.square(shifted).sum(axis=1).max()))
    found = centres.copy()
    for first, again in sorted(cKDTree(shifted).query_pairs(reach)):
        found[again] = found[first]
    return found


def distinct_rows(X: Annotated[Array, "m, d"], enough: int) -> int:
    """The number of distinct rows, counted no further than `enough`."""
    seen = set()
    for row in X:
        seen.add((row + np.float32(0)).tobytes())  # −0 is 0
        if len(seen) == enough:
            break
    return len(seen)
