"""The tensors of a file written by `torch.save(module.state_dict(), file)`, read without torch and without unpickling.

Such a file is a pickle, a program that could call anything, beside plain numbers. Its instructions are walked here one
by one; only those that build tuples, dictionaries and tensors are known, and none can import or call. Any other file
is refused. The layout is that of torch before 1.6, which the weights of EfficientNet-Lite0 have: pickles, and the
numbers behind them.
"""

import math
import pickletools
import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saccade._core.arrays import Array, FilePath
from saccade._core.errors import ModelFileError

MAGIC = 0x1950A86A20F9469CFC6C  # the first number of a file
DTYPES = {
    "torch DoubleStorage": "<f8",
    "torch FloatStorage": "<f4",
    "torch HalfStorage": "<f2",
    "torch LongStorage": "<i8",
    "torch IntStorage": "<i4",
    "torch ShortStorage": "<i2",
    "torch CharStorage": "i1",
    "torch ByteStorage": "u1",
    "torch BoolStorage": "?",
}
KNOWN = {*DTYPES, "collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"}

DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, MemoryError, RuntimeError, EOFError)
"""What a truncated or foreign file leads to while it is taken apart; and struct.error."""


class Name(NamedTuple):
    """A name that the pickle would import; here it is only kept."""

    text: str


class Storage(NamedTuple):
    """A run of numbers that several tensors may share."""

    key: str
    dtype: str
    length: int


class Tensor(NamedTuple):
    """A strided view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Foreign(Exception):
    """Something that a file of named tensors does not hold."""


def read_state_dict(path: FilePath) -> dict[str, Array]:
    """The named tensors of a state-dict file, as arrays of their own."""
    path = Path(path)
    try:
        file = BytesIO(path.read_bytes())  # a length that lies then ends at the end of the file
        named, storages = _parts(file)
        return {name: _array(tensor, storages[tensor.storage.key]) for name, tensor in named.items()}
    except OSError as error:
        raise ModelFileError(f"Cannot read {path}: {error.strerror}. Check the name and who may read it.") from None
    except _Foreign as error:
        raise ModelFileError(
            f"{path} is not a plain file of named tensors: {error}. Nothing of it was run. Write it with "
            "torch.save(module.state_dict(), file, _use_new_zipfile_serialization=False), tensors on the CPU."
        ) from None
    except (*DAMAGE, struct.error) as error:
        raise ModelFileError(
            f"{path} is not a file of torch, or not a whole one ({error}). Nothing of it was run. Get the file again."
        ) from None


def _parts(file: BytesIO) -> tuple[dict[str, Tensor], dict[str, bytes]]:
    """Pickles of a magic number, a version, the machine, the tensors and the keys of the storages; then the numbers."""
    if _walk(file) != MAGIC:
        raise _Foreign("it does not begin with the number that marks one")
    version, machine = _walk(file), _walk(file)
    if version != 1001 or not machine["little_endian"]:
        raise _Foreign(f"version {version}, little-endian {machine['little_endian']}")
    named = _named_tensors(_walk(file))
    size = {t.storage.key: np.dtype(t.storage.dtype).itemsize for t in named.values()}
    storages = {}
    for key in _walk(file):
        (length,) = struct.unpack("<Q", file.read(8))
        storages[key] = file.read(length * size[key])
    return named, storages


def _named_tensors(thing: Any) -> dict[str, Tensor]:
    if not isinstance(thing, dict):
        raise _Foreign("it holds one thing, not named tensors")
    for name, tensor in thing.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise _Foreign(f"{name!r} is not the name of a tensor")
    return thing


def _array(tensor: Tensor, numbers: bytes) -> Array:
    """The view as an array of its own, after a check that it stays inside its storage."""
    storage, offset, shape, strides = tensor
    flat = np.frombuffer(numbers, storage.dtype)
    if len(flat) != storage.length:
        raise _Foreign(f"a storage should have {storage.length} numbers and has {len(flat)}")
    if min(0, offset, *shape, *strides) < 0 or math.prod(shape) > len(flat):  # strides of 0 could swell it
        raise _Foreign(f"a tensor of shape {shape} lies in a storage of {len(flat)} numbers")
    if math.prod(shape) == 0:
        return np.zeros(shape, storage.dtype)
    if offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) >= len(flat):
        raise _Foreign("a tensor reaches outside its storage")
    steps = [step * flat.itemsize for step in strides]
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, steps, writeable=False).copy()


def _walk(file: Any) -> Any:
    """What one pickle describes; the file is left behind its end."""
    walk = _Walk()
    for opcode, argument, _ in pickletools.genops(file):
        if opcode.name == "STOP":
            return walk.stack.pop()
        if opcode.name not in INSTRUCTIONS:
            raise _Foreign(f"it has the instruction {opcode.name}")
        INSTRUCTIONS[opcode.name](walk, argument)
    raise _Foreign("it has no end")


class _Walk:
    """The stack and the memory of a pickle, with the few instructions that a state dict needs."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def push(self, thing: Any) -> None:
        self.stack.append(thing)

    def pop(self, count: int) -> list[Any]:
        """The last `count` things, off the stack."""
        if count > len(self.stack):
            raise _Foreign("it takes more from its stack than lies there")
        things = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return things

    def since_mark(self) -> list[Any]:
        return self.pop(len(self.stack) - self.marks.pop())

    def extend(self, values: list[Any]) -> None:
        _top(self.stack, list).extend(values)

    def update(self, pairs: list[Any]) -> None:
        _top(self.stack, dict).update(zip(pairs[::2], pairs[1::2], strict=True))

    def remember(self, slot: int) -> None:
        self.memory[slot] = self.stack[-1]


def _top(stack: list[Any], kind: type) -> Any:
    if not isinstance(stack[-1], kind):
        raise _Foreign(f"it fills a {type(stack[-1]).__name__} as if it were a {kind.__name__}")
    return stack[-1]


INSTRUCTIONS: dict[str, Callable[[_Walk, Any], object]] = {
    "PROTO": lambda walk, _: None,
    "MARK": lambda walk, _: walk.marks.append(len(walk.stack)),
    **dict.fromkeys(("BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), _Walk.push),
    "NONE": lambda walk, _: walk.push(None),
    "NEWTRUE": lambda walk, _: walk.push(True),
    "NEWFALSE": lambda walk, _: walk.push(False),
    "EMPTY_DICT": lambda walk, _: walk.push({}),
    "EMPTY_LIST": lambda walk, _: walk.push([]),
    "EMPTY_TUPLE": lambda walk, _: walk.push(()),
    "TUPLE": lambda walk, _: walk.push(tuple(walk.since_mark())),
    "TUPLE1": lambda walk, _: walk.push(tuple(walk.pop(1))),
    "TUPLE2": lambda walk, _: walk.push(tuple(walk.pop(2))),
    "TUPLE3": lambda walk, _: walk.push(tuple(walk.pop(3))),
    "APPEND": lambda walk, _: walk.extend(walk.pop(1)),
    "APPENDS": lambda walk, _: walk.extend(walk.since_mark()),
    "SETITEM": lambda walk, _: walk.update(walk.pop(2)),
    "SETITEMS": lambda walk, _: walk.update(walk.since_mark()),
    "BINPUT": _Walk.remember,
    "LONG_BINPUT": _Walk.remember,
    "BINGET": lambda walk, slot: walk.push(walk.memory[slot]),
    "LONG_BINGET": lambda walk, slot: walk.push(walk.memory[slot]),
    "BUILD": lambda walk, _: walk.pop(1),  # attributes, such as the versions of the modules: not needed
    "GLOBAL": lambda walk, text: walk.push(_name(text)),
    "BINPERSID": lambda walk, _: walk.push(_storage(*walk.pop(1))),
    "REDUCE": lambda walk, _: walk.push(_made(*walk.pop(2))),
}  # fmt: skip


def _name(text: str) -> Name:
    if text not in KNOWN:
        raise _Foreign(f"it asks for {text.replace(' ', '.')}")
    return Name(text)


def _storage(reference: Any) -> Storage:
    """("storage", type, key, device, length, None)."""
    kind, dtype, key, _device, length, *view = reference
    if kind != "storage" or not isinstance(dtype, Name) or dtype.text not in DTYPES or any(view):
        raise _Foreign("it refers to something that is not a storage")
    if not isinstance(key, str) or type(length) is not int:
        raise _Foreign("a storage has no name or no length")
    return Storage(key, DTYPES[dtype.text], length)


def _made(maker: Any, arguments: Any) -> Any:
    """An empty dictionary or a tensor: all that a state dict makes."""
    text = maker.text if isinstance(maker, Name) else None
    if text == "collections OrderedDict" and arguments == ():
        return {}
    if text == "torch._utils _rebuild_parameter" and isinstance(arguments[0], Tensor):
        return arguments[0]
    if text == "torch._utils _rebuild_tensor_v2" and isinstance(arguments[0], Storage):
        storage, offset, shape, strides = arguments[:4]
        if all(type(number) is int for number in (offset, *shape, *strides)):
            return Tensor(storage, offset, tuple(shape), tuple(strides))
    raise _Foreign("it makes something that is not a tensor")
