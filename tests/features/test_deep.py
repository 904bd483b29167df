"""DeepFeatures: with the real network, and with small graphs whose result is known."""

import os
import pickle
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import skimage.data
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper, numpy_helper
from sklearn.base import clone

from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import listening
from saccade.features.cache import FILE
from saccade.features.deep import DeepFeatures
from saccade.features.pixels import resize

FLOAT = TensorProto.FLOAT
GREY_OF_RGB = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]], np.float32)  # two features of a colour, one signed


@pytest.fixture(scope="module", autouse=True)
def cache_folder(tmp_path_factory: Any) -> Any:
    """Nothing goes into the cache folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def write_graph(
    path: Path,
    nodes: list[Any],
    inputs: dict[str, Any],
    numbers: dict[str, np.ndarray] | None = None,
    output: Any = None,
) -> Path:
    """An .onnx file whose output is `y`."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, output)],
        [numpy_helper.from_array(value, name) for name, value in (numbers or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def colours(path: Path, shape: Any = ("n", 3, "h", "w")) -> Path:
    """Channels first: GREY_OF_RGB · colour at each position, a map (n, 2, h, w); `twice` has the double."""
    return write_graph(
        path,
        [
            helper.make_node("Conv", ["x", "W"], ["map"]),
            helper.make_node("Add", ["map", "map"], ["twice"]),
            helper.make_node("Identity", ["map"], ["y"]),
        ],
        {"x": list(shape)},
        {"W": GREY_OF_RGB[:, :, None, None]},
    )


def colours_last(path: Path) -> Path:
    """A network with channels last: (n, 6, 4, 3) to (n, 6, 4, 2)."""
    node = helper.make_node("MatMul", ["x", "W"], ["y"])
    return write_graph(path, [node], {"x": ["n", 6, 4, 3]}, {"W": np.ascontiguousarray(GREY_OF_RGB.T)})


def expected_colours(picture: np.ndarray, size: tuple[int, int], mean: Any = 127.0, scale: Any = 128.0) -> np.ndarray:
    pixels = (resize(picture, size).astype(np.float64) - mean) / scale
    return GREY_OF_RGB @ pixels.mean(axis=(0, 1))


# --- the real network --------


def test_efficientnet_gives_sparse_non_negative_rows() -> None:
    heard: list[tuple[str, float]] = []
    pictures = [skimage.data.astronaut(), skimage.data.chelsea(), skimage.data.camera(), np.zeros((1, 1, 3), np.uint8)]
    with listening(lambda what, done: heard.append((what, done))):
        X = DeepFeatures().fit_transform(pictures)
    assert X.shape == (4, 1280)
    assert X.dtype == np.float32
    assert X.data.min() > 0.0
    assert X.has_sorted_indices
    assert 0.3 < X[:3].nnz / (3 * 1280) < 0.8
    assert heard[-1] == ("DeepFeatures: pictures to vectors", 1.0)


def test_a_grey_picture_is_its_rgb_twin_and_threads_do_not_matter() -> None:
    camera = skimage.data.camera()
    pictures = [camera, np.stack([camera] * 3, axis=2), skimage.data.coffee(), skimage.data.chelsea()]
    X = DeepFeatures(n_jobs=1).transform(pictures)
    assert (X[0] != X[1]).nnz == 0
    assert (DeepFeatures(n_jobs=3).transform(pictures) != X).nnz == 0
    assert (X[2:] != DeepFeatures().transform(pictures[2:])).nnz == 0


def test_pictures_of_one_kind_are_nearer_to_each_other() -> None:
    """A cat's halves and a cup's halves: each has its own kind for its nearest."""
    cat, cup = skimage.data.chelsea(), skimage.data.coffee()
    X = DeepFeatures().transform([cat[:, :300], cat[:, 100:400], cup[:, :400], cup[:, 150:550]]).toarray()
    K = np.minimum(X[:, None], X[None]).sum(axis=2)  # the intersection kernel, H (4)
    np.fill_diagonal(K, 0.0)
    assert K.argmax(axis=1).tolist() == [1, 0, 3, 2]


def test_no_pictures_give_no_rows() -> None:
    assert DeepFeatures().transform([]).shape == (0, 1280)
    assert DeepFeatures().get_feature_names_out()[-1] == "deepfeatures1279"


def test_no_identifier_is_left_by_the_runtime(tmp_path: Path) -> None:
    """ONNX Runtime writes an identifier of the machine beside our graph where its telemetry is on."""
    code = "import numpy as np; from saccade.features.deep import DeepFeatures as D; D(size=32).fit([])"
    environment = {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)
    assert [p.name for p in tmp_path.iterdir()] == ["saccade"]


# --- any ONNX file --------


@given(
    picture=hnp.arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 12), st.just(3))),
    mean=st.sampled_from([0.0, 127.0, (123.675, 116.28, 103.53)]),
    scale=st.sampled_from([1.0, 255.0, (58.395, 57.12, 57.375)]),
)
def test_a_graph_gives_what_its_formula_says(tmp_path_factory: Any, picture: Any, mean: Any, scale: Any) -> None:
    folder = tmp_path_factory.getbasetemp()
    first = DeepFeatures(colours(folder / "first.onnx"), size=(4, 6), mean=mean, scale=scale).transform([picture])
    last = DeepFeatures(colours_last(folder / "last.onnx"), mean=mean, scale=scale).transform([picture])
    expected = expected_colours(picture, (4, 6), mean, scale)
    np.testing.assert_allclose(first.toarray()[0], expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(last.toarray()[0], expected, rtol=1e-4, atol=1e-3)


def test_the_size_is_the_graphs_or_the_callers(tmp_path: Path) -> None:
    fixed = colours(tmp_path / "fixed.onnx", (1, 3, 5, 7))
    assert DeepFeatures(fixed)._input(skimage.data.coffee()).shape == (5, 7, 3)
    assert DeepFeatures(str(fixed), size=(7, 5)).fit([]).width() == 2
    with pytest.raises(InvalidParameter, match=r"`size` must be \(7, 5\).*got \(5, 7\)"):
        DeepFeatures(fixed, size=(5, 7)).fit([])
    free = colours(tmp_path / "free.onnx")
    assert DeepFeatures(free)._input(skimage.data.coffee()).shape == (224, 224, 3)
    assert DeepFeatures(free, size=(9, 4))._input(skimage.data.coffee()).shape == (4, 9, 3)


def test_one_grey_channel_is_the_luma(tmp_path: Path) -> None:
    path = write_graph(tmp_path / "g.onnx", [helper.make_node("GlobalAveragePool", ["x"], ["y"])], {"x": [1, 1, 8, 8]})
    red = np.zeros((8, 8, 3), np.uint8)
    red[..., 0] = 255
    assert DeepFeatures(path, mean=0.0, scale=1.0).transform([red]).toarray().item() == pytest.approx(76.0)


def test_tokens_are_averaged(tmp_path: Path) -> None:
    """(n, 3, 4, 4) reshaped to three tokens of sixteen values each, as a transformer would give them."""
    shape = {"shape": np.array([0, 3, 16], np.int64)}
    path = write_graph(
        tmp_path / "t.onnx", [helper.make_node("Reshape", ["x", "shape"], ["y"])], {"x": ["n", 3, 4, 4]}, shape
    )
    picture = np.random.default_rng(0).integers(0, 256, (4, 4, 3)).astype(np.uint8)
    X = DeepFeatures(path, mean=0.0, scale=1.0).transform([picture]).toarray()
    np.testing.assert_allclose(X[0], picture.mean(axis=2).ravel(), rtol=1e-6)


def test_a_layer_within_the_graph(tmp_path: Path) -> None:
    path, picture = colours(tmp_path / "net.onnx"), skimage.data.chelsea()
    whole, twice = (DeepFeatures(path, size=8, layer=layer) for layer in (None, "twice"))
    np.testing.assert_allclose(
        twice.transform([picture]).toarray(), 2 * whole.transform([picture]).toarray(), rtol=1e-6
    )
    assert whole.recipe() != twice.recipe()
    with pytest.raises(InvalidParameter, match=r"`layer` must be a tensor of .*got 'fc'"):
        DeepFeatures(path, size=8, layer="fc").fit([])
    with pytest.raises(InvalidParameter, match="`layer` must be None"):
        DeepFeatures(layer="fc").fit([])


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = colours(tmp_path / "net.onnx")
    before = DeepFeatures(path, size=8)
    state, recipe = before.state(), before.recipe()
    before.restore(state)
    colours(path, (1, 3, 8, 8))
    assert before.recipe() != recipe
    with pytest.raises(InvalidInput, match="another network"):
        before.restore(state)


# --- external data --------


def with_data_outside(path: Path, location: str) -> Path:
    """The weights of `colours` in a file of their own, as torch exports them."""
    model = onnx.load(colours(path))
    (W,) = model.graph.initializer
    W.ClearField("raw_data")
    W.data_location = TensorProto.EXTERNAL
    W.external_data.add(key="location", value=location)
    path.write_bytes(model.SerializeToString())
    return path


def test_data_beside_the_file_is_read_and_is_part_of_the_digest(tmp_path: Path) -> None:
    (tmp_path / "net.data").write_bytes(GREY_OF_RGB.tobytes())
    path = with_data_outside(tmp_path / "net.onnx", "net.data")
    features = DeepFeatures(path, size=(4, 6))
    picture = skimage.data.coffee()
    X = features.transform([picture]).toarray()[0]
    np.testing.assert_allclose(X, expected_colours(picture, (4, 6)), rtol=1e-4)
    digest = features.state()["network"].tolist()
    (tmp_path / "net.data").write_bytes((2 * GREY_OF_RGB).tobytes())
    os.utime(path, ns=(0, 0))
    assert features.state()["network"].tolist() != digest
    np.testing.assert_allclose(features.transform([picture]).toarray()[0], 2 * X, rtol=1e-4)


@pytest.mark.parametrize("way", ["above", "absolute", "link"])
def test_data_outside_the_folder_is_not_read(tmp_path: Path, way: str) -> None:
    secret, folder = tmp_path / "secret.data", tmp_path / "net"
    secret.write_bytes(GREY_OF_RGB.tobytes())
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    location = {"above": "../secret.data", "absolute": str(secret), "link": "link"}[way]
    with pytest.raises(InvalidInput, match="outside its folder"):
        DeepFeatures(with_data_outside(folder / "net.onnx", location), size=8).fit([])


def test_data_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"Cannot read .*net\.data: No such file"):
        DeepFeatures(with_data_outside(tmp_path / "net.onnx", "net.data"), size=8).fit([])


# --- what cannot be used --------


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x08\x08", bytes(range(256))])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "net.onnx").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"net\.onnx is not a"):
        DeepFeatures(tmp_path / "net.onnx").fit([])


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    content = colours(tmp_path / "net.onnx").read_bytes()
    for end in range(1, len(content), 7):
        (tmp_path / "net.onnx").write_bytes(content[:end])
        with pytest.raises(InvalidInput, match=r"net\.onnx"):
            DeepFeatures(tmp_path / "net.onnx", size=8).fit([])


@pytest.mark.parametrize(
    ("node", "inputs", "words"),
    [
        (helper.make_node("Add", ["x", "z"], ["y"]), {"x": [1, 3, 8, 8], "z": [1, 3, 8, 8]}, "one tensor of pictures"),
        (helper.make_node("Identity", ["x"], ["y"]), {"x": [1, 24]}, "one tensor of pictures"),
        (helper.make_node("Identity", ["x"], ["y"]), {"x": [1, 8, 8, 4]}, "with 1 grey channel"),
        (helper.make_node("Identity", ["x"], ["y"]), {"x": [2, 3, 8, 8]}, "takes 2 pictures at once"),
        (helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0), {"x": [1, 3, 8, 8]}, r"gives \(\) for 1"),
        (helper.make_node("Log", ["x"], ["y"]), {"x": [1, 3, 8, 8]}, "NaN or infinite"),
        (helper.make_node("Mine", ["x"], ["y"], domain="my.ops"), {"x": [1, 3, 8, 8]}, "standard operators only"),
    ],
)
def test_a_graph_that_is_no_picture_network_is_refused(tmp_path: Path, node: Any, inputs: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        DeepFeatures(write_graph(tmp_path / "net.onnx", [node], inputs)).fit([])


def test_a_size_that_the_graph_cannot_take_is_said(tmp_path: Path) -> None:
    shape = {"shape": np.array([1, 3 * 16], np.int64)}
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    path = write_graph(tmp_path / "net.onnx", [node], {"x": ["n", 3, "h", "w"]}, shape)
    assert DeepFeatures(path, size=4).width() == 48
    with pytest.raises(InvalidInput, match="cannot be run on a tensor"):
        DeepFeatures(path, size=5).fit([])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"model": "resnet50"}, "the file 'resnet50' does not exist"),
        ({"model": 3}, "`model` must be .* got 3"),
        ({"size": 0}, "`size` must be .* got 0"),
        ({"size": (8, 8, 3)}, "`size` must be"),
        ({"size": 2.5}, "`size` must be"),
        ({"size": 32, "scale": 0.0}, "`scale` must not be 0"),
        ({"size": 32, "mean": (1.0, 2.0)}, r"`mean` must be a number, or 3 .* got \(1.0, 2.0\)"),
        ({"size": 32, "mean": float("nan")}, "`mean` must be a number"),
    ],
)
def test_wrong_parameters_are_named(parameters: Any, words: str) -> None:
    with pytest.raises((InvalidParameter, InvalidInput), match=words):
        DeepFeatures(**parameters).fit([])


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: Any, package: str) -> None:
    path = colours(tmp_path / "net.onnx")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'saccade\[deep\]'") as caught:
        DeepFeatures(path, size=8).fit([])
    assert caught.value.name == package


# --- kept results, scikit-learn's conventions --------


def test_vectors_are_kept_by_content_of_picture_and_network(tmp_path: Path) -> None:
    path, pictures = colours(tmp_path / "net.onnx"), [skimage.data.chelsea(), skimage.data.coffee()]
    features = DeepFeatures(path, size=8, cache=tmp_path)
    X = features.transform(pictures)
    assert (features.transform(pictures) != X).nnz == 0
    assert entries(tmp_path) == 2
    features.transform([pictures[1][::-1]])
    assert entries(tmp_path) == 3
    colours(path, (1, 3, 8, 8))
    features.transform(pictures)
    assert entries(tmp_path) == 5

    with sqlite3.connect(tmp_path / FILE) as database:  # rows of one picture for all: they can only come from there
        database.execute("UPDATE entries SET value = (SELECT value FROM entries LIMIT 1)")
    Z = features.transform(pictures).toarray()
    assert (Z[0] == Z[1]).all()


def entries(folder: Path) -> int:
    with sqlite3.connect(folder / FILE) as database:
        return int(database.execute("SELECT count(*) FROM entries").fetchone()[0])


def test_it_can_be_cloned_pickled_and_used_unfitted(tmp_path: Path) -> None:
    features = DeepFeatures(colours(tmp_path / "net.onnx"), size=8, mean=(1.0, 2.0, 3.0))
    X = features.transform([skimage.data.coffee()])
    for twin in (clone(features), pickle.loads(pickle.dumps(features))):
        assert twin.get_params() == features.get_params()
        assert (twin.transform([skimage.data.coffee()]) != X).nnz == 0
    assert vars(features.fit([])).keys() == features.get_params().keys()


def test_a_bad_picture_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="A picture must"):
        DeepFeatures(colours(tmp_path / "net.onnx"), size=8).transform([np.zeros((4, 4, 7), np.uint8)])


# --- torch, where it is installed --------


def test_a_torch_module() -> None:
    torch = pytest.importorskip("torch", reason="torch is no requirement, its wheel has gigabytes")
    convolution = torch.nn.Conv2d(3, 2, 1, bias=False)
    convolution.weight.data = torch.from_numpy(GREY_OF_RGB[:, :, None, None].copy())
    module = torch.nn.Sequential(convolution, torch.nn.Dropout(0.5), torch.nn.ReLU())
    pictures = [skimage.data.coffee(), skimage.data.chelsea(), skimage.data.camera()]
    whole, first = DeepFeatures(module, size=(4, 6)), DeepFeatures(module, size=(4, 6), layer="0")
    expected = [expected_colours(np.atleast_3d(p) * np.ones(3, np.uint8), (4, 6)) for p in pictures]
    np.testing.assert_allclose(first.fit_transform(pictures).toarray(), expected, rtol=1e-4, atol=1e-6)
    assert whole.transform(pictures).toarray().min() >= 0.0
    assert whole.recipe() != first.recipe()
    with pytest.raises(InvalidParameter, match="`layer` must be a submodule"):
        DeepFeatures(module, layer="fc").fit_transform(pictures)
    with pytest.raises(InvalidInput, match="cannot be run"):
        DeepFeatures(torch.nn.Conv2d(5, 2, 1)).transform(pictures)
    state = clone(first).state()
    first.restore(state)
    convolution.weight.data *= 2
    with pytest.raises(InvalidInput, match="another network"):
        first.restore(state)
