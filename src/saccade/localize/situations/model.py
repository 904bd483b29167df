"""`SituationModel`: how the objects of a situation lie in a picture, learned from boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import numpy as np
from sklearn.exceptions import NotFittedError

from saccade._core import codec, model_file
from saccade._core.arrays import Array
from saccade._core.checks import check_choice, check_count, check_share
from saccade._core.errors import InvalidInput
from saccade.localize.boxes import check_bounds, to_coordinates
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.priors.densities import Block, Density, Normals
from saccade.localize.priors.learn_normals import learn_normals
from saccade.localize.priors.state import AsDict
from saccade.localize.situations.coordinates import SPREAD, coordinates_of, one_box, ranges
from saccade.localize.situations.state import SITUATION_MODEL

Kind = Literal["normal", "mixture", "uniform"]


class SituationModel(AsDict):
    """Where the objects of a situation are, how large and of what shape; and where one is once others are found.

    The centre (in shares of the picture), log size (share of the picture's area) and log shape (width over height) of
    all objects have one joint density. S §4 and §12.

    Parameters
    ----------
    kind : {"normal", "mixture", "uniform"}
        A joint normal; a mixture of normals for situations of several sorts; or only the range of sizes and shapes,
        each object by itself.
    components : int
        Normals in the mixture, at most; fewer where there are fewer different situations.
    doubt : float
        Found objects are not used if their tail probability is lower: then they are probably wrong, or this is another
        situation. 0 uses them always.

    Attributes
    ----------
    objects_ : list of str
        Names of the objects.
    density_ : Normals or Block
        Over the coordinates of all objects, four each.
    n_situations_ : int
        Pictures with at least one object.
    shrinkage_ : float or None
        The share by which correlations were reduced, for few situations; None for "uniform".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(100, 500, 50)
    >>> dog = np.column_stack([x, np.full(50, 300), x + 80, np.full(50, 360)])
    >>> boxes = {"dog": dog, "walker": dog + [90, -150, 70, 20]}
    >>> model = SituationModel().fit(boxes, sizes=(640, 480))
    >>> prior = model.prior("walker", {"dog": [400, 300, 480, 360]}, (640, 480))
    >>> prior.used, prior.fell_back, prior.density.mean[:2].round(2)
    (('dog',), False, array([0.81, 0.55]))
    >>> model.sample(5, "walker", {"dog": [400, 300, 480, 360]}, (640, 480), rng).shape
    (5, 4)
    """

    record = SITUATION_MODEL
    objects_: list[str]
    density_: Density
    n_situations_: int
    shrinkage_: float | None

    def __init__(self, kind: Kind = "normal", *, components: int = 3, doubt: float = 1e-3) -> None:
        check_choice("kind", kind, get_args(Kind))
        self.kind = kind
        self.components = check_count("components", components, "The default is 3.")
        self.doubt = check_share("doubt", doubt, 1.0, "Pass 0 to use whatever was found. The default is 0.001.")

    def __repr__(self) -> str:
        if not hasattr(self, "density_"):
            return f"SituationModel(kind={self.kind!r})"
        return f"SituationModel({self.kind} of {', '.join(self.objects_)}; {self.n_situations_} situations)"

    def fit(self, boxes: Mapping[str, Any], sizes: Annotated[Any, "n, 2 | 2"]) -> SituationModel:
        """Learn from n pictures.

        Parameters
        ----------
        boxes : dict of arrays of shape (n, 4)
            For each object its box in every picture, x0, y0, x1, y1; a row of NaN where the picture has none.
        sizes : array of shape (n, 2) or (2,)
            Width and height of the pictures; or (n, 4) with their bounds.

        Returns
        -------
        SituationModel
            The fitted model.
        """
        self.objects_, U = coordinates_of(boxes, sizes)
        self.n_situations_ = len(U)
        if self.kind == "uniform":
            self.density_, self.shrinkage_ = ranges(U), None
            return self
        filled = np.where(np.isnan(U), 0.0, U)
        components = min(self.components, len(np.unique(filled, axis=0))) if self.kind == "mixture" else 1
        self.density_, self.shrinkage_ = learn_normals(U, components, np.tile(SPREAD, len(self.objects_)))
        return self

    def prior(self, object: str, found: Mapping[str, Any] | None, size: Annotated[Any, "2 | 4"]) -> BoxPrior:
        """The density of an object's box, given the boxes of other objects that were found.

        If the found objects are unlikely under the model (tail probability below `doubt`), the density is that of the
        object alone, and `fell_back` is True. "uniform" never uses found objects.

        Parameters
        ----------
        object : str
            The object to look for.
        found : dict of arrays of shape (4,), or None
            Boxes of objects that were found; one of the object itself is left out.
        size : (width, height) or (x0, y0, x1, y1)
            The picture.

        Returns
        -------
        BoxPrior
            For the `prior` of a `Localizer`.
        """
        bounds, density = check_bounds(size), self._fitted()
        if bounds.ndim != 1:
            raise InvalidInput(f"`size` must be that of one picture, got an array of shape {bounds.shape}.")
        wanted, others = self._places([object]), {k: v for k, v in (found or {}).items() if k != object}
        known = self._places(list(others))
        values = [one_box(name, box) for name, box in others.items()]
        if isinstance(density, Block):
            return BoxPrior(bounds, Block(density.low[wanted], density.high[wanted]))
        assert isinstance(density, Normals)
        if not others:
            return BoxPrior(bounds, density.part(wanted))
        u = to_coordinates(np.array(values), bounds).ravel()
        tail = density.part(known).tail(u)
        if tail < self.doubt:
            return BoxPrior(bounds, density.part(wanted), fell_back=True, tail=tail)
        return BoxPrior(bounds, density.given(known, u, wanted), used=tuple(others), tail=tail)

    def sample(
        self, n: int, object: str, found: Mapping[str, Any] | None, size: Any, rng: np.random.Generator
    ) -> Annotated[Array, "n, 4"]:
        """Boxes of an object drawn at random, inside the picture.

        Parameters
        ----------
        n : int
            Number of boxes.
        object, found, size : str, dict or None, tuple
            As for `prior`.
        rng : numpy.random.Generator
            Source of all random numbers.

        Returns
        -------
        array of shape (n, 4)
            x0, y0, x1, y1.
        """
        return self.prior(object, found, size).sample(n, rng)

    def log_density(self, boxes: Any, object: str, found: Mapping[str, Any] | None, size: Any) -> Annotated[Array, "n"]:
        """The log density of boxes of an object, per unit of centre, log size and log shape.

        Parameters
        ----------
        boxes : array of shape (n, 4)
            x0, y0, x1, y1.
        object, found, size : str, dict or None, tuple
            As for `prior`.

        Returns
        -------
        array of shape (n,)
            −inf where the density is 0.
        """
        return self.prior(object, found, size).log_density(boxes)

    # ---- kept

    def to_dict(self) -> dict[str, Any]:
        self._fitted()
        return super().to_dict()

    def save(self, path: Any) -> None:
        """Write the fitted model to a file: tensors with a JSON header, no code.

        Parameters
        ----------
        path : path
            The file; one that exists is replaced.
        """
        self._fitted()
        model_file.write(path, *codec.to_file(SITUATION_MODEL, self))

    @classmethod
    def load(cls, path: Any) -> SituationModel:
        """The model that `save` wrote; reading runs no code.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        SituationModel
            The fitted model.
        """
        header, tensors = model_file.read(path)
        named = {name if "." in name else f"density.{name}": tensor for name, tensor in tensors.items()}  # of before
        found: SituationModel = codec.from_file(SITUATION_MODEL, header, named, path)
        return found

    def _fitted(self) -> Density:
        if not hasattr(self, "density_"):
            raise NotFittedError("This SituationModel has learned nothing yet. Call `fit` with boxes first.")
        return self.density_

    def _places(self, objects: list[str]) -> Array:
        """Where the coordinates of these objects are, in their order."""
        unknown = [name for name in objects if name not in self.objects_]
        if unknown:
            raise InvalidInput(f"The model does not know {unknown[0]!r}. It knows {', '.join(self.objects_)}.")
        first = 4 * np.array([self.objects_.index(name) for name in objects], np.int64)
        return np.asarray((first[:, None] + np.arange(4)).ravel())
