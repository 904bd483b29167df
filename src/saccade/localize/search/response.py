"""How a real judge scores a box that overlaps the object by so much, learned from windows whose overlap is known.

Real judges are seldom the straight line that `score_model` assumes. A classifier says almost nothing up to an overlap
of a half, then jumps, and misses some boxes that show the object well. So scores are put into a few bins, and a table
holds how often each bin comes at each overlap o: P(bin | o). Given the object t, looks at boxes b_i with overlaps
o_i are a Gaussian copula: each has the distribution of the table, and nearby boxes err together.

    r_i = Φ⁻¹(P(lower bins | o_i) + ½ P(bin_i | o_i))        r ~ N(0, K),  K = (1 − ρ − τ) I + ρ k(b, b) + τ
    log p(bins | t) = Σ log P(bin_i | o_i) − ½ rᵀ(K⁻¹ − I) r − ½ log |K|

ρ is the share of errors that nearly equal boxes have in common, τ the share that all boxes of a picture have in common:
a judge may say a little more of everything in one picture than in another. Both can be learned, from several windows of
each of several pictures. K does not depend on t: one factor serves all hypotheses. Nelsen (2006), "An introduction to
copulas", §2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.special import ndtri

from saccade._core.arrays import Array
from saccade._core.checks import check_share
from saccade._core.codec import Record
from saccade._core.errors import InvalidInput
from saccade._core.fields import Maybe, Numbers, number
from saccade.kernels import RBF
from saccade.localize.boxes import as_numbers, pairs_iou, to_coordinates
from saccade.localize.priors.state import AsDict
from saccade.localize.search.score_model import CLUTTER_SCALES
from saccade.solvers.cholesky import factorise

BINS = 8  # of scores
MOST_SHARED = 0.99  # share of errors that looks have in common, at most ...
MOST_LEARNED = 0.8  # ... and where it is learned
GRID = np.linspace(0.0, 1.0, 21)  # overlaps at which the table has a row
WIDTH = 0.05  # standard deviation, in overlap, of the windows that a row is learned from
WIDE = 0.2  # standard deviation of those that replace them where a row has few windows of its own
DOUBT = 5.0  # windows' worth of these that are added to each row
LEAST = 0.01  # share of a row that is equal for all bins: no single look rules a place out
LEAST_VARIANCE = 1e-6  # of a predicted score, in squared ranges of scores: at 0, expected improvement is 0
SHARES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8)  # values of ρ and τ, together below 1, of which the likeliest are taken
LEAST_TAIL = 1e-3  # of the probabilities that become r: 3 standard deviations at most


def _fitting(edges: Array, table: Array, means: Array, together: float, offset: float) -> Response:
    if table.shape[1] != edges.size + 1 or not (table > 0).all() or not (np.diff(edges) > 0).all():
        raise ValueError("the table of the response does not fit its bins")
    if together + offset > MOST_SHARED:
        raise ValueError(f"errors of a response have at most {MOST_SHARED} in common, got {together} and {offset}")
    return Response(edges, table, means, together, offset)


RESPONSE = Record(
    _fitting,
    {
        "edges": Numbers("edges"),
        "table": Numbers(len(GRID), "bins"),
        "means": Numbers(len(GRID)),
        "together": number(0.0, MOST_SHARED),
        "offset": Maybe(number(0.0, MOST_SHARED), 0.0),
    },
    name="Response",
)


@dataclass(frozen=True)
class Response(AsDict):
    """How a judge scores boxes by their overlap with the object, learned from windows of training pictures.

    `learn` makes one.

    Parameters
    ----------
    edges : array of shape (b − 1,)
        Scores that part the bins, ascending.
    table : array of shape (21, b)
        P(bin | overlap), a row for each of the overlaps 0, 0.05, …, 1.
    means : array of shape (21,)
        Expected score at each of these overlaps.
    together : float
        ρ: the share of errors that nearly equal boxes have in common.
    offset : float
        τ: the share of errors that all boxes of a picture have in common.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> overlaps = rng.random(2000)
    >>> response = Response.learn(overlaps, np.where(overlaps > 0.5, 1.0, 0.0) + 0.1 * rng.standard_normal(2000))
    >>> response.expected(np.array([0.1, 0.9])).round(1)
    array([0., 1.])
    """

    record = RESPONSE
    edges: Annotated[Array, "b − 1"]
    table: Annotated[Array, "21, b"]
    means: Annotated[Array, "21"]
    together: float
    offset: float = 0.0

    @classmethod
    def learn(
        cls, overlaps: Any, scores: Any, *, together: float = 0.5, views: Sequence[Annotated[Array, "k, 4"]] = ()
    ) -> Response:
        """Learn from windows with known overlap.

        Parameters
        ----------
        overlaps, scores : array of shape (n,)
            For each window its intersection over union with the object's box, and the judge's score. Windows that show
            none of the object are as necessary as those that show it well.
        together : float from 0 to 0.99
            Correlation of the errors at nearly equal boxes.
        views : list of arrays of shape (k, 4), optional
            The windows of each picture in order, as centre, log size and log shape (`boxes.to_coordinates`). With them
            `together` and `offset` are learned.

        Returns
        -------
        Response
            For the `response` of a `Localizer`.
        """
        o, y = _check(overlaps, scores)
        near, around = (np.exp(-0.5 * np.square((GRID[:, None] - o) / width)) + 1e-12 for width in (WIDTH, WIDE))
        # Overlaps count alike however often they come: most windows of a picture show nothing.
        even = 1.0 / np.maximum(near.sum(axis=1, keepdims=True), 1.0)
        edges = _edges(y, (even * near).sum(axis=0))
        usual = around * (even * near).sum(axis=0)
        weights = near + DOUBT * usual / usual.sum(axis=1, keepdims=True)
        weights /= weights.sum(axis=1, keepdims=True)
        table = (1.0 - LEAST) * (weights @ np.eye(len(edges) + 1)[np.searchsorted(edges, y, side="right")])
        share = check_share("together", together, 0.99, "The default is 0.5.")
        found = cls(edges, table + LEAST / table.shape[1], weights @ y, share)
        return found.with_shared_errors(o, y, views) if len(views) else found

    def with_shared_errors(
        self, overlaps: Annotated[Array, "n"], scores: Annotated[Array, "n"], views: Sequence[Annotated[Array, "k, 4"]]
    ) -> Response:
        """This response with the shares ρ and τ under which the windows of these pictures are likeliest.

        Parameters
        ----------
        overlaps, scores, views : arrays
            As for `learn`.

        Returns
        -------
        Response
            With other `together` and `offset`.
        """
        ends = np.cumsum([len(view) for view in views])
        if ends[-1] != overlaps.size:
            raise InvalidInput(f"`views` has {ends[-1]} windows, and there are {overlaps.size} overlaps.")
        bins, grid = self.bins(scores), (len(GRID) - 1) * overlaps
        row = np.rint(grid).astype(np.int64)
        r = np.split(self._normal()[row, bins], ends[:-1])
        like = [RBF(length_scale=CLUTTER_SCALES, amplitude=1.0)(view, view) for view in views]
        pairs = [(rho, tau) for rho in SHARES for tau in SHARES if rho + tau <= MOST_LEARNED]
        found = [sum(map(_copula, r, like, [rho] * len(r), [tau] * len(r))) for rho, tau in pairs]
        together, offset = pairs[int(np.argmax(found))]
        return replace(self, together=together, offset=offset)

    def _normal(self) -> Annotated[Array, "21, b"]:
        """r of each bin at each overlap of the table."""
        lower = np.cumsum(self.table, axis=1) - 0.5 * self.table
        return np.asarray(ndtri(np.clip(lower, LEAST_TAIL, 1.0 - LEAST_TAIL)))

    def bins(self, scores: Array) -> Annotated[Array, "n"]:
        """The bins of scores.

        Parameters
        ----------
        scores : array of shape (n,)
            The judge's scores.

        Returns
        -------
        array of shape (n,)
            Numbers from 0 to b − 1.
        """
        return np.searchsorted(self.edges, scores, side="right")

    def expected(self, overlaps: Array) -> Array:
        """The mean score at any overlaps, interpolated.

        Parameters
        ----------
        overlaps : array
            From 0 to 1, of any shape.

        Returns
        -------
        array
            One score per overlap.
        """
        return np.asarray(np.interp(overlaps, GRID, self.means))


class Judgement:
    """The log likelihood of looks given a box of the object, by a learned response."""

    def __init__(self, looks: Any, response: Response) -> None:
        self.looks, self.response = looks, response
        self.bins = response.bins(looks.scores)
        self._log = np.log(response.table[:, self.bins])  # (21, n)
        self._r = response._normal()[:, self.bins]
        n = len(self.bins)
        K = np.zeros((n, n))
        if n:
            u = to_coordinates(looks.boxes, looks.bounds)
            K = RBF(length_scale=CLUTTER_SCALES, amplitude=max(response.together, 1e-300))(u, u) + response.offset
        self._factor = factorise(K, np.full(n, 1.0 - response.together - response.offset))

    def given(self, objects: Array) -> Judgement:  # (h, 4)
        return self

    def log_likelihood(self, objects: Annotated[Array, "h, 4"]) -> Annotated[Array, "h"]:
        return self._of(pairs_iou(self.looks.boxes, objects))

    def log_likelihood_of_none(self) -> float:
        """The log likelihood of the looks if there is no object."""
        return float(self._of(np.zeros((len(self.bins), 1)))[0])

    def of_object(
        self, boxes: Annotated[Array, "c, 4"], objects: Annotated[Array, "h, 4"]
    ) -> tuple[Array, Array]:  # (c, h) each
        """The score that the overlap of each box deserves, for each object; errors of the judge are left out."""
        mean = self.response.expected(pairs_iou(boxes, objects))
        return mean, np.full_like(mean, LEAST_VARIANCE * np.ptp(self.response.means) ** 2)

    def moments(self, boxes: Array, objects: Array, weights: Array) -> tuple[Array, Array]:  # (c,), (c,)
        """Mean and variance over all objects of the score that the overlap of each box deserves."""
        mean = self.of_object(boxes, objects)[0]
        middle = mean @ weights
        return middle, np.square(mean - middle[:, None]) @ weights

    def _of(self, overlaps: Annotated[Array, "n, h"]) -> Annotated[Array, "h"]:
        if not len(self.bins):
            return np.zeros(overlaps.shape[1])
        place = np.minimum((overlaps * (len(GRID) - 1)).astype(np.int64), len(GRID) - 2)
        share, row = overlaps * (len(GRID) - 1) - place, np.arange(len(self.bins))[:, None]
        logs, r = ((1.0 - share) * a[place, row] + share * a[place + 1, row] for a in (self._log, self._r))
        white = self._factor.half_solve(r)
        return np.asarray(
            logs.sum(axis=0)
            - 0.5 * (np.square(white).sum(axis=0) - np.square(r).sum(axis=0))
            - 0.5 * self._factor.log_determinant()
        )


def _copula(r: Annotated[Array, "k"], like: Annotated[Array, "k, k"], rho: float, tau: float) -> float:
    """log N(r; 0, K) − log N(r; 0, I) for K = (1 − ρ − τ) I + ρ k + τ."""
    factor = factorise(rho * like + tau, np.full(len(r), 1.0 - rho - tau))
    white = factor.half_solve(r[:, None])
    return float(0.5 * (r @ r - np.square(white).sum()) - 0.5 * factor.log_determinant())


def _edges(y: Array, weights: Array) -> Array:
    """Scores between bins of equal weight; fewer where scores tie."""
    order = np.argsort(y, kind="stable")
    ends = np.cumsum(weights[order]) / weights.sum()
    places = np.searchsorted(ends, np.arange(1, BINS) / BINS)
    edges = np.unique(y[order][places])
    return np.asarray(edges[edges > y.min()])


def _check(overlaps: Any, scores: Any) -> tuple[Array, Array]:
    o, y = as_numbers(overlaps, "overlaps").ravel(), as_numbers(scores, "scores").ravel()
    if o.shape != y.shape or not o.size:
        raise InvalidInput(f"Each window needs an overlap and a score, got {o.size} overlaps and {y.size} scores.")
    if not (np.isfinite(y).all() and (o >= 0).all() and (o <= 1 + 1e-9).all()):
        raise InvalidInput("Overlaps must be from 0 to 1 and scores finite. Leave out windows that have no score.")
    if not np.ptp(y):
        raise InvalidInput(f"All {y.size} scores are {y[0]}: a judge that says the same of every box finds nothing.")
    return np.minimum(o, 1.0), y
