"""Joint batches against the first k: 200 labels asked for in batches of 1, 10 and 100.

    python experiments/ask_batches.py --data FOLDER --cache FOLDER [--runs 50]

Joint: each question of a batch is chosen as if the ones before it had been answered, as far as variances go. Top-k: the
k best as if each were asked alone. With batches of 1 the two are the same. Two collections; `auto` and the least margin
of the calibrated probabilities.
"""

from pathlib import Path
from typing import Any

import numpy as np
from ask_curves import Curves, curve_arguments
from ask_versus_random import test
from common import plots, save_figure, show_progress, write

TASKS = ("Caltech-101, 25 classes", "15-Scenes")
BATCHES = (1, 10, 100)
LABELS = 200
STRATEGIES = {"auto": "#0b6e4f", "least margin": "#d97706"}


def measure(curves: Curves, name: str, runs: int) -> dict[str, Any]:
    """Rates after all labels and the paired difference, by strategy and batch size."""
    found: dict[str, Any] = {}
    for strategy in STRATEGIES:
        for batch in BATCHES:
            joint = curves.rates(name, strategy, runs, batch, LABELS)
            top = joint if batch == 1 else curves.rates(name, f"{strategy}, top-k", runs, batch, LABELS)
            half = LABELS // (2 * batch) - 1
            found[f"{strategy}, batches of {batch}"] = row = {
                "joint": 100 * float(joint[:, -1].mean()),
                "top-k": 100 * float(top[:, -1].mean()),
                "joint less top-k": test(joint[:, -1] - top[:, -1]),
                "joint less top-k after half of the labels": test(joint[:, half] - top[:, half]),
                "mean rates, joint": np.round(joint.mean(axis=0), 4).tolist(),
                "mean rates, top-k": np.round(top.mean(axis=0), 4).tolist(),
            }
            print(name, strategy, batch, round(row["joint"], 2), round(row["top-k"], 2), flush=True)
    return found


def draw(record: dict[str, Any], out: Path) -> None:
    names = list(record["tasks"])
    figure, grid = plots().subplots(
        len(names), len(BATCHES), figsize=(11, 3.4 * len(names)), constrained_layout=True, sharey="row", squeeze=False
    )
    for row, name in zip(grid, names, strict=True):
        for axes, batch in zip(row, BATCHES, strict=True):
            for strategy, colour in STRATEGIES.items():
                found = record["tasks"][name][f"{strategy}, batches of {batch}"]
                for kind, style in (("joint", "-"), ("top-k", ":")):
                    rates = 100 * np.array(found[f"mean rates, {kind}"])
                    labels = batch * np.arange(1, len(rates) + 1)
                    mark = "o" if batch > 10 else ""
                    axes.plot(labels, rates, style, marker=mark, color=colour, label=f"{strategy}, {kind}")
            axes.set(title=f"{name}: batches of {batch}", xlabel="labels")
            axes.title.set_fontsize(9)
        row[0].set_ylabel("correct on test pictures, %")
        lowest = min(min(record["tasks"][name][f"auto, batches of {b}"]["mean rates, joint"][-2:]) for b in BATCHES)
        row[0].set_ylim(max(0.0, 100 * lowest - 30), None)
    grid[0, -1].legend(frameon=False, fontsize=8, loc="lower right")
    save_figure(figure, out, "ask_batches")


def main() -> None:
    parser = curve_arguments(__doc__, TASKS)
    options = parser.parse_args()
    curves = Curves(options.data, options.cache)
    record: dict[str, Any] = {"runs": options.runs, "seeds": f"0 to {options.runs - 1}", "labels": LABELS, "tasks": {}}
    with show_progress():
        for name in options.tasks:
            record["tasks"][name] = measure(curves, name, options.runs)
            write(options.out, "ask_batches", record, quiet=True)
    draw(record, options.out)


if __name__ == "__main__":
    main()
