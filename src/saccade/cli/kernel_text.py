"""The kernel that `--kernel auto` chose, in words."""

from typing import Any

import numpy as np


def kernel_text(kernel: Any) -> str:
    """Without the numbers per column, which would fill the terminal.

    >>> from saccade.kernels import HIK, RBF, GeneralizedRBF, Weights
    >>> kernel_text(GeneralizedRBF(HIK(Weights([1.0, 2.0]), scale=1.0), beta=0.25))
    'exp(-0.25 D), D the L1 distance of columns over their deviations'
    >>> kernel_text(RBF([2.0, 3.0]))
    'exp(-0.5 D), D the squared distance of columns over lengths in proportion to their deviations'
    >>> kernel_text(RBF(2.0)), kernel_text(HIK())
    ('exp(-0.125 D), D the squared distance of columns as they are', 'HIK()')
    """
    from saccade.kernels import RBF, GeneralizedRBF

    if isinstance(kernel, GeneralizedRBF):
        beta, distance, over = kernel.beta, "L1", "their deviations" if kernel.base.transforms() else ""
    elif isinstance(kernel, RBF):
        single = np.size(kernel.length_scale) == 1
        beta, distance = 0.5 / float(kernel.length_scale) ** 2 if single else 0.5, "squared"
        over = "" if single else "lengths in proportion to their deviations"
    else:
        return repr(kernel)
    return f"exp(-{beta:.3g} D), D the {distance} distance of columns {f'over {over}' if over else 'as they are'}"
