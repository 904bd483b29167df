"""The spatial pyramid: histograms of words in the cells of finer and finer grids (O §5; Lazebnik et al. 2006).

With L + 1 grids the match of two pictures is Σ_l c_l I(H_l), where c_0 = 1/2^L and c_l = 1/2^{L−l+1}. The weights are
in the vector, so that the histogram intersection of two vectors is that sum.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import clone

from saccade._core import limits
from saccade._core.arrays import Array, FilePath
from saccade._core.checks import check_choice, check_count, is_number
from saccade._core.errors import InvalidParameter
from saccade.features.base import DescriptorEncoder
from saccade.features.codebook import BagOfWords, Codebook
from saccade.features.descriptor_arrays import positions_of, values_of
from saccade.features.learner import State, prefixed, without

Grids = tuple[tuple[int, int], ...]
WORDS = 200  # of the default codebook, as Lazebnik et al. have it


@dataclass(eq=False, repr=False)
class SpatialPyramid(DescriptorEncoder):
    """Words and where they are: a histogram for each cell of several grids over the picture.

    Parameters
    ----------
    codebook : BagOfWords, ForestCodebook or None
        Makes the words; a clone of it is fitted. None is BagOfWords(200).
    depth : int
        Number of grids, of 1, 2 × 2, 4 × 4, … cells.
    grids : sequence of (rows, columns), optional
        Other grids in place of these, such as ((1, 1), (2, 2), (3, 1)).
    weights : sequence of float, optional
        A positive weight per grid. None: those of Lazebnik et al., by the place in the list.
    norm : "l1" or None
        "l1" divides by the total count, so that k(x, x) = 1 with the default weights. None counts.
    cache, n_jobs : path and int, optional
        Folder that keeps results, by content and settings (None: none); number of threads (None and -1: every core).

    Attributes
    ----------
    codebook_ : BagOfWords or ForestCodebook
        The fitted codebook.

    Examples
    --------
    >>> from saccade.features.lazy import Descriptors
    >>> rng = np.random.default_rng(0)
    >>> pictures = [Descriptors(rng.random((30, 8)), rng.random((30, 2))) for _ in range(4)]
    >>> SpatialPyramid(BagOfWords(5), depth=2, n_jobs=1).fit_transform(pictures).shape
    (4, 25)
    """

    FITTED = "codebook_"
    codebook: Codebook | None = None
    depth: int = 3
    _: KW_ONLY
    grids: Any = None
    weights: Any = None
    norm: str | None = "l1"
    cache: FilePath | None = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        self._layout()  # complains before the long work
        return self._with(self._fresh().fit(X, y))

    def occurrences(self, item: Any) -> tuple[Array, Array]:
        words, weights = self.codebook_.words_of(values_of(item, self.codebook_.dims_))
        positions = positions_of(item)
        columns, first = [], 0
        for rows, across in self._grids:
            cell = cells_of(positions, rows, across)[:, None]
            columns.append(first + cell * self.codebook_.n_words_ + words)
            first += rows * across * self.codebook_.n_words_
        share = weights / max(weights.sum(), 1e-30) if self.norm == "l1" else weights
        weighted = [share * w for w in self._weights]
        return np.concatenate(columns, axis=1), np.concatenate(weighted, axis=1)

    def width(self) -> int:
        return self._width

    def state(self) -> State:
        return prefixed("codebook", self.codebook_.state()) if self.__sklearn_is_fitted__() else {}

    def restore(self, state: State) -> Self:
        return self._with(self._fresh().restore(without("codebook", state)))

    def _with(self, codebook: Codebook) -> Self:
        grids, weights = self._layout()
        width = codebook.n_words_ * sum(rows * across for rows, across in grids)
        if width > limits.VECTOR_COLUMNS:
            raise InvalidParameter(
                f"{codebook.n_words_} words in every cell of these grids make {width:,} columns; at most "
                f"{limits.VECTOR_COLUMNS:,} are possible. Take fewer grids or words."
            )
        self.codebook_, self._grids, self._weights, self._width = codebook, grids, weights, width
        return self

    def _fresh(self) -> Codebook:
        """The codebook to fit: it keeps its result where the pyramid does, unless it has a place of its own."""
        if self.codebook is not None and not isinstance(self.codebook, Codebook):
            raise InvalidParameter(
                f"`codebook` must be a BagOfWords, a ForestCodebook or None, got {self.codebook!r}. "
                f"None is BagOfWords({WORDS})."
            )
        fresh: Codebook = BagOfWords(WORDS) if self.codebook is None else clone(self.codebook)
        ours = {"cache": self.cache, "n_jobs": self.n_jobs}
        fresh.set_params(**{name: ours[name] for name in ours if getattr(fresh, name) is None})
        return fresh

    def _layout(self) -> tuple[Grids, Array]:
        """The grids and the weight of each."""
        check_choice("norm", self.norm, ("l1", None))
        depth = check_count("depth", self.depth, "Default: 3, grids of 1, 4 and 16 cells.")
        if depth > limits.PYRAMID_DEPTH:
            raise InvalidParameter(f"`depth` must be at most {limits.PYRAMID_DEPTH}, got {depth}. Default: 3.")
        grids = tuple((2**k, 2**k) for k in range(depth)) if self.grids is None else _checked_grids(self.grids)
        L = len(grids) - 1
        if self.weights is None:
            return grids, np.array([0.5**L] + [0.5 ** (L - k + 1) for k in range(1, L + 1)])
        weights = np.array([w if is_number(w) else np.nan for w in np.ravel(np.asarray(self.weights, object))], float)
        if len(weights) != len(grids) or not (weights > 0).all() or not np.isfinite(weights).all():
            raise InvalidParameter(
                f"`weights` must be {len(grids)} positive numbers, one per grid, got {self.weights!r}. None takes "
                "Lazebnik's."
            )
        return grids, weights


def cells_of(positions: Annotated[Array, "k, 2"], rows: int, across: int) -> Annotated[Array, "k"]:
    """The cell of each position in a grid, row after row; what lies on the far edge belongs to the last cell."""
    x = np.minimum((positions[:, 0] * across).astype(np.int64), across - 1)
    y = np.minimum((positions[:, 1] * rows).astype(np.int64), rows - 1)
    return np.asarray(y * across + x)


def _checked_grids(grids: Any) -> Grids:
    try:
        sizes = tuple((rows, across) for rows, across in grids)
    except (TypeError, ValueError):
        sizes = ()
    if not sizes or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for size in sizes for n in size):
        raise InvalidParameter(
            f"`grids` must be pairs (rows, columns) of whole numbers from 1 on, got {grids!r}. Try ((1, 1), (2, 2))."
        )
    return sizes
