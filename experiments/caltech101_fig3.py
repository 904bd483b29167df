"""K Fig. 3: Caltech-101, the mean recognition rate a class over the number of training pictures a class.

    python experiments/caltech101_fig3.py [--cache FOLDER] [--splits 10]

Needs the pictures in SACCADE_DATA. GP and SVM on one kernel matrix each: pyramid match (SIFT in ten dimensions of PCA
and the position, vocabulary-guided bins), spatial pyramid of softly assigned words, deep features. In each split the
training sets of 5, 10, …, 30 pictures of each class contain one another; vocabularies are learned on the smallest, so
on training pictures of all. The test set is every other picture of the class, at most 50. Defaults of the descriptors
were chosen on training pictures of 15-Scenes (choose_descriptors.py), so on no picture of this collection.

Both methods train one class against the rest. The noise of the GP is chosen by leave-one-out, C of the SVM by
cross-validation, both once in each split on the training set of 15 pictures of each class, for all sizes. Beside them:
the GP with noise 0.1, and libsvm as it comes, one against one with C = 10, whose votes lose many points here.
"""

import json
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
    learned_cost,
    learned_noise,
    plots,
    save_figure,
    show_progress,
    svm_answers,
    svm_rest_answers,
    write,
)

SIZES = (5, 10, 15, 20, 25, 30)
CHOSEN_AT = 15  # pictures of each class on which noise and C are chosen
MOST_TEST = 50
KINDS = {
    "gp": ("GP", "-"),
    "svm": ("SVM, one against rest", "--"),
    "svm, one against one": ("SVM, one against one, C = 10", ":"),
    "gp, noise 0.1": ("GP, noise 0.1", ""),  # not drawn: it hides behind the first
}
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


def encoded(pictures: Any, train: Array, classes: int, cache: Any) -> dict[str, Any]:
    """The vectors of a split's pictures by each method; vocabularies are learned on the first of `train`."""
    from sklearn.pipeline import make_pipeline

    from saccade.features import BagOfWords, DeepFeatures, DenseSIFT, DescriptorPCA, PyramidHistogram, SpatialPyramid

    sift = DenseSIFT().transform(pictures)
    first = sift[: SIZES[0] * classes]
    chains = {
        "spatial pyramid": SpatialPyramid(BagOfWords(1000, "soft", cache=cache)).fit(first),
        "pyramid match": make_pipeline(
            DescriptorPCA(10, positions=True, cache=cache), PyramidHistogram(cache=cache)
        ).fit(first),
    }
    return {**many(sift, chains, cache), "deep": DeepFeatures(cache=cache).fit_transform(pictures)}


def many(sift: Any, chains: dict[str, Any], cache: Any) -> dict[str, Any]:
    """Every chain's matrix, with one pass over the pictures."""
    import scipy.sparse as sp

    from saccade._core.progress import report
    from saccade.features.cache import Cache
    from saccade.features.lazy import digest_of, stream

    recipe = digest_of(*(step.recipe() for chain in chains.values() for step in steps_of(chain)))

    def row(i: int) -> list[tuple[Array, Array]]:
        item, made = sift[i], []
        for chain in chains.values():
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
    out: dict[str, Any] = {}
    for k, (name, chain) in enumerate(chains.items()):
        indptr = np.append(0, np.cumsum([len(arrays[f"c{k}"]) for arrays in rows]))
        parts = [np.concatenate([arrays[f"{part}{k}"] for arrays in rows]) for part in "vc"]
        out[name] = sp.csr_matrix((*parts, indptr), shape=(len(rows), steps_of(chain)[-1].width()))
    return out


def steps_of(chain: Any) -> list[Any]:
    return [step for _, step in chain.steps] if hasattr(chain, "steps") else [chain]


def measure(train: Any, y: Array, test: Any, truth: Array) -> tuple[dict[str, list[float]], dict[str, float]]:
    """The rates of one split over the sizes, and the noise and C that its training pictures chose."""
    K, K_test = kernel_matrices(train, test)
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    classes = len(np.unique(y))
    n = CHOSEN_AT * classes
    noise, cost = (choose(K[:n, :n], y[:n]) for choose in (learned_noise, learned_cost))
    for size in SIZES:
        n = size * classes
        some = K[:n, :n], K_test[:, :n], y[:n]
        answers = {
            "gp": gp_answers(*some, noise),
            "gp, noise 0.1": gp_answers(*some),
            "svm": svm_rest_answers(*some, cost),
            "svm, one against one": svm_answers(*some),
        }
        for kind, answer in answers.items():
            rates[kind].append(class_rate(truth, answer))
    return rates, {"noise": noise, "C": cost}


def draw(record: dict[str, Any], out: Path) -> None:
    figure, axes = plots().subplots(figsize=(8.5, 6), constrained_layout=True)
    for name, (colour, mark) in METHODS.items():
        for kind, (title, style) in KINDS.items():
            if not style:
                continue
            rates = 100 * np.array(record["rates"][name][kind])  # (splits, sizes)
            mean, spread = rates.mean(axis=0), rates.std(axis=0)
            axes.plot(SIZES, mean, style, color=colour, marker=mark, ms=5, label=f"{name}: {title}")
            axes.fill_between(SIZES, mean - spread, mean + spread, color=colour, alpha=0.12, lw=0)
    axes.set(
        xlabel="training pictures of each class",
        ylabel="mean of the classes' recognition rates, %",
        title=f"Caltech-101, number of splits: {record['splits']} (mean; band: one standard deviation)",
    )
    for name, goal in GOALS.items():
        axes.plot([14, 16], [100 * goal] * 2, color="black", ls=":", lw=1.5, label=f"goal, {name}")
    axes.grid(alpha=0.3)
    figure.legend(frameon=False, ncols=2, fontsize=8, loc="outside lower center")
    save_figure(figure, out, "caltech101_fig3")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--add", action="store_true", help="to the splits of an earlier run")
    options = parser.parse_args()
    from saccade.datasets.on_disk import caltech101

    paths, y = caltech101()
    record: dict[str, Any] = {"data": "Caltech-101, 101 classes", "splits": 0, "sizes": SIZES, "chosen at": CHOSEN_AT}
    record |= {"plain": {"noise": NOISE, "C": C}, "chosen": {name: [] for name in METHODS}}
    record["rates"] = {name: {kind: [] for kind in KINDS} for name in METHODS}
    known = options.out / "results" / "caltech101_fig3.json"
    if options.add and known.is_file():
        record = json.loads(known.read_text())
        record.pop("machine")  # of the earlier run; `write` adds this one
    with show_progress():
        for number, (train, test) in list(enumerate(splits(y, options.splits), 1))[record["splits"] :]:
            pictures = all_pictures([paths[i] for i in [*train, *test]], options.cache)
            for name, X in encoded(pictures, train, len(np.unique(y)), options.cache).items():
                found, settings = measure(X[: len(train)], y[train], X[len(train) :], y[test])
                record["chosen"][name].append(settings)
                for kind, values in found.items():
                    record["rates"][name][kind].append(values)
                print(name, number, settings, {k: np.round(v, 3).tolist() for k, v in found.items()}, flush=True)
            record["splits"] = number  # after every split there is something to look at
            record["mean"] = {
                name: {k: np.mean(v, axis=0).tolist() for k, v in r.items()} for name, r in record["rates"].items()
            }
            write(options.out, "caltech101_fig3", record, quiet=True)
            draw(record, options.out)


if __name__ == "__main__":
    main()
