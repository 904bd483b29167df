"""`save(path, features=chain)` and `saccade.load` give the whole way from pictures to answers back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import saccade
from saccade import GPClassifier, GPRegressor, OneClassGP
from saccade._core.errors import InvalidInput, ModelFileError
from saccade.features import BagOfWords, DenseSIFT, image_features, read_pictures, recommended_settings
from tests.features.textures import textures, write_folder

CHAIN = make_pipeline(DenseSIFT(scales=(16,)), BagOfWords(20))


def test_from_paths_arrays_or_pictures_to_answers(tmp_path: Path) -> None:
    pictures, y = textures(4)
    X = CHAIN.fit_transform(pictures, y)
    model = GPClassifier().fit(X, y)
    model.save(tmp_path / "m.saccade", features=CHAIN)
    paths = [tmp_path / f"{i}.png" for i in range(len(pictures))]
    for path, picture in zip(paths, pictures, strict=True):
        Image.fromarray(picture).save(path)
    whole = saccade.load(tmp_path / "m.saccade")
    assert isinstance(whole, Pipeline)
    for given in (pictures, paths, [str(path) for path in paths], read_pictures(paths)):
        np.testing.assert_array_equal(whole.predict_proba(given), model.predict_proba(X))
        np.testing.assert_array_equal(whole.predict(given), model.predict(X))
    np.testing.assert_array_equal(whole[-1].novelty(whole[:-1].transform(paths)), model.novelty(X))


@pytest.mark.parametrize("examples", [True, False])
def test_a_loaded_pipeline_answers_what_its_model_answers(examples: bool, tmp_path: Path) -> None:
    pictures, y = textures(4)
    X = CHAIN.fit_transform(pictures, y)
    first = X[:, [0]].toarray()[:, 0]
    for model in (GPClassifier(noise=0.1).fit(X, y), GPRegressor().fit(X, first), OneClassGP(measure="mean").fit(X)):
        model.save(tmp_path / "m.saccade", features=CHAIN, examples=examples)
        whole = saccade.load(tmp_path / "m.saccade")
        for name in ("novelty", "latent_mean_and_variance", "explain", "sample_latent", "sample_y"):
            assert hasattr(whole, name) == hasattr(model, name)
        for name in ("novelty", "latent_mean_and_variance", "explain"):
            if hasattr(model, name):
                found, wanted = getattr(whole, name)(pictures[:3]), getattr(whole[-1], name)(X[:3])
                parts = ([a.shares[0].toarray()] if name == "explain" else a for a in (found, wanted))
                for one, other in zip(*parts, strict=True):
                    np.testing.assert_array_equal(one, other)
        if examples and isinstance(model, GPRegressor):
            drawn = (one.sample_y(rows, 2, random_state=0) for one, rows in ((whole, pictures[:3]), (model, X[:3])))
            np.testing.assert_allclose(*drawn, rtol=1e-6, atol=1e-9)
    clone(whole)


def test_one_class_too(tmp_path: Path) -> None:
    pictures, y = textures(4)
    X = CHAIN.fit_transform(pictures, y)
    model = OneClassGP(approximation="lowrank").fit(X)
    model.save(tmp_path / "m.saccade", features=CHAIN)
    whole = saccade.load(tmp_path / "m.saccade")
    np.testing.assert_array_equal(whole.score_samples(pictures), model.score_samples(X))
    np.testing.assert_array_equal(whole.predict(pictures), model.predict(X))


def test_a_loaded_pipeline_can_be_saved_again(tmp_path: Path) -> None:
    pictures, y = textures(3)
    model = GPClassifier(variance=None).fit(CHAIN.fit_transform(pictures, y), y)
    model.save(tmp_path / "a.saccade", features=CHAIN)
    whole = saccade.load(tmp_path / "a.saccade")
    whole[-1].save(tmp_path / "b.saccade", features=whole[:-1])
    again = saccade.load(tmp_path / "b.saccade")
    np.testing.assert_array_equal(again.predict_proba(pictures), whole.predict_proba(pictures))


def test_without_features_it_is_the_estimator(tmp_path: Path) -> None:
    GPClassifier().fit(np.eye(4), [0, 0, 1, 1]).save(tmp_path / "m.saccade")
    assert type(saccade.load(tmp_path / "m.saccade")) is GPClassifier


@pytest.mark.parametrize("features", [StandardScaler(), make_pipeline(StandardScaler()), ([], {}), "classic"], ids=repr)
def test_other_features_are_refused(features: Any, tmp_path: Path) -> None:
    model = GPClassifier().fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(
        ModelFileError, match=r"cannot be saved beside a model. Pass a transformer of saccade\.features"
    ):
        model.save(tmp_path / "m.saccade", features=features)
    assert not (tmp_path / "m.saccade").exists()


def test_a_path_without_a_picture_is_named(tmp_path: Path) -> None:
    """Answers go by place, so that none may be left out in silence."""
    Image.fromarray(np.zeros((20, 20), np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"Of 2 paths 1 give no picture, such as '.*b.png': empty file"):
        CHAIN.fit([tmp_path / "a.png", tmp_path / "b.png"])


@pytest.mark.filterwarnings("ignore:.*found.*words")
@pytest.mark.parametrize("recipe", ["classic", "deep"])
def test_the_command_line_and_python_make_the_same_model(recipe: str, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from saccade.cli import app

    write_folder(tmp_path / "known", each=5)
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "known"), str(tmp_path / "m.saccade"), "--features", recipe])
    assert done.exit_code == 0, done.output
    pictures, chain = read_pictures(tmp_path / "known", max_side=320), image_features(recipe)
    X = chain.fit_transform(pictures, pictures.labels)
    model = GPClassifier(**recommended_settings(X.shape[1]), variance="lowrank", random_state=0).fit(X, pictures.labels)
    model.save(tmp_path / "python.saccade", features=chain, compact=True)
    ours, theirs = saccade.load(tmp_path / "python.saccade"), saccade.load(tmp_path / "m.saccade")
    np.testing.assert_array_equal(ours.predict_proba(pictures), theirs.predict_proba(pictures))
    for a, b in zip(*(one[-1].latent_mean_and_variance(X) for one in (ours, theirs)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert ours[-1].get_params(deep=False).keys() == theirs[-1].get_params(deep=False).keys()
    for name, value in ours[-1].get_params(deep=False).items():
        assert repr(value) == repr(theirs[-1].get_params(deep=False)[name]), name
