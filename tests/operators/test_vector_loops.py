"""The vector loops of conjugate gradients against their twins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from saccade.operators import vector_loops as loops
from tests.operators import vector_reference as reference
from tests.solvers.problems import Array
from tests.tolerances import assert_close

ROWS, COLUMNS = 11, 3
SPANS = [(0, ROWS), (2, 7), (4, 4)]

# name -> the arrays before the span, the arrays after it
Arguments = Callable[[Callable[..., Array]], tuple[tuple[Array, ...], tuple[Array, ...]]]
LOOPS: dict[str, Arguments] = {
    "finish_product": lambda a: ((a(), abs(a()), a()), (a(), a(COLUMNS))),
    "finish_product, shared noise": lambda a: ((a(), abs(a(ROWS, 1)), a()), (a(), a(COLUMNS))),
    "descend": lambda a: ((a(COLUMNS), a(), a()), (a(), a(), a(), a(2, COLUMNS))),
    "smooth": lambda a: ((a(COLUMNS), a(), a()), (a(), a(), abs(a(COLUMNS)))),
    "inner": lambda a: ((a(), a()), (a(COLUMNS),)),
    "inner, one column for all": lambda a: ((a(ROWS, 1), a()), (a(COLUMNS),)),
    "take_out": lambda a: ((a(), a(ROWS, 1), a(COLUMNS)), (a(),)),
    "turn": lambda a: ((a(), a(COLUMNS)), (a(), a())),
    "turn, single copy": lambda a: ((a(), a(COLUMNS)), (a(), a().astype(np.float32))),
}


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("name", LOOPS)
def test_loop_equals_its_twin(name: str, span: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    before, after = LOOPS[name](lambda *shape: rng.standard_normal(shape or (ROWS, COLUMNS)))
    outputs = []
    for module in (loops, reference):
        changed = tuple(array.copy() for array in after)
        getattr(module, name.split(",")[0])(*before, *span, *changed)
        outputs.append(changed)
    for fast, slow in zip(*outputs, strict=True):
        assert_close(fast, slow, np.float32 if fast.dtype == np.float32 else np.float64)
