"""The variance in constant time: how tight and how fast, over the rank.

    python benchmarks/variance.py [--fashion FOLDER] [--cache FOLDER]

Synthetic histograms (10,000 × 1,000 with 200 non-zeros, a flat spectrum: the hard case); with --fashion the pixels of
Fashion-MNIST (5,000 of them, Debian: dataset-fashion-mnist); with --cache the bags of words and the deep features that
experiments/scenes15.py left there. Three kinds of tables for the same directions: ours (128 nodes a dimension in
float32, with a slack that keeps the bound), exact ones in float64, and even grids of 256 steps, which are no bound.
Writes benchmarks/results/variance.json and docs/images/variance.png.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import numpy as np
import scipy.sparse as sp
from fashion import read
from harness import arguments
from scipy.stats import spearmanr

from saccade import GPClassifier
from saccade._core.arrays import Array
from saccade.datasets.synthetic import histograms
from saccade.inference.approximations.low_rank import low_rank
from saccade.inference.posterior.compressed import unexplained
from saccade.operators.norms import norm_tables
from saccade.operators.tables import quantize

HERE = Path(__file__).resolve().parent
SYNTHETIC = 10_000  # examples
WORDS = 1000
RANKS = (8, 16, 32, 64, 128, 192, 256)
COMPARED = 300  # new examples whose exact variance is found
TIMED = 16_384  # new examples that are timed, repeated if need be
MOST_MB = 300  # exact tables beyond are not made
REPEATS = 5
DIRECT = 5_000  # training examples up to which a factor is the faster judge
GOAL_US, GOAL_RANK = 3.0, 0.99


def scenes(name: str, cache: Path) -> tuple[Any, Array, Any]:
    sys.path.insert(0, str(HERE.parent / "experiments"))
    from common import all_pictures  # type: ignore[import-not-found]
    from scenes15 import chain  # type: ignore[import-not-found]

    from saccade.datasets.on_disk import scenes15

    (train, y), (test, _) = scenes15("train"), scenes15("test")
    features = chain(name, WORDS, cache, root=True)  # RootSIFT, which the committed results were measured with
    X = features.fit_transform(all_pictures(train, cache), y)
    return X, y, features.transform(all_pictures(test, cache))


def data_sets(fashion: Path | None, cache: Path | None) -> dict[str, Callable[[], tuple[Any, Array, Any]]]:
    def synthetic() -> tuple[Any, Array, Any]:
        X, y = histograms(SYNTHETIC + 2000, rng=np.random.default_rng(0))
        return X[:SYNTHETIC], y[:SYNTHETIC], X[SYNTHETIC:]

    def pixels() -> tuple[Any, Array, Any]:
        assert fashion is not None
        (X, y), (new, _) = read(fashion, "train"), read(fashion, "t10k")
        return X[:5_000], y[:5_000], new[:2000]

    found: dict[str, Callable[[], tuple[Any, Array, Any]]] = {"synthetic histograms": synthetic}
    if fashion is not None:
        found["Fashion-MNIST pixels"] = pixels
    if cache is not None:
        found["15-Scenes words"] = lambda: scenes("words", cache)
        found["15-Scenes deep"] = lambda: scenes("deep", cache)
    return found


class Case:
    """A fitted model, its exact variance on some new examples, and many to be timed on."""

    def __init__(self, X: Any, y: Array, new: Any) -> None:
        new = sp.csr_matrix(new, dtype=np.float64)
        solver = "cholesky" if X.shape[0] <= DIRECT else "cg"
        self.model = GPClassifier(random_state=0, solver=solver, tol=1e-4, variance="exact").fit(X, y)
        self.some = new[np.sort(np.random.default_rng(0).permutation(new.shape[0])[:COMPARED])]  # files lie by class
        self.many = sp.vstack([new] * -(-TIMED // new.shape[0]), format="csr")[:TIMED]
        self.exact = self.model.latent_mean_and_variance(self.some)[1]
        self.prior = self.model.kernel_.diag(self.some)
        self.K = self.model.kernel_.operator(self.model.gp_.gram.codes)

    def row(self, rank: int) -> dict[str, Any]:
        model, features = self.model, self.model.kernel_.features
        begin = time.perf_counter()
        W = low_rank(self.K, model.gp_.sites.noise, rank, np.random.default_rng(0)).W
        tables = norm_tables(self.K, W)
        row: dict[str, Any] = {"rank": rank, "seconds to make": time.perf_counter() - begin}
        size = tables.T.nbytes + tables.slack.nbytes
        row["ours"] = self.judged(size, lambda X: unexplained((tables,), features(X))[:, 0])
        if len(self.K.tables(W[:, :1]).T) * rank * 8e-6 > MOST_MB:
            return row
        exact = self.K.tables(W)
        grid = quantize(exact, model.gp_.gram.tops, features, 256)
        row["exact float64"] = self.judged(
            exact.T.nbytes, lambda X: _left(features(X), np.square(exact.walk(features(X))).sum(axis=1))
        )
        row["quantised"] = self.judged(grid.T.nbytes, lambda X: _left(features(X), np.square(grid.walk(X)).sum(axis=1)))
        return row

    def judged(self, size: int, variance: Callable[[Any], Array]) -> dict[str, Any]:
        found = variance(self.some)
        below = float((found < self.exact - 1e-5 * self.prior).mean())
        work = time.process_time()
        taken = measure.seconds(lambda: variance(self.many), REPEATS) / TIMED * 1e6
        work = (time.process_time() - work) / (REPEATS + 1) / TIMED * 1e6
        return {
            "µs an example": taken,
            "µs for 200 non-zeros": taken * 200 * TIMED / self.many.nnz,
            "µs of CPU for 200 non-zeros": work * 200 * TIMED / self.many.nnz,  # all threads: tells a busy machine
            "rank correlation": float(spearmanr(found, self.exact)[0]),
            "mean ratio to exact": float((found / self.exact).mean()),
            "share below exact": below,
            "MB": size / 1e6,
        }


def _left(features: Any, explained: Array) -> Array:
    return np.asarray(np.maximum(np.asarray(features.sum(axis=1))[:, 0] - explained, 0.0))


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    for name, found in results.items():
        ours = [row["ours"] for row in found["rows"]]
        ranks = [row["rank"] for row in found["rows"]]
        left.plot(ranks, [row["rank correlation"] for row in ours], marker="o", ms=4, label=name)
        right.plot(ranks, [row["µs for 200 non-zeros"] for row in ours], marker="o", ms=4, label=name)
    left.axhline(GOAL_RANK, color="black", lw=1, ls=":")
    right.axhline(GOAL_US, color="black", lw=1, ls=":")
    left.set(xlabel="rank", ylabel="rank correlation with exact", ylim=(0.35, 1.01))
    right.set(xlabel="rank", ylabel="µs an example, for 200 non-zeros", ylim=(0, None))
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(RANKS, [str(rank) for rank in RANKS])
        axes.spines[["top", "right"]].set_visible(False)
    left.set_title("How tight", loc="left")
    right.set_title("How fast (dotted: the goals)", loc="left")
    left.legend(frameon=False)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--fashion", type=Path, default=None, help="folder of Fashion-MNIST")
    parser.add_argument("--cache", type=Path, default=None, help="cache of experiments/scenes15.py")
    parser.add_argument("--images", type=Path, default=HERE.parent / "docs" / "images", help="folder for the figure")
    options = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    for name, load in data_sets(options.fashion, options.cache).items():
        case = Case(*load())
        case.row(RANKS[0])  # compile
        found: dict[str, Any] = {"n": case.K.shape[0], "non-zeros an example": case.many.nnz / TIMED, "rows": []}
        for rank in RANKS:
            found["rows"].append(case.row(rank))
            assert found["rows"][-1]["ours"]["share below exact"] == 0.0
            shown = {k: round(v, 4) for k, v in found["rows"][-1]["ours"].items()}
            print(name, rank, shown, flush=True)
        results[name] = found
    measure.write_json(options.out / "variance.json", {"data": results})
    draw(results, options.images / "variance.png")


if __name__ == "__main__":
    main()
