"""Boxes: overlap by counting cells, coordinates there and back, and what is wrong with a box in words."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize import boxes as B
from saccade.localize import iou, non_maximum_suppression
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
PICTURE = np.array([10.0, 20.0, 210.0, 120.0])


@st.composite
def cell_boxes(draw: st.DrawFn) -> list[int]:
    """A box with whole corners in 12 × 12 cells."""
    x0, y0 = draw(st.integers(0, 10)), draw(st.integers(0, 10))
    return [x0, y0, draw(st.integers(x0 + 1, 12)), draw(st.integers(y0 + 1, 12))]


def cells(box: list[int]) -> Array:
    grid = np.zeros((12, 12), bool)
    grid[box[1] : box[3], box[0] : box[2]] = True
    return grid


@given(a=st.lists(cell_boxes(), min_size=1, max_size=4), b=st.lists(cell_boxes(), min_size=1, max_size=4))
def test_iou_counts_cells(a: list[list[int]], b: list[list[int]]) -> None:
    expected = [[(cells(p) & cells(q)).sum() / (cells(p) | cells(q)).sum() for q in b] for p in a]
    assert_close(iou(a, b), expected)
    assert_close(iou(a, b), iou(b, a).T)
    k = min(len(a), len(b))
    assert_close(iou(a[:k], b[:k], pairwise=False), np.diagonal(expected))


def test_shapes_of_iou() -> None:
    one, three = [0, 0, 2, 2], [[0, 0, 2, 2], [0, 0, 2, 1], [4, 4, 5, 5]]
    assert iou(one, one) == 1.0
    assert isinstance(iou(one, one), float)
    assert isinstance(iou(one, one, pairwise=False), float)
    assert iou(one, three).tolist() == iou(three, one).tolist() == [1.0, 0.5, 0.0]
    assert iou(one, three, pairwise=False).tolist() == [1.0, 0.5, 0.0]
    assert iou([one], three).shape == (1, 3)
    assert iou([], three).shape == (0, 3)
    assert iou(np.zeros((0, 4)), np.zeros((0, 4))).shape == (0, 0)
    with pytest.raises(InvalidInput, match="equally many boxes, got 2 and 3"):
        iou(three[:2], three, pairwise=False)


def test_iou_of_boxes_far_apart_in_size_is_finite() -> None:
    tiny, huge = [0.0, 0.0, 1e-150, 1e-150], [0.0, 0.0, 1e15, 1e15]
    assert iou(tiny, tiny) == 1.0
    assert iou(tiny, huge) == 0.0


@pytest.mark.parametrize(
    ("boxes", "says"),
    [
        ([[0, 0, 1, 1], [0, 0, np.nan, 1]], r"Box 1 of `boxes`, \[0.0, 0.0, nan, 1.0\], is not finite"),
        ([[0, 0, np.inf, 1]], "is not finite"),
        ([[0, 0, 1e16, 1]], "far too large"),
        ([[5, 0, 2, 1]], r"\[5.0, 0.0, 2.0, 1.0\], is inverted.*x, y, width, height"),
        ([[5, 4, 9, 1], [5, 4, 9, 1]], "is inverted.*1 more boxes have this fault"),
        ([[5, 5, 5, 9]], "is empty: it has no area"),
        ([[0, 0, 1e-200, 1e-200]], "is empty: it has no area"),
        ([[5, 5, 9, 11]], r"is not inside the picture \[0.0, 0.0, 10.0, 10.0\].*`clip`"),
        ([[-1, 5, 9, 9]], "is not inside the picture"),
        ([1, 2, 3], r"must be an array \(n, 4\).*shape \(3,\)"),
        ([["a", 0, 1, 1]], "must be an array of numbers"),
        ([[0, 0, 1, 1], [0, 0, 1]], "must be an array of numbers"),
        ([[0, 0, 1, 10**400]], "must be an array of numbers"),
    ],
)
def test_a_bad_box_is_named(boxes: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        B.check_boxes(boxes, bounds=(10, 10))


@pytest.mark.parametrize("bounds", [(0, 5), (5, -1), (3, 3, 3, 9), (np.nan, 1), (np.inf, 1), [[5, 5], [0, 5]]])
def test_a_picture_needs_an_area(bounds: Any) -> None:
    with pytest.raises(InvalidInput, match="positive width and height"):
        B.check_bounds(bounds)


def test_a_picture_has_two_or_four_numbers() -> None:
    assert B.check_bounds((4, 3)).tolist() == [0.0, 0.0, 4.0, 3.0]
    assert B.check_bounds([(4, 3), (6, 5)]).tolist() == [[0.0, 0.0, 4.0, 3.0], [0.0, 0.0, 6.0, 5.0]]
    assert B.check_bounds((1, 2, 4, 3)).tolist() == [1.0, 2.0, 4.0, 3.0]
    with pytest.raises(InvalidInput, match=r"shape \(3,\)"):
        B.check_bounds((1, 2, 3))


def test_whether_a_box_is_within() -> None:
    boxes = np.array([[10.0, 20.0, 210.0, 120.0], [9.9, 20.0, 50.0, 50.0], [50.0, 50.0, 60.0, 120.1]])
    assert B.boxes_within(boxes, PICTURE).tolist() == [True, False, False]
    assert B.boxes_within(boxes[:1] + 1e-9, PICTURE).tolist() == [True]


def test_clip_says_what_is_left() -> None:
    boxes = np.array([[0.0, 0.0, 50.0, 50.0], [0.0, 0.0, 10.0, 50.0], [300.0, 0.0, 400.0, 500.0], PICTURE + 5.0])
    cut, kept = B.clip(boxes, PICTURE)
    assert kept.tolist() == [0, 3]
    assert cut.tolist() == [[10.0, 20.0, 50.0, 50.0], [15.0, 25.0, 210.0, 120.0]]
    assert B.boxes_within(cut, PICTURE).all()


@given(
    x=st.floats(-1, 2),
    y=st.floats(-1, 2),
    size=st.floats(-15, 2),
    shape=st.floats(-4, 4),
    far=st.sampled_from([0.0, 1e4]),
)
def test_coordinates_there_and_back(x: float, y: float, size: float, shape: float, far: float) -> None:
    bounds, u = PICTURE + far, np.array([[x, y, size, shape]])
    box = B.from_coordinates(u, bounds)
    back = B.to_coordinates(box, bounds)
    # A corner is rounded by one part in 2^53 of its distance from the origin, and a side of the box has that error.
    lost = 4.0 * np.spacing(np.abs(box).max()) / (box[:, 2:] - box[:, :2]).min()
    np.testing.assert_allclose(back, u, rtol=0, atol=1e-12 + lost)
    np.testing.assert_allclose(B.from_coordinates(back, bounds), box, rtol=1e-12, atol=1e-12 * (1.0 + far))


def test_coordinates_mean_what_they_say() -> None:
    box = np.array([[10.0, 20.0, 110.0, 70.0], [110.0, 70.0, 160.0, 120.0]])
    u = B.to_coordinates(box, PICTURE)
    assert_close(u, [[0.25, 0.25, np.log(0.25), np.log(2.0)], [0.625, 0.75, np.log(0.125), 0.0]])
    both = np.array([PICTURE, [0.0, 0.0, 400.0, 400.0]])
    assert_close(B.to_coordinates(box, both)[1], [135 / 400, 95 / 400, np.log(2500 / 160000), 0.0])
    assert_close(B.from_coordinates(B.to_coordinates(box, both), both), box)


@given(st.lists(cell_boxes(), min_size=1, max_size=12), st.data(), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_suppression_keeps_what_its_rule_says(boxes: list[list[int]], data: st.DataObject, overlap: float) -> None:
    n = len(boxes)
    scores = data.draw(st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=n, max_size=n))
    kept = non_maximum_suppression(boxes, scores, overlap)
    every = iou(boxes, boxes)
    order = sorted(range(n), key=lambda i: (-scores[i], i))
    expected = list[int]()
    for i in order:  # the textbook's double loop
        if all(every[i, j] <= overlap for j in expected):
            expected.append(i)
    assert kept.tolist() == expected


def test_suppression_of_bad_input() -> None:
    assert non_maximum_suppression([], []).tolist() == []
    with pytest.raises(InvalidInput, match="`scores` must be 1 numbers"):
        non_maximum_suppression([[0, 0, 1, 1]], [0.1, 0.2])
    with pytest.raises(InvalidInput, match="`scores` must be 1 numbers"):
        non_maximum_suppression([[0, 0, 1, 1]], [np.nan])
    with pytest.raises(InvalidParameter, match="overlap"):
        non_maximum_suppression([[0, 0, 1, 1]], [0.1], 1.5)


def test_a_box_of_the_whole_picture_is_within_far_from_the_origin() -> None:
    """There 1e-9 of the picture is less than the distance of two numbers."""
    far = np.array([1e9, 1e9, 1e9 + 8.0, 1e9 + 8.0])
    right, down = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0, 1.0])
    boxes = np.array([far, far - right, far + down])
    assert B.boxes_within(boxes, far).tolist() == [True, False, False]
