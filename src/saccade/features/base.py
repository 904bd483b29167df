"""Base classes of the transformers of pictures: a recipe that names the result, a state to keep, rows of a matrix."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array, FilePath
from saccade._core.progress import report
from saccade.features.cache import Cache
from saccade.features.lazy import Items, Made, as_items, digest_of, stream

PLACE_AND_SPEED = ("cache", "n_jobs")  # parameters that do not change the result
NOT_IN_RECIPE = (*PLACE_AND_SPEED, "random_state")  # what it led to is in the state


class PictureTransformer(TransformerMixin, BaseEstimator, ABC):
    """A scikit-learn transformer of items (pictures, or descriptors of pictures)."""

    REVISION: ClassVar[int] = 1
    """Count it up when you change the results of the transformer: old results in a cache are then not used."""
    PACKAGES: ClassVar[tuple[str, ...]] = ()
    """Packages on whose versions the results depend too."""
    FITTED: ClassVar[str] = ""
    """Attribute that `fit` sets, where there is something to learn."""

    def state(self) -> dict[str, Array]:
        """What `fit` learned, as named arrays for `restore`.

        Returns
        -------
        dict of arrays
            Empty for a transformer that learns nothing or is not fitted.
        """
        return {}

    def check(self) -> None:
        """Raise InvalidParameter if a parameter is out of range."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from pictures, where there is something to learn; a second fit is read from the cache.

        Parameters
        ----------
        X : sequence
            Pictures, or for a step that counts descriptors `Descriptors` or an array of shape (k, d) per picture.
        y : array of shape (n,), optional
            A class per picture; used only if `supervised`.

        Returns
        -------
        Self
            The fitted transformer.
        """
        self.check()
        return self

    def restore(self, state: dict[str, Array]) -> Self:
        """Set what `fit` would have learned.

        Parameters
        ----------
        state : dict of arrays
            What `state` returned.

        Returns
        -------
        Self
            The transformer, fitted.

        Raises
        ------
        ValueError
            If an array is missing or the arrays contradict each other.
        """
        self.check()
        return self

    def description(self) -> dict[str, Any]:
        """Name and parameters as values for JSON: what a model file keeps besides `state`.

        Returns
        -------
        dict
            "name" of the class and "parameters", without `cache` and `n_jobs`, which do not change the result.
        """
        from saccade.features.serialize import described

        return described(self)

    def recipe(self) -> str:
        """A text that changes when the result for a picture may change: the cache looks results up by it.

        Returns
        -------
        str
            Class, versions, parameters and a digest of `state`.
        """
        packages = [f"{name} {_version(name)}" for name in self.PACKAGES]
        parameters = {
            name: value.recipe() if isinstance(value, PictureTransformer) else repr(value)
            for name, value in sorted(self.get_params(deep=False).items())
            if name not in NOT_IN_RECIPE
        }
        state = self.state()
        learned = [part for name in sorted(state) for part in (name, state[name])]
        kind = f"{type(self).__name__} {_version('saccade')}.{self.REVISION}"
        return f"{kind} {packages} {parameters} {digest_of(*learned)}"

    def __sklearn_is_fitted__(self) -> bool:
        return not self.FITTED or hasattr(self, self.FITTED)


class PerPicture(PictureTransformer):
    """A transformer that learns nothing: `transform` gives lazy items, one `make(item)` each."""

    @abstractmethod
    def make(self, item: Any) -> Any:
        """The result for one item: of a picture, a picture (h, w, 3) or its `Descriptors`."""

    def transform(self, X: Any) -> Items:
        """Lazy items: each is made when it is asked for.

        Parameters
        ----------
        X : Pictures, list of arrays or list of paths
            The pictures.

        Returns
        -------
        sequence of n items
            The result of `make` for each picture.
        """
        self.check()
        check_is_fitted(self)
        return Made(as_items(X), self.make, self.recipe())


class VectorEncoder(PictureTransformer):
    """A transformer that gives each item (a picture, or its descriptors) a sparse vector, a row of a CSR matrix."""

    cache: FilePath | None
    n_jobs: int | None

    @abstractmethod
    def encode(self, item: Any) -> tuple[Annotated[Array, "m"], Annotated[Array, "m"]]:
        """The non-zeros of the vector of one item: their columns, ascending, and their values."""

    @abstractmethod
    def width(self) -> int:
        """The number of columns."""

    def transform(self, X: Any) -> sp.csr_matrix:
        """One row per item; rows that the cache has are read from it.

        Parameters
        ----------
        X : Pictures, list of arrays, list of paths, or what the step before gives
            Pictures, or for a step that counts descriptors a `Descriptors` or an array of shape (k, d) per picture.

        Returns
        -------
        CSR matrix of shape (n, width)
            One row per item, float32.
        """
        self.check()
        check_is_fitted(self)
        items, recipe = as_items(X), self.recipe()
        columns: list[Array] = []
        values: list[Array] = []
        with Cache(self.cache) as cache:
            for done, (at, value) in enumerate(self._rows(items, recipe, cache), 1):
                columns.append(at.astype(np.int32, copy=False))
                values.append(value.astype(np.float32, copy=False))
                report(f"{type(self).__name__}: pictures to vectors", done / len(items))
        indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns], dtype=np.int64)])
        at = np.concatenate([np.empty(0, np.int32), *columns])
        value = np.concatenate([np.empty(0, np.float32), *values])
        return sp.csr_matrix((value, at, indptr), shape=(len(items), self.width()))

    def _rows(self, items: Items, recipe: str, cache: Cache) -> Iterator[tuple[Array, Array]]:
        """The rows in order: read from the cache, or made by the threads and kept there."""

        def ask() -> Iterator[tuple[int, str, dict[str, Array] | None]]:
            for i in range(len(items)):  # in this thread: one reads and writes the cache
                key = digest_of(items.digest(i), recipe) if cache.path is not None else ""
                yield i, key, cache.get(key)

        def work(asked: tuple[int, str, dict[str, Array] | None]) -> tuple[str, dict[str, Array], bool]:
            i, key, known = asked
            if known is not None:
                self._check_row(known, cache)
                return key, known, False
            columns, values = self.encode(items[i])
            return key, {"columns": columns.astype(np.int32), "values": values.astype(np.float32)}, True

        for key, row, fresh in stream(work, ask(), self.n_jobs, lambda asked: asked[2] is not None):
            if fresh:
                cache.put(key, row)
            yield row["columns"], row["values"]

    def _check_row(self, row: dict[str, Array], cache: Cache) -> None:
        """A row from a file is checked before compiled code reads by its columns."""
        if row.keys() != {"columns", "values"}:
            raise cache.broken("one of its rows is not a valid sparse row")
        at, value = row["columns"], row["values"]
        kinds = at.dtype == np.int32 and value.dtype == np.float32
        if not kinds or at.ndim != 1 or at.shape != value.shape or (np.diff(at) <= 0).any():
            raise cache.broken("one of its rows is not a valid sparse row")
        if len(at) and not 0 <= at[0] <= at[-1] < self.width():
            raise cache.broken(f"one of its rows has columns beyond {self.width()}")

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns, as scikit-learn makes them: bagofwords0, bagofwords1 and so on.

        Parameters
        ----------
        input_features : any, optional
            Not used.

        Returns
        -------
        array of shape (width,)
            The class name in lower case and the number of the column.
        """
        name = type(self).__name__.lower()
        return np.array([f"{name}{k}" for k in range(self.width())], object)


class DescriptorEncoder(VectorEncoder):
    """A transformer that counts descriptors, (k, d) of an item: the places that a column comes from can be found."""

    @abstractmethod
    def occurrences(self, item: Any) -> tuple[Annotated[Array, "k, a"], Annotated[Array, "k, a"]]:
        """The columns that each descriptor adds to, and how much, before any norm; 0 for nothing."""

    def encode(self, item: Any) -> tuple[Array, Array]:
        columns, weights = self.occurrences(item)
        return counted(columns.ravel(), weights.ravel())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"  # OpenCV has several names


def counted(columns: Annotated[Array, "m"], weights: Annotated[Array, "m"]) -> tuple[Array, Array]:
    """The distinct columns, ascending, and the sum of the weights of each."""
    distinct, inverse = np.unique(columns, return_inverse=True)
    sums = np.bincount(inverse, weights, minlength=len(distinct))
    return distinct[sums > 0], sums[sums > 0]


def normed(columns: Array, counts: Array, norm: str | None) -> tuple[Array, Array]:
    """With "l1", the counts divided by their sum, which is the vector's intersection with itself."""
    return columns, counts / counts.sum() if norm == "l1" and len(counts) else counts


def nonzero(vector: Annotated[Array, "d"]) -> tuple[Array, Array]:
    """The columns that are not zero, and their values."""
    columns = np.flatnonzero(vector)
    return columns, vector[columns]
