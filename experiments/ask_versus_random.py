"""Is `auto` ever worse than random questions? Ten tasks, paired runs, a test for each.

    python experiments/ask_versus_random.py --data FOLDER --cache FOLDER [--runs 50]

In each run both ways of asking have the same pool and test part. The difference (auto less random) of the mean rate
over the whole curve, and of the rate after a quarter, a half and all of the labels; a signed-rank test of Wilcoxon for
each, in both directions. "Significantly below" means p < 0.05 without a correction for the many tests, which is the
stricter reading here. "digits" is also among the sets on which `auto` was chosen.
"""

from pathlib import Path
from typing import Any

import numpy as np
from ask_curves import Curves, curve_arguments
from ask_tasks import SPECS
from common import Array, plots, save_figure, show_progress, write

TASKS = (
    "Caltech-101, 25 classes",
    "15-Scenes",
    "Fashion-MNIST",
    "CIFAR-10",
    "digits",
    "Fashion-MNIST, pixels",
    "wine",
    "breast cancer",
    "CIFAR-10, cat or dog",
    "15-Scenes, one of 15 (unbalanced)",
)
PLACES = {"a quarter of the labels": 0.25, "half of them": 0.5, "all of them": 1.0}
LEVEL = 0.05


def test(difference: Array) -> dict[str, float]:
    """The mean difference with its standard error in points, and p that it is not below or not above 0."""
    from scipy.stats import wilcoxon

    error = difference.std(ddof=min(1, len(difference) - 1)) / np.sqrt(len(difference))
    found = {"points": 100 * float(difference.mean()), "standard error": 100 * float(error)}
    equal = not np.any(np.abs(difference) > 1e-12)
    for side in ("less", "greater"):
        found[f"p, {side}"] = 1.0 if equal else float(wilcoxon(difference, alternative=side).pvalue)
    return found


def compare(auto: Array, random: Array) -> dict[str, Any]:
    """(runs, rounds) of both."""
    rounds = min(auto.shape[1], random.shape[1])
    difference = auto[:, :rounds] - random[:, :rounds]
    found = {"whole curve": test(difference.mean(axis=1))}
    for title, share in PLACES.items():
        found[title] = test(difference[:, max(round(share * rounds), 1) - 1])
    return found


def draw(record: dict[str, Any], out: Path) -> None:
    figure, axes = plots().subplots(figsize=(8.5, 4.6), constrained_layout=True)
    names = list(record["tasks"])
    for shift, (title, colour) in zip(
        (-0.27, -0.09, 0.09, 0.27),
        {"whole curve": "#0b6e4f", **dict.fromkeys(PLACES, "")}.items(),
        strict=True,
    ):
        shade = colour or {0.25: "#86c5ae", 0.5: "#d97706", 1.0: "#666666"}[PLACES[title]]
        rows = [record["tasks"][name]["auto less random"][title] for name in names]
        axes.errorbar(
            [row["points"] for row in rows],
            np.arange(len(names)) + shift,
            xerr=[1.96 * row["standard error"] for row in rows],
            fmt="o",
            markersize=4,
            color=shade,
            label=title if title == "whole curve" else f"after {title}",
        )
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel="auto less random, points (95 % interval of the mean)")
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, out, "ask_versus_random")


def main() -> None:
    parser = curve_arguments(__doc__, TASKS)
    options = parser.parse_args()
    curves = Curves(options.data, options.cache)
    record: dict[str, Any] = {"runs": options.runs, "seeds": f"0 to {options.runs - 1}", "level": LEVEL, "tasks": {}}
    with show_progress():
        for name in options.tasks:
            spec = SPECS[name]
            auto, random = (curves.rates(name, way, options.runs, spec.batch) for way in ("auto", "random"))
            found = compare(auto, random)
            record["tasks"][name] = {
                "batch": spec.batch,
                "labels": spec.batch * min(auto.shape[1], random.shape[1]),
                "rate": "mean of the classes" if spec.by_class else "share of all",
                "auto less random": found,
                "significantly below random": [title for title, row in found.items() if row["p, less"] < LEVEL],
            }
            print(name, {title: round(row["points"], 2) for title, row in found.items()}, flush=True)
            write(options.out, "ask_versus_random", record, quiet=True)
    worse = {name: row["significantly below random"] for name, row in record["tasks"].items()}
    print({name: places for name, places in worse.items() if places} or "never significantly below random")
    draw(record, options.out)


if __name__ == "__main__":
    main()
