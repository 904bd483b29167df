"""What the first call costs: importing, and compiling once after install.

`python benchmarks/start_up.py` writes benchmarks/results/start_up.json.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure
import numpy as np
from harness import arguments

REPEATS = 9
EXAMPLE = (Path(__file__).parents[1] / "README.md").read_text("utf-8").split("```python")[1].split("```")[0]
FIRST_CALL = """
import time, numpy as np
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
X = X + np.random.default_rng(0).random(X.shape)  # real values: the exact layout
start = time.perf_counter()
from saccade import GPClassifier
for parameters in ({}, {"solver": "cg"}, {"levels": 255, "solver": "cg"}):
    model = GPClassifier(random_state=0, **parameters).fit(X, y)
    model.predict_proba(X)
model.quantized().predict(X)
print(time.perf_counter() - start)
"""


def wall(code: str, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def first_call(environment: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL], check=True, env=environment, capture_output=True, text=True
    )
    return float(done.stdout)


def processor(code: str, environment: dict[str, str], folder: str) -> float:
    """Seconds of processor time, those of threads that wait in a loop too."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=folder, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    options = arguments(__doc__).parse_args()
    environment = dict(os.environ)
    base = "import sklearn.base, sklearn.utils.validation, sklearn.utils.multiclass, sklearn.metrics, scipy.optimize"
    times = {name: [] for name in ("scikit-learn", "saccade")}
    for _ in range(REPEATS):
        times["scikit-learn"].append(wall(base, environment))
        times["saccade"].append(wall(base + "; from saccade import GPClassifier", environment))
    with tempfile.TemporaryDirectory() as cache:
        environment["NUMBA_CACHE_DIR"] = cache
        cold, warm = first_call(environment), first_call(environment)
    with tempfile.TemporaryDirectory() as cache:
        environment["NUMBA_CACHE_DIR"] = cache
        empty, full = (processor(EXAMPLE, environment, cache) for _ in range(2))
    results = {
        "import scikit-learn, s": float(np.median(times["scikit-learn"])),
        "saccade adds, s": float(np.median(times["saccade"]) - np.median(times["scikit-learn"])),
        "first calls of every kind with an empty cache, s": cold,
        "the same from the cache, s": warm,
        "compilation in total, s": cold - warm,
        "README example with an empty cache, CPU s": empty,
        "README example with a full cache, CPU s": full,
    }
    print(results)
    measure.write_json(options.out / "start_up.json", results)


if __name__ == "__main__":
    main()
