"""The fits that `make bench` times, at a hundredth of their size: what stands behind docs/measured.md runs."""

import json
import os
from pathlib import Path

import measure
import pytest
from bench import classification, large
from bench_fits import Case, cases, fit_times, in_products, with_threads

from saccade.operators.binned_intersection import BinnedIntersection
from saccade.operators.sorted_intersection import SortedIntersection

SMALL = [case._replace(rounds=2) for case in cases(full=True, scale=100) if "tuned" not in case.name]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case.name}, {case.rows}")
def test_a_fit_is_timed(case: Case) -> None:
    row = fit_times(case)
    assert row["n"] == case.rows
    for name in ("units", "seconds", "one thread, units", "gain of the threads"):
        assert 0.0 < row[name]["least"] <= row[name]["median"] <= row[name]["most"]
    outside = row["outside the products"]["median"]
    assert 0.0 < outside <= 1.0
    assert outside < 1.0 or case.options.get("solver") != "cg"  # the products are seen; few examples have a factor


def test_what_users_run_is_timed() -> None:
    """GPClassifier() as it is, on both sides of the switch to conjugate gradients."""
    plain = [case.rows for case in cases(full=False) if not case.options]
    assert min(plain) <= 2048 < max(plain)


def test_classification_is_timed() -> None:
    exact, grid = classification(300, rounds=2)  # it asserts the errors itself
    assert exact["largest error"] < grid["largest error"]
    for row in (exact, grid):
        for name in ("range, µs", "one thread, µs", "gain of the threads"):
            assert 0.0 < row[name]["least"] <= row[name]["median"] <= row[name]["most"]


def test_memory_is_measured() -> None:
    row = large(300, unseen=100)
    assert 0.0 <= row["GB beyond input"] < 10.0


def test_it_runs_where_there_is_no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows: everything but the memory is measured, and the file is plain JSON."""
    monkeypatch.setattr(measure, "PROCESSES", tmp_path / "nothing")
    row = large(300, unseen=100)
    assert row["GB beyond input"] is None
    assert row["seconds"] > 0.0
    measure.write_json(tmp_path / "bench.json", {"scale": [row]})
    found = json.loads((tmp_path / "bench.json").read_text(), parse_constant=pytest.fail)
    assert found["machine"]["cpu"]


def test_everything_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_NUM_THREADS", "3")
    before = SortedIntersection.matmul, BinnedIntersection.matmul
    with with_threads(1), in_products():
        assert os.environ["SACCADE_NUM_THREADS"] == "1"
        assert SortedIntersection.matmul is not before[0]
    assert os.environ["SACCADE_NUM_THREADS"] == "3"
    assert (SortedIntersection.matmul, BinnedIntersection.matmul) == before
