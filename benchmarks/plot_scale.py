"""Cost over n from benchmarks/results/bench.json: `python benchmarks/plot_scale.py` draws docs/images/scale.png."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from harness import RESULTS, arguments

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(out=IMAGES)
    options = parser.parse_args()
    bench = json.loads((RESULTS / "bench.json").read_text())
    rows = bench["scale"]
    n = np.array([r["n"] for r in rows], float)
    total = np.array([r["seconds"] for r in rows])
    iteration = total / np.array([r["iterations"] for r in rows])
    figure, axes = plt.subplots(figsize=(7, 4.2), constrained_layout=True)
    for y, name, colour in (
        (total, "GPClassifier.fit, to a residual of 1e-2", "#d9480f"),
        (iteration, "the same, divided by its iterations", "#1971c2"),
    ):
        axes.loglog(n, y, "o-", color=colour, label=name)
        slope = np.polyfit(np.log(n[-5:]), np.log(y[-5:]), 1)[0]
        axes.annotate(
            f"n to the {slope:.2f} from 10,000 on",
            (n[-1], y[-1]),
            (0, -30),
            textcoords="offset points",
            ha="right",
            color=colour,
        )
    axes.loglog(n, iteration[-3] * n / n[-3], "--", color="#868e96", lw=1, label="linear in n")
    axes.set(xlabel="training examples (1,000 dimensions, 100 non-zeros, 255 levels)", ylabel="seconds")
    axes.set_title(f"{bench['machine']['cpu']}, {bench['machine']['threads']} threads", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(options.out / "scale.png", dpi=110)


if __name__ == "__main__":
    main()
