"""Two versions of the library against each other: is anything slower than before?

`python benchmarks/before_after.py <old checkout>/src <new checkout>/src` prints a table of ratios and writes
benchmarks/results/before_after.json.

The versions take turns, each time in a fresh process on one thread, and the median of all turns counts. What is
measured is CPU time, which others who use the machine disturb less than the clock; for the same reason the least of
several rounds in a process counts. A round fits, asks, adds examples, saves and loads; the first round of a process
warms up. "first" is a question to a model that was just fitted, which then makes ready what the question takes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments
from sklearn.datasets import load_digits

TURNS = 5
AGAIN = 5  # times that a quick question is asked in a round
SLOWER = 1.05  # ratio from which a line is marked
SIZES = {"digits": 1500, "sparse": 3000, "sparse, many": 20_000, "RBF": 1500, "Laplace": 600}
Marks = dict[str, float]


def rows(case: str, most: int) -> tuple[Any, np.ndarray, Any]:
    """Training examples, their labels, and new examples."""
    n, rng = min(SIZES[case], most), np.random.default_rng(0)
    new = min(n, 500)
    if case in ("digits", "Laplace"):
        X, y = load_digits(return_X_y=True)
        return X[:n], y[:n], X[-min(new, 297) :]
    if case == "RBF":
        X = rng.standard_normal((n + new, 20))
        y = (X[:, :2].sum(axis=1) > 0).astype(int)
        return X[:n], y[:n], X[n:]
    from saccade.datasets.synthetic import histograms

    X, y = histograms(n + new, D=1000, nonzeros=100, rng=rng)
    return X[:n], y[:n], X[n:]


def timed(marks: Marks, name: str, work: Callable[[], Any], repeats: int = 1) -> Any:
    """What the work finds; the least CPU time of it goes to `marks`."""
    least = np.inf
    for _ in range(repeats):
        start = time.process_time()
        found = work()
        least = min(least, time.process_time() - start)
    marks[name] = least
    return found


def one_round(case: str, most: int, folder: Path) -> Marks:
    """CPU seconds of everything, once."""
    from saccade import GPClassifier, GPRegressor, OneClassGP, load
    from saccade.kernels import RBF

    (X, y, Z), marks, add = rows(case, most), Marks(), min(SIZES[case], most) // 10
    kernel = RBF(5.0) if case == "RBF" else None
    options: dict[str, Any] = {"inference": "laplace"} if case == "Laplace" else {}

    model = timed(marks, "fit", lambda: GPClassifier(kernel, **options).fit(X, y))
    for question in ("predict_proba", "latent_mean_and_variance", "novelty"):
        timed(marks, f"{question}, first", lambda question=question: getattr(model, question)(Z))
    marks["fit and a first predict_proba"] = marks["fit"] + marks.pop("predict_proba, first")
    for question in ("predict_proba", "latent_mean_and_variance", "novelty"):
        timed(marks, question, lambda question=question: getattr(model, question)(Z), AGAIN)
    if case != "RBF":
        timed(marks, "save", lambda: model.save(folder / "model"))
        loaded = timed(marks, "load", lambda: load(folder / "model"), AGAIN)
        timed(marks, "loaded predict_proba", lambda: loaded.predict_proba(Z), AGAIN)
    part = GPClassifier(kernel, **options).fit(X[:-add], y[:-add])
    timed(marks, f"partial_fit, {add} more", lambda: part.partial_fit(X[-add:], y[-add:]))

    regressor = timed(marks, "GPRegressor.fit", lambda: GPRegressor(kernel).fit(X, y.astype(float)))
    timed(marks, "GPRegressor.predict, std, first", lambda: regressor.predict(Z, return_std=True))
    timed(marks, "GPRegressor.predict, std", lambda: regressor.predict(Z, return_std=True), AGAIN)
    detector = timed(marks, "OneClassGP.fit", lambda: OneClassGP(kernel, **options).fit(X))
    timed(marks, "OneClassGP.score_samples", lambda: detector.score_samples(Z), AGAIN)
    return marks


def child(case: str, most: int, seconds: float) -> None:
    """The least of the rounds of this process, as JSON."""
    import saccade

    rounds, began = list[Marks](), 0.0
    with tempfile.TemporaryDirectory() as folder:
        one_round(case, most, Path(folder))
        began = time.process_time()
        while not rounds or time.process_time() - began < seconds:
            rounds.append(one_round(case, most, Path(folder)))
    print(json.dumps({"file": saccade.__file__, "marks": over(rounds, np.min)}))


def over(rounds: list[Marks], which: Callable[[list[float]], Any]) -> Marks:
    """One number for each name."""
    return {name: float(which([marks[name] for marks in rounds])) for name in rounds[0]}


def run(source: Path, case: str, options: argparse.Namespace) -> Marks:
    """Measure in a process of its own, with the library of that folder."""
    one = {f"{name}_NUM_THREADS": "1" for name in ("SACCADE", "OPENBLAS", "OMP", "MKL", "NUMBA")}
    environment = {**os.environ, **one, "PYTHONPATH": str(source), "PYTHONWARNINGS": "ignore"}
    small = ["--most", str(options.most), "--seconds", str(options.seconds)]
    command = [sys.executable, __file__, str(source), str(source), *small, "--child", case]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{case} with {source} failed:\n{done.stderr}")
    answer = json.loads(done.stdout)
    if not Path(answer["file"]).is_relative_to(source):
        raise RuntimeError(f"{source} was asked for, but {answer['file']} answered.")
    return dict(answer["marks"])


def compare(options: argparse.Namespace, case: str) -> dict[str, Any]:
    """Both versions in turn, and their medians."""
    turns: list[list[Marks]] = [[], []]
    for turn in range(options.turns):
        for k in (0, 1) if turn % 2 else (1, 0):
            turns[k].append(run((options.before, options.after)[k].resolve(), case, options))
    before, after = (over(marks, np.median) for marks in turns)
    print(f"\n{case}, n = {min(SIZES[case], options.most):,}\n{'':40s}{'before':>10s}{'after':>10s}{'ratio':>8s}")
    for name in before:
        ratio = after[name] / before[name]
        mark = "  slower" if ratio > SLOWER else ""
        print(f"{name:40s}{1e3 * before[name]:8.1f}ms{1e3 * after[name]:8.1f}ms{ratio:8.2f}{mark}", flush=True)
    return {name: {"before, s": before[name], "after, s": after[name]} for name in before}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("before", type=Path, help="the folder src of the old version")
    parser.add_argument("after", type=Path, help="the folder src of the new version")
    parser.add_argument("--names", nargs=2, default=["before", "after"], help="of the versions, for the record")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--most", type=int, default=max(SIZES.values()), help="examples at most")
    parser.add_argument("--seconds", type=float, default=1.0, help="of rounds that a process makes at least")
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--child", choices=SIZES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.most, options.seconds)
        return
    results = {case: compare(options, case) for case in options.only}
    import measure

    record = {"versions": options.names, "turns": options.turns, "cases": results}
    measure.write_json(options.out / "before_after.json", record)


if __name__ == "__main__":
    main()
