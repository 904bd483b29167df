"""Fitted transformers in a model file: the same vectors afterwards, and nothing a file says is taken on trust."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import saccade
from saccade._core import model_file
from saccade._core.errors import InvalidInput, ModelFileError
from saccade._core.model_file import describe
from saccade.features import (
    HOG,
    PHOG,
    BagOfWords,
    DeepFeatures,
    DenseSIFT,
    DescriptorPCA,
    Descriptors,
    ForestCodebook,
    OpponentSIFT,
    PyramidHistogram,
    Resize,
    SpatialPyramid,
    load_features,
)
from saccade.features.serialize import restore
from tests.features.test_deep import colours
from tests.features.textures import textures

CHAINS: dict[str, Any] = {
    "hog": lambda: make_pipeline(Resize((48, 48)), HOG()),
    "phog": PHOG,
    "words": lambda: make_pipeline(DenseSIFT(scales=(16,)), BagOfWords(20)),
    "soft words": lambda: make_pipeline(OpponentSIFT(scales=(16, 24.5)), BagOfWords(12, "soft")),
    "forest": lambda: make_pipeline(DenseSIFT(points="interest"), SpatialPyramid(ForestCodebook(2), depth=2)),
    "match": lambda: make_pipeline(
        DenseSIFT(scales=(16,)), DescriptorPCA(5, positions=True), PyramidHistogram(depth=3, branch=3)
    ),
    "uniform match": lambda: make_pipeline(
        DenseSIFT(scales=(16,)), DescriptorPCA(3), PyramidHistogram("uniform", depth=4)
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_gives_the_same_vectors_from_a_file(name: str, tmp_path: Path) -> None:
    pictures, y = textures(4)
    chain = CHAINS[name]().fit(pictures, y)
    X = chain.transform(pictures)
    model = saccade.GPClassifier().fit(X, y)
    model.save(tmp_path / "m.saccade", features=chain)
    again = load_features(tmp_path / "m.saccade").transform(pictures)
    assert (again != X).nnz == 0
    whole = saccade.load(tmp_path / "m.saccade")
    np.testing.assert_array_equal(whole[-1].predict_proba(again), model.predict_proba(X))
    np.testing.assert_array_equal(whole.predict_proba(pictures), model.predict_proba(X))


def test_a_model_of_tables_has_no_features(tmp_path: Path) -> None:
    saccade.GPClassifier().fit(np.eye(4), [0, 0, 1, 1]).save(tmp_path / "m.saccade")
    with pytest.raises(InvalidInput, match="a table of features"):
        load_features(tmp_path / "m.saccade")


def test_only_our_own_transformers_are_kept() -> None:
    with pytest.raises(ModelFileError, match="StandardScaler"):
        describe(make_pipeline(StandardScaler()))


def tampered(steps: Any, arrays: dict[str, Any], path: Path, width: int = 4) -> None:
    """A file whose digest is right and whose content is not: by somebody who knows the format."""
    model = saccade.GPClassifier().fit(np.eye(4), [0, 0, 1, 1])
    model.save(path)
    header, tensors = model_file.read(path)
    model_file.write(path, {**header, "pictures": steps, "features": width}, tensors | arrays)


@pytest.mark.parametrize("change", ["name", "parameter", "array", "shape", "nonsense", "nested"])
def test_a_file_may_say_anything(change: str, tmp_path: Path) -> None:
    pictures, y = textures(2)
    steps, arrays = describe(CHAINS["words"]().fit(pictures, y))
    steps = json.loads(json.dumps(steps))
    if change == "name":
        steps[0]["name"] = "load_features"
    elif change == "parameter":
        steps[1]["parameters"]["colour"] = "red"
    elif change == "array":
        arrays = {}
    elif change == "shape":
        arrays = {name: array[..., None] for name, array in arrays.items()}
    elif change == "nested":
        steps[1]["parameters"]["words"] = {"transformer": {"name": "os.system", "parameters": {}}}
    tampered("dense" if change == "nonsense" else steps, arrays, tmp_path / "m.saccade")
    with pytest.raises(ModelFileError, match="does not describe a model of pictures"):
        load_features(tmp_path / "m.saccade")


def test_a_chain_of_another_width_than_the_model_is_refused(tmp_path: Path) -> None:
    tampered(*describe(PHOG(8, depth=2)), tmp_path / "m.saccade", width=39)
    with pytest.raises(ModelFileError, match="makes 40 features of a picture and was trained on 39"):
        load_features(tmp_path / "m.saccade")


def test_where_and_how_fast_is_not_kept(tmp_path: Path) -> None:
    steps, _ = describe(BagOfWords(3, cache=tmp_path, n_jobs=2).fit([np.eye(3)]))
    assert set(steps[0]["parameters"]).isdisjoint({"cache", "n_jobs"})
    fitted, arrays = describe(BagOfWords(3).fit([np.eye(3)]))
    assert restore(fitted, arrays)[0].get_params()["cache"] is None


# --- files of version 0.1: `levels` is now `depth` --------

WORDS_0_1 = {"assign": "hard", "norm": "l1", "random_state": 0, "sample": 200000, "words": 2}
MATCH_0_1 = {"branch": 2, "codebook": None, "norm": "l1", "random_state": 0, "sample": 200000, "shifts": 1}
CENTRES = np.array([[0.2, 0.3], [0.7, 0.8]], np.float32)
FILES_0_1: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "spatial pyramid": (
        SpatialPyramid(BagOfWords(2, random_state=0), 2),
        {
            "name": "SpatialPyramid",
            "parameters": {
                "codebook": {"transformer": {"name": "BagOfWords", "parameters": WORDS_0_1}},
                **{"grids": None, "levels": 2, "norm": "l1", "weights": None},
            },
        },
        {"codebook.centres": CENTRES, "codebook.bandwidth": np.array([0.5], np.float32)},
    ),
    "pyramid match": (
        PyramidHistogram("vocabulary", depth=2, branch=2, random_state=0),
        {"name": "PyramidHistogram", "parameters": {"bins": "vocabulary", "levels": 2, **MATCH_0_1}},
        {"bins.centres": np.array([[0.5, 0.5], *CENTRES], np.float32), "bins.children": np.array([2, 0, 0])},
    ),
    "usual pyramid match": (
        PyramidHistogram("vocabulary", branch=2, random_state=0),
        {"name": "PyramidHistogram", "parameters": {"bins": "vocabulary", "levels": None, **MATCH_0_1}},
        {"bins.centres": np.array([[0.5, 0.5], *CENTRES], np.float32), "bins.children": np.array([2, 0, 0])},
    ),
    "phog": (  # its levels were counted from 0
        PHOG(8, depth=3, weighted=True),
        {"name": "PHOG", "parameters": {"angle": 180, "bins": 8, "levels": 2, "weighted": True}},
        {},
    ),
}


WIDTHS = {"spatial pyramid": 2 * (1 + 4), "pyramid match": 3, "usual pyramid match": 3, "phog": 8 * (1 + 4 + 16)}


@pytest.mark.parametrize("name", FILES_0_1)
def test_a_file_of_version_0_1_is_read(name: str, tmp_path: Path) -> None:
    now, step, state = FILES_0_1[name]
    tampered([step], {f"pictures/0/{key}": array for key, array in state.items()}, tmp_path / "m.saccade", WIDTHS[name])
    restored = load_features(tmp_path / "m.saccade").steps[0][1]
    assert repr(restored) == repr(now)
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (32, 32), np.uint8) if name == "phog" else Descriptors(*rng.random((2, 9, 2)))
    expected = clone(now).restore(state).transform([picture])
    assert expected.nnz > 1
    assert (restored.transform([picture]) != expected).nnz == 0


def test_a_random_state_is_not_kept(tmp_path: Path) -> None:
    """A file holds what it led to."""
    steps, arrays = describe(BagOfWords(3, random_state=np.random.RandomState(0)).fit([np.eye(3)]))
    assert steps[0]["parameters"]["random_state"] is None
    assert restore(json.loads(json.dumps(steps)), arrays)[0].n_words_ == 3


# --- networks: by name, or a file beside the model file --------


def saved_with_network(folder: Path, name: str = "net.onnx") -> list[dict[str, Any]]:
    """A model file m.saccade that asks for a network called `name`; the network itself is net.onnx of that folder."""
    network = colours(folder / "net.onnx", (1, 3, 8, 8))
    steps, arrays = describe(DeepFeatures(network).fit([]))
    assert steps[0]["parameters"]["model"] == "net.onnx"  # not where it lies
    steps[0]["parameters"]["model"] = name
    tampered(steps, arrays, folder / "m.saccade", width=2)
    return steps


def test_a_network_lies_beside_the_model_file(tmp_path: Path) -> None:
    saved_with_network(tmp_path)
    assert load_features(tmp_path / "m.saccade").steps[0][1].width() == 2
    (tmp_path / "net.onnx").unlink()
    with pytest.raises(InvalidInput, match=r"needs the network 'net.onnx' in the folder of its file. Copy it there"):
        load_features(tmp_path / "m.saccade")


@pytest.mark.parametrize("name", ["{}/net.onnx", "../a/net.onnx", "./net.onnx", "a\\net.onnx", "..", "", "net.onnx\0"])
def test_a_network_elsewhere_is_not_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    saved_with_network(tmp_path / "a", name.format(tmp_path / "a"))
    with pytest.raises(ModelFileError, match="no plain file name"):
        load_features(tmp_path / "a" / "m.saccade")


def test_a_link_to_a_network_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    saved_with_network(tmp_path / "a")
    (tmp_path / "a" / "net.onnx").rename(tmp_path / "net.onnx")
    (tmp_path / "a" / "net.onnx").symlink_to(tmp_path / "net.onnx")
    with pytest.raises(ModelFileError, match="a link to another folder"):
        load_features(tmp_path / "a" / "m.saccade")


def test_another_network_beside_the_model_file_is_not_run(tmp_path: Path) -> None:
    saved_with_network(tmp_path)
    colours(tmp_path / "net.onnx", (1, 3, 4, 4))
    with pytest.raises(InvalidInput, match="another network"):
        load_features(tmp_path / "m.saccade")
