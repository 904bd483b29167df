"""Search for several objects of a situation in turn: each one that is found says where the others may be."""

from collections.abc import Mapping, Sequence
from typing import Any

from saccade._core import codec
from saccade._core.arrays import Array
from saccade._core.checks import check_share
from saccade._core.errors import InvalidInput
from saccade.localize.search.belief import Location
from saccade.localize.search.localizer import Localizer
from saccade.localize.situations.model import SituationModel
from saccade.localize.situations.state import SITUATION_SEARCH


class SituationSearch(codec.Stateful):
    """Looks for the objects of a situation in turn: found objects change the priors of the others (S §12 (2), (4)).

    An object counts as found while its `best().probability` is at least `sure`; the others then have the prior of the
    situation model given what is found. If later looks contradict a find, it is given up again.

    Parameters
    ----------
    situation : SituationModel
        Fitted.
    bounds : (x0, y0, x1, y1) or (width, height)
        The picture.
    objects : sequence of str, optional
        Names of the objects to look for. None: all that the model knows.
    sure : float from 0 to 1
        Probability from which on an object counts as found.
    **options
        Arguments of every `Localizer`; a value may be a dict with one for each object (as `proposals` has to be).

    Attributes
    ----------
    searches : dict of Localizer
        The search for each of the `objects`.
    found : dict of arrays of shape (4,)
        The box of each object that is found.

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.localize import iou
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(100, 500, 50)
    >>> dog = np.column_stack([x, np.full(50, 300), x + 80, np.full(50, 360)])
    >>> model = SituationModel().fit({"dog": dog, "walker": dog + [90, -150, 70, 20]}, sizes=(640, 480))
    >>> truth = {"dog": dog[0], "walker": dog[0] + [90, -150, 70, 20]}
    >>> search = SituationSearch(model, (640, 480), random_state=0)
    >>> while search.open and search.looks < 100:
    ...     name, boxes = search.ask(5)
    ...     search.tell(name, boxes, iou(boxes, truth[name]))
    >>> all(iou(found.box, truth[name]) > 0.5 for name, found in search.best().items())
    True
    """

    record = SITUATION_SEARCH

    def __init__(
        self,
        situation: SituationModel,
        bounds: Any,
        objects: Sequence[str] | None = None,
        *,
        sure: float = 0.9,
        **options: Any,
    ) -> None:
        self.situation, self.sure = situation, check_share("sure", sure, 1.0, "The default is 0.9.")
        self.objects = list(situation.objects_ if objects is None else objects)
        if not self.objects:
            raise InvalidInput("`objects` is empty. Name one object to look for, or pass None for all.")
        self.searches = {
            name: Localizer(bounds, situation.prior(name, None, bounds), **_of_one(options, name))
            for name in self.objects
        }
        self.found: dict[str, Array] = {}

    @property
    def looks(self) -> int:
        """Looks at all objects together, failures included."""
        return sum(search.looks + len(search.failures) for search in self.searches.values())

    @property
    def open(self) -> list[str]:
        """Objects that are not found, those with the fewest looks first."""
        left = [name for name in self.objects if name not in self.found]
        return sorted(left, key=lambda name: self.searches[name].looks + len(self.searches[name].failures))

    def ask(self, n: int = 10) -> tuple[str, Array]:
        """The object to look for next, and the boxes to look at.

        It is the object not found with the fewest looks; once all are found, the one with the lowest probability.

        Parameters
        ----------
        n : int
            Number of boxes.

        Returns
        -------
        name : str
            The object.
        boxes : array of shape (n, 4)
            x0, y0, x1, y1; fewer rows where proposals run out.
        """
        name = (self.open or sorted(self.objects, key=lambda name: self.searches[name].best().probability))[0]
        return name, self.searches[name].ask(n)

    def tell(self, name: str, boxes: Any, scores: Any) -> None:
        """Tell the scores of boxes for one object.

        Parameters
        ----------
        name : str
            The object.
        boxes : array of shape (n, 4)
            x0, y0, x1, y1 inside the picture.
        scores : array of shape (n,)
            The judge's scores; NaN where it failed.
        """
        if name not in self.searches:
            raise InvalidInput(f"The search is for {', '.join(self.objects)}, and not for {name!r}.")
        search = self.searches[name]
        search.tell(boxes, scores)
        before = dict(self.found)
        self.found.pop(name, None)
        if search.looks and (best := search.best()).probability >= self.sure:
            self.found[name] = best.box
        if before.keys() != self.found.keys() or name in self.found:
            self._share_news(name)

    def best(self) -> dict[str, Location]:
        """The best box of each object by the looks so far.

        Returns
        -------
        dict of Location
            For each object what `Localizer.best` gives.
        """
        return {name: search.best() for name, search in self.searches.items()}

    def _share_news(self, name: str) -> None:
        """New priors for all other objects."""
        for other, search in self.searches.items():
            if other != name:
                search.learn_prior(self.situation.prior(other, self.found, search.bounds))


def _of_one(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value[name] if isinstance(value, dict) else value for key, value in options.items()}
