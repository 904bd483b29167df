"""Fewer dimensions for descriptors: principal components, and where in the picture they lie (K §7)."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from saccade._core.arrays import Array, FilePath, RandomSource
from saccade._core.checks import check_count
from saccade._core.errors import InvalidParameter
from saccade.features.base import PerPicture
from saccade.features.descriptor_arrays import positions_of, values_of
from saccade.features.lazy import Descriptors, Items
from saccade.features.learner import Learner, State, part, sample_of


@dataclass(eq=False, repr=False)
class DescriptorPCA(Learner, PerPicture):
    """Descriptors projected to their directions of largest variance, which are found on a random sample in training.

    `transform` gives `Descriptors` for `Descriptors`, and an array for an array.

    Parameters
    ----------
    n_components : int
        Number of directions; at most the dimensions of a descriptor and the number of those in the sample.
    positions : bool
        Add x and y, from 0 to 1, as two more dimensions, as K §7 does.
    sample : int
        Descriptors to look at, at most, equally many per picture.
    random_state : int, RandomState or None
        Seed of the random choices. None means the same random numbers at every fit.
    cache, n_jobs : path and int, optional
        Folder that keeps results, by content and settings (None: none); number of threads (None and -1: every core).

    Attributes
    ----------
    mean_ : array of shape (d,)
        Mean of the sample.
    components_ : array of shape (n_components, d)
        The directions, of unit length.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sets = [Descriptors(rng.random((20, 8)), rng.random((20, 2))) for _ in range(3)]
    >>> DescriptorPCA(3, positions=True).fit_transform(sets)[0].values.shape
    (20, 5)
    """

    FITTED = "components_"
    n_components: int = 10
    _: KW_ONLY
    positions: bool = False
    sample: int = 100_000
    random_state: RandomSource = None
    cache: FilePath | None = None
    n_jobs: int | None = None

    def check(self) -> None:
        check_count("n_components", self.n_components, "Default: 10.")
        check_count("sample", self.sample, "Default: 100,000 descriptors.", least=2)

    def make(self, item: Any) -> Any:
        low: Array = (values_of(item, len(self.mean_)) - self.mean_) @ self.components_.T
        if not self.positions and not isinstance(item, Descriptors):
            return low
        positions = positions_of(item).astype(np.float32)
        sizes = item.sizes if isinstance(item, Descriptors) else None
        return Descriptors(np.hstack([low, positions]) if self.positions else low, positions, sizes)

    def state(self) -> State:
        return {"mean": self.mean_, "components": self.components_} if self.__sklearn_is_fitted__() else {}

    def restore(self, state: State) -> Self:
        components = part(state, "components", "f", self.n_components, None)
        self.mean_ = part(state, "mean", "f", components.shape[1]).astype(np.float32)
        self.components_ = components.astype(np.float32)
        return self

    def _learn(self, items: Items, labels: Array | None, seed: int) -> State:
        from sklearn.decomposition import PCA

        values, _ = sample_of(items, self.sample, seed, self.n_jobs)
        if self.n_components > min(values.shape):
            raise InvalidParameter(
                f"`n_components` must be at most {min(values.shape)} for {len(values)} descriptors of "
                f"{values.shape[1]} dimensions, got {self.n_components}. Ask for fewer, or fit on more pictures."
            )
        with np.errstate(invalid="ignore"):  # shares of a variance of zero, which nobody asks for
            pca = PCA(self.n_components, svd_solver="covariance_eigh").fit(values.astype(np.float64))
        return {"mean": pca.mean_.astype(np.float32), "components": pca.components_.astype(np.float32)}
