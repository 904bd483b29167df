"""How fast novelty is told: approximations against exact, and scores from tables after 60,000 examples.

    OPENBLAS_NUM_THREADS=1 python benchmarks/novelty.py [--data FOLDER --cache FOLDER]

1. A Table 2's question: 50,000 new examples, kernel values given, one thread, the variance by a factor (blocked
   triangular solves), by the factor's inverse written out, and by FA, over the number of training examples.
2. `OneClassGP` on 60,000 histograms, synthetic (1,000 dimensions, 200 non-zeros) and, with --data and --cache, the bags
   of words of Fashion-MNIST that experiments/small_pictures.py builds: seconds to fit, µs an example to score.

Writes benchmarks/results/novelty.json.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import numpy as np
from harness import arguments

from saccade import OneClassGP
from saccade.datasets.synthetic import histograms
from saccade.inference.approximations.by_name import RegularizedSystem, approximate
from saccade.kernels import HIK, GeneralizedRBF
from saccade.operators.base import Dense
from saccade.solvers.cholesky import factorise

HERE = Path(__file__).resolve().parent
SIZES, NEW, NOISE, REPEATS = (50, 100, 200, 400, 800), 50_000, 0.1, 7
N, TIMED = 60_000, 10_000
GOAL_RATIO, GOAL_US = 9.0, 5.0


def median_time(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def ratios() -> list[dict[str, float]]:
    """FA against exact, µs a new example, with FA checked to be a bound in the same run."""
    rows, rng = [], np.random.default_rng(0)
    X = rng.gamma(0.5, size=(SIZES[-1] + 2000, 30))
    X /= X.sum(axis=1, keepdims=True)
    kernel = GeneralizedRBF(HIK(scale=1.0), 1.0)
    for n in SIZES:
        K = kernel(X[:n])
        few = kernel(X[:n], X[-2000:])
        k_star = np.ascontiguousarray(np.tile(few, (1, NEW // 2000)))
        noise = np.full((n, 1), NOISE)
        trained = RegularizedSystem(Dense(K), noise, (factorise(K, noise[:, 0]),), 1e-3, 1000)
        fast, exact = (approximate(name, trained, rng=rng) for name in ("diagonal", "exact"))
        assert (fast.explained(few) <= exact.explained(few) + 1e-12).all()
        inverse = np.linalg.inv(trained.factors[0].L)
        times = {
            "FA": median_time(lambda m=fast, k=k_star: m.explained(k)),
            "exact": median_time(lambda m=exact, k=k_star: m.explained(k)),
            "exact, inverse factor": median_time(lambda L=inverse, k=k_star: np.square(L @ k).sum(axis=0)),
        }
        row = {"n": n} | {f"{name}, µs": 1e6 * t / NEW for name, t in times.items()}
        rows.append(row | {"exact / FA": times["exact"] / times["FA"]})
        print(rows[-1], flush=True)
    return rows


def words(data: Path | None, cache: Path) -> tuple[Any, Any]:
    sys.path.insert(0, str(HERE.parent / "experiments"))
    from small_pictures import histograms as words_of  # type: ignore[import-not-found]

    found = words_of("fashion-mnist", data, cache)
    return found.train, found.test


def scores(name: str, X: Any, new: Any) -> dict[str, Any]:
    """Fit once, score often. How tight the low rank is, benchmarks/variance.py says."""
    row: dict[str, Any] = {"data": name, "n": X.shape[0], "non-zeros a row": new.nnz / new.shape[0]}
    for what in ("variance", "probability"):
        model = OneClassGP(measure=what, levels=255, random_state=0)
        model.fit(X[:3000])  # compiles
        start = time.perf_counter()
        model.fit(X)
        row[f"fit for {what}, s"] = time.perf_counter() - start
        row[f"score {what}, µs"] = 1e6 * median_time(lambda m=model: m.score_samples(new)) / new.shape[0]
        p = model.predict_proba(new)[:, 1]
        row[f"false alarms at 0.05, {what}"] = float((p < 0.05).mean())
    print(row, flush=True)
    return row


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--cache", type=Path, default=None)
    options = parser.parse_args()
    os.environ["SACCADE_NUM_THREADS"] = "1"
    record: dict[str, Any] = {"goal, ratio at n = 100": GOAL_RATIO, "goal, µs": GOAL_US, "testing": ratios()}
    del os.environ["SACCADE_NUM_THREADS"]
    X, _ = histograms(N + TIMED, rng=np.random.default_rng(0))
    record["tables"] = [scores("synthetic, 200 non-zeros", X[:N], X[N:])]
    if options.cache is not None:
        record["tables"].append(scores("Fashion-MNIST, words", *words(options.data, options.cache)))
    measure.write_json(options.out / "novelty.json", record)


if __name__ == "__main__":
    main()
