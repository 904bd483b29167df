"""H Fig. 3, left: evidence over η on 15-Scenes, exact, bounded and estimated, with the recognition rate.

    python experiments/evidence_fig3.py [--cache FOLDER] [--words 1000] [--points 15]

Bags of words of pictures at 256 × 256, 100 training pictures a class, power kernel, noise 0.1, scale "auto", as H. The
estimate is what tuning uses for many examples (7 probes, residual 1e-2), with two standard errors.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from common import all_pictures, arguments, class_rate, plots, save_figure, write
from scenes15 import chain

NOISE = 0.1


def measure(X: Any, y: Any, X_test: Any, truth: Any, etas: Any) -> list[dict[str, float]]:
    from saccade import GPClassifier
    from saccade.inference.tuning.evidence_slope import stochastic_evidence
    from saccade.kernels import HIK, Power

    rows = []
    for eta in etas:
        model = GPClassifier(HIK(Power(float(eta))), noise=NOISE, random_state=0).fit(X, y)
        seconds, values = {}, {}
        for method in ("exact", "bound"):
            start = time.perf_counter()
            values[method] = -model.log_marginal_likelihood(method).value / len(y)
            seconds[method] = time.perf_counter() - start
        start = time.perf_counter()
        found = stochastic_evidence(
            model.gp_.gram,
            model.gp_.sites.noise,
            model.gp_.sites.targets,
            start=None,
            tol=1e-2,
            max_iter=1000,
            probes=7,
            seed=0,
        )
        rows.append(
            {
                "eta": float(eta),
                "exact": values["exact"],
                "bound": values["bound"],
                "estimate": found.value / len(y),
                "error": found.error / len(y),
                "rate": class_rate(truth, model.predict(X_test)),
                "exact, s": seconds["exact"],
                "bound, s": seconds["bound"],
                "estimate with derivative, s": time.perf_counter() - start,
            }
        )
        print({k: round(v, 4) for k, v in rows[-1].items()}, flush=True)
    return rows


def draw(rows: list[dict[str, float]], out: Path) -> None:
    figure, axes = plots().subplots(figsize=(7, 4.2), constrained_layout=True)
    eta, exact, bound, estimate, error, rate = (
        np.array([row[name] for row in rows]) for name in ("eta", "exact", "bound", "estimate", "error", "rate")
    )
    axes.plot(eta, exact, color="#222222", label="exact")
    axes.plot(eta, bound, color="#d97706", ls="--", label="upper bound (Bai and Golub, the paper's)")
    axes.errorbar(eta, estimate, 2 * error, fmt="o", ms=4, color="#0b6e4f", label="our estimate, ± 2 errors")
    for line, colour in ((exact, "#222222"), (bound, "#d97706")):
        axes.plot(eta[line.argmin()], line.min(), marker="v", color=colour, ms=8)
    axes.set(xscale="log", xlabel="η of the power kernel", ylabel="negative log evidence, nats an example")
    other = axes.twinx()
    other.plot(eta, 100 * rate, color="#5b7db1", lw=1)
    other.set_ylabel("recognition rate, %", color="#5b7db1")
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 3], ["0.1", "0.2", "0.5", "1", "2", "3"])
    axes.minorticks_off()
    save_figure(figure, out, "evidence_fig3")


def main() -> None:
    from saccade.datasets.on_disk import scenes15

    parser = arguments(__doc__)
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--points", type=int, default=15)
    options = parser.parse_args()
    (train, y), (test, truth) = scenes15("train"), scenes15("test")
    features = chain("words at 256", options.words, options.cache)
    X = features.fit_transform(all_pictures(train, options.cache), y)
    X_test = features.transform(all_pictures(test, options.cache))
    rows = measure(X, y, X_test, truth, np.geomspace(0.1, 3.0, options.points))
    worst = max(abs(row["estimate"] / row["exact"] - 1.0) for row in rows)
    inside = sum(abs(row["estimate"] - row["exact"]) <= 2 * row["error"] for row in rows)
    record = {
        "data": "15-Scenes, 1,500 for training",
        "noise": NOISE,
        "largest relative error of the estimate": worst,
        "estimates within two errors": f"{inside} of {len(rows)}",
        "best eta": {
            kind: min(rows, key=lambda row, kind=kind: row[kind])["eta"] for kind in ("exact", "bound", "estimate")
        },
        "rows": rows,
    }
    write(options.out, "evidence_fig3", record)
    draw(rows, options.out)


if __name__ == "__main__":
    main()
