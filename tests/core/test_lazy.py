"""Names that load when they are used, and old names that still do."""

import importlib

import pytest

import saccade
from saccade import features, localize

OLD = [(features, "images", "image_features"), (features, "model_settings", "recommended_settings")]
OLD += [(localize, "open_source", "open_picture")]


@pytest.mark.parametrize(("package", "old", "new"), OLD, ids=lambda value: getattr(value, "__name__", value))
def test_an_old_name_warns_and_works(package: object, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"{old} is called {new} now"):
        found = getattr(package, old)
    assert found is getattr(package, new)
    assert old not in dir(package)


@pytest.mark.parametrize(
    "name", ["saccade", "saccade.features", "saccade.localize", "saccade.inference", "saccade.datasets"]
)
def test_every_public_name_is_there(name: str) -> None:
    package = importlib.import_module(name)
    for each in package.__all__:
        assert getattr(package, each) is not None
    assert set(package.__all__) <= set(dir(package))


def test_a_module_is_a_name_too() -> None:
    assert localize.judges.model_judge.__name__ == "model_judge"


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'GPClasifier'"):
        _ = saccade.GPClasifier  # type: ignore[attr-defined]
