"""What `random_state` means, in every estimator and transformer."""

from typing import Annotated, Any

import numpy as np
from sklearn.utils import check_random_state

from saccade._core.arrays import RandomSource
from saccade._core.errors import InvalidParameter


class DrawnSeed(int):
    """A seed that was drawn from a random state, as a model file keeps it: `draw` gives it back."""


def draw(
    random_state: Annotated[Any, "None, an int, a numpy.random.RandomState or a numpy.random.Generator"], below: int
) -> int:
    """A random number from 0 to `below` − 1; a RandomState or Generator moves on."""
    if isinstance(random_state, DrawnSeed):
        return int(random_state) % below
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(below))
    try:
        return int(check_random_state(random_state).randint(below))
    except (ValueError, OverflowError):
        raise InvalidParameter(
            "`random_state` must be None, a whole number from 0 to 4294967295, a numpy.random.RandomState or a "
            f"numpy.random.Generator, got {type(random_state).__name__}{_number(random_state)}. Pass 0 for the same "
            "random numbers at every call."
        ) from None


def _number(random_state: RandomSource) -> str:
    """The number, where it is one of few digits."""
    return f" {random_state}" if isinstance(random_state, int | float) and abs(random_state) < 2**64 else ""


def seed_of(random_state: Annotated[Any, "as in `draw`"]) -> int:
    """One number from which every random choice follows: always the same for None, as for 0.

    >>> import numpy as np
    >>> rng = np.random.RandomState(0)
    >>> seed_of(None) == seed_of(0) == seed_of(rng), seed_of(rng) == seed_of(0), seed_of(1) == seed_of(0)
    (True, False, False)
    """
    return draw(0 if random_state is None else random_state, 2**31 - 1)
