"""Tables to and from the parts of a model file, with every bound checked that the compiled loops rely on.

Compact tables take about half the room: the mean in float32, the variance in float16 and at the nodes of the mean where
these are its own. What float16 loses goes into the slack, so the variance is still an upper bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.codec import Record, from_file, to_file
from saccade._core.errors import ModelFileError
from saccade._core.fields import Field, Many, Maybe, Numbers, number, text, whole
from saccade.inference.posterior.compressed import Compressed
from saccade.kernels.intersection import HIK
from saccade.operators.norms import NormTables
from saccade.operators.tables import GridTables, PiecewiseTables

VARIANCE = "variance_"  # before the names of its tensors


def _record(fields: dict[str, Field]) -> Record:
    return Record(dict, fields, name="a model", take=dict)


def _nodes(T: type, **more: Field) -> Record:
    """Tables between nodes."""
    nodes = {"level_starts": Numbers("starts", dtype=np.int64), "levels": Numbers("L"), "T": Numbers("L", "m", dtype=T)}
    return _record({**nodes, **more})


def _norms(compact: bool) -> Record:
    """Those of the variance; compact ones may have the nodes of the mean."""
    many, slack = Maybe(Many(whole(1)), None), Numbers("L", "s", dtype=np.float32, least=0.0)  # None: one
    fields = {"method": text("lowrank"), "ranks": many, "slack": slack}
    if not compact:
        return _nodes(np.float32, **fields)
    own = {"level_starts": Maybe(Numbers("starts", dtype=np.int64), None), "levels": Maybe(Numbers("L"), None)}
    return _record({**own, "T": Numbers("L", "m", dtype=np.float16), "unit": number(above=0.0), **fields})


TOPS = Numbers("D", least=0.0)  # the largest value of each dimension
MEAN = {
    "GridTables": _record({"per_unit": TOPS, "T": Numbers("rows", "m", dtype=np.float32)}),
    "PiecewiseTables": _nodes(np.float64, tops=TOPS),
    "compact": _nodes(np.float32, tops=TOPS),
}
NORMS = {compact: _norms(compact) for compact in (False, True)}


def write_tables(gp: Compressed, compact: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
    """What a header says of the tables, and the tables by name."""
    kind, largest = type(gp.tables).__name__, float(np.abs(gp.tables.T).max(initial=0.0))
    compact = compact and kind == "PiecewiseTables" and largest <= float(np.finfo(np.float32).max)
    header: dict[str, Any] = {"tables": kind}
    _, tensors = to_file(MEAN["compact" if compact else kind], vars(gp.tables) | {"tops": gp.tops})
    if gp.norms is not None:
        first = gp.norms[0]  # all have the same nodes
        found: dict[str, Any] = {"method": "lowrank", "ranks": [norms.rank for norms in gp.norms]}
        found |= {"level_starts": first.level_starts, "levels": first.levels}
        found |= {name: np.hstack([getattr(norms, name) for norms in gp.norms]) for name in ("T", "slack")}
        found |= _compact(gp.norms, found["T"], tensors) if compact else {}
        written, arrays = to_file(NORMS[compact], found)
        header["variance"] = {name: value for name, value in written.items() if value is not None}
        tensors |= {VARIANCE + name: array for name, array in arrays.items()}
    return header | ({"compact": True} if compact else {}), tensors


def _compact(norms: tuple[NormTables, ...], T: Array, mean: dict[str, Array]) -> dict[str, Any]:
    """Smaller tables of the variance beside those of the mean."""
    starts, levels = norms[0].level_starts, norms[0].levels
    unit, halves, slacks = _unit(T), [], []
    for each in norms:
        half = (each.T / np.float32(unit)).astype(np.float16)
        moved = half.astype(np.float64) * unit - each.T
        off = np.column_stack([np.abs(moved[:, 0]), np.sqrt(np.square(moved[:, 1:]).sum(axis=1))])
        off = np.maximum(off, np.roll(off, -1, axis=0))  # on the piece that begins at a node
        off[starts[1:] - 1] = 0.0  # none begins at the last
        halves.append(half)
        slacks.append(np.nextafter((each.slack + off).astype(np.float32), np.float32(np.inf)))
    alike = np.array_equal(starts, mean["level_starts"]) and np.array_equal(levels, mean["levels"])
    nodes = {"level_starts": None, "levels": None} if alike else {}
    return {"unit": unit, "T": np.hstack(halves), "slack": np.hstack(slacks), **nodes}


def _unit(T: Array) -> float:
    """The power of two in whose units the numbers of T use the range of float16, which ends at 2¹⁶."""
    largest = float(np.abs(T).max(initial=0.0))
    return float(2.0 ** (np.floor(np.log2(largest)) - 14)) if largest > 0 else 1.0


def read_tables(
    header: dict[str, Any], tensors: dict[str, Array], kernel: HIK, features: int, source: Any = "This"
) -> Compressed:
    """The tables that a header speaks of; a ValueError where they do not fit together."""
    kind, compact = str(header["tables"]), header.get("compact") is True
    if kind not in ("GridTables", "PiecewiseTables"):
        raise ValueError(f"unknown tables {kind!r}")
    found = from_file(MEAN["compact" if compact else kind], header, tensors, source)
    tables: PiecewiseTables | GridTables
    if kind == "GridTables":
        tables, tops = GridTables(found["per_unit"], found["T"]), np.zeros(0)
        D = tables.per_unit.size
        sound = D > 0 and len(tables.T) == D * tables.bins and tables.bins >= 2
    else:
        tables, tops = (
            PiecewiseTables(found["level_starts"], found["levels"], found["T"].astype(np.float64)),
            found["tops"],
        )
        D = tables.level_starts.size - 1
        sound = _nodes_are_sound(tables.level_starts, tables.levels) and tops.size == D
    if not sound or D not in (features, 2 * features):
        raise ValueError("tables do not fit together")
    norms = None
    if "variance" in header:
        _check_method(header["variance"]["method"])
        own = {name.removeprefix(VARIANCE): array for name, array in tensors.items() if name.startswith(VARIANCE)}
        norms = _read_norms(from_file(NORMS[compact], header["variance"], own, source), found, features)
    return Compressed(kernel, tables, norms, tops)


def _read_norms(found: dict[str, Any], mean: dict[str, Any], features: int) -> tuple[NormTables, ...]:
    """The tables of the variance, as the loops take them."""
    starts, levels = (mean[name] if found[name] is None else found[name] for name in ("level_starts", "levels"))
    T = found["T"].astype(np.float32) * np.float32(found["unit"]) if "unit" in found else found["T"]
    ranks, outputs = found["ranks"] or [T.shape[1]], mean["T"].shape[1]
    sound = levels.size == len(T) and _nodes_are_sound(starts, levels) and starts.size - 1 in (features, 2 * features)
    sound = sound and len(ranks) in (1, outputs) and sum(ranks) == T.shape[1] > 0
    if not sound or found["slack"].shape[1] != 2 * len(ranks):
        raise ValueError("tables of the variance do not fit together")
    parts = zip(np.split(T, np.cumsum(ranks)[:-1], axis=1), np.hsplit(found["slack"], len(ranks)), strict=True)
    return tuple(NormTables.of(starts, levels, T, np.ascontiguousarray(slack)) for T, slack in parts)


def _check_method(method: object) -> None:
    if method == "rough":
        raise ModelFileError(
            'This model was saved with variance="rough", which this version does not have: low-rank tables are as fast '
            'and far nearer. Fit it again with variance="lowrank" and save it.'
        )


def _nodes_are_sound(starts: Array, levels: Array) -> bool:
    if starts.size < 2 or starts[0] != 0 or starts[-1] != levels.size or (starts[1:] <= starts[:-1]).any():
        return False
    rises = np.diff(levels) >= 0
    rises[starts[1:-1] - 1] = True  # from one dimension to the next
    return bool(rises.all() and (levels[starts[:-1]] == 0).all())
