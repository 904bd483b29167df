"""A Fig. 2: pictures ranked by how well they fit a class, by the exact variance and by the fast approximation (FA).

    python experiments/approximations_fig2.py --data FOLDER [--label 6]                      Fashion-MNIST, pixels
    python experiments/approximations_fig2.py --caltech airplanes --cache FOLDER --out FOLDER     only for your own eyes

The task of A §7.1 (approximations_data.py): 100 training pictures of one class, EXP-HIK with β = 1, σ² = 0.1. All test
pictures are ranked, those with the smallest variance first; green boxes are pictures of the class, red ones are not.
The committed figure shows Fashion-MNIST, which comes in a Debian package (small_pictures.py says how to get it).
Pictures of Caltech-101 are research data and must not lie in this repository, so --caltech needs an --out elsewhere.
"""

from pathlib import Path
from typing import Any

import numpy as np
from approximations_data import Blocks, caltech, fashion_pixels, tasks
from approximations_table2 import learn
from common import HERE, Array, arguments, plots, save_figure, write
from one_class_methods import auc
from small_pictures import CLASSES, load

SHOWN, TRAINING = 5, 5  # pictures at each end of a ranking, and of the training pictures
METHODS = {"exact": "exact variance", "FA": "fast approximation (FA)"}
GOOD, BAD = "#2b8a3e", "#c92a2a"


def rankings(blocks: Blocks) -> dict[str, dict[str, Any]]:
    """For each method the places of the test pictures, the best first, and the AUC; k(x, x) = 1."""
    found = {}
    for name in METHODS:
        made = learn(blocks.K, name)
        explained = made.explained(made.supported(blocks.k_star))[:, 0]
        order = np.argsort(-explained, kind="stable")
        found[name] = {"order": order, "auc": float(auc(blocks.normal, explained[:, None])[0])}
    return found


def draw(record: dict[str, Any], pictures: dict[str, list[Array]], boxes: dict[str, list[bool]], out: Path) -> None:
    """A row of training pictures, and two rows for each method: the first pictures and the last ones."""
    rows = [f"training pictures of the class “{record['class']}”"]
    rows += [
        f"{title}: {end} {SHOWN} (AUC {record[name]['AUC']:.3f})"
        for name, title in METHODS.items()
        for end in ("first", "last")
    ]
    figure, grid = plots().subplots(
        len(rows), SHOWN, figsize=(1.35 * SHOWN + 0.5, 1.65 * len(rows)), constrained_layout=True
    )
    for axes, title, name in zip(grid, rows, pictures, strict=True):
        axes[0].set_title(title, loc="left", fontsize=9)
        for cell, picture, normal in zip(axes, pictures[name], boxes[name], strict=True):
            cell.imshow(picture, cmap="gray")
            cell.set(xticks=[], yticks=[])
            for side in cell.spines.values():
                side.set(visible=True, linewidth=3, color=GOOD if normal else BAD)
    save_figure(figure, out, "approximations_fig2", frame=True)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=None, help="the folder that has fashion-mnist/")
    parser.add_argument("--label", type=int, default=6, help="the class of Fashion-MNIST, from 0 to 9")
    parser.add_argument("--caltech", default=None, help="a class of Caltech-101 instead; needs another --out")
    options = parser.parse_args()
    if options.caltech and options.out.resolve() == HERE:
        parser.error("--caltech needs --out FOLDER, outside of the repository: its pictures must not be committed.")
    if options.caltech:
        from common import all_pictures

        from saccade.datasets.on_disk import caltech101

        data, label, name = caltech(options), options.caltech, options.caltech
        shown = all_pictures(caltech101()[0], options.cache)
    else:
        whole = load("fashion-mnist", options.data)
        data, label, name = fashion_pixels(options), options.label, CLASSES["fashion-mnist"][options.label]
        shown = np.concatenate([whole.train, whole.test])
    blocks = next(tasks(data, label, 1))
    found = rankings(blocks)
    record: dict[str, Any] = {"figure": "A Fig. 2", "class": name, "train": len(blocks.train)}
    record |= {"tested": len(blocks.tested)}
    pictures = {"training": [shown[i] for i in blocks.train[:TRAINING]]}
    boxes = {"training": [True] * TRAINING}
    for method, ranked in found.items():
        for end, places in (("first", ranked["order"][:SHOWN]), ("last", ranked["order"][-SHOWN:])):
            pictures[f"{method} {end}"] = [shown[i] for i in blocks.tested[places]]
            boxes[f"{method} {end}"] = blocks.normal[places].tolist()
        record[method] = {"AUC": ranked["auc"], "of the class among the first": sum(boxes[f"{method} first"])}
    both = np.intersect1d(*(ranked["order"][:SHOWN] for ranked in found.values()))
    record["in both first"] = len(both)
    write(options.out, "approximations_fig2", record)
    draw(record, pictures, boxes, options.out)


if __name__ == "__main__":
    main()
