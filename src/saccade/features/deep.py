"""Activations of a network that was trained elsewhere, as features."""

import os
import sys
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Self

import numpy as np

from saccade._core.arrays import Array, FilePath
from saccade._core.checks import is_number
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.features import efficientnet
from saccade.features.base import VectorEncoder, nonzero
from saccade.features.lazy import digest_of
from saccade.features.onnx_network import SIDE, OnnxNetwork, as_map, averaged, first_line, read_onnx
from saccade.features.pixels import check_pixels, resize, to_grey, to_rgb

__all__ = ["DeepFeatures"]


@dataclass(eq=False, repr=False)
class DeepFeatures(VectorEncoder):
    """Each picture as the activations of a network, averaged over positions; nothing is learned or downloaded.

    A picture is scaled to the network's size (bicubic, whatever its proportions), and a pixel p of 0…255 goes in as
    (p − mean)/scale. The default network gives 1,280 values ≥ 0, about half of them 0. Values of another network are
    kept as they are; the intersection kernel takes negative ones too.

    Parameters
    ----------
    model : str, path or torch.nn.Module
        "efficientnet-lite0" (with its ImageNet weights, from a package of the extra `deep`); the path of an .onnx
        file that takes one tensor of pictures, channels first or last; or a module, if torch is installed. A module is
        put into eval mode, stays on its device and takes (1, 3, h, w).
    size : int or (width, height), optional
        Size of the network's input. None: what the graph says, else 224.
    mean, scale : float or three floats for red, green and blue
        What the network was trained with. Networks of torchvision have mean=(123.675, 116.28, 103.53),
        scale=(58.395, 57.12, 57.375).
    layer : str, optional
        An inner tensor of the .onnx file, or a submodule, to take in place of the first output. Must be None for
        "efficientnet-lite0".
    cache, n_jobs : path and int, optional
        Folder that keeps results, by content and settings (None: none); number of threads (None and -1: every core).

    Examples
    --------
    >>> from skimage.data import astronaut, chelsea
    >>> DeepFeatures().fit_transform([astronaut(), chelsea()]).shape
    (2, 1280)
    """

    PACKAGES = ("onnxruntime", "pillow")

    model: Any = efficientnet.NAME
    _: KW_ONLY
    size: int | tuple[int, int] | None = None
    mean: float | tuple[float, ...] = 127.0
    scale: float | tuple[float, ...] = 128.0
    layer: str | None = None
    cache: FilePath | None = None
    n_jobs: int | None = None

    def check(self) -> None:
        """Raise an error unless the network can be read and run."""
        self._pixel_map(self._network().channels)

    def encode(self, item: Any) -> tuple[Array, Array]:
        return nonzero(self._network()(self._input(item)))

    def activations(self, item: Any) -> Annotated[Array, "rows, columns, width"]:
        """The feature map of a picture before it is averaged over positions; an error where a network does not do so.

        Parameters
        ----------
        item : array of shape (h, w), (h, w, 3) or (h, w, 4)
            The picture.

        Returns
        -------
        array of shape (rows, columns, width)
            Its average over rows and columns is the vector of the picture.
        """
        network, seen = self._network(), self._input(item)
        found = network.map(seen)
        if not np.allclose(found.mean(axis=(0, 1), dtype=np.float64), network(seen), rtol=1e-3, atol=1e-5):
            raise InvalidInput("The features are not the average of the network's last map. Name it with `layer`.")
        return found

    def _input(
        self, picture: Annotated[Array, "h, w | h, w, 3 | h, w, 4"]
    ) -> Annotated[Array, "height, width, channels"]:
        """The picture as the network takes it, float32."""
        network = self._network()
        mean, scale = self._pixel_map(network.channels)
        small = resize(to_rgb(picture), network.size)
        if network.channels == 1:
            small = to_grey(small)[..., None]
        return (small.astype(np.float32) - mean) / scale

    def width(self) -> int:
        return self._network().width

    def state(self) -> dict[str, Array]:
        return {"network": np.frombuffer(bytes.fromhex(self._network().digest), np.uint8)}

    def restore(self, state: dict[str, Array]) -> Self:
        # A digest of the network is kept, so that a model is not used with another one.
        here, kept = self._digest(), bytes(np.asarray(state["network"], np.uint8)).hex()
        if here != kept:
            raise InvalidInput(
                f"The model was made with another network than the present `model` (digests {kept} and {here}). "
                "Use that network, or fit the model again."
            )
        return self

    def _digest(self) -> str:
        """Digest of the network; a file is read for it, not run."""
        if isinstance(self.model, str | os.PathLike) and self.model != efficientnet.NAME:
            return read_onnx(self._file(), self.layer)[1]
        return self._network().digest

    def _network(self) -> "OnnxNetwork | TorchNetwork":
        size = _check_size(self.size)
        if _is_module(self.model):
            return TorchNetwork(self.model, size or (SIDE, SIDE), self.layer)
        if not isinstance(self.model, str | os.PathLike):
            raise InvalidParameter(
                f'`model` must be "{efficientnet.NAME}", the path of an .onnx file or a torch.nn.Module, got '
                f"{self.model!r}."
            )
        if self.model == efficientnet.NAME:
            if self.layer is not None:
                raise InvalidParameter(f"`layer` must be None for {efficientnet.NAME}, got {self.layer!r}.")
            return _efficientnet(size or (efficientnet.SIDE, efficientnet.SIDE))
        path = self._file()
        status = path.stat()
        return _onnx_file(path.resolve(), (status.st_mtime_ns, status.st_size), size, self.layer)

    def _file(self) -> Path:
        path = Path(os.fsdecode(self.model))
        if not path.is_file():
            raise InvalidInput(
                f'`model` must be "{efficientnet.NAME}" or an .onnx file; the file {str(path)!r} does not exist.'
            )
        return path

    def _pixel_map(self, channels: int) -> tuple[Array, Array]:
        """`mean` and `scale` as one number, or one per channel."""
        scale = _check_numbers("scale", self.scale, channels)
        if not scale.all():
            raise InvalidParameter(f"`scale` must not be 0, got {self.scale!r}. Pixels from 0 to 1 are scale=255.")
        return _check_numbers("mean", self.mean, channels), scale


class TorchNetwork:
    """A torch module, run on one picture at a time, because torch has threads of its own."""

    def __init__(self, module: Any, size: tuple[int, int], layer: str | None) -> None:
        self.module, self.size, self.layer = module, size, layer
        self.channels = 3

    @cached_property
    def digest(self) -> str:
        """Digest of the architecture as torch prints it, and of every parameter and buffer."""
        parts = [repr(self.module), str(self.layer)]
        for name, tensor in sorted(self.module.state_dict().items()):
            parts += [name, str(tensor.dtype), str(tuple(tensor.shape))]
            parts += [tensor.detach().cpu().reshape(-1).view(sys.modules["torch"].uint8).numpy()]
        return digest_of(*parts)

    @cached_property
    def width(self) -> int:
        return len(self(np.zeros((*self.size[::-1], 3), np.float32)))

    def __call__(self, picture: Annotated[Array, "h, w, 3"]) -> Annotated[Array, "width"]:
        return averaged("The module", self._output(picture), False)

    def map(self, picture: Annotated[Array, "h, w, 3"]) -> Annotated[Array, "rows, columns, width"]:
        return as_map("The module", self._output(picture), False)

    def _output(self, picture: Array) -> Array:
        torch = sys.modules["torch"]
        some = next(self.module.parameters(), torch.zeros(0))
        x = torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1)[None])).to(some.device, some.dtype)
        try:
            with _one_at_a_time, torch.inference_mode():
                output = self._run(x)
            return np.asarray(output.float().cpu().numpy())
        except (RuntimeError, AttributeError, TypeError) as error:  # e.g. wrong shapes, or a tuple for a tensor
            raise InvalidInput(
                f"The module cannot be run on a tensor {tuple(x.shape)}: {first_line(error)}. Pass the `size` it needs."
            ) from None

    def _run(self, x: Any) -> Any:
        """The output of the module, or of its submodule `layer`."""
        self.module.eval()
        if self.layer is None:
            return self.module(x)
        seen: list[Any] = []
        try:
            part = self.module.get_submodule(self.layer)
        except AttributeError as error:
            raise InvalidParameter(f"`layer` must be a submodule of `model`, got {self.layer!r}: {error}.") from None
        hook = part.register_forward_hook(lambda module, inputs, output: seen.append(output))
        try:
            self.module(x)
        finally:
            hook.remove()
        return seen[-1]


_one_at_a_time = Lock()  # a hook would hear the pictures of other threads


@lru_cache(maxsize=2)
def _efficientnet(size: tuple[int, int]) -> OnnxNetwork:
    return OnnxNetwork("EfficientNet-Lite0", *efficientnet.efficientnet(size), size)


@lru_cache(maxsize=2)
def _onnx_file(path: Path, version: tuple[int, int], size: tuple[int, int] | None, layer: str | None) -> OnnxNetwork:
    """The network of a file; one that was changed has another version, its time and length, and is read again."""
    return OnnxNetwork(str(path), *read_onnx(path, layer), size)


def _is_module(model: Any) -> bool:
    """Whether it is a torch module. Torch is never imported here: whoever has a module has imported it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _check_size(size: Any) -> tuple[int, int] | None:
    """(width, height), or None."""
    if size is None:
        return None
    sides = tuple(size) if isinstance(size, tuple | list) else (size, size)
    if len(sides) == 2 and all(isinstance(side, int) and not isinstance(side, bool) and side > 0 for side in sides):
        return check_pixels(sides)
    raise InvalidParameter(f"`size` must be None, a whole number from 1 on or (width, height), got {size!r}.")


def _check_numbers(name: str, value: Any, channels: int) -> Array:
    """One number, or one per channel, as float32."""
    numbers = value if isinstance(value, tuple | list | np.ndarray) else [value]
    if len(numbers) in (1, channels) and all(is_number(number) and np.isfinite(number) for number in numbers):
        return np.asarray(numbers, np.float32)
    raise InvalidParameter(f"`{name}` must be a number, or {channels} numbers, one per channel, got {value!r}.")
