"""A Fig. 3: questions chosen by approximate means and variances, against the exact ones and random questions.

    python experiments/ask_approximations_fig3.py --cache FOLDER [--tasks 50] [--starts 10]

The paper takes ImageNet; here it is Caltech-101 in SACCADE_DATA, as bags of 1,000 words of dense SIFT. A task: ten
categories at random, the first against the nine others; half of the pictures of each (100 at most) may be asked about,
50 at most of the others are the test part. Five labelled pictures of each category at the start, so 5 positive and 45
negative ones; then one question at a time. Kernel EXP-HIK, σ² = 0.1, as in A §7.1.

"mean" asks where |μ| is smallest, "variance" where the variance is largest. Whatever chose the questions, the AUC is
that of the exact mean on the test part, so that only the questions differ.
"""

from pathlib import Path
from typing import Any

import numpy as np
from approximations_data import BETA, caltech
from approximations_table2 import APPROXIMATIONS, learn
from common import Array, arguments, plots, save_figure, show_progress, write
from one_class_methods import auc

CATEGORIES, START = 10, 5
MOST_TRAIN, MOST_TEST = 100, 50
QUESTIONS = 30
OPTIMISED_STARTS = 1  # starts of each task with OA, which searches for a fifth of a second before every question
COLOURS = {"exact": "#0b6e4f", "FA": "#d97706", "OA": "#9d174d", "FITC": "#1f77b4", "random": "#666666"}
CRITERIA = ("mean", "variance")


def task(y: Array, seed: int) -> tuple[Array, Array, Array]:
    """Rows to ask about, test rows, and the ten categories; the first is the positive one."""
    rng = np.random.default_rng(seed)
    categories = rng.choice(np.unique(y), min(CATEGORIES, len(np.unique(y))), replace=False)
    pool, test = [], []
    for label in categories:
        members = rng.permutation(np.flatnonzero(y == label))
        half = min(MOST_TRAIN, len(members) // 2)
        pool.append(members[:half])
        test.append(members[half : half + MOST_TEST])
    return np.concatenate(pool), np.concatenate(test), categories


def ask(
    K: Array,  # (n, n) of the labelled
    k_star: Array,  # (n, t) of the others
    targets: Array,  # (n, 1)
    method: str,
    criterion: str,
    rng: np.random.Generator,
) -> int:
    """The column to ask about."""
    if method == "random":
        return int(rng.integers(k_star.shape[1]))
    made = learn(K, method)
    if criterion == "mean":
        return int(np.abs(made.weights(targets)[:, 0] @ k_star).argmin())
    return int(made.variance(made.supported(k_star), np.ones(k_star.shape[1]))[:, 0].argmax())


def run(
    K: Array,  # (n, n) of the rows to ask about
    K_test: Array,  # (t, n)
    targets: Array,  # (n, 1)
    normal: Array,  # (t,) bool
    start: Array,  # rows that are labelled
    way: tuple[str, str],
    rng: np.random.Generator,
) -> list[float]:
    """The AUC at the start and after each question."""
    labelled, found = start.tolist(), []
    for question in range(QUESTIONS + 1):
        inner, y = K[np.ix_(labelled, labelled)], targets[labelled]
        alpha = learn(inner, "exact").weights(y)
        found.append(float(auc(normal, K_test[:, labelled] @ alpha)[0]))
        left = np.setdiff1d(np.arange(len(K)), labelled)
        if question < QUESTIONS:
            labelled.append(int(left[ask(inner, K[np.ix_(labelled, left)], y, *way, rng)]))
    return found


def measure(X: Any, y: Array, tasks: int, starts: int) -> dict[str, list[list[float]]]:
    """For each way to ask the curves of all tasks and starts."""
    from saccade.kernels import HIK, GeneralizedRBF

    ways = [(method, criterion) for criterion in CRITERIA for method in APPROXIMATIONS] + [("random", "mean")]
    found: dict[str, list[list[float]]] = {name(way): [] for way in ways}
    for seed in range(tasks):
        pool, test, categories = task(y, seed)
        kernel = GeneralizedRBF(HIK(), BETA).resolved(X[pool])
        K, K_test = kernel(X[pool]), kernel(X[test], X[pool])
        targets = np.where(y[pool] == categories[0], 1.0, -1.0)[:, None]
        for number in range(starts):
            rng = np.random.default_rng([seed, number])
            start = np.concatenate([rng.choice(np.flatnonzero(y[pool] == c), START, replace=False) for c in categories])
            for way in ways if number < OPTIMISED_STARTS else [way for way in ways if way[0] != "OA"]:
                found[name(way)].append(run((K + K.T) / 2, K_test, targets, y[test] == categories[0], start, way, rng))
        print(
            f"task {seed + 1} of {tasks}", {k: round(float(np.mean(v, 0)[-1]), 4) for k, v in found.items()}, flush=True
        )
    return found


def name(way: tuple[str, str]) -> str:
    return "random" if way[0] == "random" else f"{way[0]}, {way[1]}"


def summary(
    rates: dict[str, Array],  # (tasks, starts, questions + 1) each
) -> dict[str, Any]:
    """Mean curves, and how far each way is from random questions in the end.

    A way with fewer starts is compared with random questions on these, and its curve is that of all random questions
    plus the mean difference.
    """
    random = rates["random"]
    less = {k: (v - random[:, : v.shape[1]]).mean(axis=1) for k, v in rates.items()}  # (tasks, questions + 1)
    ends = {k: 100 * v[:, -1] for k, v in less.items()}
    return {
        "mean AUC": {k: np.round(random.mean(axis=(0, 1)) + v.mean(axis=0), 5).tolist() for k, v in less.items()},
        "less random in the end, points": {
            k: {"mean": float(d.mean()), "standard error": float(d.std(ddof=min(1, len(d) - 1)) / np.sqrt(len(d)))}
            for k, d in ends.items()
        },
    }


def draw(record: dict[str, Any], out: Path) -> None:
    figure, grid = plots().subplots(1, 2, figsize=(10, 4), constrained_layout=True, sharey=True)
    for axes, criterion in zip(grid, CRITERIA, strict=True):
        for method, colour in COLOURS.items():
            curve = record["mean AUC"][name((method, criterion))]
            style = "--" if method == "exact" else "-"
            axes.plot(
                100 * np.array(curve), color=colour, linestyle=style, label=method, zorder=3 if style == "--" else 2
            )
        axes.set(title=f"A Fig. 3, questions by the {criterion}", xlabel="questions", ylabel="AUC, %")
    grid[0].legend(frameon=False, loc="lower right")
    save_figure(figure, out, "ask_approximations_fig3")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--starts", type=int, default=10)
    options = parser.parse_args()
    with show_progress():
        data = caltech(options)
        found = measure(data.X, data.y, options.tasks, options.starts)
    record: dict[str, Any] = {"figure": "A Fig. 3", "data": "Caltech-101, 1,000 words", "tasks": options.tasks}
    record |= {"starts": options.starts, "starts with OA": min(options.starts, OPTIMISED_STARTS)}
    record |= {"runs": options.tasks * options.starts, "seeds": f"0 to {options.tasks - 1}", "questions": QUESTIONS}
    record |= {"categories": CATEGORIES, "labelled at the start": CATEGORIES * START}
    record |= summary({k: np.array(v).reshape(options.tasks, -1, QUESTIONS + 1) for k, v in found.items()})
    write(options.out, "ask_approximations_fig3", record, quiet=True)
    print(record["less random in the end, points"])
    draw(record, options.out)


if __name__ == "__main__":
    main()
