"""What is kept comes back, from other processes too; what is broken says so."""

import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from saccade._core.errors import SaccadeError
from saccade.features.cache import FILE, Cache, CacheError
from saccade.features.lazy import digest_of

ARRAYS = st.dictionaries(
    st.text("abcxyz_", min_size=1, max_size=5),
    hnp.arrays(st.sampled_from([np.uint8, np.int32, np.int64, np.float32, np.float64]), hnp.array_shapes(min_side=0)),
    max_size=3,
)


@settings(max_examples=30)
@given(arrays=ARRAYS, key=st.text("0123456789abcdef", max_size=32))
def test_what_goes_in_comes_out(tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Any], key: str) -> None:
    folder = tmp_path_factory.mktemp("cache")
    with Cache(folder) as cache:
        cache.put(key, arrays)
    with Cache(folder) as cache:
        kept = cache.get(key)
    assert kept is not None
    assert kept.keys() == arrays.keys()
    for name, array in arrays.items():
        assert kept[name].dtype == array.dtype
        np.testing.assert_array_equal(kept[name], array)


def test_arrays_with_gaps_in_memory(tmp_path: Path) -> None:
    x = np.arange(12.0).reshape(3, 4)
    with Cache(tmp_path) as cache:
        cache.put("key", {"turned": x.T, "every second": x[:, ::2]})
        kept = cache.get("key")
    assert kept is not None
    assert np.array_equal(kept["turned"], x.T)
    assert np.array_equal(kept["every second"], x[:, ::2])


def test_absent_and_replaced(tmp_path: Path) -> None:
    with Cache(tmp_path / "made" / "here") as cache:
        assert cache.get("key") is None
        for value in (1, 2):
            cache.put("key", {"x": np.array([value])})
        kept = cache.get("key")
    assert kept is not None
    assert kept["x"].tolist() == [2]


def test_no_folder_keeps_nothing() -> None:
    with Cache(None) as cache:
        cache.put("key", {"x": np.ones(1)})
        assert cache.get("key") is None
        assert cache.path is None


def test_remember_makes_once(tmp_path: Path) -> None:
    made = []

    def make() -> dict[str, Any]:
        made.append(1)
        return {"x": np.arange(3)}

    for _ in range(2):
        with Cache(tmp_path) as cache:
            for _ in range(2):
                assert cache.remember("key", make)["x"].tolist() == [0, 1, 2]
    assert len(made) == 1


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    def interrupted() -> None:
        with Cache(tmp_path) as cache:
            cache.put("key", {"x": np.ones(1)})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with Cache(tmp_path) as cache:
        assert cache.get("key") is not None


def test_two_write_at_once(tmp_path: Path) -> None:
    """The second would wait a minute and fail if the first held the file from its first entry to its last."""
    with Cache(tmp_path) as one, Cache(tmp_path) as two:
        one.put("a", {"x": np.zeros(1)})
        two.put("b", {"x": np.ones(1)})
        one.put("c", {"x": np.ones(2)})
        assert all(cache.get(key) is not None for cache in (one, two) for key in "abc")


def test_processes_share_a_folder(tmp_path: Path) -> None:
    code = """if True:
        import sys, time
        import numpy as np
        from saccade.features.cache import Cache
        while time.time() < float(sys.argv[3]):  # all open the new file at the same moment
            pass
        with Cache(sys.argv[1]) as cache:
            for k in range(50):
                cache.put(f"{sys.argv[2]} {k}", {"x": np.full(100, k)})
        """
    run = [sys.executable, "-c", code, str(tmp_path / "new")]
    start = str(time.time() + 1.0)
    processes = [subprocess.Popen([*run, name, start]) for name in "abc"]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    with Cache(tmp_path / "new") as cache:
        for name in "abc":
            for k in range(50):
                kept = cache.get(f"{name} {k}")
                assert kept is not None
                assert (kept["x"] == k).all()


def test_a_killed_process_leaves_whole_entries(tmp_path: Path) -> None:
    code = """if True:
        import os, sys
        import numpy as np
        from saccade.features.cache import Cache
        with Cache(sys.argv[1]) as cache:
            cache.put("key", {"x": np.arange(1000)})
            os.kill(os.getpid(), 9)
        """
    process = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert process.returncode == -9
    with Cache(tmp_path) as cache:
        kept = cache.get("key")
    assert kept is not None
    assert np.array_equal(kept["x"], np.arange(1000))


def open_cache(folder: Path) -> None:
    with Cache(folder) as cache:
        cache.get("key")


def test_a_foreign_file_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database " * 100)
    with pytest.raises(CacheError, match="Delete that file, or pass another folder") as error:
        open_cache(tmp_path)
    assert isinstance(error.value, SaccadeError)
    assert str(tmp_path) in str(error.value)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    with pytest.raises(CacheError, match="pass another folder"):
        open_cache(tmp_path / "kept")


@pytest.mark.parametrize("value", [b"", b"\x80\x04pickle", "text", 7])
def test_a_changed_value_is_told(tmp_path: Path, value: Any) -> None:
    with Cache(tmp_path) as cache:
        cache.put("key", {"x": np.ones(1)})
    db = sqlite3.connect(tmp_path / FILE)
    with db:
        db.execute("UPDATE entries SET value = ?", (value,))
    db.close()
    with pytest.raises(CacheError, match="cannot be used"):
        open_cache(tmp_path)


def test_another_table_is_told(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("CREATE TABLE entries (something TEXT)")
    db.close()
    with pytest.raises(CacheError, match="cannot be used"):
        open_cache(tmp_path)


@pytest.mark.parametrize("change", ["beyond", "backwards", "kind", "names"])
def test_rows_of_a_foreign_cache_are_refused(change: str, tmp_path: Path) -> None:
    """Compiled loops read by these columns: a wrong one would read memory that is not ours."""
    from saccade.features.codebook import BagOfWords

    sets = [np.random.default_rng(k).random((20, 4)) for k in range(3)]
    words = BagOfWords(5, cache=tmp_path, n_jobs=1).fit(sets)
    words.transform(sets)
    at = np.array([0, 9] if change == "beyond" else [3, 1], np.int64 if change == "kind" else np.int32)
    row = {"columns": at, "values" if change != "names" else "value": np.ones(2, np.float32)}
    with Cache(tmp_path) as cache:
        for thing in sets:
            cache.put(digest_of(digest_of(thing), words.recipe()), row)
    with pytest.raises(CacheError, match="Delete that file"):
        words.transform(sets)
