"""K Fig. 3: Caltech-101, the mean recognition rate a class over the number of training pictures a class.

    python experiments/caltech101_fig3.py [--cache FOLDER] [--splits 10]

Needs the pictures in SACCADE_DATA. GP and SVM on one kernel matrix each: pyramid match (SIFT in ten dimensions of PCA
and the position, vocabulary-guided bins), spatial pyramid of softly assigned words, deep features. In each split the
training sets of 5, 10, …, 30 pictures a class contain one another; vocabularies are learned on the smallest, so on
training pictures of all. The test set is every other picture of the class, at most 50.
"""

from pathlib import Path
from typing import Any

import numpy as np
from common import (
    NOISE,
    Array,
    C,
    all_pictures,
    arguments,
    class_rate,
    gp_answers,
    kernel_matrices,
    plots,
    save_figure,
    show_progress,
    svm_answers,
    write,
)

SIZES = (5, 10, 15, 20, 25, 30)
MOST_TEST = 50
METHODS = {
    "pyramid match": ("#1f77b4", "s"),
    "spatial pyramid": ("#0b6e4f", "o"),
    "deep": ("#9d174d", "D"),
}
GOALS = {"classic": 0.58, "deep": 0.91}  # at 15 a class


def splits(y: Array, count: int) -> list[tuple[Array, Array]]:
    """For each split the training pictures, in the order they come in (5 of every class first), and the test ones."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        rounds: list[list[int]] = [[] for _ in range(SIZES[-1])]
        test: list[int] = []
        for label in np.unique(y):
            members = rng.permutation(np.flatnonzero(y == label))
            for place, i in enumerate(members[: SIZES[-1]]):
                rounds[place].append(int(i))
            test += members[SIZES[-1] : SIZES[-1] + MOST_TEST].tolist()
        found.append((np.array([i for some in rounds for i in some]), np.array(test)))
    return found


def encoded(pictures: Any, chosen: list[tuple[Array, Array]], y: Array, cache: Any) -> dict[str, list[Any]]:
    """For each method and split the vectors of all pictures that it needs; descriptors are made once for all splits."""
    from sklearn.pipeline import make_pipeline

    from saccade.features import BagOfWords, DeepFeatures, DenseSIFT, DescriptorPCA, PyramidHistogram, SpatialPyramid

    sift = DenseSIFT().transform(pictures)
    first = [train[: SIZES[0] * len(np.unique(y))] for train, _ in chosen]
    chains = {
        "spatial pyramid": [SpatialPyramid(BagOfWords(1000, "soft", cache=cache)).fit(sift[some]) for some in first],
        "pyramid match": [
            make_pipeline(DescriptorPCA(10, positions=True, cache=cache), PyramidHistogram(cache=cache)).fit(sift[some])
            for some in first
        ],
    }
    vectors = many(sift, chains, cache)
    deep = DeepFeatures(cache=cache).fit_transform(pictures)
    return {**vectors, "deep": [deep] * len(chosen)}


def many(sift: Any, chains: dict[str, list[Any]], cache: Any) -> dict[str, list[Any]]:
    """Every chain's matrix, with one pass over the pictures."""
    import scipy.sparse as sp

    from saccade._core.progress import report
    from saccade.features.cache import Cache
    from saccade.features.items import digest_of, stream

    flat = [(name, chain) for name, group in chains.items() for chain in group]
    recipe = digest_of(*(step.recipe() for _, chain in flat for step in steps_of(chain)))

    def row(i: int) -> list[tuple[Array, Array]]:
        item, made = sift[i], []
        for _, chain in flat:
            seen = item
            for step in steps_of(chain)[:-1]:
                seen = step.make(seen)
            made.append(steps_of(chain)[-1].encode(seen))
        return made

    rows: list[dict[str, Array]] = []
    with Cache(cache) as kept:
        keys = [digest_of(sift.digest(i), recipe) for i in range(len(sift))]
        known = [kept.get(key) for key in keys]
        fresh = stream(row, [i for i, k in enumerate(known) if k is None], None)
        for i, key in enumerate(keys):
            arrays = known[i]
            if arrays is None:
                arrays = {}
                for k, (columns, values) in enumerate(next(fresh)):
                    arrays |= {f"c{k}": columns.astype(np.int32), f"v{k}": values.astype(np.float32)}
                kept.put(key, arrays)
            rows.append(arrays)
            report("pictures to vectors", (i + 1) / len(keys))
    out: dict[str, list[Any]] = {name: [] for name in chains}
    for k, (name, chain) in enumerate(flat):
        indptr = np.append(0, np.cumsum([len(arrays[f"c{k}"]) for arrays in rows]))
        parts = [np.concatenate([arrays[f"{part}{k}"] for arrays in rows]) for part in "vc"]
        out[name].append(sp.csr_matrix((*parts, indptr), shape=(len(rows), steps_of(chain)[-1].width())))
    return out


def steps_of(chain: Any) -> list[Any]:
    return [step for _, step in chain.steps] if hasattr(chain, "steps") else [chain]


def measure(vectors: Any, y: Array, train: Array, test: Array) -> dict[str, list[float]]:
    """The rates of one split over the sizes."""
    K, K_test = kernel_matrices(vectors[train], vectors[test])
    rates: dict[str, list[float]] = {"gp": [], "svm": []}
    classes = len(np.unique(y))
    for size in SIZES:
        n = size * classes
        some = K[:n, :n], K_test[:, :n], y[train[:n]]
        rates["gp"].append(class_rate(y[test], gp_answers(*some)))
        rates["svm"].append(class_rate(y[test], svm_answers(*some)))
    return rates


def draw(record: dict[str, Any], out: Path) -> None:
    figure, axes = plots().subplots(figsize=(7.5, 5), constrained_layout=True)
    for name, (colour, mark) in METHODS.items():
        for kind, style in (("gp", "-"), ("svm", "--")):
            rates = 100 * np.array(record["rates"][name][kind])  # (splits, sizes)
            mean, spread = rates.mean(axis=0), rates.std(axis=0)
            axes.plot(SIZES, mean, style, color=colour, marker=mark, ms=5, label=f"{kind.upper()}, {name}")
            axes.fill_between(SIZES, mean - spread, mean + spread, color=colour, alpha=0.12, lw=0)
    axes.set(
        xlabel="training pictures a class",
        ylabel="mean recognition rate a class, %",
        title=f"Caltech-101, mean of {record['splits']} splits (band: one standard deviation)",
    )
    for name, goal in GOALS.items():
        axes.plot([14, 16], [100 * goal] * 2, color="black", ls=":", lw=1.5, label=f"goal, {name}")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, -0.38))
    save_figure(figure, out, "caltech101_fig3")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    from saccade.datasets.on_disk import caltech101

    paths, y = caltech101()
    chosen = splits(y, options.splits)
    rates: dict[str, dict[str, list[list[float]]]] = {name: {"gp": [], "svm": []} for name in METHODS}
    with show_progress():
        vectors = encoded(all_pictures(paths, options.cache), chosen, y, options.cache)
        for name in METHODS:
            for number, (train, test) in enumerate(chosen):
                found = measure(vectors[name][number], y, train, test)
                for kind, values in found.items():
                    rates[name][kind].append(values)
                print(name, number, {k: np.round(v, 3).tolist() for k, v in found.items()}, flush=True)
    record = {"data": "Caltech-101, 101 classes", "splits": options.splits, "sizes": SIZES, "noise": NOISE, "C": C}
    record |= {
        "rates": rates,
        "mean": {n: {k: np.mean(v, axis=0).tolist() for k, v in r.items()} for n, r in rates.items()},
    }
    write(options.out, "caltech101_fig3", record)
    draw(record, options.out)


if __name__ == "__main__":
    main()
