"""Which training labels are probably wrong, and what the others say instead."""

from dataclasses import dataclass, fields
from typing import Annotated, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.checks import check_flag
from saccade._core.errors import InvalidInput
from saccade.estimators.classifier import GPClassifier
from saccade.inference.posterior.gp import GP
from saccade.scores.probability import class_means

DIGITS = 9  # decimals of a decision that count: further ones are rounding, and differ between processors


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """Training examples with the most suspicious label first; `label_issues` makes it.

    Parameters
    ----------
    index : array of shape (s,)
        Numbers of the examples, in the order in which the model got them. Examples of weight 0 are not counted.
    given, proposed : array of shape (s,)
        The label that the model was fitted with, and the most probable other one.
    probability : array of shape (s,)
        Leave-one-out probability of the given label.
    score : array of shape (s,)
        log(p(given)/p(proposed)), ascending: negative where the other examples contradict the label.

    Examples
    --------
    >>> X = np.array([[5.0, 1.0], [6.0, 1.0], [5.0, 2.0], [1.0, 5.0], [1.0, 6.0], [2.0, 5.0]])
    >>> found = label_issues(GPClassifier().fit(X, ["wide", "wide", "wide", "tall", "tall", "wide"]))
    >>> found.index, found.given, found.proposed
    (array([5]), array(['wide'], dtype='<U4'), array(['tall'], dtype='<U4'))
    """

    index: Annotated[Array, "s"]
    given: Annotated[Array, "s"]
    proposed: Annotated[Array, "s"]
    probability: Annotated[Array, "s"]
    score: Annotated[Array, "s"]

    def __len__(self) -> int:
        return len(self.index)

    def head(self, count: int) -> Self:
        """The most suspicious ones.

        Parameters
        ----------
        count : int
            How many; fewer where there are not as many.

        Returns
        -------
        LabelIssues
            The first `count`.
        """
        return self._at(slice(max(count, 0)))

    def _at(self, rows: Array | slice) -> Self:
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))


def label_issues(model: GPClassifier, *, everything: bool = False) -> LabelIssues:
    """Training examples whose label is probably wrong, and the label to check instead; nothing is retrained.

    Each example is judged by all others: with the leave-one-out probabilities p of `leave_one_out_proba_`, the score of
    an example with label g is

        log p_g − max_{k ≠ g} log p_k = sharpness · (μ_g − max_{k ≠ g} μ_k),

    where μ are its leave-one-out decisions. The suspects are those with a negative score. docs/decisions/023 compares
    other scores and values of `noise`: the one that the default learns is good enough.

    Beyond 2,048 examples the decisions are estimates, and `model.leave_one_out_error_` says how good they are.

    Parameters
    ----------
    model : GPClassifier
        Fitted, not loaded: it needs its training examples, and leave-one-out decisions for all of them.
    everything : bool
        True ranks all examples, False only the suspects.

    Returns
    -------
    LabelIssues
        Equal scores are in the order of the examples.

    Raises
    ------
    InvalidInput
        If `model` is of another kind, or its mean is approximate and some examples have no leave-one-out decision.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> y[17] = 3  # a seven
    >>> found = label_issues(GPClassifier().fit(X[:500], y[:500]))
    >>> {int(i): (int(a), int(b)) for i, a, b in zip(found.index, found.given, found.proposed)}[17]
    (3, 7)
    """
    check_flag("everything", everything)
    label, decision = _judged(model)
    rows = np.arange(label.size)
    others = decision.copy()
    others[rows, label] = -np.inf
    proposed = np.round(others, DIGITS).argmax(axis=1)
    margin = decision[rows, label] - others[rows, proposed]
    given, chance = model.classes_[label], model.leave_one_out_proba_[rows, label]
    ranked = LabelIssues(rows, given, model.classes_[proposed], chance, model.sharpness_ * margin)
    counts = np.round(margin, DIGITS)
    order = np.argsort(counts, kind="stable")
    return ranked._at(order if everything else order[counts[order] < 0.0])


def _judged(model: GPClassifier) -> tuple[Array, Array]:  # (n,) class numbers, (n, M)
    """The labels, and one leave-one-out decision per class."""
    if not isinstance(model, GPClassifier):
        raise InvalidInput(f"`model` must be a GPClassifier, which has labels to check, got a {type(model).__name__}.")
    check_is_fitted(model)
    if not isinstance(model.gp_, GP):
        model.gp_.needs_examples()
    decision = class_means(model.leave_one_out_decision_.reshape(model.targets_.label.size, -1))
    unknown = int(np.isnan(decision).any(axis=1).sum())
    if unknown:
        raise InvalidInput(
            f"{unknown} of {len(decision)} examples have no leave-one-out decision, because the mean is approximate "
            f'(approximation="{model.approximation}"). Fit with approximation="auto", whose mean is exact.'
        )
    return model.targets_.label, decision
