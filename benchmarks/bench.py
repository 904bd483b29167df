"""`make bench`: the product, the fit and the classification, in units of one sparse matrix–vector product.

The data are the synthetic histograms of `saccade.datasets.synthetic`: 1,000 dimensions, two classes. Every figure comes
with an error against dense algebra from the same run.

    python benchmarks/bench.py [--full] [--out FILE]
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import measure
import numpy as np
from bench_fits import DIMENSIONS, cases, fit_times, spread, with_threads

from saccade._core.arrays import Array
from saccade._core.threads import thread_count
from saccade.datasets.synthetic import histograms


def run_bench(full: bool = False, out: Path | None = None, scale: int = 1) -> None:
    """Measure, print the tables, and write the numbers to `out`; `scale` divides all numbers of examples."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    results: dict[str, Any] = {"product": [], "fit": [], "classify": [], "scale": []}

    def show(title: str, rows: list[dict[str, Any]]) -> None:
        table = Table(title=title, title_justify="left")
        for name in rows[0]:
            table.add_column(name)
        for row in rows:
            table.add_row(*[_cell(value) for value in row.values()])
        console.print(table)

    with console.status("products"):
        sizes = [(10_000, None), (50_000, None), (50_000, 255)] + ([(300_000, 255)] if full else [])
        for n, levels in sizes:
            results["product"] += products(n // scale, levels)
    show("One product, in units", results["product"])
    if full:  # first: a larger fit before would hide what memory these take
        for n in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000):
            with console.status(f"n = {n:,}"):
                results["scale"].append(large(n // scale))
        show("Training over n: 100 non-zeros a row, 255 levels, noise 0.1, residual 1e-2", results["scale"])
    with console.status("fits"):
        results["fit"] = [fit_times(case) for case in cases(full, scale)]
    show("Training with calibration: median, least and most of the rounds", results["fit"])
    with console.status("classification"):
        results["classify"] = classification(10_000 // scale)
    show("Classification of 10,000 examples", results["classify"])
    if out is not None:
        out = out / f"bench_{measure.machine_name()}.json" if out.is_dir() else out
        measure.write_json(out, results)
        console.print(f"Written to {out}")


def _cell(value: Any) -> str:
    if isinstance(value, dict):  # median and range
        return f"{value['median']:,.3g} ({value['least']:,.3g} to {value['most']:,.3g})"
    return f"{value:,.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def data(n: int, nonzeros: int = 200, dtype: Any = np.float64) -> tuple[Any, Array]:
    return histograms(n, DIMENSIONS, nonzeros, rng=np.random.default_rng(0), dtype=dtype)


def products(n: int, levels: int | None) -> list[dict[str, Any]]:
    """K V for one and ten columns, float32 and float64."""
    from saccade.kernels import HIK
    from saccade.operators.codes import encode
    from saccade.operators.decode import decode

    X, _ = data(n)
    unit = measure.unit(X)
    codes = encode(X, levels)
    operator = HIK(scale=1.0).operator(codes)
    few = np.arange(0, n, n // 20)
    block = HIK(scale=1.0)(decode(codes, few), decode(codes))  # dense rows: the judge
    rows = []
    for dtype in (np.float32, np.float64):
        one = 0.0
        for columns in (1, 10):
            V = np.random.default_rng(1).standard_normal((n, columns)).astype(dtype)
            time = measure.seconds(partial(operator.matmul, V))
            truth = block @ V.astype(np.float64)
            error = float(np.abs(operator.matmul(V)[few] - truth).max() / np.abs(truth).max())
            assert error < (1e-3 if dtype is np.float32 else 1e-10), error
            one = one or time
            rows.append(
                {
                    "n": n,
                    "levels": levels or "exact",
                    "dtype": dtype.__name__,
                    "columns": columns,
                    "units": time / unit,
                    "times one column": time / one,
                    "error": error,
                }
            )
    return rows


def classification(n: int, rounds: int = 5) -> list[dict[str, Any]]:
    """Exact and quantised tables on unseen examples, timed in turns with one thread and with all of them."""
    from saccade import GPClassifier
    from saccade.inference.posterior.gp import GP
    from saccade.kernels import HIK

    X, y = data(2 * n)
    train, test = X[:n], X[n:]
    model = GPClassifier(HIK(scale=1.0), noise=0.01, tol=1e-4, random_state=0).fit(train, y[:n])
    few, every = test[:50], thread_count()
    assert isinstance(model.gp_, GP)
    truth = HIK(scale=1.0)(few, train) @ model.gp_.solution.alpha
    rows = []
    for name, kind in (("exact", model), ("quantised, 256 steps", model.quantized())):
        error = float(np.abs(kind.gp_.mean(few) - truth).max())
        assert error < (1e-12 * np.abs(truth).max() if kind is model else 0.1), error
        mean, answer = partial(kind.gp_.mean, test), partial(kind.decision_function, test)
        times: dict[str, list[float]] = {"unit": [], "one": [], "all": [], "checked": []}
        for _ in range(rounds):
            times["unit"].append(measure.unit(test))
            with with_threads(1):
                times["one"].append(measure.seconds(mean, 5))
            times["all"].append(measure.seconds(mean, 5))
            times["checked"].append(measure.seconds(answer, 5))
        unit, one, whole, checked = (np.array(times[name]) for name in times)
        rows.append(
            {
                "tables": name,
                "µs an example": float(np.median(whole)) / n * 1e6,
                "range, µs": spread(whole / n * 1e6),
                "units": float(np.median(whole / unit)),
                "one thread, µs": spread(one / n * 1e6),
                "threads": every,
                "gain of the threads": spread(one / whole),
                "with input checks, µs": float(np.median(checked)) / n * 1e6,
                "largest error": error,
                "accuracy": float(kind.score(test, y[n:])),
            }
        )
    return rows


def large(n: int, unseen: int = 20_000) -> dict[str, Any]:
    """`GPClassifier.fit` on n examples of 100 non-zeros, and the memory it takes beyond its input."""
    from saccade import GPClassifier

    X, y = data(n + unseen, 100, np.float32)
    X, y, test, truth = X[:n], y[:n], X[n:], y[n:]
    model = GPClassifier(levels=255, noise=0.1, tol=1e-2, solver="cg", random_state=0)
    model.fit(X[:1000], y[:1000])  # compile
    before = measure.resident_bytes()
    measure.reset_peak()
    time = measure.seconds(lambda: model.fit(X, y), 1, warm_up=False)
    memory = (measure.resident_bytes(peak=True) - before) / 1e9
    return {
        "n": n,
        "seconds": time,
        "µs an example": time / n * 1e6,
        "iterations": model.n_iter_,
        "rank": model.rank_,
        "residual": model.residual_,
        "GB beyond input": None if np.isnan(memory) else memory,
        f"accuracy on {unseen:,}": float(model.score(test, truth)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Times in units of one sparse matrix–vector product.")
    parser.add_argument("--full", action="store_true", help="Every size, which takes long.")
    named = "File for the numbers, as JSON; in a folder it is named after this machine. Default: only printed."
    parser.add_argument("--out", type=Path, default=None, help=named)
    parser.add_argument("--scale", type=int, default=1, help="Divides all numbers of examples. Default: 1.")
    wish = parser.parse_args()
    run_bench(wish.full, wish.out, wish.scale)


if __name__ == "__main__":
    main()
