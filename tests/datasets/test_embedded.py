"""The pictures inside packages: form, range, and no network."""

from __future__ import annotations

import socket
import sys
from typing import Any

import numpy as np
import pytest
import sklearn.datasets  # noqa: F401  (its imports of the network are not meant by the tests below)

from saccade.datasets.embedded import DIGIT_SHAPE, FACE_SHAPE, digits, faces


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the embedded data must not use the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


def test_digits() -> None:
    X, y = digits()
    assert X.shape == (1797, np.prod(DIGIT_SHAPE))
    assert X.dtype == np.float64
    assert (X.min(), X.max()) == (0.0, 1.0)
    assert np.bincount(y).min() >= 170  # ten classes, none rare


def test_faces() -> None:
    X, y = faces()
    assert X.shape == (200, np.prod(FACE_SHAPE))
    assert X.dtype == np.float64
    assert X.min() >= 0.0
    assert X.max() <= 1.0
    assert y.tolist() == [1] * 100 + [0] * 100


def test_faces_without_scikit_image_name_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage.data", None)
    with pytest.raises(ModuleNotFoundError, match=r"saccade\[demo\]"):
        faces()
