"""Shares of looks by the prior and at random, and a search that goes on from its file."""

from pathlib import Path

import numpy as np
import pytest

from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize import Localizer, iou

TARGET = np.array([30.0, 20.0, 60.0, 50.0])


def judge(boxes: np.ndarray) -> np.ndarray:
    return np.asarray(iou(boxes, TARGET[None]))[:, 0]


@pytest.mark.parametrize("n", [1, 3, 5])
def test_shares_that_are_both_rounded_up_give_n_boxes(n: int) -> None:
    search = Localizer((100, 100), from_prior=0.5, at_random=0.5, random_state=0)
    boxes = search.ask(4)
    search.tell(boxes, judge(boxes))
    assert search.ask(n).shape == (n, 4)


def test_a_search_without_a_seed_goes_on_from_its_file(tmp_path: Path) -> None:
    state = tmp_path / "search.json"
    first = Localizer((100, 100))
    first.run(judge, looks=10, sure=1.0, state=state)
    again = Localizer((100, 100))
    again.run(judge, looks=20, sure=1.0, state=state)
    assert again.looks == 20
    np.testing.assert_array_equal(again.boxes[:10], first.boxes)
    with pytest.raises(InvalidInput, match="another random_state"):
        Localizer((100, 100), random_state=first.random_state + 1).run(judge, looks=30, sure=1.0, state=state)


def test_crowd_is_a_flag() -> None:
    with pytest.raises(InvalidParameter, match="`crowd`"):
        Localizer((100, 100), crowd=1)  # type: ignore[arg-type]
