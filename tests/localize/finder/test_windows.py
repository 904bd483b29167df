"""Windows to learn from, and what is left of a picture beside its objects."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.localize.boxes import boxes_within, pairs_iou
from saccade.localize.finder.windows import LEAST_SIDE, beside, most_overlap, training_windows
from saccade.localize.priors.box_prior import BoxPrior

BOUNDS = np.array([320.0, 240.0])


def test_windows_of_all_overlaps_around_objects_and_none_elsewhere() -> None:
    rng = np.random.default_rng(0)
    boxes = np.array([[30.0, 40.0, 90.0, 110.0], [200.0, 100.0, 260.0, 200.0]])
    prior = BoxPrior.unknown(BOUNDS)
    found, overlaps = training_windows(BOUNDS, boxes, prior, rng)
    assert np.allclose(overlaps, pairs_iou(found, boxes).max(axis=1))
    assert overlaps.max() > 0.6
    assert (overlaps == 0).sum() >= 3
    assert boxes_within(found, np.append([0.0, 0.0], BOUNDS)).all()
    plain, none = training_windows(BOUNDS, np.zeros((0, 4)), prior, rng)
    assert len(plain) == len(found)
    assert not none.any()
    crowd = np.tile(boxes, (20, 1))
    assert len(training_windows(BOUNDS, crowd, prior, rng)[0]) == len(found)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_what_is_beside_shows_no_object(seed: int, count: int) -> None:
    boxes = BoxPrior.unknown(BOUNDS).sample(count, np.random.default_rng(seed))
    part = beside(BOUNDS, boxes)
    if part is None:
        return
    assert not most_overlap(part[None], boxes).any()
    assert (part[2:] - part[:2]).min() >= LEAST_SIDE
    assert np.array_equal(part, np.rint(part))


def test_the_largest_part_is_taken_and_a_full_picture_has_none() -> None:
    left = beside(BOUNDS, np.array([[200.5, 100.0, 260.0, 140.0]]))
    assert left is not None
    assert left.tolist() == [0, 0, 200, 240]
    assert beside(BOUNDS, np.array([[10.0, 10.0, 310.0, 230.0]])) is None
