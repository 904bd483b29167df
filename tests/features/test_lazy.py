"""Lazy sequences, their digests, and threads that run only a little ahead."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.features.lazy import Descriptors, Given, Items, Made, as_items, digest_of, jobs, stream

PARTS = st.lists(
    st.text(max_size=4)
    | st.builds(
        lambda n, dtype: np.arange(n, dtype=dtype), st.integers(0, 3), st.sampled_from(["u1", "i4", "f4", "f8"])
    ),
    max_size=4,
)


def squares(n: int) -> tuple[Made, list[int]]:
    """The squares of 0 … n − 1, and the numbers that were made so far."""
    made: list[int] = []

    def square(x: Any) -> Any:
        made.append(int(x))
        return x**2

    return Made(Given(np.arange(n)), square, "square"), made


def test_items_are_made_when_they_are_asked_for() -> None:
    items, made = squares(10)
    assert len(items) == 10
    assert items.shape == (10,)
    some = items[[7, 2]][::-1]
    assert [items.digest(k) for k in (2, 7)] == [some.digest(k) for k in (0, 1)]
    assert made == []
    assert list(some) == [4, 49]
    assert items[-1] == 81
    assert made == [2, 7, 9]


@pytest.mark.parametrize(
    "rows",
    [slice(None), slice(8, 1, -3), [3, 3, 0], [], np.array([-1, 4]), np.arange(10) % 3 == 0, [True] + [False] * 9],
)
def test_selections_are_numpys(rows: Any) -> None:
    items, _ = squares(10)
    assert list(items[rows]) == (np.arange(10)[rows] ** 2).tolist()
    assert list(Given(list("abcdefghij"))[rows]) == np.array(list("abcdefghij"))[rows].tolist()


def test_a_selection_that_does_not_fit_is_an_error() -> None:
    items, _ = squares(3)
    for rows in ([0, 3], np.array([True, False])):
        with pytest.raises(IndexError):
            items[rows]


def test_scikit_learn_splits_without_making() -> None:
    items, made = squares(10)
    train, test = train_test_split(items, test_size=4, random_state=0)
    assert isinstance(train, Items)
    assert made == []
    assert sorted([*train, *test]) == [k**2 for k in range(10)]


def test_as_items() -> None:
    items, _ = squares(3)
    assert as_items(items) is items
    assert list(as_items([1, 2])) == [1, 2]
    for path in ("photos", Path("photos")):
        with pytest.raises(InvalidInput, match="read_pictures"):
            as_items(path)


@given(PARTS, PARTS)
def test_a_digest_tells_parts_apart(a: list[Any], b: list[Any]) -> None:
    def told(parts: list[Any]) -> list[Any]:
        return [p if isinstance(p, str) else (p.dtype.str, p.shape, p.tobytes()) for p in parts]

    assert (digest_of(*a) == digest_of(*b)) == (told(a) == told(b))


def test_a_digest_depends_on_values_not_on_memory() -> None:
    x = np.arange(12.0).reshape(3, 4)
    assert digest_of(x) == digest_of(np.asfortranarray(x)) == digest_of(x[:, ::-1][:, ::-1]) == digest_of(x.copy())
    different = [x, x.T, x.reshape(4, 3), x.astype(np.float32), x + 1e-12, x[:2]]
    assert len({digest_of(y) for y in different}) == len(different)


def test_a_digest_is_the_same_in_every_process() -> None:
    code = "import numpy as np; from saccade.features.lazy import digest_of; print(digest_of('ä', np.arange(5.0)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == digest_of("ä", np.arange(5.0))


def test_digests_of_items() -> None:
    values, positions = np.ones((2, 3)), np.zeros((2, 2))
    given = Given([Descriptors(values, positions), Descriptors(positions, values), values])
    assert len({given.digest(i) for i in range(3)}) == 3
    assert len({given.digest(0), Made(given, len, "a").digest(0), Made(given, len, "b").digest(0)}) == 3


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_stream_keeps_the_order(threads: int) -> None:
    def work(k: int) -> int:
        time.sleep(0.002 * (k % 3))
        return k * k

    assert list(stream(work, range(30), threads)) == [k * k for k in range(30)]
    assert list(stream(work, [], threads)) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_stream_runs_only_a_little_ahead(threads: int) -> None:
    asked: list[int] = []

    def things() -> Iterator[int]:
        for k in range(1000):
            asked.append(k)
            yield k

    results = stream(lambda k: k, things(), threads)
    for _ in range(10):
        next(results)
    assert len(asked) <= 10 + 2 * threads + 1
    results.close()  # type: ignore[attr-defined]
    assert len(asked) <= 10 + 2 * threads + 1


def test_stream_works_in_several_threads_and_asks_in_one() -> None:
    both = threading.Barrier(2, timeout=30)  # passes only if two work at once
    asking = set()

    def things() -> Iterator[int]:
        for k in range(8):
            asking.add(threading.get_ident())
            yield k

    list(stream(lambda k: both.wait(), things(), 2))
    assert asking == {threading.get_ident()}


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_come_through_and_end_the_threads(threads: int) -> None:
    done: list[int] = []

    def work(k: int) -> int:
        if k == 5:
            raise KeyError(k)
        done.append(k)
        return k

    before = threading.active_count()
    with pytest.raises(KeyError, match="5"):
        list(stream(work, range(1000), threads))
    assert max(done) < 30
    assert threading.active_count() == before


def test_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_NUM_THREADS", "3")
    assert jobs(None) == jobs(-1) == 3
    assert jobs(2) == jobs(-2) == 2
    for bad in (0, 1.5, True, "2"):
        with pytest.raises(InvalidParameter, match="`n_jobs`"):
            jobs(bad)  # type: ignore[arg-type]
