"""Tables to and from the parts of a model file, with every bound checked that the compiled loops rely on.

Compact tables take about half the room: the mean in float32, the variance in float16 and at the nodes of the mean where
these are its own. What float16 loses goes into the slack, so the variance is still an upper bound.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.checks import check_count
from saccade._core.errors import ModelFileError
from saccade.inference.posterior.compressed import Compressed
from saccade.kernels.intersection import HIK
from saccade.operators.norms import NormTables
from saccade.operators.tables import GridTables, PiecewiseTables


def write_tables(gp: Compressed, compact: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
    """What a header says of the tables, and the tables by name."""
    header: dict[str, Any] = {"tables": type(gp.tables).__name__}
    tables = {field.name: getattr(gp.tables, field.name) for field in fields(gp.tables)}
    if not isinstance(gp.tables, GridTables):
        tables["tops"] = gp.tops
    if gp.norms is not None:
        header["variance"] = {"method": "lowrank", "ranks": [norms.rank for norms in gp.norms]}
        first = gp.norms[0]  # all have the same nodes
        tables |= {"variance_level_starts": first.level_starts, "variance_levels": first.levels}
        tables["variance_T"] = np.hstack([norms.T for norms in gp.norms])
        tables["variance_slack"] = np.hstack([norms.slack for norms in gp.norms])
    if compact and isinstance(gp.tables, PiecewiseTables):
        _compact(gp, header, tables)
    return header, tables


def _compact(gp: Compressed, header: dict[str, Any], tables: dict[str, Array]) -> None:
    """Smaller tables in place of the others."""
    if float(np.abs(gp.tables.T).max(initial=0.0)) > np.finfo(np.float32).max:
        return
    header["compact"] = True
    tables["T"] = gp.tables.T.astype(np.float32)
    if gp.norms is None:
        return
    starts, levels = tables["variance_level_starts"], tables["variance_levels"]
    if np.array_equal(starts, tables["level_starts"]) and np.array_equal(levels, tables["levels"]):
        del tables["variance_level_starts"], tables["variance_levels"]
    unit, halves, slacks = _unit(tables["variance_T"]), [], []
    for norms in gp.norms:
        half = (norms.T / np.float32(unit)).astype(np.float16)
        moved = half.astype(np.float64) * unit - norms.T
        off = np.column_stack([np.abs(moved[:, 0]), np.sqrt(np.square(moved[:, 1:]).sum(axis=1))])
        off = np.maximum(off, np.roll(off, -1, axis=0))  # on the piece that begins at a node
        off[starts[1:] - 1] = 0.0  # none begins at the last
        halves.append(half)
        slacks.append(np.nextafter((norms.slack + off).astype(np.float32), np.float32(np.inf)))
    header["variance"]["unit"] = unit
    tables["variance_T"], tables["variance_slack"] = np.hstack(halves), np.hstack(slacks)


def _unit(T: Array) -> float:
    """The power of two in whose units the numbers of T use the range of float16, which ends at 2¹⁶."""
    largest = float(np.abs(T).max(initial=0.0))
    return float(2.0 ** (np.floor(np.log2(largest)) - 14)) if largest > 0 else 1.0


def _expanded(header: dict[str, Any], tensors: dict[str, Array]) -> dict[str, Array]:
    """Compact tables as the loops take them; others as they are."""
    if header.get("compact") is not True:
        return tensors
    if tensors["T"].dtype != np.float32:
        raise ValueError("compact tables are not float32")
    found = tensors | {"T": tensors["T"].astype(np.float64)}
    if "variance" in header:
        unit, T = header["variance"]["unit"], tensors["variance_T"]
        if type(unit) is not float or not 0.0 < unit < np.inf or T.dtype != np.float16:
            raise ValueError("compact tables of the variance are not float16 in a unit")
        found["variance_T"] = T.astype(np.float32) * np.float32(unit)
        for name in ("level_starts", "levels"):
            found.setdefault(f"variance_{name}", found[name])
    return found


def read_tables(header: dict[str, Any], tensors: dict[str, Array], kernel: HIK, features: int) -> Compressed:
    """The tables that a header speaks of; a ValueError where they do not fit together."""
    tensors = _expanded(header, tensors)
    tables, norms = _read_mean(header["tables"], tensors, features), None
    if "variance" in header:
        norms = _read_variance(header["variance"], tensors, features, tables.T.shape[1])
    return Compressed(kernel, tables, norms, tensors.get("tops", np.zeros(0)))


def _read_mean(kind: str, tensors: dict[str, Array], features: int) -> PiecewiseTables | GridTables:
    """The tables, with every bound checked that the compiled loops rely on."""
    if not all(np.isfinite(t).all() for t in tensors.values()):
        raise ValueError("tables are not finite")
    if kind == "GridTables":
        grid = GridTables(tensors["per_unit"], tensors["T"])
        D, sound = grid.per_unit.size, _grid_is_sound(grid)
        tables: PiecewiseTables | GridTables = grid
    elif kind == "PiecewiseTables":
        piecewise = PiecewiseTables(tensors["level_starts"], tensors["levels"], tensors["T"])
        tops = tensors["tops"]
        D = piecewise.level_starts.size - 1
        sound = _piecewise_is_sound(piecewise) and tops.shape == (D,) and tops.dtype == np.float64 and tops.min() >= 0
        tables = piecewise
    else:
        raise ValueError(f"unknown tables {kind!r}")
    if not sound or D not in (features, 2 * features):
        raise ValueError("tables do not fit together")
    return tables


def _read_variance(
    written: dict[str, Any], tensors: dict[str, Array], features: int, outputs: int
) -> tuple[NormTables, ...]:
    """The tables of the variance, with every bound checked that the compiled loops rely on."""
    _check_method(written["method"])
    starts, levels, T, slack = (tensors[f"variance_{name}"] for name in ("level_starts", "levels", "T", "slack"))
    sound = _nodes_are_sound(starts, levels, T) and starts.size - 1 in (features, 2 * features)
    ranks = [check_count("rank", rank, "Save the model again.") for rank in written.get("ranks", [T.shape[-1]])]
    sound = sound and len(ranks) in (1, outputs) and sum(ranks) == T.shape[1] > 0
    sound = sound and T.dtype == slack.dtype == np.float32 and slack.shape == (len(T), 2 * len(ranks))
    if not sound or not bool(slack.min() >= 0):
        raise ValueError("tables of the variance do not fit together")
    parts = zip(np.split(T, np.cumsum(ranks)[:-1], axis=1), np.hsplit(slack, len(ranks)), strict=True)
    return tuple(NormTables.of(starts, levels, T, np.ascontiguousarray(slack)) for T, slack in parts)


def _check_method(method: str) -> None:
    if method == "rough":
        raise ModelFileError(
            'This model was saved with variance="rough", which this version does not have: low-rank tables are as fast '
            'and far nearer. Fit it again with variance="lowrank" and save it.'
        )
    if method != "lowrank":
        raise ValueError(f"unknown variance {method!r}")


def _grid_is_sound(tables: GridTables) -> bool:
    per_unit, T = tables.per_unit, tables.T
    if per_unit.dtype != np.float64 or T.dtype != np.float32 or per_unit.ndim != 1 or T.ndim != 2:
        return False
    D = per_unit.size
    return D > 0 and len(T) == D * tables.bins and tables.bins >= 2 and bool(per_unit.min() >= 0)


def _piecewise_is_sound(tables: PiecewiseTables) -> bool:
    return tables.T.dtype == np.float64 and _nodes_are_sound(tables.level_starts, tables.levels, tables.T)


def _nodes_are_sound(starts: Array, levels: Array, T: Array) -> bool:
    if starts.dtype != np.int64 or levels.dtype != np.float64:
        return False
    if starts.ndim != 1 or levels.ndim != 1 or T.ndim != 2 or starts.size < 2:
        return False
    if starts[0] != 0 or not starts[-1] == levels.size == len(T) or (starts[1:] <= starts[:-1]).any():
        return False
    rises = np.diff(levels) >= 0
    rises[starts[1:-1] - 1] = True  # from one dimension to the next
    return bool(rises.all() and (levels[starts[:-1]] == 0).all())
