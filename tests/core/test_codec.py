"""States and models as fields: what was written comes back, and whatever is wrong is one clear error."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade._core import codec, limits
from saccade._core.arrays import Array
from saccade._core.by_parameters import ByParameters
from saccade._core.codec import OneOf, Record
from saccade._core.errors import InvalidInput, ModelFileError
from saccade._core.fields import Field, Many, Maybe, Named, Numbers, Reading, Row, flag, number, plain, text, whole
from tests.memory import at_most


@dataclass(frozen=True)
class Ball:
    radius: float

    def __post_init__(self) -> None:
        if self.radius == 13.0:
            raise InvalidInput("`radius` brings bad luck. Pass another.")


@dataclass(frozen=True)
class Pair:
    parts: list[Any]


@dataclass(frozen=True)
class Whole:
    rows: int
    noise: float
    on: bool
    kind: str
    centre: Array | None
    order: Array
    shape: Any
    options: dict[str, Any]
    weight: float


SHAPES: dict[str, Record] = {"Ball": Record(Ball, {"radius": number(above=0.0)})}
SHAPES["Pair"] = Record(Pair, {"parts": Many(OneOf(SHAPES), 3)})
FIELDS: dict[str, Field] = {
    "rows": whole(1, 100),
    "noise": number(0.0, 10.0),
    "on": flag(),
    "kind": text("round", "flat"),
    "centre": Maybe(Numbers("d")),
    "order": Numbers("n", 2, dtype=np.int64, below="rows"),
    "shape": OneOf(SHAPES),
    "options": Named(plain()),
    "weight": Maybe(number(), default=0.5),
}


def renamed(state: dict[str, Any]) -> dict[str, Any]:
    return {"on" if key == "lit" else key: value for key, value in state.items()}


RECORD = Record(Whole, FIELDS, version=2, upgrade=renamed)
VALUE = Whole(
    5,
    0.5,
    True,
    "flat",
    np.array([1.0, 2.0]),
    np.array([[0, 4], [2, 3]]),
    Pair([Ball(1.0), Pair([])]),
    {"a": None},
    2.0,
)


def assert_same(found: Whole) -> None:
    np.testing.assert_array_equal(found.centre, VALUE.centre)
    np.testing.assert_array_equal(found.order, VALUE.order)
    assert found.order.dtype == np.int64
    assert (found.rows, found.noise, found.on, found.kind) == (5, 0.5, True, "flat")
    assert (found.shape, found.options, found.weight) == (VALUE.shape, {"a": None}, 2.0)


def test_comes_back_from_json_and_from_tensors() -> None:
    state = json.loads(json.dumps(codec.to_json(RECORD, VALUE)))
    assert_same(codec.from_json(RECORD, state))
    header, tensors = codec.to_file(RECORD, VALUE)
    assert set(tensors) == {"centre", "order"}
    assert not {"centre", "order"} & set(header)
    codec.check_layout(RECORD, header, tensors)
    assert_same(codec.from_file(RECORD, json.loads(json.dumps(header)), tensors))


def test_older_spellings_and_fields_that_older_states_lack() -> None:
    state = codec.to_json(RECORD, VALUE)
    state["lit"] = state.pop("on")
    del state["weight"]
    found = codec.from_json(RECORD, state)
    assert found.on is True
    assert found.weight == 0.5


WRONG: list[tuple[str, Any, str]] = [
    ("estimator", "Localizer", "'Localizer' of version 2, and Whole of version 2 is needed"),
    ("version", 3, "'Whole' of version 3"),
    ("rows", 10**12, "`rows` must be a whole number from 1 to 100, got 1000000000000"),
    ("rows", True, "`rows` must be a whole number"),
    ("rows", 10**400, "`rows` must be a whole number from 1 to 100, got a number too large"),
    ("noise", float("nan"), "`noise` must be a number from 0 to 10"),
    ("noise", -1.0, "`noise` must be a number from 0 to 10, got -1.0"),
    ("noise", "much", "`noise` must be a number"),
    ("on", 1, "`on` must be true or false"),
    ("kind", "square", "`kind` must be one of round, flat, got 'square'"),
    ("kind", ["flat"], "`kind` must be one of"),
    ("centre", [1.0, float("inf")], "`centre` must be finite numbers"),
    ("centre", [[1.0]], "`centre` must be an array of 1 dimensions, got 2"),
    ("centre", "here", "`centre` must be a list of numbers"),
    ("order", [[0, 5]], "`order` must be from 0 to 4"),
    ("order", [[0, -1]], "`order` must be from 0 to 4"),
    ("order", [[0.5, 1]], "`order` must be whole numbers"),
    ("order", [[0, 1, 2]], "`order` must be of size 2, got 3"),
    ("order", [[0, 1], [2]], "inhomogeneous"),
    ("order", [[0, 10**400]], "must be numbers"),
    ("shape", {"kind": "os.system"}, "`shape` must be one of Ball, Pair, got 'os.system'"),
    ("shape", {"kind": ["Ball"]}, "`shape` must be one of Ball, Pair"),
    ("shape", {"kind": "Ball", "radius": 0}, "`shape.radius` must be a number above 0"),
    ("shape", {"kind": "Ball"}, "`shape.radius` is missing"),
    ("shape", {"kind": "Ball", "radius": 13}, "brings bad luck. Pass another. Save it again"),
    (
        "shape",
        {"kind": "Pair", "parts": [{"kind": "Pair", "parts": []}] * 4},
        "`shape.parts` must be a list of at most 3",
    ),
    ("options", ["a"], "`options` must be named values"),
    ("options", {"a": [1]}, "`options.a` must be a number, a text"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_whatever_is_wrong_is_one_error(name: str, value: Any, message: str) -> None:
    with pytest.raises(ModelFileError) as error:
        codec.from_json(RECORD, codec.to_json(RECORD, VALUE) | {name: value})
    assert message in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("name", sorted(set(FIELDS) - {"weight"}))
def test_a_missing_field(name: str) -> None:
    state = codec.to_json(RECORD, VALUE)
    del state[name]
    with pytest.raises(ModelFileError, match=f"`{name}` is missing"):
        codec.from_json(RECORD, state)
    header, tensors = codec.to_file(RECORD, VALUE)
    header.pop(name, None), tensors.pop(name, None)
    with pytest.raises(ModelFileError, match=name):
        codec.from_file(RECORD, header, tensors)


@pytest.mark.parametrize("state", [None, [], "Whole", 3, {}])
def test_what_is_no_state_at_all(state: Any) -> None:
    with pytest.raises(ModelFileError, match=r"Save it again|of version 2 is needed"):
        codec.from_json(RECORD, state)


def test_parts_within_parts_without_end() -> None:
    nested: Any = {"kind": "Ball", "radius": 1.0}
    for _ in range(5000):
        nested = {"kind": "Pair", "parts": [nested]}
    with pytest.raises(ModelFileError, match="RecursionError"):
        codec.from_json(RECORD, codec.to_json(RECORD, VALUE) | {"shape": nested})


def test_a_tensor_is_refused_by_its_shape_before_it_is_read() -> None:
    @dataclass
    class Place:
        dtype: Any
        shape: tuple[int, ...]

    few = Record(Whole, {"order": Numbers("n", 2, dtype=np.int64, count=1000)}, version=1)
    header = {"estimator": "Whole", "version": 1}
    for dtype, shape, message in (
        (np.int64, (2**40, 2), "at most 1,000 numbers"),
        (np.int64, (3,), "2 dimensions"),
        (np.float32, (3, 2), "numbers of type int64, got 'float32'"),
    ):
        with at_most(1 << 30), pytest.raises(ModelFileError, match=message):
            codec.check_layout(few, header, {"order": Place(np.dtype(dtype), shape)})
    codec.check_layout(few, header, {"order": Place(np.dtype(np.int64), (3, 2))})


def test_a_class_that_a_file_does_not_know_is_not_written() -> None:
    with pytest.raises(ModelFileError, match=r"cannot be saved\. A file knows Ball, Pair"):
        OneOf(SHAPES).write(VALUE, None, "")


def test_json_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codec.write_json(tmp_path / "s.json", {"a": 1})
    assert codec.read_json(tmp_path / "s.json") == {"a": 1}
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for name, content in (("deep", "[" * 100_000), ("cut", '{"a"'), ("bytes", "\x00")):
        (tmp_path / name).write_text(content)
        with pytest.raises(ModelFileError, match="is no JSON"):
            codec.read_json(tmp_path / name)
    monkeypatch.setattr(limits, "STATE_BYTES", 5)
    with pytest.raises(ModelFileError, match="has 8 bytes, and a state has at most 5"):
        codec.read_json(tmp_path / "s.json")


def test_an_empty_list_is_an_array_without_rows() -> None:
    found = Numbers("n", 4).read([], Reading(None, {}))
    assert found.shape == (0, 4)


@pytest.mark.parametrize("written", [["7", "8"], [True, False], [1e19], [2.0**53 + 2], [None], [[1], [2, 3]]])
def test_whole_numbers_are_neither_text_nor_too_large(written: list[Any]) -> None:
    record = codec.Record(dict, {"rows": Numbers("n", dtype=np.int64, least=0)}, name="rows")
    assert codec.from_json(record, {"rows": [7, 2**53]})["rows"].tolist() == [7, 2**53]
    with pytest.raises(ModelFileError, match="does not describe"):
        codec.from_json(record, {"rows": written})


def test_a_list_of_rows_is_as_wide_as_an_earlier_field_says() -> None:
    assert Numbers("n", "d").read([], Reading(None, {"d": 3})).shape == (0, 3)
    assert Numbers("n", "d").read([], Reading(None, {})).shape == (0, 0)


LONGEST = "a" * limits.LABEL_BYTES


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (number(0.0, 10.0), [0, 0.0, 10.0, 10], [-1e-9, 10.1, float("inf"), float("nan"), True]),
        (number(above=0.0), [1e-300, 1e300], [0.0, -1.0, float("inf")]),
        (number(), [-1e300], [float("-inf"), float("inf")]),
        (whole(1, 100), [1, 100], [0, 101, 1.0]),
        (whole(), [0, limits.KNOWN_EXAMPLES], [-1, limits.KNOWN_EXAMPLES + 1]),
        (flag(), [True, False], [0, 1, None]),
        (text(most=3), ["", "abc"], ["abcd", 3]),
        (text(), [LONGEST], [LONGEST + "a"]),
        (plain(), [None, True, 1, 0.5, LONGEST], [LONGEST + "a", [], {}]),
        (Many(flag(), 2), [[], [True, False]], [[True] * 3, "ab", [1]]),
        (Numbers("n", count=3), [[1.0, 2.0, 3.0]], [[1.0] * 4]),
        (Numbers("n", least=0.0, most=1.0), [[0.0, 1.0]], [[-0.1], [1.1]]),
        (Numbers("n", least=0.0), [[0.0, 1e300]], [[-1.0]]),
        (Numbers("n", "n"), [[[1.0, 2.0], [3.0, 4.0]]], [[[1.0, 2.0]]]),
        (Row((flag(), text())), [[True, "a"]], [[True], [True, "a", "b"], ["a", True], "ab"]),
        (Row((text(), text())), [["a", "b"]], ["ab", {"a": 1, "b": 2}]),
        (Maybe(flag()), [None, True], [1]),
    ],
)
def test_bounds_belong_to_what_is_allowed(field: Field, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        found = field.read(value, Reading(None, {}, "it"))
        np.testing.assert_array_equal(found, tuple(value) if isinstance(field, Row) else value)
    for value in bad:
        with pytest.raises(ValueError, match="`it"):
            field.read(value, Reading(None, {}, "it"))


def test_a_state_of_the_largest_size_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codec.write_json(tmp_path / "s.json", {"a": 1})
    monkeypatch.setattr(limits, "STATE_BYTES", 8)
    assert codec.read_json(tmp_path / "s.json") == {"a": 1}


class Box:
    """An object with parameters, as kernels and transformers are."""

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        within = {f"inner__{k}": v for k, v in self.inner.get_params().items()} if isinstance(self.inner, Box) else {}
        return {"inner": self.inner} | (within if deep else {})


class Other(Box):
    """One that the table below does not list."""


BOXES = ByParameters({"Box"}, {"Box": Box}.__getitem__, depth=2)


def boxed(times: int) -> Any:
    found: Any = None
    for _ in range(times):
        found = Box(found)
    return found


def test_objects_by_parameters_lie_at_most_so_deep() -> None:
    three = json.loads(json.dumps(BOXES.write(boxed(3), None, "")))
    assert BOXES.read(three, Reading(None, {})).inner.inner.inner is None
    two = BOXES.write(boxed(2), None, "")
    for wrap in ("part", "parts", "list"):  # "parts" is of older files
        for inside in (two, three):
            content = inside if wrap == "part" else [inside if wrap == "parts" else {"part": inside}]
            state = {"name": "Box", "given": {"inner": {wrap: content}}}
            if inside is two:
                found = BOXES.read(state, Reading(None, {})).inner
                assert (found if wrap == "part" else found[0]).inner.inner is None
            else:
                with pytest.raises(ValueError, match="at most 2 objects within each other"):
                    BOXES.read(state, Reading(None, {}))
    with pytest.raises(ModelFileError, match="up to 2 within each other"):
        BOXES.write(boxed(4), None, "")
    for unknown in (Other(), Box(Other()), Box([Other()])):
        with pytest.raises(ModelFileError, match="a model file holds no code"):
            BOXES.write(unknown, None, "")


def test_parameters_of_every_kind_come_back() -> None:
    for value in (None, True, 3, 0.5, "a", [1, (2.0, "b")], (), [Box(1)]):
        again = BOXES.read(json.loads(json.dumps(BOXES.write(Box(value), None, ""))), Reading(None, {})).inner
        assert type(again) is type(value)
        assert again == value or again[0].inner == 1
    array = BOXES.read(BOXES.write(Box(np.array([[0.5, 1.0]])), None, ""), Reading(None, {})).inner
    np.testing.assert_array_equal(array, [[0.5, 1.0]])
    assert array.dtype == np.float64
    for value, plain_value in ((np.float32(0.5), 0.5), (np.int64(3), 3), (Path("a"), "a")):
        written = BOXES.write(Box(value), None, "")["given"]["inner"]
        assert written == plain_value
        assert type(written) is type(plain_value)
    assert BOXES.write(Box(np.random.default_rng(0)), None, "")["given"]["inner"] is None
    with pytest.raises(ValueError, match="a known value, got 'code'"):
        BOXES.read({"name": "Box", "given": {"inner": {"code": "x"}}}, Reading(None, {}))
    with pytest.raises(ValueError, match="one of Box, got 'Other'"):
        BOXES.read({"name": "Other", "given": {}}, Reading(None, {}))
