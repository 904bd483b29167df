"""A search as plain values for JSON, and back to the same next question. Reading runs no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade._core import limits
from saccade._core.atomic import replacing
from saccade._core.errors import ModelFileError
from saccade.localize.boxes import check_boxes
from saccade.localize.priors import state as prior_file
from saccade.localize.search.checks import check_looks
from saccade.localize.search.learned_response import Response
from saccade.localize.search.response import Misfit

if TYPE_CHECKING:
    from saccade.localize.search.localizer import Localizer

NAME, VERSION = "Localizer", 1
# What reading a state that somebody made up may raise.
WRONG = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, np.linalg.LinAlgError)
OPTIONS = ("crowd", "noise", "policy", "xi", "from_prior", "at_random", "absent", "step", "random_state")


def options_of(search: Localizer) -> dict[str, Any]:
    """All that the search was made with."""
    return {
        "bounds": search.bounds.tolist(),
        "prior": None if search.prior is None else prior_file.as_dict(search.prior),
        "size": None if search.size is None else [float(side) for side in search.size],
        "proposals": None if search.proposals is None else search.proposals.tolist(),
        "scores": list(search.scores),
        "response": None if search.response is None else search.response.to_dict(),
    } | {name: getattr(search, name) for name in OPTIONS}


def as_dict(search: Localizer) -> dict[str, Any]:
    return {
        "estimator": NAME,
        "version": VERSION,
        "options": options_of(search),
        "boxes": search.boxes.tolist(),
        "told": search.told.tolist(),
        "failures": [[failure.box.tolist(), failure.why] for failure in search.failures],
        "misfit": [search.misfit.noise, search.misfit.clutter],
    }


def from_dict(kind: type[Localizer], state: Any) -> Localizer:
    if not isinstance(state, Mapping) or state.get("estimator") != NAME or state.get("version") != VERSION:
        found = state if not isinstance(state, Mapping) else {key: state.get(key) for key in ("estimator", "version")}
        raise ModelFileError(
            f"This is no {NAME} of version {VERSION}: {found!r:.100}. Use what `to_state` of this version of saccade "
            "made; a search of another version has to begin anew."
        )
    try:
        options = dict(state["options"])
        prior, response = options.pop("prior"), options.pop("response")
        options["response"] = None if response is None else Response.from_dict(response)
        search = kind(options.pop("bounds"), None if prior is None else prior_file.from_dict(prior), **options)
        boxes, told = check_boxes(state["boxes"], bounds=search.bounds), np.array(state["told"], np.float64)
        noise, clutter = (float(value) for value in state["misfit"])
        if told.shape != (len(boxes),) or not all(0.0 <= size <= limits.SCORE for size in (noise, clutter)):
            raise ValueError("looks and scores do not fit each other")
        check_looks(boxes, told, search.scores)
        failures = [(check_boxes(box)[0], str(why)) for box, why in state["failures"]]
    except WRONG as error:
        raise ModelFileError(f"This does not describe a {NAME} ({error!r}). Save it again.") from None
    search.resume(boxes, told, failures, Misfit(noise, clutter))
    return search


def write(search: Localizer, path: Any) -> None:
    with replacing(Path(path)) as file:
        file.write(json.dumps(as_dict(search)).encode())


def read(kind: type[Localizer], path: Any) -> Localizer:
    try:
        state = json.loads(Path(path).read_bytes())
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelFileError(f"{path} is no JSON ({error}). Use a file that a search wrote.") from None
    return from_dict(kind, state)
