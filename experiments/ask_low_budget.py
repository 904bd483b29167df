"""Labels until 90 % and 95 % of what all labels give, by strategy: `auto` against random, margin and scikit-activeml's.

    python experiments/ask_low_budget.py --data FOLDER --cache FOLDER [--runs 50] [--slow-runs 50] [--logistic-runs 10]

Four collections (ask_data.py says where they are looked for), batches of 25, from no label on. In every run all
strategies see the same pool and are judged on the same test part. The first batch of strategies that need a model is
the same random one; `auto`, TypiClust and CoreSet choose theirs. The classifier is GPClassifier for all; "logistic" is
logistic regression in its place, both for choosing and for judging, with the same goals: shares of what GPClassifier
reaches with all labels. Where a strategy has fewer runs, `auto` is compared with it on these.

Labels to a goal are read off the mean curve, between two rounds by a straight line; the intervals are from a bootstrap
over the runs, pairs kept together.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from ask_campaign import labels_to
from ask_curves import Curves, curve_arguments
from ask_tasks import SPECS
from common import Array, plots, save_figure, show_progress, write

TASKS = ("Caltech-101, 25 classes", "15-Scenes", "Fashion-MNIST", "CIFAR-10")
STRATEGIES = ("auto", "random", "margin", "BADGE", "TypiClust", "CoreSet", "DropQuery")
SLOW = ("TypiClust", "DropQuery")  # several seconds per run
THEIRS = ("random", "BADGE", "TypiClust", "CoreSet", "DropQuery")
SHARES = (0.9, 0.95)
TARGETS = {"random": 0.55, "margin": 0.7}  # for `auto` at 95 %, on average over the collections
BATCH = 25
DRAWS = 1000  # of the bootstrap
COLOURS = {
    "auto": "#0b6e4f",
    "random": "#666666",
    "margin": "#d97706",
    "BADGE": "#9d174d",
    "TypiClust": "#1f77b4",
    "CoreSet": "#8c564b",
    "DropQuery": "#7c3aed",
}


def needed(rates: Array, full: Array, share: float) -> float:
    """Labels until the mean curve of these runs reaches the share of the mean rate with all labels."""
    return labels_to(rates.mean(axis=0), BATCH, share * float(full.mean()))


def ratio(ours: Array, other: Array, full: Array, share: float) -> dict[str, Any]:
    """Our labels over the other's, with the middle 95 % of the bootstrap; None where a goal is not reached."""
    rng, runs = np.random.default_rng(0), len(full)
    draws = [rng.integers(0, runs, runs) for _ in range(DRAWS)]
    labels = np.array([[needed(ours[d], full[d], share), needed(other[d], full[d], share)] for d in draws])
    mine, theirs = needed(ours, full, share), needed(other, full, share)
    if not np.isfinite([mine, theirs]).all():
        return {"ratio": None, "interval": None}
    if not np.isfinite(labels).all():
        return {"ratio": mine / theirs, "interval": None}
    return {"ratio": mine / theirs, "interval": np.quantile(labels[:, 0] / labels[:, 1], (0.025, 0.975)).tolist()}


def measure(curves: Curves, name: str, runs: int, slow_runs: int, logistic_runs: int) -> dict[str, Any]:
    full = np.array(curves.full(name, runs))
    many = {s: slow_runs if s in SLOW else runs for s in STRATEGIES}
    many |= {f"{s}, logistic": logistic_runs for s in THEIRS if logistic_runs}
    rates = {strategy: curves.rates(name, strategy, count, BATCH) for strategy, count in many.items()}
    task = curves.task(name, 0)
    return {
        "pool": len(task.y),
        "test": len(task.y_test),
        "classes": len(np.unique(task.y)),
        "rate with all labels": float(full.mean()),
        "runs": many,
        "labels to a share of it": {
            s: {str(q): finite(needed(r, full[: len(r)], q)) for q in SHARES} for s, r in rates.items()
        },
        "auto's labels over": {
            other: {str(q): ratio(rates["auto"][: len(r)], r, full[: len(r)], q) for q in SHARES}
            for other, r in rates.items()
            if other != "auto"
        },
        "mean rates": {s: np.round(r.mean(axis=0), 4).tolist() for s, r in rates.items()},
        "standard errors": {s: np.round(error(r), 4).tolist() for s, r in rates.items()},
    }


def error(rates: Array) -> Array:
    """Of the mean over the runs."""
    return np.asarray(rates.std(axis=0, ddof=min(1, len(rates) - 1)) / np.sqrt(len(rates)))


def finite(value: float) -> float | None:
    return round(value, 1) if np.isfinite(value) else None


def averages(tasks: dict[str, Any]) -> dict[str, Any]:
    """The mean ratio over the collections; None if a strategy did not reach the goal on one of them."""
    found: dict[str, Any] = {}
    for other in STRATEGIES[1:]:
        ratios = [task["auto's labels over"][other][str(SHARES[-1])]["ratio"] for task in tasks.values()]
        found[other] = None if None in ratios else float(np.mean(ratios))
    return found


def draw(record: dict[str, Any], out: Path) -> None:
    figure, grid = plots().subplots(2, 2, figsize=(11, 8), constrained_layout=True, squeeze=False)
    for axes, (name, task) in zip(grid.flat, record["tasks"].items(), strict=False):
        full, budget = task["rate with all labels"], SPECS[name].budget
        for strategy in reversed(STRATEGIES):
            rates = np.array(task["mean rates"][strategy])[: budget // BATCH]
            spread = np.array(task["standard errors"][strategy])[: len(rates)]
            labels = BATCH * np.arange(1, len(rates) + 1)
            width = 2.6 if strategy == "auto" else 1.3
            axes.plot(labels, 100 * rates, color=COLOURS[strategy], label=strategy, linewidth=width)
            axes.fill_between(
                labels, 100 * (rates - spread), 100 * (rates + spread), color=COLOURS[strategy], alpha=0.15, linewidth=0
            )
        for share in SHARES:
            axes.axhline(100 * share * full, color="#999999", linewidth=0.8, linestyle=":")
            axes.text(3, 100 * share * full, f"{100 * share:.0f} % of full", va="bottom", fontsize=8)
        lowest = min(task["mean rates"]["auto"][0], task["mean rates"]["margin"][1])
        axes.set(title=name, xlabel="labels", ylabel="correct on test pictures, %", ylim=(95 * lowest, 101 * full))
        axes.set_xlim(0, 1.01 * budget)
    handles, names = grid.flat[0].get_legend_handles_labels()
    grid.flat[0].legend(handles[::-1], names[::-1], frameon=False, loc="lower right", fontsize=9)
    save_figure(figure, out, "ask_low_budget")


def main() -> None:
    parser = curve_arguments(__doc__, TASKS)
    parser.add_argument("--slow-runs", type=int, default=50, help=f"runs of {SLOW}, the first of all")
    parser.add_argument("--logistic-runs", type=int, default=10, help="runs with logistic regression; 0: none")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="The number of unique classes")  # of logistic regression on few labels
    curves = Curves(options.data, options.cache)
    slow, logistic = (min(options.runs, some) for some in (options.slow_runs, options.logistic_runs))
    record: dict[str, Any] = {"runs": options.runs, "runs of slow ones": slow, "runs, logistic": logistic}
    record |= {"seeds": f"0 to {options.runs - 1}", "batch": BATCH, "targets at 95 %": TARGETS, "tasks": {}}
    with show_progress():
        for name in options.tasks:
            record["tasks"][name] = found = measure(curves, name, options.runs, slow, logistic)
            print(name, found["labels to a share of it"], flush=True)
            record["mean over tasks of auto's labels over, 95 %"] = averages(record["tasks"])
            write(options.out, "ask_low_budget", record, quiet=True)
    print(record["mean over tasks of auto's labels over, 95 %"])
    draw(record, options.out)


if __name__ == "__main__":
    main()
