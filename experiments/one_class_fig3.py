"""O Fig. 3: AUC over the number of training pictures, Faces and Leopards against the background, colour features.

    python experiments/one_class_fig3.py --cache FOLDER [--splits 50]

Needs the pictures in SACCADE_DATA. The training sets of a split contain one another; each has a vocabulary of its own.
"""

from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, plots, save_figure, write
from one_class_kernels import Blocks, Caltech
from one_class_methods import MEASURES, NOISE, auc, measures, svdd

from saccade._core.arrays import Array

LABELS = ("Faces", "Leopards")
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
TICKS = (1, 2, 5, 10, 20, 50, 100)
NUS = (0.1, 0.5, 0.9)
STYLES = {
    "Reg-P": ("#1f77b4", "s-"),
    "Reg-M": ("#b45309", "o-"),
    "Reg-V": ("#0b6e4f", "D-"),
    "Reg-H": ("#9d174d", "^-"),
    "SVDD 0.1": ("#94a3b8", "x--"),
    "SVDD 0.5": ("#64748b", "x-."),
    "SVDD 0.9": ("#1e293b", "x:"),
}


def aucs(blocks: Blocks) -> Array:  # (methods,)
    """In the order of STYLES."""
    scores = [measures(blocks, "regression", NOISE), *(svdd(blocks, nu)[:, None] for nu in NUS)]
    return auc(blocks.normal, np.hstack(scores))


def draw(record: dict[str, Any], out: Path) -> None:
    figure, panels = plots().subplots(1, 2, figsize=(11, 4.6), constrained_layout=True)
    for axes, label in zip(panels, LABELS, strict=True):
        for name, (colour, style) in STYLES.items():
            mean, spread = (np.array(record[part][label][name]) for part in ("mean", "deviation"))
            axes.semilogx(SIZES, mean, style, color=colour, ms=4, label=name)
            if name in ("Reg-M", "Reg-V"):
                axes.fill_between(SIZES, mean - spread, mean + spread, color=colour, alpha=0.1, lw=0)
        axes.set(xlabel="training pictures", ylabel="AUC", title=label)
        axes.set(xticks=TICKS, xticklabels=TICKS, xlim=(0.95, 105))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=7, frameon=False, loc="outside lower center")
    figure.suptitle(f"Colour features, mean of {record['splits']} splits (bands of Reg-M and Reg-V: one deviation)")
    save_figure(figure, out, "one_class_fig3")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=50)
    options = parser.parse_args()
    data = Caltech(options.cache)
    found = {label: np.zeros((options.splits, len(SIZES), len(STYLES))) for label in LABELS}
    for split in range(options.splits):
        for label in LABELS:
            for k, size in enumerate(SIZES):
                found[label][split, k] = aucs(data.blocks("colour", data.task(label, split, size)))
        print(split, {label: a[split, -1].round(3).tolist() for label, a in found.items()}, flush=True)
    record: dict[str, Any] = {"data": "Caltech-101 against its background class, colour features", "noise": NOISE}
    record |= {"splits": options.splits, "sizes": SIZES, "measures": list(MEASURES)}
    for part, summary in (("mean", np.mean), ("deviation", np.std)):
        record[part] = {
            label: dict(zip(STYLES, summary(a, axis=0).T.round(4).tolist(), strict=True)) for label, a in found.items()
        }
    write(options.out, "one_class_fig3", record, quiet=True)
    draw(record, options.out)


if __name__ == "__main__":
    main()
