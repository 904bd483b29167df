"""Where in a picture a decision comes from: shares of features painted back to the places that the features saw.

A word's share goes to its descriptors, in proportion to how much each counts, evenly over the patch of each. A pooled
channel's share goes to the positions of the feature map, in proportion to what each added to the average.
"""

from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.estimators.explanation import decision_number
from saccade.features.base import DescriptorEncoder
from saccade.features.deep import DeepFeatures
from saccade.features.descriptor_arrays import positions_of
from saccade.features.lazy import Descriptors
from saccade.features.pixels import check_picture


def heat_map(
    model: Any, picture: Annotated[Any, "h, w | h, w, 3"], label: Any = None, against: Any = None
) -> Annotated[Array, "h, w"]:
    """What each pixel adds to a decision about the picture; the sum over all pixels is the decision less the offset.

    Parameters
    ----------
    model : Pipeline
        From pictures to answers, as `saccade.load` gives it: transformers of saccade.features, then an HIK model with
        `explain`. The transformers may be SIFT with any codebook or pyramid, or `DeepFeatures`; HOG and PHOG mix
        places and cannot be painted.
    picture : array of shape (h, w) or (h, w, 3)
        The picture.
    label : class or int, optional
        The class, or the number of the target, whose decision is explained. None: the only one; of two classes the
        second.
    against : class or int, optional
        A second class or target, whose decision is subtracted.

    Returns
    -------
    array of shape (h, w)
        float64; positive where a pixel speaks for the decision.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from saccade import GPClassifier
    >>> from saccade.features import BagOfWords, DenseSIFT
    >>> pictures = np.random.default_rng(0).integers(0, 256, (6, 48, 64, 3), np.uint8)
    >>> whole = make_pipeline(DenseSIFT(), BagOfWords(8, n_jobs=1), GPClassifier()).fit(pictures, [0, 1] * 3)
    >>> found = heat_map(whole, pictures[0])
    >>> found.shape, bool(abs(found.sum() - whole.decision_function(pictures[:1])[0]) < 1e-8)
    ((48, 64), True)
    """
    if not hasattr(model, "steps") or len(model.steps) < 2:
        raise InvalidInput(
            f"`model` must be a Pipeline of picture transformers and a model, as saccade.load gives it, got {model!r}."
        )
    seen, last = np.asarray(picture), model[-1]
    check_picture(seen)
    found = last.explain(model[:-1].transform([seen]))
    second = None if against is None else decision_number(last, against)
    return paint(model[:-1], seen, found.of(0, decision_number(last, label), second))


def paint(
    features: Any,  # the fitted transformer of saccade.features, or the Pipeline of them
    picture: Annotated[Array, "h, w | h, w, 3"],
    shares: Annotated[sp.csr_matrix, "1, d"],  # of this picture
) -> Annotated[Array, "h, w"]:
    """The shares of a picture's features, painted at the places that the features come from; the sum stays."""
    before, encoder = check_places(features)
    share: Array = np.asarray(shares.todense(), np.float64).ravel()
    item: Any = picture
    for step in before:
        item = step.make(item)
    if isinstance(encoder, DeepFeatures):
        boxes, parts = _of_map(encoder.activations(item), share)
    else:
        boxes, parts = _of_descriptors(encoder, item, share)
    return painted(boxes, parts, picture.shape[:2])


def check_places(features: Any) -> tuple[list[Any], DescriptorEncoder | DeepFeatures]:
    """The steps before the vectors and the step that makes them, or an error if that step does not know places."""
    *before, encoder = [step for _, step in features.steps] if hasattr(features, "steps") else [features]
    sees = isinstance(encoder, DeepFeatures) or (isinstance(encoder, DescriptorEncoder) and before)
    if not sees or not all(hasattr(step, "make") for step in before):
        raise InvalidInput(
            f"The places behind the features of {encoder!r} are not known. A heat map needs DenseSIFT or OpponentSIFT "
            "with a codebook or a pyramid, or DeepFeatures."
        )
    return before, encoder


def _of_descriptors(encoder: DescriptorEncoder, item: Descriptors, share: Array) -> tuple[Array, Array]:
    """Patches, and what each adds: the share of a column goes to descriptors in proportion to their weight in it."""
    columns, weights = encoder.occurrences(item)
    totals = np.bincount(columns.ravel(), weights.ravel(), minlength=share.size)
    parts = (weights * _per_unit(share, totals)[columns]).sum(axis=1)
    positions = positions_of(item)
    half = 0.0 if item.sizes is None else 0.5 * np.asarray(item.sizes, np.float64)
    return np.hstack([positions - half, positions + half]), parts


def _of_map(activations: Array, share: Array) -> tuple[Array, Array]:
    """Cells of the map, and what each adds: the share of a channel goes to positions in proportion to its activation.

    Where a channel has both signs, the positions with the sign of the average get all: shares of opposite signs could
    be of any size.
    """
    rows, across, channels = activations.shape
    values = activations.reshape(-1, channels).astype(np.float64)
    values = np.maximum(np.where(values.sum(axis=0) < 0.0, -values, values), 0.0)
    parts = values @ _per_unit(share, values.sum(axis=0))
    y, x = (cell.ravel() for cell in np.mgrid[:rows, :across])
    return np.column_stack([x / across, y / rows, (x + 1) / across, (y + 1) / rows]), parts


def _per_unit(share: Array, totals: Array) -> Array:
    """What a unit of each column gets of its share."""
    if ((share != 0.0) & (totals <= 0.0)).any():
        raise InvalidInput(
            "`shares` has features that this picture does not have. They must be those of this very picture."
        )
    return np.divide(share, totals, out=np.zeros_like(share), where=totals > 0.0)


def painted(
    boxes: Annotated[Array, "k, 4"],  # x0, y0, x1, y1 as shares of the picture's sides; what is outside is cut off
    parts: Annotated[Array, "k"],
    shape: tuple[int, int],  # (h, w)
) -> Annotated[Array, "h, w"]:
    """Each part spread evenly over the pixels of its box, at least one.

    >>> painted(np.array([[0.0, 0.0, 0.5, 1.0], [0.5, 0.5, 9.0, 9.0]]), np.array([4.0, 3.0]), (2, 4))
    array([[1. , 1. , 0. , 0. ],
           [1. , 1. , 1.5, 1.5]])
    """
    height, width = shape
    x0, x1 = _pixels(boxes[:, 0], boxes[:, 2], width)
    y0, y1 = _pixels(boxes[:, 1], boxes[:, 3], height)
    each = parts / ((x1 - x0) * (y1 - y0))
    edges = np.zeros((height + 1, width + 1))  # sums along both axes fill the boxes
    for y, x, sign in ((y0, x0, 1.0), (y0, x1, -1.0), (y1, x0, -1.0), (y1, x1, 1.0)):
        np.add.at(edges, (y, x), sign * each)
    return np.asarray(edges.cumsum(axis=0).cumsum(axis=1)[:height, :width])


def _pixels(low: Array, high: Array, size: int) -> tuple[Array, Array]:
    """The first pixel, and the one after the last."""
    first = np.clip(np.rint(low * size), 0, size - 1).astype(np.int64)
    return first, np.maximum(np.clip(np.rint(high * size), 0, size).astype(np.int64), first + 1)
