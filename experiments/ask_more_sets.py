"""Labels until 90 % and 95 % of what all labels give: `auto` against random, margin and BADGE on eight sets.

    python experiments/ask_more_sets.py --data FOLDER --cache FOLDER [--runs 6]

Nothing was chosen on the sets of `UNUSED`; of the others, the strategies were chosen on the other half (ask_data.py).
Batches of 25 from no label on, pools and test parts as in ask_low_budget.py. After the first batch `auto` is compared
with TypiClust and MaxHerding, which need no model (DropQuery's first batch is random). "Significantly below" is a
signed-rank test at 5 % over the mean of the whole curve and at a quarter, half and all of the labels, not corrected for
their number.
"""

from typing import Any

import numpy as np
from ask_curves import Curves, curve_arguments
from ask_low_budget import SHARES, finite, needed, ratio
from ask_versus_random import LEVEL, compare
from common import show_progress, write

UNUSED = ("CIFAR-10, 2,200", "penbased", "satimage", "texture", "vehicle")
TASKS = (*UNUSED, "15-Scenes", "Fashion-MNIST", "digits")
STRATEGIES = ("auto", "medoids", "random", "margin", "BADGE")
FIRST = ("TypiClust", "MaxHerding")
BATCH = 25


def measure(curves: Curves, name: str, runs: int) -> dict[str, Any]:
    full = np.array(curves.full(name, runs))
    rates = {strategy: curves.rates(name, strategy, runs, BATCH) for strategy in STRATEGIES}
    first = {strategy: curves.rates(name, strategy, runs, BATCH, BATCH) for strategy in FIRST}
    found = {other: compare(rates["auto"], rates[other]) for other in STRATEGIES if other != "auto"}
    return {
        "unused": name in UNUSED,
        "rate with all labels": float(full.mean()),
        "labels": {s: {str(q): finite(needed(r, full, q)) for q in SHARES} for s, r in rates.items()},
        "auto's labels over": {
            other: {str(q): ratio(rates["auto"], rates[other], full, q)["ratio"] for q in SHARES} for other in found
        },
        "auto less": found,
        "significantly below": {
            other: [title for title, row in places.items() if row["p, less"] < LEVEL] for other, places in found.items()
        },
        "after 25 labels": {s: 100 * float(r[:, 0].mean()) for s, r in (rates | first).items()},
        "mean rates": {s: np.round(r.mean(axis=0), 4).tolist() for s, r in rates.items()},
    }


def averages(tasks: dict[str, Any]) -> dict[str, Any]:
    """The mean ratio over the sets where both reach the goal, and how many these are."""
    found: dict[str, Any] = {}
    for other in STRATEGIES[1:]:
        for share in map(str, SHARES):
            every = [task["auto's labels over"][other][share] for task in tasks.values()]
            reached = [value for value in every if value is not None]
            found[f"{other}, {share}"] = {"mean": float(np.mean(reached)) if reached else None, "sets": len(reached)}
    return found


def main() -> None:
    parser = curve_arguments(__doc__, TASKS)
    parser.set_defaults(runs=6)
    options = parser.parse_args()
    curves = Curves(options.data, options.cache)
    record: dict[str, Any] = {"runs": options.runs, "batch": BATCH, "tasks": {}}
    with show_progress():
        for name in options.tasks:
            record["tasks"][name] = found = measure(curves, name, options.runs)
            print(name, found["labels"], found["significantly below"], found["after 25 labels"], flush=True)
            record["mean over sets of auto's labels over"] = averages(record["tasks"])
            unused = {title: task for title, task in record["tasks"].items() if task["unused"]}
            record["mean over unused sets"] = averages(unused)
            write(options.out, "ask_more_sets", record, quiet=True)
    for title in ("mean over sets of auto's labels over", "mean over unused sets"):
        print(title, record[title])


if __name__ == "__main__":
    main()
