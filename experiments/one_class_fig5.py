"""O Fig. 5: 30 windsor chairs are learned; the others are to be ranked before all pictures of the class "chair".

    python experiments/one_class_fig5.py --cache FOLDER [--splits 50]

Needs the pictures in SACCADE_DATA. Colour features, as the paper, and PHOG, which tells these two classes apart better.
Pictures are named by their numbers and never shown. The curves are those of the first split; `mean_auc` has all splits.
"""

from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, plots, save_figure, write
from one_class_kernels import Blocks, Caltech, Task
from one_class_methods import INFERENCES, METHODS, NOISE, NUS, PROBIT_NOISE, auc, measures, svdd

from saccade._core.arrays import Array

OWN, OTHER, SIZE = "windsor_chair", "chair", 30
PANELS = {"Reg-V": "−σ²", "Reg-P": "log p(y = 1), gain", "Reg-M": "μ", "SVDD 0.5": "⟨Φ(x), centre⟩"}
SHOWN = 3
DRAWN = ("colour", "phog")
REPRESENTATIONS = ("phog", "colour", "deep")


def scores(blocks: Blocks) -> Array:  # (t, methods)
    """In the order of METHODS; V as −σ²."""
    columns = [measures(blocks, name, NOISE if name == "regression" else PROBIT_NOISE) for name in INFERENCES.values()]
    for gp in columns:
        gp[:, 2] -= 1.0
    return np.hstack([*columns, *(svdd(blocks, nu)[:, None] for nu in NUS)])


def ranking(data: Caltech, task: Task, values: Array) -> dict[str, Any]:
    """The first and last pictures, W or C and their number, with their values; and W or C for every rank."""
    order = np.argsort(-values, kind="stable")
    kinds = np.where(task.normal[order], "W", "C")
    numbers = [int(data.paths[i].stem.rpartition("_")[2]) for i in task.test[order]]
    ranked = [
        {"picture": f"{kind}{number}", "value": round(float(value), 5)}
        for kind, number, value in zip(kinds, numbers, values[order], strict=True)
    ]
    found = {"auc": round(float(auc(task.normal, values[:, None])[0]), 4), "order": "".join(kinds)}
    return found | {"best": ranked[:SHOWN], "last": ranked[-SHOWN:]}


def draw(record: dict[str, Any], values: dict[str, dict[str, Array]], out: Path) -> None:
    figure, panels = plots().subplots(len(DRAWN), len(PANELS), figsize=(14, 7.5), constrained_layout=True)
    for row, representation in zip(panels, DRAWN, strict=True):
        for axes, (name, unit) in zip(row, PANELS.items(), strict=True):
            ranked = record["first_split"][representation][name]
            windsor, curve = np.array(list(ranked["order"])) == "W", np.sort(values[representation][name])[::-1]
            place = np.arange(1, len(curve) + 1)
            axes.plot(place[~windsor], curve[~windsor], "x", color="#b45309", ms=5, label="chair (C)")
            axes.plot(place[windsor], curve[windsor], "o", color="#0b6e4f", ms=4, label="windsor chair (W)")
            named = [f"{part}: " + "  ".join(entry["picture"] for entry in ranked[part]) for part in ("best", "last")]
            title = f"{representation}, {name}: AUC {ranked['auc']:.3f}\n"
            axes.set_title(title + "\n".join(named), fontsize=10)
            axes.set(xlabel="rank", ylabel=unit)
            axes.grid(alpha=0.3)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), ncols=2, frameon=False, loc="outside lower center")
    figure.suptitle("30 windsor chairs learned: the other 26 against 62 chairs, one split; pictures by their numbers")
    save_figure(figure, out, "one_class_fig5")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=50)
    options = parser.parse_args()
    data = Caltech(options.cache)
    record: dict[str, Any] = {"data": f"Caltech-101, {OWN} against {OTHER}", "train": SIZE, "splits": options.splits}
    record |= {"noise": NOISE, "mean_auc": {}}
    chosen = [data.task(OWN, split, SIZE, OTHER) for split in range(options.splits)]
    for name in REPRESENTATIONS:
        aucs = [auc(task.normal, scores(data.blocks(name, task))) for task in chosen]
        record["mean_auc"][name] = dict(zip(METHODS, np.mean(aucs, axis=0).round(4).tolist(), strict=True))
        print(name, record["mean_auc"][name], flush=True)
    values, record["first_split"] = {}, {}
    for name in DRAWN:
        values[name] = dict(zip(METHODS, scores(data.blocks(name, chosen[0])).T, strict=True))
        record["first_split"][name] = {m: ranking(data, chosen[0], column) for m, column in values[name].items()}
    write(options.out, "one_class_fig5", record, quiet=True)
    draw(record, values, options.out)


if __name__ == "__main__":
    main()
