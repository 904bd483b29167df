"""Find all hits: active search over the tiles of a huge picture under a budget."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated, Any, get_args

import numpy as np

from saccade._core import codec
from saccade._core.arrays import Array
from saccade._core.blas import one_blas_thread
from saccade._core.checks import check_choice, check_count, check_share, is_number
from saccade._core.errors import InvalidParameter
from saccade._core.random_state import seed_of
from saccade.localize.boxes import as_numbers, non_maximum_suppression
from saccade.localize.sources.base import check_shown, open_picture
from saccade.localize.tiles.answers import FoundBoxes, TileAnswers, check_inside, judged
from saccade.localize.tiles.grid import (
    Tiles,
    check_examples,
    check_features,
    check_prior,
    first_tiles,
    outliers,
    overview,
    source_and_bounds,
    standardised,
)
from saccade.localize.tiles.left import Left, hits_left
from saccade.localize.tiles.model import Setting, TileBelief, TileSpace, believe, comparison, likely_settings
from saccade.localize.tiles.policy import Policy, choose_tiles
from saccade.localize.tiles.state import TILE_SEARCH

RANDOM = 0.25  # share of the looks that are random until all of these were taken
ENOUGH = 3  # hits from which on the model chooses
HORIZON = 0.1  # share of the tiles that a search without a budget plans for


class TileSearch(codec.Stateful):
    """Chooses the tiles to look at so that as many hits as possible are found, and says how many are left.

    Parameters
    ----------
    picture : (width, height), (x0, y0, x1, y1), or what `open_picture` takes
        The picture, or only its size.
    tile : int
        Side of a tile in pixels.
    overlap : float
        Share of a tile that its neighbour covers too, at most 0.9.
    features : array of shape (tiles, d), "overview" or None
        What is known about each tile beforehand, row by row. "overview" takes colours and texture from one coarse look
        at the picture, so that `picture` must be one and not only its size.
    examples : list of arrays of shape (h, w, 3), or array of shape (k, d), optional
        Hits that are known from elsewhere: crops of about the size of a tile, with features="overview"; or rows as in
        `features`. Tiles that look like them come first. At most 200.
    prior : float or array of shape (rows, columns)
        Probability that a tile has a hit, before any look. Looks correct the overall rate, not the map.
    budget : int or None
        Number of looks in all. None: no limit; plans are then made for a tenth of the tiles.
    start : float
        Share of the budget for random looks all over the picture, from which `left` knows how good the model is. With
        features they are one look in four until all are taken, and as many looks are at outliers as long as fewer than
        three hits are known; without, they come first.
    policy : "auto", "likeliest" or "nonmyopic"
        "likeliest": the tiles with the highest probabilities. "nonmyopic": hits now and later under the budget. "auto"
        is the first with features that differ between tiles, and the second where only places count
        (docs/decisions/028).
    threshold : float or None
        None: answers are numbers of hits. A number: answers are scores, and a tile with at least this score has a hit.
    random_state : int, RandomState, Generator or None
        Seed of the first looks. None means the same random numbers every time.

    Attributes
    ----------
    tiles : Tiles
        `tiles.boxes` (n, 4) row by row, `tiles.shape`.

    Examples
    --------
    >>> search = TileSearch((1000, 1000), tile=100, budget=30, random_state=0)
    >>> while len(boxes := search.ask(5)):
    ...     search.tell(boxes, [float(x0 >= 500 and y0 >= 700) for x0, y0, *_ in boxes])
    >>> int(np.nansum(search.hits))  # of 15
    15
    """

    record = TILE_SEARCH

    def __init__(
        self,
        picture: Any,
        tile: int = 1024,
        *,
        overlap: float = 0.0,
        features: Any = None,
        examples: Any = None,
        prior: Any = 0.03,
        budget: int | None = None,
        start: float = 0.15,
        policy: Policy = "auto",
        threshold: float | None = None,
        random_state: Any = None,
    ) -> None:
        source, bounds = source_and_bounds(picture)
        self.tiles = Tiles.of(bounds, tile, overlap)
        if of_overview := isinstance(features, str):
            if features != "overview" or source is None:
                raise InvalidParameter('`features` must be an array, None, or "overview" together with a picture.')
            features = overview(source, self.tiles)
        self.features = check_features(features, len(self.tiles.boxes))
        self.examples = check_examples(examples, of_overview, self.features)
        self.prior = check_prior(prior, self.tiles.shape)
        self.budget = None if budget is None else check_count("budget", budget, "Pass how many tiles you can look at.")
        check_choice("policy", policy, get_args(Policy))
        self.policy: Policy = policy
        if threshold is not None and not is_number(threshold):
            raise InvalidParameter(f"`threshold` must be a number or None, got {threshold!r:.100}.")
        self.threshold = None if threshold is None else float(threshold)
        self.start = check_share("start", start, 1.0, "The default is 0.15.")
        places = np.append(self.tiles.places, np.zeros((0 if self.examples is None else len(self.examples), 2)), axis=0)
        known = standardised(self.features, self.examples)
        self._space = TileSpace(places, known, np.clip(self.prior, 1e-6, 1.0 - 1e-6))
        self.resume(seed_of(random_state), TileAnswers(self.tiles, self.threshold))

    def resume(self, seed: int, answers: TileAnswers) -> None:
        """Begin with these answers, which are not checked; the first looks follow from the seed.

        Parameters
        ----------
        seed : int
            From which random numbers follow.
        answers : TileAnswers
            What was asked and told.
        """
        self.seed, self.answers = seed, answers
        first = max(1, round(self.start * min(len(self.tiles.boxes), self._horizon)))
        self._first, self._cell = first_tiles(self.tiles.shape, first, np.random.default_rng(seed))
        self._settings: tuple[int, list[Setting]] = (0, [])
        self._belief: TileBelief | None = None

    @property
    def hits(self) -> Annotated[Array, "n"]:
        """The answer for each tile; NaN where there is none."""
        return self.answers.hits

    @property
    def problems(self) -> list[dict[str, Any]]:
        """Answers that are not numbers, failures of the judge and changed answers."""
        return self.answers.problems

    # ---- asking and telling

    @property
    def _horizon(self) -> int:
        n = len(self.tiles.boxes)
        return max(1, round(HORIZON * n)) if self.budget is None else min(self.budget, n)

    @property
    def _greedy(self) -> bool:
        features = self._space.features
        return self.policy == "likeliest" or (self.policy == "auto" and features is not None and bool(features.any()))

    def ask(self, n: int = 10) -> Annotated[Array, "n, 4"]:
        """The next tiles to look at. A second call before `tell` gives the same tiles.

        Tell NaN for a tile without an answer; it is not asked for again.

        Parameters
        ----------
        n : int
            Number of tiles.

        Returns
        -------
        array of shape (n, 4)
            x0, y0, x1, y1; fewer rows, and then none, where the budget or the picture ends.
        """
        n = check_count("n", n, "Pass how many tiles you look at at a time.")
        free, spent = self.answers.without(to_ask=True), self.answers.spent
        new = min(n - len(self.answers.asked), free.size, n if self.budget is None else max(0, self.budget - spent))
        chosen = self._opening(free, max(0, new))
        if chosen.size < new:
            rest, more = np.setdiff1d(free, chosen), new - chosen.size
            left = 1 if self._greedy else max(self._horizon - spent - chosen.size, more)
            chosen = np.append(chosen, choose_tiles(self._believe(), rest, more, left))
        self.answers.asked += chosen.tolist()
        return np.asarray(self.tiles.boxes[self.answers.asked[:n]])

    @cached_property
    def _outliers(self) -> Annotated[Array, "n"]:
        features = standardised(self.features)
        return np.zeros(0, np.int64) if features is None else outliers(features)

    def _opening(self, free: Array, n: int) -> Annotated[Array, "at most n"]:
        """Looks that need no model: the random ones that are due, and outliers until some hits are known."""
        due = self._first[: self._random_looks(self.answers.spent + n)]
        chosen = due[np.isin(due, free)][:n]
        known = self._space.examples.size + self.answers.has_hit(self.answers.rows).sum()
        if self._greedy and known < ENOUGH and chosen.size < n:
            odd = self._outliers[: self._first.size if self.answers.told else None]
            chosen = np.append(chosen, odd[np.isin(odd, np.setdiff1d(free, chosen))][: n - chosen.size])
        return chosen

    def _random_looks(self, spent: int) -> int:
        """How many of the random tiles are looked at by then, whatever the answers are."""
        return min(self._first.size, int(np.ceil(RANDOM * spent)) if self._greedy else spent)

    def tell(self, boxes: Any, hits: Any, inside: Sequence[Any] | None = None) -> None:
        """Tell what was seen in these tiles.

        Parameters
        ----------
        boxes : array of shape (n, 4)
            Tiles, as `ask` gave them or any others of the grid.
        hits : array of shape (n,)
            Numbers of hits, such as 0 or 1, or scores where there is a threshold. NaN: no answer; the tile is left out
            and listed in `problems`. A second answer for a tile replaces the first; if it differs, it is listed too.
        inside : list of n arrays of shape (k, 4) or (k, 5), optional
            Boxes of the objects in each tile, in pixels of the whole picture, and their scores (1 where there are
            none).

        Raises
        ------
        InvalidInput
            If a box is not a tile, an answer is missing or out of range, or `inside` does not fit. The search is then
            as before.
        """
        numbers, values = self.tiles.numbers(boxes), as_numbers(hits, "hits")
        self.answers.check(values, numbers.size)
        found = check_inside(inside, numbers)
        for number, value, own in zip(numbers.tolist(), values.tolist(), found, strict=True):
            self._take(number, value, own, "no number")

    def _take(self, number: int, value: float, own: list[list[float]], problem: str) -> None:
        known = number in self.answers.told
        self.answers.take(number, value, own, problem)
        if not np.isnan(value):
            self._belief, self._settings = None, (0, []) if known else self._settings

    def look(
        self,
        judge: Callable[[list[Array]], Any],
        source: Any,
        n: int = 10,
        size: tuple[int, int] | None = None,
        scale: float = 1.0,
    ) -> int:
        """Ask, show the tiles to a judge, and tell its answers.

        A batch at which the judge raises, or for which it returns too few answers, is shown again tile by tile; tiles
        at which it fails again are listed in `problems`, and the search goes on.

        Parameters
        ----------
        judge : callable
            Takes a list of crops (h, w, 3). Returns for each a number, or boxes (k, 4), or (k, 5) with scores, in
            pixels of the crop.
        source : array, path or source
            The picture: what `open_picture` takes.
        n : int
            Number of tiles.
        size : (width, height), optional
            Size of all crops.
        scale : float
            Above 0 and at most 1: resolution where `size` is not given.

        Returns
        -------
        int
            Tiles looked at; 0 at the end of the budget or of the picture.
        """
        check_shown(size, scale)
        boxes = self.ask(n)
        if not len(boxes):
            return 0
        for box, answer in zip(boxes, judged(judge, open_picture(source), boxes, size, scale), strict=True):
            value, problem = answer.as_told(self.answers)
            (number,) = self.tiles.numbers(box).tolist()
            self._take(number, value, check_inside([answer.inside], np.array([number]))[0], problem)
        return len(boxes)

    # ---- what is known

    def probability_map(self) -> Annotated[Array, "rows, columns"]:
        """Probability of a hit in each tile.

        Returns
        -------
        array of shape (rows, columns)
            0 or 1 for tiles with an answer.
        """
        p, known = self._believe().probability, self.answers.rows
        p[known] = self.answers.has_hit(known)
        return np.asarray(p.reshape(self.tiles.shape))

    def left(self) -> Left:
        """How many hits are left in tiles without an answer.

        Returns
        -------
        Left
            `expected`, `low` and `high` (an interval of 95 %) by the model and the random looks, and `at_most_tiles` by
            the random looks alone. Both are for a number of looks that is set beforehand, not for the best of many.
        """
        answered = np.isin(self._first, [*self.answers.told, *self.answers.failed])
        taken = min(self._random_looks(self.answers.spent), int(np.append(answered, False).argmin()))
        return hits_left(self._believe(), self.answers, self._first[:taken], self._cell)

    def found(self, overlap: float = 0.5) -> FoundBoxes:
        """Boxes that were told inside tiles; of two that overlap too much only the one with the higher score.

        Parameters
        ----------
        overlap : float from 0 to 1
            Two boxes with a larger intersection over union count as one object.

        Returns
        -------
        FoundBoxes
            `boxes` of shape (k, 4) and `scores` of shape (k,), highest score first.
        """
        every = np.array(self.answers.inside, np.float64).reshape(-1, 6)
        kept = non_maximum_suppression(every[:, 1:5], every[:, 5], overlap)
        return FoundBoxes(every[kept, 1:5], every[kept, 5])

    def _believe(self) -> TileBelief:
        """The posterior from all examples and answers.

        Settings are compared on the first looks by a schedule, so that they are equal after a reload.
        """
        if self._belief is None:
            looked, given = self.answers.rows, self._space.examples
            rows, hits = np.append(given, looked), np.append(np.ones(given.size, bool), self.answers.has_hit(looked))
            compared = given.size + comparison(looked.size)
            with one_blas_thread():
                if self._settings[0] != compared or not self._settings[1]:
                    self._settings = compared, likely_settings(self._space, rows[:compared], hits[:compared])
                self._belief = believe(self._space, self._settings[1], rows, hits)
        return self._belief
