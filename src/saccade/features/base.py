"""What every transformer of pictures shares: a recipe that names it, a state to keep, vectors in one matrix."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.features.cache import Cache
from saccade.features.histogram import counted
from saccade.features.lazy import Items, Made, as_items, digest_of, stream

PLACE_AND_SPEED = ("cache", "n_jobs")  # parameters that do not change the result
NOT_IN_RECIPE = (*PLACE_AND_SPEED, "random_state")  # what it led to is in the state


class PictureTransformer(TransformerMixin, BaseEstimator, ABC):
    """A scikit-learn transformer of items (pictures, or descriptors of pictures)."""

    REVISION: ClassVar[int] = 1
    """Raised by whoever changes what the transformer gives: old results in a cache are then forgotten."""
    PACKAGES: ClassVar[tuple[str, ...]] = ()
    """Whose versions count likewise."""

    def state(self) -> dict[str, Array]:
        """What `fit` learned, as named arrays; nothing for one that learns nothing."""
        return {}

    def restore(self, state: dict[str, Array]) -> Self:
        """Set what `fit` would have learned; raises ValueError if it does not fit together."""
        return self

    def description(self) -> dict[str, Any]:
        """Name and parameters as values for JSON: what a model file keeps of it beside `state`."""
        from saccade.features.serialize import described

        return described(self)

    def recipe(self) -> str:
        """A text that changes when the result for a picture may change."""
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
        return True


class PerPicture(PictureTransformer):
    """Learns nothing: `transform` gives lazy items, one `make(item)` each."""

    @abstractmethod
    def make(self, item: Any) -> Any: ...

    def fit(self, X: Any, y: Any = None) -> Self:
        return self

    def transform(self, X: Any) -> Items:
        return Made(as_items(X), self.make, self.recipe())


class VectorEncoder(PictureTransformer):
    """Gives each item a sparse non-negative vector: a row of a CSR matrix. Subclasses have `cache` and `n_jobs`."""

    cache: Any
    n_jobs: int | None

    @abstractmethod
    def encode(self, item: Any) -> tuple[Array, Array]:
        """The non-zeros of the item's vector: ascending columns and their values."""

    @abstractmethod
    def width(self) -> int:
        """The number of columns."""

    def transform(self, X: Any) -> sp.csr_matrix:
        """One row per item, float32."""
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
        none = [np.empty(0, np.int32)]
        return sp.csr_matrix(
            (np.concatenate(values or [np.empty(0, np.float32)]), np.concatenate(columns or none), indptr),
            shape=(len(items), self.width()),
        )

    def _rows(self, items: Items, recipe: str, cache: Cache) -> Iterator[tuple[Array, Array]]:
        """The rows in order: from the cache, or made by some threads and kept there."""

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
            raise cache.broken("a row of it is no sparse row")
        at, value = row["columns"], row["values"]
        kinds = at.dtype == np.int32 and value.dtype == np.float32
        if not kinds or at.ndim != 1 or at.shape != value.shape or (np.diff(at) <= 0).any():
            raise cache.broken("a row of it is no sparse row")
        if len(at) and not 0 <= at[0] <= at[-1] < self.width():
            raise cache.broken(f"a row of it has columns beyond {self.width()}")

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """bagofwords0, bagofwords1, …, as scikit-learn names them."""
        name = type(self).__name__.lower()
        return np.array([f"{name}{k}" for k in range(self.width())], object)


class DescriptorEncoder(VectorEncoder):
    """Counts descriptors: each adds to some columns. So what a column stands for can be traced back to places."""

    @abstractmethod
    def occurrences(
        self,
        item: Any,
    ) -> tuple[Array, Array]:  # (k, a), (k, a)
        """The columns that each descriptor adds to, and how much, before any norm; 0 for nothing."""

    def encode(self, item: Any) -> tuple[Array, Array]:
        columns, weights = self.occurrences(item)
        return counted(columns.ravel(), weights.ravel())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"  # OpenCV has several names
