"""The graph of EfficientNet-Lite0 against torch, and where it is kept."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import skimage.data
from hypothesis import given
from hypothesis import strategies as st

from saccade.features.efficientnet import STAGES, build, cache_folder, efficientnet, same_padding, weights_file
from saccade.features.onnx_network import OnnxNetwork
from saccade.features.pixels import resize
from saccade.features.torch_weights import read_state_dict

# Made once with torch 2.13 (CPU) and the package efficientnet_lite_pytorch 0.1, whose layers the weights are named
# after: EfficientNet.from_name("efficientnet-lite0") with the state dict of the weights' package, in eval mode;
# extract_features of (pixel − 127)/128, the picture resized to 224 × 224 (bicubic, Pillow), averaged over positions.
# The largest difference of all 1,280 features was 3.7e-6. Here are the sixteen largest of each picture.
EXPECTED = {
    "astronaut": {
        22: 2.36467, 46: 1.80092, 121: 1.66178, 124: 1.88108, 283: 2.50382, 327: 1.82447, 376: 1.95183, 667: 2.25761,
        684: 2.93283, 704: 1.63859, 714: 1.65909, 1015: 2.39941, 1084: 1.69845, 1112: 2.35656, 1133: 1.70338,
        1145: 1.67329,
    },
    "chelsea": {
        112: 3.89174, 241: 2.11196, 254: 3.05289, 287: 3.98752, 301: 2.78363, 345: 2.15935, 450: 1.95474, 451: 2.33834,
        549: 2.30512, 599: 2.49136, 713: 1.94098, 809: 2.37741, 977: 1.81408, 1044: 2.28122, 1144: 1.93031,
        1156: 2.31274,
    },
}  # fmt: skip
NORM_SUM_NONZEROS = {"astronaut": (16.57028, 323.23737, 914), "chelsea": (14.60772, 178.55707, 510)}


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    return read_state_dict(weights_file())


@pytest.fixture(scope="module")
def network(weights: Any) -> OnnxNetwork:
    return OnnxNetwork("EfficientNet-Lite0", build(weights), "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "saccade"


@pytest.mark.parametrize("name", ["astronaut", "chelsea"])
def test_the_features_are_those_of_torch(network: OnnxNetwork, name: str) -> None:
    picture = resize(getattr(skimage.data, name)(), (224, 224))
    features = network((picture.astype(np.float32) - 127) / 128)
    expected = EXPECTED[name]
    np.testing.assert_allclose(features[list(expected)], list(expected.values()), rtol=0, atol=1e-4)
    assert set(np.argsort(-features)[:16]) == set(expected)
    norm, total, nonzeros = NORM_SUM_NONZEROS[name]
    assert np.linalg.norm(features) == pytest.approx(norm, abs=1e-3)
    assert features.sum() == pytest.approx(total, abs=1e-2)
    assert np.count_nonzero(features) == pytest.approx(nonzeros, abs=2)
    assert features.min() >= 0.0


def test_the_graph_is_valid_and_of_the_size_asked_for(weights: Any) -> None:
    model = onnx.load_model_from_string(build(weights, (96, 64)))
    onnx.checker.check_model(model, full_check=True)
    assert [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim[1:]] == [3, 64, 96]
    assert sum(node.op_type == "Conv" for node in model.graph.node) == 2 + 2 + 3 * (sum(s[0] for s in STAGES) - 1)
    assert sum(node.op_type == "Add" for node in model.graph.node) == sum(s[0] - 1 for s in STAGES)
    assert build(weights, (96, 64)) == build(weights, (96, 64))


@given(side=st.integers(1, 300), kernel=st.sampled_from([1, 3, 5]), stride=st.integers(1, 2))
def test_padding_gives_as_many_positions_as_strides_fit(side: int, kernel: int, stride: int) -> None:
    before, after = same_padding(side, kernel, stride)
    assert (before + side + after - kernel) // stride + 1 == -(-side // stride)
    assert 0 <= before <= after <= before + 1


def test_the_graph_is_built_once_and_kept(folder: Path) -> None:
    content, digest = efficientnet((32, 32))
    (file,) = folder.iterdir()
    assert file.name.startswith(f"efficientnet-lite0-{digest}-")
    assert file.read_bytes() == content
    written = file.stat().st_mtime_ns
    assert efficientnet((32, 32)) == (content, digest)
    assert file.stat().st_mtime_ns == written
    assert efficientnet((64, 32))[1] != digest


@pytest.mark.parametrize("damage", [lambda c: c[:-1], lambda c: b"", lambda c: c[:1000] + b"x" + c[1001:]])
def test_a_damaged_graph_is_built_again(folder: Path, damage: Any) -> None:
    content, digest = efficientnet((32, 32))
    (file,) = folder.iterdir()
    file.write_bytes(damage(content))
    assert efficientnet((32, 32)) == (content, digest)
    assert file.read_bytes() == content


def test_a_cache_folder_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    content, _ = efficientnet((32, 32))
    onnx.checker.check_model(onnx.load_model_from_string(content))


def test_the_cache_folder_is_the_users(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / ".cache" / "saccade"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "saccade"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "saccade" / "Cache"
