"""The pyramid match of two sets of descriptors (K §5), as the intersection of two vectors.

With H_i the histogram of a set over bins that grow with the level i, I_i the intersection of two such histograms and
w_i ≥ w_{i+1} how much a match at level i counts,

    Σ_i w_i (I_i − I_{i−1}) = Σ_i (w_i − w_{i+1}) I_i,   I_{−1} = 0, w_L = 0,

so the vector of all levels' histograms, each times w_i − w_{i+1} ≥ 0, has the match as its histogram intersection.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from saccade._core import limits
from saccade._core.arrays import Array, FilePath, RandomSource
from saccade._core.checks import check_choice, check_count
from saccade._core.errors import InvalidParameter
from saccade.features.base import DescriptorEncoder, normed
from saccade.features.bins import UniformBins, VocabularyBins
from saccade.features.codebook import Codebook
from saccade.features.learner import State, prefixed, without
from saccade.features.pyramid import SpatialPyramid

DEPTH = {"uniform": 5, "vocabulary": 5, "positions": 3}


@dataclass(eq=False, repr=False)
class PyramidHistogram(DescriptorEncoder):
    """Vectors whose intersection, HIK(scale=1), is the pyramid match of the pictures' sets of descriptors.

    A match at the finest level counts 1, and half as much at each coarser level. Points in uniform cells that no
    picture of `fit` fills are counted in one last column: they match no picture of `fit`, but those of two new
    pictures match each other.

    Parameters
    ----------
    bins : "uniform", "vocabulary" or "positions"
        "uniform": cells of side 2^i over the descriptors, for few dimensions (K §7 uses 10 of PCA and the position).
        "vocabulary": the nodes of a tree of k-means, for many dimensions. "positions": for every word of `codebook` a
        pyramid over the places in the picture.
    depth : int, optional
        Number of levels. None: 5, and 3 for "positions".
    branch : int
        Children of a node, for "vocabulary"; at least 2.
    shifts : int
        Number of pyramids with shifted cells to average, for "uniform".
    codebook : BagOfWords, ForestCodebook or None
        Makes the words of "positions". None is BagOfWords(200).
    norm : "l1" or None
        None is the paper's sum, in which large sets win. "l1" divides each vector by its self-match k(x, x), so that
        k(x, x) = 1. (Dividing the kernel by √(k(x,x) k(z,z)) would not leave an intersection.)
    sample : int
        Descriptors to learn the bins from, at most, equally many per picture. "positions" takes `sample` and
        `random_state` of `codebook` in place of these.
    random_state : int, RandomState or None
        Seed of the random choices. None means the same random numbers at every fit.
    cache, n_jobs : path and int, optional
        Folder that keeps results, by content and settings (None: none); number of threads (None and -1: every core).

    Attributes
    ----------
    bins_ : transformer
        The fitted bins, a `SpatialPyramid` for "positions".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sets = [rng.random((30, 8)) for _ in range(4)]
    >>> PyramidHistogram("vocabulary", depth=3, branch=2, n_jobs=1).fit_transform(sets).shape
    (4, 7)
    """

    FITTED = "bins_"
    bins: str = "vocabulary"
    _: KW_ONLY
    depth: int | None = None
    branch: int = 10
    shifts: int = 1
    codebook: Codebook | None = None
    norm: str | None = "l1"
    sample: int = 200_000
    random_state: RandomSource = None
    cache: FilePath | None = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        self.bins_ = self._fresh().fit(X, y)
        return self

    def occurrences(self, item: Any) -> tuple[Array, Array]:
        return self.bins_.occurrences(item)

    def encode(self, item: Any) -> tuple[Array, Array]:
        return normed(*super().encode(item), self.norm)

    def width(self) -> int:
        return int(self.bins_.width())

    def state(self) -> State:
        return prefixed("bins", self.bins_.state()) if self.__sklearn_is_fitted__() else {}

    def restore(self, state: State) -> Self:
        self.bins_ = self._fresh().restore(without("bins", state))
        return self

    def _fresh(self) -> UniformBins | VocabularyBins | SpatialPyramid:
        """The unfitted bins that the parameters ask for; they count, and `encode` normalises."""
        self._check()
        depth = DEPTH[self.bins] if self.depth is None else self.depth
        ours: dict[str, Any] = {"cache": self.cache, "n_jobs": self.n_jobs}
        if self.bins == "positions":  # this sum, with the coarsest level first
            return SpatialPyramid(self.codebook, depth, norm=None, **ours)
        ours |= {"sample": self.sample, "random_state": self.random_state}
        if self.bins == "uniform":
            return UniformBins(depth, shifts=self.shifts, **ours)
        return VocabularyBins(depth, branch=self.branch, **ours)

    def _check(self) -> None:
        check_choice("bins", self.bins, tuple(DEPTH))
        check_choice("norm", self.norm, ("l1", None))
        check_count("branch", self.branch, "Default: 10.", least=2)
        check_count("shifts", self.shifts, "Default: 1. With more, chance decides less where the cells end.")
        check_count("sample", self.sample, "Default: 200,000 descriptors.")
        if self.depth is not None and check_count("depth", self.depth, "Default: None.") > limits.MATCH_DEPTH:
            raise InvalidParameter(f"`depth` must be at most {limits.MATCH_DEPTH}, got {self.depth}. Default: None.")
