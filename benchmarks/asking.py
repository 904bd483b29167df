"""How long a question takes: large pools, joint batches, and one answer after the other.

    python benchmarks/asking.py [--rows 1000000] [--batch-rows 100000] [--labels 5000] [--cycles 100]

Made-up histograms with 100 of 1,000 features above zero for the large pools, dense rows of 1,280 features like those of
a network for the cycles. Every part checks in the same run that what is quick is right. Writes results/asking.json.
"""

import time
from typing import Any

import measure
import numpy as np
from harness import arguments

from saccade import GPClassifier
from saccade._core.arrays import Array
from saccade.active import ActiveLearner
from saccade.cli import console
from saccade.datasets.synthetic import histograms
from saccade.inference.posterior.pool import PoolPosterior

CLASSES, FEATURES, CHECKED = 20, 1280, 50


def labels(n: int) -> Array:
    return np.random.default_rng(1).integers(CLASSES, size=n)


def started(X: Any, y: Array, known: int, **options: Any) -> tuple[ActiveLearner, float]:
    """A campaign with some labels, drawn at random, and the seconds that took."""
    begin = time.perf_counter()
    learner = ActiveLearner(X, GPClassifier(levels=255), random_state=0, **options)
    rows = np.random.default_rng(2).choice(learner.pool_model.rows, known, replace=False)
    rows = np.append(rows, learner.audit.rows[: known // 9])
    learner.tell(rows, y[rows])
    return learner, time.perf_counter() - begin


def off(field: PoolPosterior) -> dict[str, float]:
    """How far mean and variance at some rows are from dense algebra, relative to labels of 1 and to k(x, x)."""
    some = np.random.default_rng(3).choice(field.prior.size, CHECKED, replace=False)
    K = field.gram.between(field.rows, field.rows) + field.noise * np.eye(field.rows.size)
    beside = field.gram.between(field.rows, some)
    mean = beside.T @ np.linalg.solve(K, field.targets)
    variance = field.prior[some] - np.einsum("ij,ij->j", beside, np.linalg.solve(K, beside))
    return {
        "mean": float(np.abs(field.mean[some] - mean).max()),
        "variance": float(np.abs((field.variance[some] - variance) / field.prior[some]).max()),
    }


def large_pool(n: int) -> dict[str, Any]:
    """One question about a large pool, by two strategies."""
    X, found = histograms(n, 1000, 100, rng=np.random.default_rng(0))[0], dict[str, Any]()
    learner, start = started(X, labels(n), 500, audit=0.0)
    for strategy in ("uncertainty", "sigma", "auto"):
        learner.strategy = strategy
        found[f"{strategy}, s"] = measure.seconds(learner.ask, 5)
    begin = time.perf_counter()
    learner.field.weighed_covariance(np.ones((n, 1)))
    again = time.perf_counter() - begin
    return {"rows": n, "labels": 500, "start, s": start, **found, "all targets from the start, s": again} | off(
        learner.field
    )


def joint_batch(n: int) -> dict[str, Any]:
    """A batch of 100 from a large pool, chosen jointly, and as the first 100."""
    X = histograms(n, 1000, 100, rng=np.random.default_rng(0))[0]
    learner, _ = started(X, labels(n), 500, audit=0.0)
    joint = measure.seconds(lambda: learner.ask(100), 5)
    learner.joint = False
    first = measure.seconds(lambda: learner.ask(100), 5)
    return {"rows": n, "labels": 500, "batch": 100, "joint, s": joint, "first 100, s": first}


def cycles(n: int, known: int, count: int) -> dict[str, Any]:
    """One answer and the next question, again and again, with `known` labels at the start."""
    rng, y = np.random.default_rng(0), labels(n)
    centres = np.maximum(rng.normal(0.2, 0.3, (CLASSES, FEATURES)), 0).astype(np.float32)
    X = np.empty((n, FEATURES), np.float32)
    for c in range(CLASSES):
        own = np.flatnonzero(y == c)
        X[own] = np.maximum(centres[c] + rng.normal(0.0, 0.3, (own.size, FEATURES)), 0)
    before = measure.resident_bytes()
    measure.reset_peak()
    learner, start = started(X, y, known)
    peak, times = measure.resident_bytes(peak=True) - before, []
    measure.reset_peak()
    row = learner.ask()
    for _ in range(count):
        begin = time.perf_counter()
        learner.tell(row, y[row])
        row = learner.ask()
        times.append(time.perf_counter() - begin)
    held = measure.resident_bytes(peak=True) - before
    return {
        "rows": n,
        "features": FEATURES,
        "classes": CLASSES,
        "labels": known,
        "cycles": count,
        "start, s": start,
        "median, ms": 1e3 * float(np.median(times)),
        "p95, ms": 1e3 * float(np.quantile(times, 0.95)),
        "largest, ms": 1e3 * max(times),
        "GB beyond the pool, at the start": peak / 1e9,
        "GB beyond the pool, in the cycles": held / 1e9,
        "GB of the pool": X.nbytes / 1e9,
    } | off(learner.field)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch-rows", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=5000)
    parser.add_argument("--cycles", type=int, default=100)
    options = parser.parse_args()
    with console.progress():
        record = {"cycles": cycles(options.batch_rows, options.labels, options.cycles)}
        print(record["cycles"], flush=True)
        record["joint batch"] = joint_batch(options.batch_rows)
        print(record["joint batch"], flush=True)
        record["large pool"] = large_pool(options.rows)
        print(record["large pool"], flush=True)
    measure.write_json(options.out / "asking.json", record)


if __name__ == "__main__":
    main()
