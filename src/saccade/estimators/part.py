"""What every part of a fitted estimator has: fields that are written and read in one way."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from saccade._core.arrays import Array
from saccade._core.codec import Record, Stateful, from_file, from_json, to_file
from saccade._core.fields import Field

PREFIX = "scores_"  # of the arrays of parts in a model file


def part_record(kind: type, fields: Mapping[str, Field]) -> Record:
    """The fields of a part; whoever reads a file is told of the model, not of the part."""
    return Record(kind, fields, name="a model")


class Part(Stateful):
    """A small frozen object with one idea; `record` names the fields that a file keeps of it, and their bounds."""

    optional: ClassVar[bool] = False  # whether a model file may lack it
    in_header: ClassVar[bool] = False  # whether a model file has its arrays as lists in the header

    def to_file(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Numbers for the header of a model file, and tensors by name."""
        header, tensors = (self.to_state(), {}) if self.in_header else to_file(self.record, self)
        return header, {PREFIX + name: array for name, array in tensors.items()}

    @classmethod
    def from_file(cls, header: dict[str, Any], tensors: Mapping[str, Array], source: Any) -> Self | None:
        """What `to_file` gave, among other parts; None where a file lacks an optional one."""
        mine = {name.removeprefix(PREFIX): array for name, array in tensors.items() if name.startswith(PREFIX)}
        if cls.optional and next(iter(cls.record.fields)) not in {**header, **mine}:
            return None
        found: Self = (
            from_json(cls.record, header, source) if cls.in_header else from_file(cls.record, header, mine, source)
        )
        return found
