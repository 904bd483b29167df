"""What others need of a model, as types: a class of ours or of scikit-learn's fits if it has these methods."""

from typing import Annotated, Any, Protocol

from saccade.estimators.explanation import Explanation
from saccade.inference.likelihoods.infer import Inference
from saccade.kernels.base import Kernel
from saccade.operators.tables import GridTables, PiecewiseTables


class Predictor(Protocol):
    """A model that learns from rows and answers for others; `active` asks for labels with it."""

    def fit(self, X: Any, y: Any, /) -> Any:
        """Train on X (n, d) and y (n,)."""

    def predict(self, X: Any) -> Any:
        """One answer per row of X."""


class OutlierScorer(Protocol):
    """A model of what is normal."""

    def fit(self, X: Any) -> Any:
        """Train on X (n, d)."""

    def score_samples(self, X: Any) -> Annotated[Any, "n"]:
        """Higher is more normal."""


class AdditiveModel(Protocol):
    """A fitted HIK model: its decision is a sum of one function per feature."""

    n_features_in_: int
    kernel_: Kernel
    inference: Inference

    @property
    def tables_(self) -> PiecewiseTables | GridTables | None:
        """The functions at their levels."""

    def explain(self, X: Any) -> Explanation:
        """The share of each feature of every decision."""
