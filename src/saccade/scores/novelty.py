"""How new an example is, from the doubt about it alone."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def unexplained(
    variance: Array,  # (n,) of the latent function
    prior: Array,  # (n,) k(x, x), its variance before any training
) -> Array:  # (n,)
    """The share of the prior variance that training left: 0 for an example seen often, 1 for one like no other.

    An example without any feature (k(x, x) = 0) is like no other.

    >>> unexplained(np.array([0.2, 0.0]), np.array([0.8, 0.0]))
    array([0.25, 1.  ])
    """
    share = np.divide(variance, prior, out=np.ones_like(prior, float), where=prior > 0)
    return np.asarray(np.clip(share, 0.0, 1.0))
