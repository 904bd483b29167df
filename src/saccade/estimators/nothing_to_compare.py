"""Warnings of a detector about examples that tell it little: none but one, zeros, next to no features."""

from __future__ import annotations

import warnings
from typing import Annotated

from saccade._core.arrays import Array


def warn_of_training(
    prior: Annotated[Array, "n"],  # k(x, x) of the training examples
    least: float,  # up to which one has nothing to compare
) -> None:
    """At the caller of `fit`."""
    if not prior.any():
        text = "All training examples are 0, so nothing is known of what is normal. Check how the features were made."
    elif prior.size == 1:
        text = (
            "OneClassGP was given 1 training example: how much normal examples differ, which thresholds and "
            "probabilities come from, is not known. Give at least 2; 20 or more are better."
        )
    elif empty := int((prior <= least).sum()):
        text = _empty_rows(empty, prior.size, "training examples")
    else:
        return
    warnings.warn(text, stacklevel=4)


def warn_of_new(
    prior: Annotated[Array, "b"],  # k(x, x) of new examples
    least: float,
) -> None:
    """At the caller of `score_samples`."""
    if empty := int((prior <= least).sum()):
        warnings.warn(_empty_rows(empty, prior.size, "examples"), stacklevel=3)


def _empty_rows(empty: int, n: int, what: str) -> str:
    return (
        f"{empty} of {n} {what} have nothing to compare: all their features are near 0, in comparison with the other "
        'examples. They count as neither normal nor novel. If 0 is just a low value here, use scale="columns"; else '
        "leave such rows out."
    )
