"""Heat maps: every pixel's part of a decision, so that all of them sum to it, and they lie where the features saw."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from skimage.data import astronaut
from sklearn.pipeline import Pipeline, make_pipeline

import saccade
from saccade import GPClassifier, GPRegressor
from saccade._core.errors import InvalidInput
from saccade.features import (
    HOG,
    BagOfWords,
    DeepFeatures,
    DenseSIFT,
    DescriptorPCA,
    ForestCodebook,
    OpponentSIFT,
    PyramidHistogram,
    Resize,
    SpatialPyramid,
)
from saccade.localize import heat_map
from saccade.localize.painting import paint, painted
from tests.features.textures import textures

pytestmark = pytest.mark.filterwarnings("ignore:.*found.*words")
Array = np.ndarray[Any, np.dtype[Any]]
PICTURES, LABELS = textures(each=3, side=48)
WIDE = np.ascontiguousarray(np.concatenate([PICTURES[0], PICTURES[4][:, ::-1]], axis=1)[:40])  # brick, then grass


@pytest.fixture(scope="module", autouse=True)
def cache_folder(tmp_path_factory: Any) -> Any:
    """Nothing goes into the cache folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


CHAINS = {
    "words": [DenseSIFT(), BagOfWords(20)],
    "soft words": [Resize(32), DenseSIFT(), BagOfWords(20, "soft")],
    "pyramid": [Resize((40, 24)), DenseSIFT(), SpatialPyramid(BagOfWords(10, "soft"), depth=2)],
    "counts": [DenseSIFT(points="interest"), SpatialPyramid(BagOfWords(10), grids=((1, 1), (3, 1)), norm=None)],
    "forest": [OpponentSIFT(), ForestCodebook(2, 8)],
    "vocabulary": [DenseSIFT(), DescriptorPCA(4, positions=True), PyramidHistogram("vocabulary", depth=3, branch=3)],
    "uniform": [DenseSIFT(), DescriptorPCA(2), PyramidHistogram("uniform", depth=4, shifts=2)],
    "positions": [DenseSIFT(), PyramidHistogram("positions", codebook=BagOfWords(8), depth=2)],
    "deep": [DeepFeatures(size=64)],
}


def decision(whole: Any, picture: Array) -> Array:
    return np.asarray(whole.decision_function([picture])[0])


@pytest.mark.parametrize("name", CHAINS)
def test_the_map_sums_to_the_decision(name: str, tmp_path: Path) -> None:
    whole = make_pipeline(*CHAINS[name], GPClassifier()).fit(PICTURES, LABELS)
    expected = decision(whole, WIDE)
    for k, label in enumerate(whole.classes_):
        found = heat_map(whole, WIDE, label)
        assert found.shape == WIDE.shape[:2]
        np.testing.assert_allclose(found.sum(), expected[k], rtol=0, atol=1e-8)
    both = heat_map(whole, WIDE, "brick", against="grass")
    np.testing.assert_allclose(both.sum(), expected[0] - expected[1], rtol=0, atol=1e-8)
    whole[-1].save(tmp_path / "m.saccade", features=whole[:-1])
    loaded = saccade.load(tmp_path / "m.saccade")
    np.testing.assert_allclose(heat_map(loaded, WIDE, "gravel").sum(), decision(loaded, WIDE)[2], rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["words", "pyramid", "deep"])
def test_each_half_speaks_for_what_it_shows(name: str) -> None:
    chain = [DeepFeatures()] if name == "deep" else CHAINS[name]  # with cells that are smaller than half a picture
    whole = make_pipeline(*chain, GPClassifier(noise=0.01)).fit(PICTURES, LABELS)
    found = heat_map(whole, WIDE, "brick", against="grass")
    left, right = found[:, :48].sum(), found[:, 48:].sum()
    assert left > right


def test_words_painted_one_by_one() -> None:
    """One descriptor after the other, one pixel after the other."""
    whole = make_pipeline(DenseSIFT(8, (12,)), BagOfWords(6), GPClassifier()).fit(PICTURES, LABELS)
    share = whole[-1].explain(whole[:-1].transform([WIDE])).shares[1].toarray()[0]
    item = whole[0].make(WIDE)
    words = whole[1].words_of(item.values)[0][:, 0]
    expected = np.zeros(WIDE.shape[:2])
    for (x, y), word in zip(item.positions.astype(float) * [96, 40], words, strict=True):
        x0, x1, y0, y1 = (int(np.rint(v)) for v in (x - 6, x + 6, y - 6, y + 6))
        expected[y0:y1, x0:x1] += share[word] / (words == word).sum() / 144.0
    np.testing.assert_allclose(heat_map(whole, WIDE, "grass"), expected, rtol=1e-9, atol=1e-12)


def test_two_classes_and_a_number() -> None:
    two = make_pipeline(*CHAINS["words"], GPClassifier()).fit(PICTURES[:6], LABELS[:6])
    np.testing.assert_allclose(heat_map(two, WIDE).sum(), decision(two, WIDE), rtol=0, atol=1e-8)
    np.testing.assert_allclose(heat_map(two, WIDE, "brick"), -heat_map(two, WIDE, "grass"), rtol=0, atol=1e-12)
    number = make_pipeline(*CHAINS["words"], GPRegressor()).fit(PICTURES, np.arange(9.0))
    offset = number[-1].explain(number[:-1].transform([WIDE])).offset[0]
    assert offset == 4.0
    np.testing.assert_allclose(heat_map(number, WIDE).sum(), number.predict([WIDE])[0] - offset, rtol=0, atol=1e-8)


# --- maps of networks --------


def network(path: Path, pooled: str | None, last: bool = False) -> Path:
    """Two signed channels of the colours at each position, as a map or averaged."""
    W = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]], np.float32)
    if last:
        nodes = [helper.make_node("MatMul", ["x", "W"], ["map"])]
    else:
        nodes = [helper.make_node("Conv", ["x", "W"], ["map"])]
    if pooled == "GlobalAveragePool":
        nodes += [helper.make_node(pooled, ["map"], ["p"]), helper.make_node("Flatten", ["p"], ["y"])]
    elif pooled == "ReduceMean":
        nodes += [helper.make_node(pooled, ["map"], ["y"], axes=[1, 2] if last else [2, 3], keepdims=0)]
    elif pooled == "ReduceMax":
        nodes += [helper.make_node(pooled, ["map"], ["y"], axes=[2, 3], keepdims=0)]
    else:
        nodes += [helper.make_node("Identity", ["map"], ["y"])]
    shape = ["n", 6, 8, 3] if last else ["n", 3, 6, 8]
    W = np.ascontiguousarray(W.T) if last else W[:, :, None, None]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(W, "W")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("pooled", "last"),
    [(None, False), (None, True), ("GlobalAveragePool", False), ("ReduceMean", False), ("ReduceMean", True)],
)
def test_channels_go_where_they_were_active(tmp_path: Path, pooled: str | None, last: bool) -> None:
    deep = DeepFeatures(network(tmp_path / "net.onnx", pooled, last), mean=(90.0, 120.0, 130.0), n_jobs=1)
    whole = make_pipeline(deep, GPRegressor(noise=0.1)).fit(PICTURES, np.arange(9.0))
    picture = astronaut()[:12, :16]
    activations = deep.activations(picture)
    assert activations.shape == (6, 8, 2)
    X = deep.transform([picture])
    np.testing.assert_allclose(activations.mean(axis=(0, 1)), X.toarray()[0], rtol=1e-4, atol=1e-5)
    share = whole[-1].explain(X).shares[0].toarray()[0]
    expected = np.zeros((12, 16))
    for c in range(2):
        sign = np.sign(activations[:, :, c].mean())
        active = np.maximum(sign * activations[:, :, c].astype(float), 0.0)
        expected += np.kron(active / active.sum() * share[c], np.full((2, 2), 0.25))
    np.testing.assert_allclose(heat_map(whole, picture), expected, rtol=1e-9, atol=1e-12)


def test_a_network_without_a_map(tmp_path: Path) -> None:
    deep = DeepFeatures(network(tmp_path / "net.onnx", "ReduceMax"), n_jobs=1)
    whole = make_pipeline(deep, GPRegressor()).fit(PICTURES, np.arange(9.0))
    with pytest.raises(InvalidInput, match=r"does not end in an average over positions.*`layer`"):
        heat_map(whole, WIDE)


# --- painting --------


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 1000))
def test_painting_keeps_the_sum(height: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes = np.sort(rng.uniform(-0.5, 1.5, (7, 2, 2)), axis=1).reshape(7, 4)
    parts = rng.normal(size=7)
    found = painted(boxes, parts, (height, width))
    np.testing.assert_allclose(found.sum(), parts.sum(), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("model", "picture", "words"),
    [
        (GPClassifier(), WIDE, "must be a Pipeline of picture transformers"),
        (make_pipeline(HOG(), GPClassifier()), WIDE, r"The places behind the features of HOG\(\) are not known"),
        (make_pipeline(*CHAINS["words"], GPClassifier()), WIDE[None], "A picture must have the shape"),
    ],
    ids=["no pipeline", "HOG", "several pictures"],
)
def test_bad_input(model: Any, picture: Array, words: str) -> None:
    if isinstance(model, Pipeline):
        model.fit(PICTURES[:6], LABELS[:6])
    with pytest.raises(InvalidInput, match=words):
        heat_map(model, picture)


def test_labels_and_shares_that_do_not_belong() -> None:
    whole = make_pipeline(*CHAINS["words"], GPClassifier()).fit(PICTURES, LABELS)
    with pytest.raises(InvalidInput, match="`label` must be one of the classes"):
        heat_map(whole, WIDE)
    with pytest.raises(InvalidInput, match="of this very picture"):
        paint(whole[:-1], WIDE, sp.csr_matrix(np.ones((1, 20))))
    number = make_pipeline(*CHAINS["words"], GPRegressor()).fit(PICTURES, np.arange(9.0))
    with pytest.raises(InvalidInput, match="`label` must be a target from 0 to 0"):
        heat_map(number, WIDE, 1)
