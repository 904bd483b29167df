"""Predictions for each training example as if it had not been there, in closed form."""

from typing import Annotated

import numpy as np

from saccade._core.arrays import Array


def leave_one_out(
    Y: Annotated[Array, "n, m"],
    alpha: Annotated[Array, "n, m"],
    inverse_diagonal: Annotated[Array, "n, 1 | n, m"],  # of (K + N)⁻¹
    noise: Annotated[Array, "n, 1 | n, m"],
    weight: Annotated[Array, "n"] | None = None,  # how many equal copies each example stands for
) -> tuple[Array, Array]:
    """Mean (n, m) and latent variance of f_i with one copy of example i removed.

    With d_i = [(K + N)⁻¹]_ii and ρ = 1/w the share of the example's precision that goes,

        mean = y_i − α_i N_i / (1 − ρ(1 − N_i d_i)),   variance = N_i (1 − N_i d_i) / (1 − ρ(1 − N_i d_i)),

    which for w = 1 is the usual y_i − α_i / d_i and 1/d_i − N_i.
    """
    share = 1.0 if weight is None else np.minimum(1.0, 1.0 / weight)[:, None]
    kept = noise * inverse_diagonal  # one minus the leverage
    left = (1.0 - share) + share * kept
    return Y - alpha * noise / left, noise * (1.0 - kept) / left


def turning_points(
    Y: Annotated[Array, "n, m"],  # labels ±1; one +1 in each row where m > 1
    alpha: Annotated[Array, "n, m"],
) -> Annotated[Array, "n"]:
    """The d_i above which example i, left out, has its own class: y − α/d there is largest (m = 1: of y's sign).

    2 > (α_own − α_j)/d for every other class j, or 1 > yα/d with one column.
    """
    if Y.shape[1] == 1:
        return np.asarray((Y * alpha)[:, 0])
    own, others = np.where(Y > 0, alpha, 0.0).sum(axis=1), np.where(Y > 0, np.inf, alpha).min(axis=1)
    return np.asarray((own - others) / 2.0)
