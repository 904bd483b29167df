"""Real pictures that lie inside packages already installed: nothing is downloaded."""

from collections.abc import Callable
from typing import Any

import numpy as np

from saccade._core.arrays import Array

DIGIT_SHAPE = (8, 8)
FACE_SHAPE = (25, 25)


def digits() -> tuple[Array, Array]:  # (1797, 64), (1797,)
    """Handwritten digits, 8 × 8 grey values from 0 to 1 (scikit-learn's copy of the UCI set).

    Returns
    -------
    X : array of shape (1797, 64)
        One picture per row, its rows of pixels one after the other.
    y : array of shape (1797,)
        The digit of each picture, 0 to 9.

    Examples
    --------
    >>> X, y = digits()
    >>> X.shape, float(X.min()), float(X.max()), y[:10].tolist()
    ((1797, 64), 0.0, 1.0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def faces() -> tuple[Array, Array]:  # (200, 625), (200,)
    """100 faces and 100 pieces of background, 25 × 25 grey values from 0 to 1.

    A part of Labeled Faces in the Wild (Huang et al. 2012) that ships in the scikit-image wheel.

    Returns
    -------
    X : array of shape (200, 625)
        One picture per row, its rows of pixels one after the other.
    y : array of shape (200,)
        1 for a face, 0 for background.

    Examples
    --------
    >>> X, y = faces()
    >>> X.shape, int(y.sum())
    ((200, 625), 100)
    """
    try:
        from skimage.data import lfw_subset
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("faces() needs scikit-image: pip install 'saccade[demo]'", name=error.name) from None
    load: Callable[[], Any] = lfw_subset  # carries no types
    pictures = np.asarray(load(), np.float64)
    return pictures.reshape(len(pictures), -1), np.repeat([1, 0], 100)
