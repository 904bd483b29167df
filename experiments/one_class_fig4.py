"""O Fig. 4: AUC over β of the generalised RBF of the image kernel, 100 training pictures of Faces and of Leopards.

    python experiments/one_class_fig4.py --cache FOLDER [--splits 50]

Needs the pictures in SACCADE_DATA; colour features. Variances are ranked by what is explained, k*ᵀ(K + σ²I)⁻¹k*, and
densities by what they gain: both keep their digits where the variance itself rounds to 1, which ended the curves of the
paper. The dotted line is the β that one_class_beta.py recommends, from the training set alone.
"""

from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, plots, save_figure, write
from one_class_beta import BETAS, TYPICAL, typical
from one_class_fig3 import LABELS, NUS, STYLES, aucs
from one_class_kernels import Caltech
from one_class_methods import NOISE, local

SIZE = 100


def draw(record: dict[str, Any], out: Path) -> None:
    figure, panels = plots().subplots(1, 2, figsize=(11, 4.6), constrained_layout=True)
    for axes, label in zip(panels, LABELS, strict=True):
        for name, (colour, style) in STYLES.items():
            axes.semilogx(record["betas"], record["mean"][label][name], style, color=colour, ms=4, base=2, label=name)
            axes.axhline(record["plain"][label][name], xmax=0.03, color=colour, lw=2)
        axes.axvline(record["typical"][label], color="black", ls=":", lw=1)
        axes.set(xlabel="β", ylabel="AUC", title=label)
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=7, frameon=False, loc="outside lower center")
    figure.suptitle(f"100 training pictures, mean of {record['splits']} splits; dotted: {TYPICAL}; bars: without β")
    save_figure(figure, out, "one_class_fig4")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=50)
    options = parser.parse_args()
    data = Caltech(options.cache)
    record: dict[str, Any] = {"data": "Caltech-101 against its background class, colour features", "train": SIZE}
    record |= {"splits": options.splits, "noise": NOISE, "nus": NUS, "betas": BETAS.tolist()}
    record |= {"mean": {}, "plain": {}, "typical": {}}
    for label in LABELS:
        curves, plain, chosen = [], [], []
        for split in range(options.splits):
            blocks = data.blocks("colour", data.task(label, split, SIZE))
            curves.append([aucs(local(blocks, beta)) for beta in BETAS])
            plain.append(aucs(blocks))
            chosen.append(typical(2 - 2 * blocks.K))
            print(label, split, flush=True)
        record["mean"][label] = dict(zip(STYLES, np.mean(curves, axis=0).T.round(4).tolist(), strict=True))
        record["plain"][label] = dict(zip(STYLES, np.mean(plain, axis=0).round(4).tolist(), strict=True))
        record["typical"][label] = float(np.mean(chosen))
    write(options.out, "one_class_fig4", record, quiet=True)
    draw(record, options.out)


if __name__ == "__main__":
    main()
