"""Pictures that are nearly the same are found, others are not taken for them."""

import numpy as np
import pytest

from saccade._core import limits
from saccade.cli.duplicates import alike, find_duplicates
from saccade.features import read_pictures

rng = np.random.default_rng(0)
SMALL = rng.random((40, 256), np.float32)


def test_copies_of_copies() -> None:
    rows = SMALL.copy()
    rows[7] = np.clip(rows[3] + rng.normal(0.0, 0.01, 256), 0, 1)  # as compression changes it
    rows[30] = rows[3]
    found = alike(rows)
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == [(3, 7), (3, 30), (7, 30)]


@pytest.mark.parametrize(
    "change",
    [
        lambda row: 0.5 * row,
        lambda row: row.mean() + 0.5 * (row - row.mean()),
        lambda row: row - 0.1,
        lambda row: 1.0 - row,
        lambda row: row[::-1],
        lambda row: np.full_like(row, 0.5),
    ],
    ids=["fainter", "of less contrast", "darker", "negative", "turned", "flat"],
)
def test_what_is_not_the_same(change: object) -> None:
    rows = SMALL.copy()
    rows[7] = change(rows[3])  # type: ignore[operator]
    assert alike(rows).first.size == 0


def test_flat_pictures_differ_by_their_brightness() -> None:
    rows = np.repeat(np.array([0.1, 0.5, 0.51, 0.9], np.float32)[:, None], 256, axis=1)
    found = alike(rows)
    assert (found.first.tolist(), found.second.tolist()) == ([1], [2])


def test_in_blocks() -> None:
    rows = np.vstack([SMALL, SMALL[::-1]])
    found = alike(rows, at_once=7)
    assert (found.first + found.second == 79).all()
    assert found.first.size == 40


def test_pictures_and_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = rng.integers(0, 255, (6, 8, 3)).astype(np.uint8).repeat(40, axis=0).repeat(40, axis=1)
    pictures = read_pictures([picture, 255 - picture, picture[2:-2, 2:-2]])
    found = find_duplicates(pictures)
    assert found is not None
    assert found.first.tolist() == [0]
    monkeypatch.setattr(limits, "PICTURES_COMPARED", 2)
    assert find_duplicates(pictures) is None
