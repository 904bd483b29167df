"""Rows without a label: which entries of y say so, and what a file has for them."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import column_or_1d

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_classes, check_weight, check_whole, is_number, shown
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.estimators.targets import ClassTargets

NO_CLASS = -1  # in a file


def check_unlabelled(value: object) -> None:
    """None, or what may stand in y."""
    if not (value is None or isinstance(value, str) or is_number(value)):
        raise InvalidParameter(
            f"`unlabelled` must be None, or what stands in y for no label, such as -1 or np.nan, got {shown(value)}."
        )


def parted(
    X: Annotated[Any, "n, d"],  # checked
    y: Any,
    sample_weight: Any,
    unlabelled: Any,
) -> tuple[Any, Array, Array | None, Annotated[Array, "u"]]:
    """Rows, labels and weights where there are labels; and the numbers of the other rows, but for those of weight 0."""
    known, labels = known_labels(y, X.shape[0], unlabelled)
    weight = check_weight(sample_weight, X)
    others = np.flatnonzero(~known if weight is None else ~known & (weight > 0))
    return X[known], labels, None if weight is None else weight[known], others


def known_labels(y: Any, n: int, unlabelled: Any) -> tuple[Annotated[Array, "n: bool"], Array]:
    """Which of n rows have a label, and their labels, checked."""
    check_whole(y, "y")
    given = column_or_1d(y if hasattr(y, "dtype") else np.array(y, object))
    if given.size != n:
        raise InvalidInput(f"`y` must have an entry for each of the {n} rows of X, got {given.size}.")
    known = ~_without(given, unlabelled)
    labels = given[known]
    labels = np.array(labels.tolist()) if labels.dtype == object else labels
    if not labels.size:
        raise InvalidInput(f"`y` has no label: all {n} entries are {shown(unlabelled)}, as `unlabelled` says.")
    if gaps := int(_without(labels, np.nan).sum()):
        raise InvalidInput(
            f"`y` has {gaps} entries that are None or NaN, and `unlabelled` is {shown(unlabelled)}. With "
            "unlabelled=np.nan, None and NaN mean that a row has no label."
        )
    check_classes(labels)
    return known, labels


def check_all_labelled(y: Any, unlabelled: Any) -> None:
    """For learning step by step, where the graph stays that of the first fit."""
    check_unlabelled(unlabelled)
    if unlabelled is not None and (count := int(_without(np.array(y, object), unlabelled).sum())):
        raise InvalidInput(
            f"`y` has {count} rows without a label, and `partial_fit` learns labels only. Call fit with all rows."
        )


def _without(y: Array, unlabelled: Any) -> Annotated[Array, "n: bool"]:
    """Which entries are no label: −1 and −1.0 are equal, 1 and True are not; NaN stands for None too."""
    values = y.tolist()
    if unlabelled != unlabelled:
        return np.array([value is None or value != value for value in values], bool)
    truth = isinstance(unlabelled, bool)
    return np.array([isinstance(value, bool) == truth and value == unlabelled for value in values], bool)


def joined_rows(
    X: Annotated[Any, "l, d"], targets: ClassTargets, others: Annotated[Any, "u, d"]
) -> tuple[Any, dict[str, Array | None]]:
    """What a file keeps: rows with a label, then those without; of class −1 and weight 1."""
    count, weight = others.shape[0], targets.weight
    rows = sp.vstack([X, others]).tocsr() if sp.issparse(X) else np.vstack([X, others])
    label = np.append(targets.label, np.full(count, NO_CLASS))
    return rows, {"y": label, "weight": None if weight is None else np.append(weight, np.ones(count))}


def labelled_rows(parts: dict[str, Array]) -> tuple[dict[str, Array], Annotated[Array, "n: bool"] | None]:
    """From checked arrays of a file: labels and weights that there are, and which rows have none, if any."""
    others = parts["y"] == NO_CLASS
    if not others.any():
        return parts, None
    if others.ndim != 1 or others.sum() > limits.NEIGHBOURS:
        raise ValueError(f"{others.sum()} rows without a label")
    return {name: parts[name][~others] for name in ("y", "weight") if name in parts}, others
