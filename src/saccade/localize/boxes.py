"""Boxes as arrays (n, 4) of x0, y0, x1, y1: left, top, right, bottom; x1 − x0 is the width.

Box coordinates are pixels or any other unit, whole or not. The search and the situation model work with four other
numbers u of a box, relative to its picture: centre, log size and log shape.
"""

from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_share
from saccade._core.errors import InvalidInput

HINT = "Boxes are x0, y0, x1, y1; if yours are x, y, width, height, add: x1 = x + width, y1 = y + height."


def check_boxes(boxes: Annotated[Any, "n, 4 | 4"], name: str = "boxes", bounds: Any = None) -> Annotated[Array, "n, 4"]:
    """The boxes as float64, or an error that names the first bad one: not a number, inverted, empty, out of bounds."""
    found = as_numbers(boxes, name)
    if found.shape in ((0,), (4,)):
        found = found.reshape(-1, 4)
    if found.ndim != 2 or found.shape[1] != 4:
        raise InvalidInput(f"`{name}` must be an array (n, 4) of x0, y0, x1, y1, got one of shape {found.shape}.")
    _refuse(
        ~(np.abs(found).max(axis=1, initial=0.0) <= limits.BOX_COORDINATE),
        found,
        name,
        "is not finite, or far too large",
        "",
    )
    width, height = found[:, 2] - found[:, 0], found[:, 3] - found[:, 1]
    _refuse((width < 0) | (height < 0), found, name, "is inverted: it ends before it begins", HINT)
    _refuse(width * height < np.finfo(np.float64).tiny, found, name, "is empty: it has no area", HINT)
    if bounds is not None:
        limit = check_bounds(bounds)
        problem = f"is not inside the picture {limit.tolist()}"
        _refuse(~boxes_within(found, limit), found, name, problem, f"{HINT} Or cut it with `clip`.")
    return found


def check_bounds(bounds: Annotated[Any, "2 | 4 | n, 2 | n, 4"]) -> Annotated[Array, "4 | n, 4"]:
    """The bounds of a picture as x0, y0, x1, y1. A picture that has only a size begins at 0, 0."""
    found = as_numbers(bounds, "bounds")
    if found.ndim not in (1, 2) or found.shape[-1] not in (2, 4):
        raise InvalidInput(
            f"The picture must be given as (width, height) or as (x0, y0, x1, y1), got an array of shape {found.shape}."
        )
    if found.shape[-1] == 2:
        found = np.concatenate([np.zeros_like(found), found], axis=-1)
    sides = found[..., 2:] - found[..., :2]
    wrong = ~((sides > 0).all(axis=-1) & (np.abs(found) <= limits.BOX_COORDINATE).all(axis=-1))
    if wrong.any():
        first = found if found.ndim == 1 else found[np.flatnonzero(wrong)[0]]
        raise InvalidInput(f"A picture must have a positive width and height, got the bounds {first.tolist()}.")
    return found


def iou(a: Annotated[Any, "n, 4 | 4"], b: Annotated[Any, "m, 4 | 4"], *, pairwise: bool = True) -> Any:
    """Intersection over union: the area that two boxes share, divided by the area that they cover together.

    Parameters
    ----------
    a, b : array of shape (n, 4) and (m, 4)
        Boxes as x0, y0, x1, y1. One box may be passed as four numbers.
    pairwise : bool
        True compares every box of `a` with every box of `b`. False compares row by row.

    Returns
    -------
    array of shape (n, m), or (n,) row by row
        From 0 to 1. The axis of a box passed as four numbers is left out, and two such boxes give a float.

    Examples
    --------
    >>> iou([0, 0, 2, 2], [1, 0, 3, 2])
    0.3333333333333333
    >>> iou([[0, 0, 2, 2], [5, 5, 6, 6]], [[0, 0, 2, 2], [0, 0, 2, 1], [9, 9, 10, 10]])
    array([[1. , 0.5, 0. ],
           [0. , 0. , 0. ]])
    >>> iou([[0, 0, 2, 2], [5, 5, 6, 6]], [[0, 0, 2, 1], [5, 5, 6, 6]], pairwise=False)
    array([0.5, 1. ])
    """
    single = [np.ndim(boxes) == 1 and np.size(boxes) == 4 for boxes in (a, b)]
    left, right = check_boxes(a, "a"), check_boxes(b, "b")
    if not pairwise:
        if left.shape != right.shape and not any(single):
            raise InvalidInput(
                f"Row by row, both need equally many boxes, got {len(left)} and {len(right)}. For every pair leave "
                "out pairwise=False."
            )
        found = _iou(left, right)
        return float(found[0]) if all(single) else found
    found = _iou(left[:, None], right[None])
    if all(single):
        return float(found[0, 0])
    return found[0] if single[0] else found[:, 0] if single[1] else found


def _iou(a: Array, b: Array) -> Array:
    """Intersection over union, element by element over all axes but the last; boxes are not checked."""
    width, height = (np.minimum(a[..., i + 2], b[..., i + 2]) - np.maximum(a[..., i], b[..., i]) for i in (0, 1))
    shared = np.maximum(width, 0.0) * np.maximum(height, 0.0)
    return np.asarray(shared / (areas(a) + areas(b) - shared))


def pairs_iou(a: Annotated[Array, "n, 4"], b: Annotated[Array, "m, 4"]) -> Annotated[Array, "n, m"]:
    """Intersection over union of every pair; boxes are not checked."""
    return _iou(a[:, None], b[None])


def areas(boxes: Annotated[Array, "..., 4"]) -> Annotated[Array, "..."]:
    return np.asarray((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1]))


def boxes_within(boxes: Annotated[Array, "n, 4"], bounds: Annotated[Array, "4 | n, 4"]) -> Annotated[Array, "n"]:
    """Which boxes lie wholly within the bounds; to cross them by 1e-9 of the picture is rounding and allowed."""
    slack = 1e-9 * (bounds[..., 2:] - bounds[..., :2])
    return np.asarray(
        (boxes[..., :2] >= bounds[..., :2] - slack).all(axis=-1)
        & (boxes[..., 2:] <= bounds[..., 2:] + slack).all(axis=-1)
    )


def clip(boxes: Annotated[Array, "n, 4"], bounds: Annotated[Array, "4"]) -> tuple[Array, Array]:  # (k, 4), (k,)
    """Boxes cut to the bounds, and the rows of those of which something is left."""
    low, high = np.tile(bounds[:2], 2), np.tile(bounds[2:], 2)
    cut = np.clip(boxes, low, high)
    kept = np.flatnonzero((cut[:, 2:] > cut[:, :2]).all(axis=1))
    return cut[kept], kept


def to_coordinates(boxes: Annotated[Array, "n, 4"], bounds: Annotated[Array, "4 | n, 4"]) -> Annotated[Array, "n, 4"]:
    """u of boxes: centre in shares of the picture, log(area / area of the picture), log(width / height).

    The shape is that in pixels, not in shares: a dog has the same one in a wide and in a tall picture.

    >>> to_coordinates(np.array([[10.0, 20.0, 30.0, 40.0]]), np.array([0.0, 0.0, 100.0, 50.0])).round(3)
    array([[ 0.2  ,  0.6  , -2.526,  0.   ]])
    """
    sides, picture = boxes[:, 2:] - boxes[:, :2], bounds[..., 2:] - bounds[..., :2]
    share = sides / picture
    centre = ((boxes[:, :2] - bounds[..., :2]) + 0.5 * sides) / picture
    log_size = np.log(share[:, 0]) + np.log(share[:, 1])
    return np.column_stack([centre, log_size, np.log(sides[:, 0]) - np.log(sides[:, 1])])


def from_coordinates(u: Annotated[Array, "n, 4"], bounds: Annotated[Array, "4 | n, 4"]) -> Annotated[Array, "n, 4"]:
    """The boxes that have these coordinates: the inverse of `to_coordinates`, but for rounding."""
    picture = bounds[..., 2:] - bounds[..., :2]
    root = np.sqrt(picture.prod(axis=-1))
    half = 0.5 * root[..., None] * np.exp(0.5 * (u[:, 2:3] + u[:, 3:4] * np.array([1.0, -1.0])))
    centre = bounds[..., :2] + u[:, :2] * picture
    return np.column_stack([centre - half, centre + half])


def non_maximum_suppression(
    boxes: Annotated[Any, "n, 4"], scores: Annotated[Any, "n"], overlap: float = 0.5
) -> Annotated[Array, "k"]:
    """The boxes to keep, highest score first: each removes those with lower scores that overlap it too much.

    Parameters
    ----------
    boxes : array of shape (n, 4)
        x0, y0, x1, y1 of each box.
    scores : array of shape (n,)
        Of boxes with equal scores the first is kept.
    overlap : float from 0 to 1
        A box is removed if its intersection over union with a kept one is larger.

    Returns
    -------
    array of shape (k,)
        Rows of the kept boxes.

    Examples
    --------
    >>> non_maximum_suppression([[0, 0, 9, 9], [0, 0, 9, 8], [20, 20, 30, 30]], [0.7, 0.9, 0.2])
    array([1, 2])
    """
    found, values = check_boxes(boxes), as_numbers(scores, "scores")
    most = check_share("overlap", overlap, 1.0, "The default is 0.5.")
    if values.shape != (len(found),) or np.isnan(values).any():
        raise InvalidInput(f"`scores` must be {len(found)} numbers, one for each box, got {scores!r}.")
    left, kept = np.argsort(-values, kind="stable"), list[int]()
    while left.size:
        kept.append(int(left[0]))
        left = left[1:][_iou(found[left[0]], found[left[1:]]) <= most]
    return np.array(kept, np.int64)


def as_numbers(values: Any, name: str) -> Array:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"`{name}` must be an array of numbers, got {values!r:.100}.") from None


def _refuse(wrong: Array, boxes: Array, name: str, problem: str, remedy: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        more = f" {int(wrong.sum()) - 1} more boxes have this fault." if wrong.sum() > 1 else ""
        raise InvalidInput(f"Box {row} of `{name}`, {boxes[row].tolist()}, {problem}.{more} {remedy}".rstrip())
