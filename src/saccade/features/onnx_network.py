"""A network in an ONNX file, run by ONNX Runtime on one picture at a time.

One picture and one thread per run, and as many runs at once as there are cores. Batches would need more code and save
nothing: EfficientNet-Lite0 took 9.5 ms of CPU time per picture one by one, 9.8 in batches of 8 and 10.3 in batches
of 32; with two threads to share out each layer 9.7, 11.1 and 11.7 (least of three, on a busy machine with AVX-512).
"""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.features.lazy import digest_of

DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
SIDE = 224  # where neither the graph nor the caller says


class OnnxNetwork:
    """Pictures of `size` and `channels` to vectors; the layout and the size are read from the graph."""

    def __init__(self, name: str, content: bytes, digest: str, size: tuple[int, int] | None = None) -> None:
        self.name, self.digest, self._content = name, digest, content
        self._session = _session(name, content)
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in DTYPES or len(inputs[0].shape) != 4:
            raise InvalidInput(
                f"{name} must take one tensor of pictures, four-dimensional floats, but takes "
                f"{[(i.name, i.type, i.shape) for i in inputs]}. Export the network without further inputs."
            )
        self._input = inputs[0]
        self.channels, self._channels_last = self._layout()
        self.size = self._size(size)
        self.width = len(self(np.zeros((*self.size[::-1], self.channels), np.float32)))

    def __call__(self, picture: Annotated[Array, "h, w, c"]) -> Annotated[Array, "width"]:
        """The first output for the picture, averaged over positions."""
        return averaged(self.name, self._run(self._session, picture), self._channels_last)

    def map(self, picture: Annotated[Array, "h, w, c"]) -> Annotated[Array, "rows, columns, width"]:
        """The feature map whose average over positions is the result."""
        output = self._run(self._session, picture)
        if output.ndim == 2:
            output = self._run(self._before_average, picture)
        return as_map(self.name, output, self._channels_last)

    @cached_property
    def _before_average(self) -> Any:
        """A session that ends in what the last node averages."""
        return _session(self.name, before_average(self.name, self._content))

    def _run(self, session: Any, picture: Array) -> Array:
        batch = (picture if self._channels_last else picture.transpose(2, 0, 1))[None]
        batch = np.ascontiguousarray(batch, DTYPES[self._input.type])
        try:
            return np.asarray(session.run([session.get_outputs()[0].name], {self._input.name: batch})[0])
        except Exception as error:  # ONNX Runtime's errors share no class
            raise InvalidInput(
                f"{self.name} cannot be run on a tensor {batch.shape}: {first_line(error)}. Pass the `size` it needs."
            ) from None

    def _layout(self) -> tuple[int, bool]:
        """The number of channels, and whether they come last."""
        shape = self._input.shape
        for channels, axis in ((3, 1), (3, 3), (1, 1), (1, 3)):
            if shape[axis] == channels:
                return channels, axis == 3
        raise InvalidInput(
            f"{self.name} must take pictures (n, 3, h, w) or (n, h, w, 3), or with 1 grey channel, but takes {shape}. "
            "Export it with a fixed number of channels."
        )

    def _size(self, wish: tuple[int, int] | None) -> tuple[int, int]:
        """(width, height): the graph's where it is fixed, else the caller's."""
        count, *rest = self._input.shape
        if isinstance(count, int) and count != 1:
            raise InvalidInput(f"{self.name} takes {count} pictures at once. Export it for 1, or for any number.")
        height, width = rest[:2] if self._channels_last else rest[1:]
        fixed = [side if isinstance(side, int) else None for side in (width, height)]
        wished = wish or [side or SIDE for side in fixed]
        if any(side not in (None, other) for side, other in zip(fixed, wished, strict=True)):
            raise InvalidParameter(
                f"`size` must be {tuple(fixed)}, as {self.name} has it, got {wish}. Leave it out to take the graph's."
            )
        return wished[0], wished[1]


def read_onnx(path: Path, layer: str | None = None) -> tuple[bytes, str]:
    """The file with all data in it and with `layer` as its output, and a digest of all that was read."""
    onnx = onnx_module()
    try:
        content = path.read_bytes()
        model = onnx.load_model_from_string(content)
        outside = {location: _beside(path, location).read_bytes() for location in sorted(_locations(model))}
        onnx.load_external_data_for_model(model, str(path.parent))
    except OSError as error:
        raise InvalidInput(f"Cannot read {error.filename or path}: {error.strerror}. Check the name.") from None
    except InvalidInput:
        raise
    except Exception as error:  # protobuf's and onnx's errors share no class
        raise InvalidInput(f"{path} is not an ONNX file, or not a whole one ({first_line(error)}).") from None
    digest = digest_of(*(np.frombuffer(part, np.uint8) for part in (content, *outside.values())), str(layer))
    if layer is None and not outside:
        return content, digest
    if layer is not None:
        _end_at(path, model, layer)
    return bytes(model.SerializeToString()), digest


def averaged(name: str, output: Any, channels_last: bool) -> Array:
    """One output of a network as a vector: (1, d), (1, tokens, d), (1, c, h, w) or (1, h, w, c)."""
    output = np.asarray(output)
    if output.ndim not in (2, 3, 4) or output.shape[0] != 1 or output.size == 0:
        raise InvalidInput(f"{name} must give (n, d) or (n, c, h, w) for n pictures, but gives {output.shape} for 1.")
    positions = {2: (), 3: (1,), 4: (1, 2) if channels_last else (2, 3)}[output.ndim]
    vector: Array = output.mean(axis=positions, dtype=np.float64).astype(np.float32)[0]
    if not np.isfinite(vector).all():
        raise InvalidInput(f"{name} gives NaN or infinite features. Check `mean` and `scale`, or its weights.")
    return vector


def as_map(name: str, output: Array, channels_last: bool) -> Annotated[Array, "rows, columns, channels"]:
    """The output for one picture as a map of positions."""
    if output.ndim != 4:
        raise InvalidInput(
            f"{name} gives {output.shape} for 1 picture, which is not a map of positions. Name the last feature map "
            "with `layer`, and fit the model again."
        )
    return np.asarray(output[0] if channels_last else output[0].transpose(1, 2, 0))


def before_average(name: str, content: bytes) -> bytes:
    """The network up to its last feature map, where it ends in the average of it over positions."""
    model = onnx_module().load_model_from_string(content)
    makers = {output: node for node in model.graph.node for output in node.output}
    node = makers.get(model.graph.output[0].name)
    while node is not None and node.op_type in ("Flatten", "Squeeze", "Reshape", "Identity"):
        node = makers.get(node.input[0])
    if node is None or node.op_type not in ("GlobalAveragePool", "ReduceMean"):
        raise InvalidInput(
            f"{name} does not end in an average over positions. Name the last feature map with `layer`, and fit the "
            "model again."
        )
    _end_at(Path(name), model, node.input[0])
    return bytes(model.SerializeToString())


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _session(name: str, content: bytes) -> Any:
    # ONNX Runtime 1.29 and later reports to its maker, from import on, unless this says no.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    onnxruntime.disable_telemetry_events()  # on Windows
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised; the log would only say them twice
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's errors share no class
        raise InvalidInput(
            f"{name} is not a network that ONNX Runtime can run ({first_line(error)}). Export it again, with standard "
            "operators only."
        ) from None


def onnx_module() -> Any:
    try:
        import onnx
        import onnx.external_data_helper
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return onnx


def _missing(error: ModuleNotFoundError) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"DeepFeatures needs {error.name}: pip install 'saccade[deep]'", name=error.name)


def _locations(message: Any) -> Iterator[str]:
    """The files that tensors anywhere in the model lie in."""
    for field, value in message.ListFields():
        if field.name == "external_data":
            yield from (entry.value for entry in value if entry.key == "location")
        elif field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                yield from _locations(part)


def _beside(path: Path, location: str) -> Path:
    """A data file in or below the model's folder: a foreign model must not pull in any other file."""
    folder = path.parent.resolve()
    file = (folder / location).resolve()
    if not file.is_relative_to(folder):
        raise InvalidInput(f"{path} asks for data outside its folder, {location!r}. Nothing was read; do not trust it.")
    return file


def _end_at(path: Path, model: Any, layer: str) -> None:
    """Make `layer` the only output."""
    onnx = onnx_module()
    known = [name for node in model.graph.node for name in node.output]
    if layer not in known:
        raise InvalidParameter(f"`layer` must be a tensor of {path}, got {layer!r}. The last ones are {known[-5:]}.")
    given = [info for info in (*model.graph.output, *model.graph.value_info) if info.name == layer]
    del model.graph.output[:]
    unknown = onnx.helper.make_tensor_value_info(layer, onnx.TensorProto.FLOAT, None)
    model.graph.output.append(given[0] if given else unknown)
