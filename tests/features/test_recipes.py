"""The ready-made chains work from a folder to a classifier."""

from pathlib import Path

import pytest

from saccade import GPClassifier
from saccade._core.errors import InvalidParameter
from saccade.features import image_features, read_pictures
from saccade.features.recipes import RECIPES
from tests.features.textures import write_folder


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.filterwarnings("ignore:.*found.*words")
def test_tells_textures_apart(recipe: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "known", side=128)
    write_folder(tmp_path / "new", side=128, seed=1)
    known, new = read_pictures(tmp_path / "known"), read_pictures(tmp_path / "new")
    chain = image_features(recipe, cache=tmp_path / "cache")
    X = chain.fit_transform(known, known.labels)
    assert X.min() >= 0
    model = GPClassifier().fit(X, known.labels)
    assert model.score(chain.transform(new), new.labels) > 0.9
    assert (chain.transform(known) != X).nnz == 0  # from the cache


def test_an_unknown_recipe_is_explained() -> None:
    with pytest.raises(InvalidParameter, match="'classic', 'pyramid', 'deep', got 'modern'"):
        image_features("modern")
