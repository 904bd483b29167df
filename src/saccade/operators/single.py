"""Products in float32 whatever comes, for answers that need no more."""

from saccade._core.arrays import Array
from saccade.operators.backend import Backend
from saccade.operators.base import Operator


class Single(Operator):
    """K with float32 products alone: they read half of what float64 ones do, and are right to about 1e-6."""

    def __init__(self, K: Operator) -> None:
        self.K = K

    @property
    def backend(self) -> Backend:
        return self.K.backend

    @property
    def shape(self) -> tuple[int, int]:
        return self.K.shape

    @property
    def work(self) -> int:
        return self.K.work

    def diag(self) -> Array:
        return self.K.diag()

    def matmul(self, V: Array) -> Array:
        return self.K.matmul(V.astype("float32", copy=False))
