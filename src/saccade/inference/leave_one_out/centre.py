"""Leaving one out where the kernel is centred: the mean of the training rows goes without the row too.

Let C be the part of K that is centred, c its column i and κ = C_ii. Without one of n rows the mean moves by −eφ̃_i, φ̃_i
being row i less the mean and e = 1/(n − 1). So without row i

    K′ = K + e(c1ᵀ + 1cᵀ) + e²κ11ᵀ,   k′ = k + ec + e(1 + e)κ1,   k′(x_i, x_i) = K_ii + e(2 + e)κ,

and mean and variance take inner products of k, c, 1 and y by the inverse of K + N without row i. With B = (K + N)⁻¹,
that of p and q is pᵀBq − (Bp)_i(Bq)_i / B_ii; for one of w copies, B_ii + (w − 1)/N_i stands in the place of B_ii.

With the mean as it was, a row of a centred kernel is minus the sum of the others, and where there are fewer rows than
features no variance is left of it: every new row then looks novel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array


def without_each(
    prior: Annotated[Array, "n"],  # K_ii
    C: Annotated[Array, "n, n"] | None,  # None where it is K
    noise: Annotated[Array, "n"],
    solve: Callable[[Array], Array],  # by K + N
    inverse: Annotated[Array, "n"],  # B_ii
    alpha: Annotated[Array, "n, m"],  # BY
    Y: Annotated[Array, "n, m"],
    weight: Annotated[Array, "n"] | None,  # how many equal copies each example stands for
) -> tuple[Array, Array]:  # (n, m), (n,)
    """Mean and variance of every example without one copy of it, in the kernel and in its centre."""
    n, one = len(Y), np.ones((len(Y), 1))
    copies = np.ones(n) if weight is None else weight
    e = np.minimum(copies, 1.0) / (copies.sum() - np.minimum(copies, 1.0))
    ones = solve(one)[:, 0]
    lever, k_one, k_y = 1.0 - noise * inverse, 1.0 - noise * ones, Y - noise[:, None] * alpha  # (Bk)_i, kᵀB1, kᵀBY
    kk = prior - noise * lever
    own, c_i, kc, cc, c_one, c_y = prior, lever, kk, kk, k_one, k_y
    if C is not None:
        BC, own = solve(C), C.diagonal()
        c_i, cc, c_one, c_y = BC.diagonal(), np.einsum("ij,ij->j", C, BC), C @ ones, C @ alpha
        kc = own - noise * c_i
    rows, total = np.stack([lever, c_i, ones], axis=1), np.full(n, ones.sum())
    gone = inverse + np.divide(np.maximum(copies - 1.0, 0.0), noise, out=np.zeros(n), where=noise > 0)
    G = np.array([[kk, kc, k_one], [kc, cc, c_one], [k_one, c_one, total]]).transpose(2, 0, 1)
    G = G - rows[:, :, None] * rows[:, None] / gone[:, None, None]
    H = np.stack([k_y, c_y, np.broadcast_to(alpha.sum(axis=0), Y.shape)], axis=1)
    H = H - rows[:, :, None] * alpha[:, None] / gone[:, None, None]
    move = np.zeros((n, 3, 3))
    move[:, 1, 2] = move[:, 2, 1] = e
    move[:, 2, 2] = e**2 * own
    k = np.stack([np.ones(n), e, e * (1.0 + e) * own], axis=1)[:, :, None]  # k′ in terms of k, c and 1
    solved = np.linalg.solve(np.eye(3) + G @ move, np.concatenate([G @ k, H], axis=2))
    found, top = np.einsum("ijk,ijl->il", k, solved), prior + e * (2.0 + e) * own
    return found[:, 1:], np.clip(top - found[:, 0], 0.0, top)
