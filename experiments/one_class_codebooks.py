"""What the colour kernel of one_class_kernels.py depends on: descriptors, size of the forest, weights of the pyramid.

    python experiments/one_class_codebooks.py --cache FOLDER [--splits 5]

Needs the pictures in SACCADE_DATA. Setting of O Table 2: 101 classes, 15 training pictures, regression with noise 0.1.
"""

from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, plots, save_figure, write
from one_class_kernels import LAZEBNIK, Blocks, Caltech, Task, tasks, weighted, word_blocks
from one_class_methods import NOISE, auc, measures, svdd

from saccade._core.arrays import Array

STYLES = {
    "Reg-P": ("#1f77b4", "s"),
    "Reg-M": ("#b45309", "o"),
    "Reg-V": ("#0b6e4f", "D"),
    "Reg-H": ("#9d174d", "^"),
    "SVDD 0.1": ("black", "x"),
    "SVDD 0.9": ("black", "+"),
}
FORESTS = {"1 tree of 1,000 leaves": (1, 1000), "10 trees of 100": (10, 100), "5 trees of 50": (5, 50)}
GRIDS = {
    "no positions": np.array([1.0, 0.0, 0.0]),
    "4 × 4 cells alone": np.array([0.0, 0.0, 1.0]),
    "equal weights": np.full(3, 1 / 3),
}
GREY = "grey: the third opponent plane alone"
BOTH = "mean of that and PHOG"
PLAIN = "as in Table 2"


def aucs(blocks: Blocks) -> Array:  # (styles,)
    scores = [measures(blocks, "regression", NOISE), *(svdd(blocks, nu)[:, None] for nu in (0.1, 0.9))]
    return auc(blocks.normal, np.hstack(scores))


def variants(data: Caltech, task: Task) -> dict[str, Array]:
    """The AUC of one task in every variant."""
    plain = data.words("colour", task)
    found = {PLAIN: aucs(weighted(plain, LAZEBNIK, task))}
    found |= {name: aucs(weighted(plain, weights, task)) for name, weights in GRIDS.items()}
    for name, forest in FORESTS.items():
        made = word_blocks(data.sifts, task, *forest)
        found[name] = aucs(weighted((made["K"], made["cross"]), LAZEBNIK, task))
    grey, phog = data.blocks("sift", task), data.blocks("phog", task)
    found[GREY] = aucs(grey)
    found[BOTH] = aucs(Blocks((grey.K + phog.K) / 2, (grey.cross + phog.cross) / 2, task.normal))
    return found


def draw(record: dict[str, Any], out: Path) -> None:
    figure, axes = plots().subplots(figsize=(9, 4.5), constrained_layout=True)
    names = list(record["mean"])[::-1]
    for method, (colour, mark) in STYLES.items():
        values = [record["mean"][name][method] for name in names]
        axes.plot(values, range(len(names)), mark, color=colour, ms=6, label=method)
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel="mean AUC over 101 classes")
    axes.set_title(f"Kernels of Opponent-SIFT words, {record['splits']} splits")
    axes.grid(alpha=0.3)
    figure.legend(ncols=6, frameon=False, loc="outside lower center")
    save_figure(figure, out, "one_class_codebooks")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    data = Caltech(options.cache)
    found = []
    for task in tasks(data, options.splits):
        found.append(variants(data, task))
        if task.label == data.classes[-1]:
            print(f"split {task.split}", flush=True)
    means = {name: np.mean([one[name] for one in found], axis=0).round(4).tolist() for name in found[0]}
    record: dict[str, Any] = {"data": "Caltech-101, 101 classes against the background class", "splits": options.splits}
    record |= {"noise": NOISE, "mean": {name: dict(zip(STYLES, row, strict=True)) for name, row in means.items()}}
    write(options.out, "one_class_codebooks", record)
    draw(record, options.out)


if __name__ == "__main__":
    main()
