"""Estimators whose kernel matrices an engine holds (saccade.kernels.engines)."""

from __future__ import annotations

from typing import Self

from sklearn.base import BaseEstimator

from saccade.kernels.engines import MEMORY, Engine


class OnEngine(BaseEstimator):
    """The engine is no parameter: it says where numbers lie, not what is learned. `clone` keeps it all the same."""

    engine: Engine = MEMORY

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        if "engine" in vars(self):  # else it has the default of the class
            copy.engine = self.engine
        return copy
