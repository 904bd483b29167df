"""How much each of the two signs of an unknown class is to count: learned by hiding some of the known classes."""

from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade._core.blas import blas_threads_for
from saccade.scores.novelty import fisher_product, p_values, unexplained
from saccade.scores.probability import probabilities
from saccade.solvers.cholesky import factorise

WEIGHTS = (0.0, 0.25, 0.75, 1.0)  # of the confidence, tried instead of EVEN
EVEN = 0.5  # both signs count the same
FEWEST = 10  # classes from which the parts tell something of further classes
PARTS = 5  # the classes are hidden a part at a time

Signs = tuple[Array, Array]  # (n,), (n,): how much of the variance training explains, less 1, and the confidence


def choose_weight(
    K: Annotated[Array, "n, n"],  # of some training examples
    prior: Annotated[Array, "n"],  # its diagonal
    label: Annotated[Array, "n"],  # numbers of their classes
    noise: float,
    sharpness: float,
) -> float:
    """The weight of the confidence, from 0 to 1, that tells hidden classes from the others best; EVEN in doubt.

    Each part of the classes is hidden in turn. A GP of the others gives both signs for the hidden examples, and those
    of every other example, left out. A weight replaces EVEN if its AUC is higher by more than a standard error over
    the parts. With few classes EVEN stays: on six classes of clothes or animals, what suited hidden ones did not suit
    the next (docs/decisions/034).
    """
    classes = np.random.default_rng(0).permutation(np.unique(label))
    if classes.size < FEWEST:
        return EVEN
    parts = [np.isin(label, part) for part in np.array_split(classes, PARTS)]
    with blas_threads_for(len(K)):
        signs = [hide(K, prior, label, hidden, noise, sharpness) for hidden in parts]
    even = np.array([_auc(*pair, EVEN) for pair in signs])
    best, most = EVEN, 1e-9  # a gain that rounding cannot make
    for weight in WEIGHTS:
        gain = np.array([_auc(*pair, weight) for pair in signs]) - even
        if gain.mean() > max(most, gain.std(ddof=1) / np.sqrt(gain.size)):
            best, most = weight, gain.mean()
    return best


def hide(
    K: Annotated[Array, "n, n"],
    prior: Annotated[Array, "n"],
    label: Annotated[Array, "n"],
    hidden: Annotated[Array, "n"],  # bool
    noise: float,
    sharpness: float,
) -> tuple[Signs, Signs]:
    """The signs of the other examples, each left out, and of the hidden ones, by a regression of the other ones."""
    seen = np.flatnonzero(~hidden)
    k = K[np.ix_(hidden, seen)]
    Y = np.where(label[seen, None] == np.unique(label[seen]), 1.0, -1.0)
    A = factorise(K[np.ix_(seen, seen)], np.full(seen.size, noise), overwrite=True).inverse()
    Y = Y[:, 1:] if Y.shape[1] == 2 else Y  # of two classes the second only, as `probabilities` has it
    alpha, lone = A @ Y, 1.0 / np.diag(A)
    known = (Y - alpha * lone[:, None], lone - noise, prior[seen])
    new = (k @ alpha, prior[hidden] - np.einsum("ij,ij->i", k @ A, k), prior[hidden])
    first, second = (
        (-unexplained(variance, usual), probabilities(mean, sharpness).max(axis=1))
        for mean, variance, usual in (known, new)
    )
    return first, second


def _auc(known: Signs, new: Signs, weight: float) -> float:
    explained, sure = (np.sort(sign) for sign in known)
    mine, others = (np.sort(fisher_product(p_values(a, explained), p_values(b, sure), weight)) for a, b in (known, new))
    below, ties = (np.searchsorted(others, mine, side) for side in ("left", "right"))
    return float((below + ties).mean()) / (2 * others.size)  # Mann and Whitney: a tie counts half
