"""The vector loops of conjugate gradients against their twins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from saccade.operators import vector_loops as loops
from tests.operators import vector_reference as reference
from tests.solvers.problems import Array
from tests.tolerances import assert_close

VECTORS, ENTRIES = 3, 600  # more than one run of entries
SPANS = [(0, ENTRIES), (2, 7), (4, 4), (100, 513)]
SMOOTHED = np.array([True, False, True])


def bits(values: Array) -> Array:
    return np.abs(values).view(np.int64)


# name -> the arrays before the span, the arrays after it
Arguments = Callable[[Callable[..., Array]], tuple[tuple[Array, ...], tuple[Array, ...]]]
LOOPS: dict[str, Arguments] = {
    "finish_product": lambda a: ((a(), abs(a()), a()), (a(), a(VECTORS))),
    "finish_product, shared noise": lambda a: ((a(), abs(a(1, ENTRIES)), a()), (a(), a(VECTORS))),
    "finish_product, single, side by side": lambda a: (
        (a(ENTRIES, VECTORS).astype(np.float32).T, abs(a()), a()),
        (a(), a(VECTORS)),
    ),
    "descend": lambda a: ((a(VECTORS), a(), a(1, ENTRIES), SMOOTHED), (a(), a(), a(4, VECTORS))),
    "advance": lambda a: (
        (a(VECTORS), a(VECTORS), a(VECTORS), a(VECTORS), a(), a(1, ENTRIES), a(), SMOOTHED),
        (a(), a(), a(), a(), a(), bits(a(VECTORS))),
    ),
    "advance, single copy, side by side": lambda a: (
        (a(VECTORS), a(VECTORS), a(VECTORS), a(VECTORS), a(), a(1, ENTRIES), a(), SMOOTHED),
        (a(), a(), a(), a(), a(ENTRIES, VECTORS).astype(np.float32).T, bits(a(VECTORS))),
    ),
    "inner": lambda a: ((a(), a()), (a(VECTORS),)),
    "inner, one vector for all": lambda a: ((a(1, ENTRIES), a()), (a(VECTORS),)),
    "take_out": lambda a: ((a(), a(1, ENTRIES), a(VECTORS)), (a(),)),
}


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("name", LOOPS)
def test_loop_equals_its_twin(name: str, span: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    before, after = LOOPS[name](lambda *shape: rng.standard_normal(shape or (VECTORS, ENTRIES)))
    outputs = []
    for module in (loops, reference):
        changed = tuple(array.copy(order="K") for array in after)
        getattr(module, name.split(",")[0])(*before, *span, *changed)
        outputs.append(changed)
    for fast, slow in zip(*outputs, strict=True):
        seen, expected = (v.view(np.float64) if v.dtype == np.int64 else v for v in (fast, slow))
        assert_close(seen, expected, np.float32 if fast.dtype == np.float32 else np.float64)


def test_the_worst_is_nan_where_a_number_is() -> None:
    x = np.zeros((2, 5))
    r = np.array([[1.0, -np.inf, 2.0, 0.0, 1.0], [1.0, 5.0, np.nan, 0.0, 1.0]])
    worst, zero = np.zeros(2), np.zeros(2)
    rest = (x.copy(), x.copy(), x.copy(), x.copy(), x.copy(), worst.view(np.int64))
    loops.advance(zero, zero, zero, zero, x, x[:1], r, np.zeros(2, bool), 0, 5, *rest)
    assert worst[0] == np.inf
    assert np.isnan(worst[1])
