"""`Localizer`: find an object in a picture in few looks."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import numpy as np

from saccade._core import codec
from saccade._core.arrays import Array
from saccade._core.checks import check_choice, check_count, check_flag, check_noise, check_positive, check_share
from saccade._core.errors import InvalidInput
from saccade._core.random_state import draw
from saccade.localize.boxes import as_numbers, check_bounds, check_boxes
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.search.asking import Policy, belief_of, next_boxes, random_numbers, units
from saccade.localize.search.belief import Belief, Failure, Location, grid_moments
from saccade.localize.search.checks import (
    check_looks,
    check_prior,
    check_proposals,
    check_scale,
    check_scores,
    check_size,
)
from saccade.localize.search.looking import Judge, go_on, judge_of_boxes, look
from saccade.localize.search.response import Response
from saccade.localize.search.state import LOCALIZER


class Localizer(codec.Stateful):
    """Finds one object in a picture by looking at few boxes: `ask` for boxes, `tell` their scores, and so on.

    Scores come from any judge of boxes: the more of the object a box shows, the higher its score should be. After every
    `tell` each box of a large sample has a probability, from the prior and the scores (`belief`). Place, size and shape
    are found together.

    Parameters
    ----------
    bounds : (x0, y0, x1, y1) or (width, height)
        The picture.
    prior : BoxPrior, optional
        Where the object may be: `SituationModel.prior`, or `BoxPrior.of_map`. None: anywhere, of any size.
    size : (width, height), optional
        Size of the object, if it is known.
    proposals : array of shape (n, 4), optional
        The only boxes that may be looked at. The object is near one of them.
    crowd : bool
        With proposals: an object is likelier where there are many of them. False: proposals that overlap each other
        count as one.
    scores : (float, float), optional
        About what the judge says of a box far from the object, and of the object's own box. None: both are learned
        while searching, which takes two to three times as long.
    noise : float, optional
        Variance of the judge's score of one and the same box, in the judge's units. None: learned while searching.
    response : Response, optional
        The judge's score by the overlap, learned from training windows; in place of `scores` and `noise`.
    policy : {"ei", "pi", "ucb", "variance", "thompson"}
        Expected improvement, probability of improvement, upper confidence bound, largest variance, Thompson's rule.
    xi : float
        ξ of the first two, as a share of the range of scores; halved every 20 looks.
    from_prior, at_random : float
        Shares of each batch, after the first, that are drawn from the prior, and from all boxes alike (S §12: 3 and 2
        of 10). Not with proposals.
    absent : float
        Probability beforehand that there is no object, at most 0.999.
    step : float, optional
        Boxes begin and end at multiples of this, as in a picture that is searched on a grid.
    random_state : int, RandomState, Generator or None
        Seed of the random choices. None draws one.

    Attributes
    ----------
    boxes, told : array of shape (looks, 4) and (looks,)
        The boxes looked at and their scores, without failures.
    failures : list of (box, why)
        Looks for which the judge gave no score.

    Examples
    --------
    >>> dog = np.array([310.0, 220.0, 400.0, 290.0])
    >>> search = Localizer((640, 480), random_state=0)
    >>> from saccade.localize import iou
    >>> for _ in range(4):
    ...     boxes = search.ask(10)
    ...     search.tell(boxes, iou(boxes, dog))
    >>> bool(iou(search.best().box, dog) > 0.5)
    True
    """

    record = LOCALIZER

    def __init__(
        self,
        bounds: Any,
        prior: BoxPrior | None = None,
        *,
        size: Any = None,
        proposals: Any = None,
        crowd: bool = True,
        scores: tuple[float, float] | None = (0.0, 1.0),
        noise: float | None = None,
        response: Response | None = None,
        policy: Policy = "ei",
        xi: float = 0.0,
        from_prior: float = 0.0,
        at_random: float = 0.0,
        absent: float = 0.0,
        step: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.bounds = check_bounds(bounds)
        if self.bounds.ndim != 1:
            raise InvalidInput(f"`bounds` must be those of one picture, got an array of shape {self.bounds.shape}.")
        check_choice("policy", policy, get_args(Policy))
        self.policy, self.response, self.crowd = policy, response, check_flag("crowd", crowd)
        self.prior = check_prior(prior, self.bounds)
        self.scores = None if scores is None and response is None else check_scores((0, 1) if response else scores)
        self.size = None if size is None else check_size(size, self.bounds)
        self.step = None if step is None else check_positive("step", step, "Pass None for boxes anywhere.")
        self.noise = None if noise is None else check_noise(noise, zero=True)
        self.xi = check_share("xi", xi, 1.0, "The default is 0.")
        self.from_prior = check_share("from_prior", from_prior, 1.0, "The default is 0.")
        self.at_random = check_share("at_random", at_random, 1.0 - self.from_prior, "The default is 0.")
        self.absent = check_share("absent", absent, 0.999, "Pass 0 if the object is surely there.")
        self.proposals = None if proposals is None else check_proposals(proposals, self.bounds)
        self.seed_given = random_state is not None  # else a search that goes on takes the seed of its file
        if random_state is None or isinstance(random_state, np.random.Generator | np.random.RandomState):
            random_state = draw(random_state or np.random.default_rng(), 2**31)
        self.random_state = check_count("random_state", random_state, "Pass a whole number from 0 on.", least=0)
        self.boxes, self.told = np.zeros((0, 4)), np.zeros(0)
        self.failures: list[Failure] = []
        self._believed: Belief | None = None

    @property
    def looks(self) -> int:
        """Number of scores told."""
        return len(self.boxes)

    def __repr__(self) -> str:
        return f"Localizer({self.bounds.tolist()}, looks={self.looks})"

    # ---- the search

    def ask(self, n: int = 10) -> Annotated[Array, "n, 4"]:  # or fewer where proposals run out
        """Boxes to look at next, best first. A second call before `tell` gives the same boxes.

        Parameters
        ----------
        n : int
            Number of boxes.

        Returns
        -------
        array of shape (n, 4)
            x0, y0, x1, y1; fewer rows where proposals run out.
        """
        return next_boxes(self, self._belief(), check_count("n", n, "Pass the number of boxes."))

    def tell(self, boxes: Any, scores: Any, why: str = "no finite score") -> None:
        """Tell the scores of boxes, whether they were asked for or not.

        A score that is NaN or infinite says that the judge failed: the box is recorded in `failures` with `why`, left
        out, and not asked for again. A box told twice has the mean of its scores.

        Parameters
        ----------
        boxes : array of shape (n, 4)
            x0, y0, x1, y1 inside the picture.
        scores : array of shape (n,)
            The judge's score of each box.
        why : str
            Reason to record for scores that are not finite.

        Raises
        ------
        InvalidInput
            If a box is not inside the picture, a score is missing, beyond ±1e100 or far outside `scores`, or with
            noise=0 one box has two different scores. The search is then as before.
        """
        boxes, values = check_boxes(boxes, bounds=self.bounds), as_numbers(scores, "scores")
        if values.shape != (len(boxes),):
            raise InvalidInput(f"{len(boxes)} boxes need as many scores, got an array of shape {values.shape}.")
        good = np.isfinite(values)
        all_boxes, told = np.vstack([self.boxes, boxes[good]]), np.append(self.told, values[good])
        check_looks(all_boxes, told, self.scores, self.noise)
        if self.response is None:
            check_scale(told, self.scores, self.noise)
        self.failures += [Failure(box, why) for box in boxes[~good]]
        self.boxes, self.told, self._believed = all_boxes, told, None

    def run(
        self,
        judge: Judge,
        picture: Any = None,
        *,
        crop: tuple[int, int] | None = None,
        looks: int = 100,
        batch: int = 10,
        sure: float = 0.95,
        state: Any = None,
        watch: Callable[[], None] | None = None,
    ) -> Location:
        """Search from start to end.

        Parameters
        ----------
        judge : callable
            Takes a list of crops (h, w, 3) of the picture and gives a score for each; without a picture it takes boxes
            (n, 4). Where it raises, or gives too few scores or NaN, these looks are recorded in `failures`, with a
            warning at the end.
        picture : array, path or source, optional
            What crops are cut from.
        crop : (width, height), optional
            Size of all crops; a large box is read from a coarser copy. None: as in the picture, up to a million pixels.
        looks, batch : int
            The search ends after so many looks, failures included; this number of boxes is judged at a time.
        sure : float
            The search ends when `best().probability` is at least this. 1: it uses all its looks.
        state : path, optional
            File that is written after every batch. If it exists, the search goes on from it.
        watch : callable, optional
            Called after every batch, without arguments.

        Returns
        -------
        Location
            What `best` gives after the last look.

        Raises
        ------
        InvalidInput
            If the search goes beyond the picture, or the file is of a search with other options.
        """
        looks, batch = (check_count(name, n, "") for name, n in (("looks", looks), ("batch", batch)))
        sure = check_share("sure", sure, 1.0, "The default is 0.95.")
        if state is not None and Path(state).exists():
            go_on(self, state)

        def after() -> None:
            if state is not None:
                codec.write_json(state, self.to_state())
            if watch is not None:
                watch()

        look(self, judge_of_boxes(self, judge, picture, crop), after, looks=looks, batch=batch, sure=sure)
        return self.best()

    def best(self) -> Location:
        """The box that is expected to overlap the object most.

        Returns
        -------
        Location
            The box, its expected score, and how probable it is.
        """
        belief = self._belief()
        box, overlaps = belief.best()
        mean, _ = self._in_units(*belief.moments(box[None]))
        return Location(box, float(mean[0]), overlaps * belief.present, belief.present, self.looks)

    def predict(self, boxes: Any) -> tuple[Array, Array]:  # (n,), (n,)
        """Mean and variance of the judge's score of any boxes, without its noise, by the looks so far.

        Parameters
        ----------
        boxes : array of shape (n, 4)
            x0, y0, x1, y1; they may extend beyond the picture.

        Returns
        -------
        mean, variance : arrays of shape (n,)
            In the judge's units, and in these squared.
        """
        return self._in_units(*self._belief().moments(check_boxes(boxes)))

    def map(self, rows: int = 200, columns: int = 200, size: Any = None) -> tuple[Array, Array]:  # (rows, columns)
        """Mean and variance of the judge's score of boxes of one size, around places all over the picture.

        Without a `response` it averages over 64 of the hypotheses. Boxes at the edge extend beyond the picture.

        Parameters
        ----------
        rows, columns : int
            Places down and across; at most 4,194,304 in all.
        size : (width, height), optional
            Size of the boxes. None: that of the best box.

        Returns
        -------
        mean, variance : arrays of shape (rows, columns)
            In the judge's units, and in these squared.
        """
        rows, columns = (check_count(name, n, "") for name, n in (("rows", rows), ("columns", columns)))
        best = self._belief().best()[0]
        sides = best[2:] - best[:2] if size is None else np.array(check_size(size, self.bounds))
        return self._in_units(*grid_moments(self._belief(), sides, rows, columns, random_numbers(self, 2)))

    def learn_prior(self, prior: BoxPrior | None) -> None:
        """Expect the object elsewhere from now on, as when another one was found. The looks stay.

        Parameters
        ----------
        prior : BoxPrior or None
            In place of the prior so far. None: anywhere, of any size.
        """
        self.prior, self._believed = check_prior(prior, self.bounds), None

    def _in_units(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        low, unit = units(self)
        return low + unit * mean, unit**2 * variance

    def _belief(self) -> Belief:
        if self._believed is None:
            self._believed = belief_of(self)
        return self._believed
