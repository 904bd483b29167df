"""A prior by a map in the state of a search: what it says comes back, and a forged table is refused."""

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saccade._core.errors import InvalidInput, ModelFileError
from saccade.localize import BoxPrior, Localizer
from saccade.localize.priors.state import DENSITIES

MAP = np.arange(1.0, 13.0).reshape(3, 4)


def state_of(salience: Any = MAP) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(json.dumps(Localizer((40, 30), BoxPrior.of_map((40, 30), salience)).to_state()))
    return state


def test_a_map_comes_back() -> None:
    u = np.column_stack([np.random.default_rng(0).random((50, 2)), np.full(50, -2.0), np.zeros(50)])
    prior = Localizer.from_state(state_of()).prior
    assert prior is not None
    found, given = prior.density.log_density(u), BoxPrior.of_map((40, 30), MAP).density.log_density(u)
    assert np.isfinite(given).all()
    np.testing.assert_allclose(found, given)


def test_a_map_has_at_most_so_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of()
    chances = DENSITIES["Cells"].fields["chances"]
    monkeypatch.setattr(chances, "count", 12)
    Localizer.from_state(state)
    monkeypatch.setattr(chances, "count", 11)
    with pytest.raises(ModelFileError, match="at most 11"):
        Localizer.from_state(state)


@pytest.mark.parametrize(
    "forge",
    [
        lambda table: table * 2.0,  # sums to 2
        lambda table: table.ravel(),
        lambda table: table[None],
        lambda table: table - np.eye(3, 4) + np.eye(3, 4)[:, ::-1],  # sums to 1 with negative numbers
    ],
)
def test_a_table_that_is_none_of_probabilities_is_refused(forge: Callable[[Any], Any]) -> None:
    state = state_of()
    cells = state["options"]["prior"]["density"]["place"]
    cells["chances"] = forge(np.array(cells["chances"])).tolist()
    with pytest.raises(ModelFileError, match="does not describe"):
        Localizer.from_state(state)


def test_a_map_says_nothing_of_sizes() -> None:
    """Four coordinates from a table of two are refused when the state is read, not at the first question."""
    state = state_of()
    prior = state["options"]["prior"]
    prior["density"] = copy.deepcopy(prior["density"]["place"])
    with pytest.raises(ModelFileError, match="does not describe"):
        Localizer.from_state(state)


def test_a_map_that_a_state_could_not_hold_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="Average neighbouring cells"):
        BoxPrior.of_map((40, 30), np.ones((2**11, 2**11 + 1)))
