"""What it costs to say one class where it is another: a mapping, because classes come to be known one by one."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.checks import is_number, shown
from saccade._core.errors import InvalidParameter

Losses = dict[tuple[Any, Any], float]  # by (said, true)


def check_losses(losses: Any, strategy: Any) -> Losses | None:
    """The losses, or an error that says what they must be."""
    if losses is None:
        return None
    if strategy != "value":
        raise InvalidParameter(f'`losses` is for strategy="value", and this is {strategy!r:.100}. Leave it out.')
    pairs = isinstance(losses, Mapping) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in losses)
    if not pairs or not all(is_number(cost) and 0.0 <= cost < np.inf for cost in losses.values()):
        raise InvalidParameter(
            f"`losses` must give a cost from 0 on for pairs of classes, got {shown(losses)}. Pass "
            '{("said", "true"): 5.0}; pairs that are left out cost 1.'
        )
    return {pair: float(cost) for pair, cost in losses.items()}


def loss_matrix(losses: Losses | None, classes: Annotated[Array, "m"]) -> Annotated[Array, "m, m"]:
    """The cost of saying class i where it is class j: 1 where nothing else is given, 0 for i = j.

    >>> loss_matrix({("sick", "healthy"): 1.0, ("healthy", "sick"): 20.0}, np.array(["healthy", "sick"]))
    array([[ 0., 20.],
           [ 1.,  0.]])
    """
    names, given = classes.tolist(), losses or {}
    return np.array([[given.get((said, true), float(said != true)) for true in names] for said in names])
