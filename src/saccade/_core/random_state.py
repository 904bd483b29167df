"""What `random_state` means, in every estimator and transformer."""

from typing import Any

from sklearn.utils import check_random_state

from saccade._core.errors import InvalidParameter


def seed_of(
    random_state: Any,  # None, an int or a numpy.random.RandomState
) -> int:
    """One number from which every random choice follows: always the same for None, as for 0; a RandomState moves on.

    >>> import numpy as np
    >>> rng = np.random.RandomState(0)
    >>> seed_of(None) == seed_of(0) == seed_of(rng), seed_of(rng) == seed_of(0), seed_of(1) == seed_of(0)
    (True, False, False)
    """
    try:
        return int(check_random_state(0 if random_state is None else random_state).randint(2**31 - 1))
    except (ValueError, TypeError, OverflowError):
        raise InvalidParameter(
            f"`random_state` must be None, a whole number from 0 to 4294967295, or a numpy.random.RandomState, got "
            f"{random_state!r:.100}. Of a Generator pass a number, such as generator.integers(2**32)."
        ) from None
