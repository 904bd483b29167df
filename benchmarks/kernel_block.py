"""A dense block of the intersection kernel: minima a second on one thread, beside NumPy, SciPy and scikit-learn.

`python benchmarks/kernel_block.py` writes benchmarks/results/kernel_block.json. All are given the same float64 rows and
counted alike, n × m × D minima a block, whether they skip zeros or not. The goal is 10 thousand million on a core.
Rivals work on few rows of the block, as fast a minimum there as on all; their answer is the judge of ours.
"""

import os
from collections.abc import Callable
from typing import Any

import measure
import numpy as np
import scipy.sparse as sp
from harness import arguments
from numba import njit
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from saccade._core.arrays import Array
from saccade.kernels import HIK
from saccade.operators.block import intersections
from saccade.operators.compress import compressed

GOAL = 10.0
ROWS = 64  # rows of the block that rivals compute
CASES = {  # n, m, D, non-zeros a row
    "pixels, no zero": (2000, 2000, 784, 784),
    "pixels, half of them zero": (2000, 2000, 784, 392),
    "visual words": (1000, 5000, 1000, 200),
    "spatial pyramid": (1000, 1000, 21_000, 2000),
    "digits": (1500, 1500, 64, 33),
}


def rows(n: int, D: int, filled: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    X = np.zeros((n, D))
    for row in X:
        row[rng.permutation(D)[:filled]] = rng.gamma(1.0, size=filled)
    return X


@njit(nogil=True, fastmath={"reassoc", "nsz"})
def pair_at_a_time(A, B, out):
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            total = 0.0
            for d in range(A.shape[1]):
                total += min(A[i, d], B[j, d])
            out[i, j] = total


def numpy_minimum(A: Array, B: Array) -> Array:
    return np.stack([np.minimum(a, B).sum(axis=1) for a in A])


def from_distance(distance: Callable[[Any, Any], Array]) -> Callable[[Any, Any], Array]:
    """min(a, b) = (a + b − |a − b|) / 2."""

    def block(A: Any, B: Any) -> Array:
        sums = [np.asarray(M.sum(axis=1)).ravel() for M in (A, B)]
        return np.asarray((sums[0][:, None] + sums[1] - distance(A, B)) / 2)

    return block


def compiled(A: Array, B: Array) -> Array:
    out = np.empty((len(A), len(B)))
    pair_at_a_time(A, B, out)
    return out


def rivals(A: Array, B: Array) -> dict[str, Callable[[], Array]]:
    some, SA, SB = A[:ROWS], sp.csr_matrix(A[:ROWS]), sp.csr_matrix(B)
    return {
        "NumPy minimum": lambda: numpy_minimum(some, B),
        "SciPy cdist, L1": lambda: from_distance(lambda X, Z: cdist(X, Z, "cityblock"))(some, B),
        "scikit-learn manhattan_distances": lambda: from_distance(manhattan_distances)(some, B),
        "scikit-learn manhattan_distances, sparse": lambda: from_distance(manhattan_distances)(SA, SB),
        "compiled, a pair of dense rows at a time": lambda: compiled(some, B),
    }


def case(n: int, m: int, D: int, filled: int) -> dict[str, Any]:
    A, B, kernel = rows(n, D, filled, 0), rows(m, D, filled, 1), HIK(scale=1.0)
    SA, SB = compressed(A), compressed(B)
    work = n * m * D / 1e9
    rates = {
        "saccade HIK()(A, B)": work / measure.seconds(lambda: kernel(A, B), 5),
        "saccade HIK()(A), symmetric": n * work / m / measure.seconds(lambda: kernel(A), 5),
        "saccade, the loop alone": work / measure.seconds(lambda: intersections(SA, SB), 5),
    }
    K, errors = kernel(A, B)[:ROWS], {}
    for name, block in rivals(A, B).items():
        errors[name] = float(abs(block() - K).max() / K.max())
        rates[name] = work * ROWS / n / measure.seconds(block, 3, warm_up=False)
    assert max(errors.values()) < 1e-12, errors
    return {
        "n": n,
        "m": m,
        "D": D,
        "non-zeros a row": filled,
        "G minima/s": rates,
        "times slower than ours": {name: rates["saccade HIK()(A, B)"] / rates[name] for name in errors},
        "largest difference, of the largest value": errors,
        "goal reached": rates["saccade HIK()(A, B)"] >= GOAL,
    }


def main() -> None:
    options = arguments(__doc__).parse_args()
    os.environ["SACCADE_NUM_THREADS"] = "1"
    results = {}
    for name, sizes in CASES.items():
        results[name] = case(*sizes)
        print(name, {k: round(v, 2) for k, v in results[name]["G minima/s"].items()}, flush=True)
    measure.write_json(options.out / "kernel_block.json", {"goal, G minima/s": GOAL, "blocks": results})


if __name__ == "__main__":
    main()
