"""What each feature adds to a decision."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core.arrays import Array
from saccade._core.checks import check_count
from saccade._core.errors import InvalidInput
from saccade.inference.posterior.base import Posterior


@dataclass(frozen=True, eq=False)
class Explanation:
    """The exact share of each feature of every decision: decision = offset + the sum of the shares.

    Attributes
    ----------
    shares : tuple of CSR matrices (n, d)
        One for each column of the decision: of a classifier one per class, and for two classes one, that of the second
        class. Entries are the features of X that are not 0; a feature that is 0 has no share.
    offset : array (m,), or (n, m) where the `mean` of a `GPRegressor` is a function
        The decision without any feature: 0 for `GPClassifier`, the mean before any example for `GPRegressor`, minus
        the threshold for `OneClassGP`.
    two_classes : bool
        Whether the one column stands for two classes: the first has the negative of the second's shares.

    Examples
    --------
    >>> from saccade import GPClassifier
    >>> X, y = np.array([[1.0, 0.0], [0.9, 0.2], [0.0, 1.0]]), ["a", "a", "b"]
    >>> model = GPClassifier().fit(X, y)
    >>> found = model.explain(X)
    >>> bool(np.allclose(found.decision()[:, 0], model.decision_function(X)))
    True
    >>> found.of(0, model.classes_.tolist().index("a")).toarray()[0].round(2)
    array([0.98, 0.  ])
    """

    shares: tuple[sp.csr_matrix, ...]
    offset: Array
    two_classes: bool = False

    def decision(self) -> Annotated[Array, "n, m"]:
        """What the shares and the offset sum to."""
        return np.column_stack([np.asarray(part.sum(axis=1)).ravel() for part in self.shares]) + self.offset

    def of(
        self,
        row: int,
        output: int = 0,  # a class number where there are classes
        against: int | None = None,
    ) -> Annotated[sp.csr_matrix, "1, d"]:
        """The shares of one decision about one example, or of the difference of two decisions."""
        found = self._one(row, output)
        return found if against is None else sp.csr_matrix(found - self._one(row, against))

    def _one(self, row: int, output: int) -> sp.csr_matrix:
        if self.two_classes:
            return self.shares[0][row] * (2.0 * output - 1.0)
        return self.shares[output][row]


def explained(
    gp: Posterior,
    X: Annotated[Any, "n, d"],  # checked
    scale: Annotated[Array, "1, m | n, m"],  # between latent mean and decision
    offset: Annotated[Array, "m | n, m"],  # what is added
    two_classes: bool = False,
) -> Explanation:
    """The decisions about X as sums over features; for posteriors that have tables."""
    values, columns, pointers = gp.shares(X)
    for part, factor in zip(values, scale.T, strict=True):
        part *= factor if len(factor) == 1 else np.repeat(factor, np.diff(pointers))
    # Arrays of their own: SciPy changes a matrix in place, and X must not change with it.
    parts = tuple(sp.csr_matrix((part, columns.copy(), pointers.copy()), shape=X.shape) for part in values)
    return Explanation(parts, offset, two_classes)


def decision_number(model: Any, label: Any) -> int:
    """The number of a class, or of a target; None is the only target, or the second of two classes."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        number = 0 if label is None else check_count("label", label, "It is the number of a target.", least=0)
        if model.tables_ is not None and number >= model.tables_.T.shape[1]:
            raise InvalidInput(f"`label` must be a target from 0 to {model.tables_.T.shape[1] - 1}, got {label!r}.")
        return number
    if label is None and len(classes) == 2:
        return 1
    known = np.flatnonzero(classes == label)
    if not known.size:
        raise InvalidInput(f"`label` must be one of the classes {classes.tolist()[:10]}, got {label!r}.")
    return int(known[0])
