"""H Fig. 5: which of eight dimensions matter, learned from a few examples; 500 runs.

    python experiments/relevance_fig5.py [--runs 500] [--examples 5 10 20 40 80] [--only NAME ...]

H takes its random distributions from a paper that we do not have, so these are ours: sparse histograms on the simplex
from Dirichlet distributions with the parameters (1, ¼, ⅝, …, ⅝) for one class and (¼, 1, ⅝, …, ⅝) for the other.
Every dimension is ⅛ on average; the first two together, and all the others, are distributed alike in both classes, so
that nothing but the share between the first two tells them apart. Nobody can be right more often than 2^(−¼), 84 %.
The numbers were chosen so that there is something to learn: from 5 examples a class plain HIK is right in 70 % of the
cases, and HIK on the two dimensions alone in about 80 %. Compare the shapes of the curves with H, not the percentages.

Each run draws training and test examples anew; all methods see the same ones. p: paired t-test over the runs (H §6.5).
"""

import os
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import Array, arguments, plots, save_figure, write

D = 8
INFORMATIVE = 2
STRONG, WEAK, OTHER = 1.0, 0.25, 0.625  # Dirichlet parameters; the others' is the mean of the two
BEST = 0.5**WEAK  # P(x₁ > x₂) in the first class: that a Beta(1, ¼) variable exceeds ½
TEST = 1000  # examples a run
NOISE = 0.1


class Method(NamedTuple):
    label: str
    colour: str
    weights: str  # "equal", "learned", or "known": the first two dimensions alone
    tune: dict[str, Any] | None  # of saccade.Tune


METHODS = {
    "known": Method("HIK on the two alone, noise and scale learned", "0.7", "known", {"objective": "evidence"}),
    "evidence": Method(
        "weights learned by evidence (H)", "#0b6e4f", "learned", {"objective": "evidence", "prior": None}
    ),
    "prior": Method("the same with a prior", "#65a30d", "learned", {"objective": "evidence", "prior": "auto"}),
    "loo": Method("weights learned by leave-one-out", "#1f77b4", "learned", {"objective": "loo", "prior": "auto"}),
    "noise": Method("HIK, noise and scale learned", "#d97706", "equal", {"objective": "evidence"}),
    "plain": Method("HIK", "0.35", "equal", None),
}


def examples(
    count: int,  # a class
    rng: np.random.Generator,
) -> tuple[Array, Array]:  # (2 count, 8), (2 count,)
    """Histograms of both classes, one class after the other."""
    strengths = np.full((2, D), OTHER)
    strengths[:, :INFORMATIVE] = (STRONG, WEAK), (WEAK, STRONG)
    return np.vstack([rng.dirichlet(s, count) for s in strengths]), np.repeat([0, 1], count)


def model(method: Method) -> Any:
    from saccade import GPClassifier
    from saccade.kernels import HIK, Weights

    kernel = HIK(Weights(np.ones(D)) if method.weights == "learned" else None)
    if method.tune is None:
        return GPClassifier(kernel, noise=NOISE, random_state=0)
    from saccade import Tune

    return GPClassifier(kernel, noise=NOISE, tune=Tune(method="gradient", **method.tune), random_state=0)


def run(seed: int, sizes: list[int], names: list[str]) -> list[dict[str, Any]]:
    """One draw of every size: accuracy, relative weights, seconds and warnings of every method."""
    rows = []
    for size in sizes:
        rng = np.random.default_rng([seed, size])
        (X, y), (X_test, truth) = examples(size, rng), examples(TEST // 2, rng)
        for name in names:
            seen = slice(INFORMATIVE if METHODS[name].weights == "known" else D)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                start = time.perf_counter()
                fitted = model(METHODS[name]).fit(X[:, seen], y)
                seconds = time.perf_counter() - start
            row = {"method": name, "size": size, "seconds": seconds, "warnings": len(said)}
            row["accuracy"] = float((fitted.predict(X_test[:, seen]) == truth).mean())
            if METHODS[name].weights == "learned":
                w = np.asarray(fitted.kernel_.transforms()[0].w)
                row["weights"] = w / w.sum()
            rows.append(row)
    return rows


def all_runs(runs: int, sizes: list[int], names: list[str], processes: int) -> list[dict[str, Any]]:
    """Many small problems: one thread each, and as many processes as there are cores."""
    from joblib import Parallel, delayed

    for variable in ("SACCADE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"  # for the processes that joblib starts
    made = Parallel(processes, verbose=1)(delayed(run)(seed, sizes, names) for seed in range(runs))
    return [row for rows in made for row in rows]


def summary(rows: list[dict[str, Any]], sizes: list[int], names: list[str]) -> list[dict[str, Any]]:
    """A line for every method and size, over the runs."""
    from scipy.stats import ttest_rel

    lines = []
    for size in sizes:
        some = {name: [row for row in rows if row["method"] == name and row["size"] == size] for name in names}
        rates = {name: np.array([row["accuracy"] for row in some[name]]) for name in names}
        for name in names:
            line = {"method": name, "examples a class": size, "accuracy": rates[name].mean()}
            line["standard error"] = rates[name].std(ddof=1) / len(rates[name]) ** 0.5
            if name != "plain" and "plain" in names:
                line["p against plain"] = ttest_rel(rates[name], rates["plain"]).pvalue
            line["median seconds"] = np.median([row["seconds"] for row in some[name]])
            line["warnings"] = sum(row["warnings"] for row in some[name])
            if METHODS[name].weights == "learned":
                line |= weights_summary(np.array([row["weights"] for row in some[name]]))
            lines.append(line)
    return lines


def weights_summary(
    W: Array,  # (runs, 8) each sums to 1
) -> dict[str, Any]:
    informative = W[:, :INFORMATIVE].sum(axis=1)
    return {
        "mean weights": W.mean(axis=0).tolist(),
        "quartiles of the weights": np.quantile(W, [0.25, 0.5, 0.75], axis=0).tolist(),
        "mean share of the first two": informative.mean(),
        "runs in which the first two are the largest": (np.sort(W.argsort(axis=1)[:, -2:]) == [0, 1]).all(1).mean(),
    }


def draw(lines: list[dict[str, Any]], sizes: list[int], names: list[str], runs: int, out: Path) -> None:
    figure, (left, right) = plots().subplots(1, 2, figsize=(11, 4.4), constrained_layout=True)
    weighted = next((name for name in names if METHODS[name].weights == "learned"), None)
    if weighted is not None:
        draw_weights(left, [line for line in lines if line["method"] == weighted])
        left.set_title(f"{METHODS[weighted].label}: mean and quartiles", loc="left", size=10.5)
    for name in names:
        chosen = [line for line in lines if line["method"] == name]
        rates = np.array([100 * line["accuracy"] for line in chosen])
        style = "o--" if METHODS[name].weights == "known" else "o-"
        right.plot(sizes, rates, style, color=METHODS[name].colour, label=METHODS[name].label, ms=5)
    right.axhline(100 * BEST, color="black", lw=1, ls=":")
    right.annotate("the best possible", (sizes[0], 100 * BEST), (0, 4), textcoords="offset points", size=9)
    right.set(xscale="log", xlabel="training examples a class", ylabel="accuracy, %")
    right.set_xticks(sizes, [str(size) for size in sizes])
    right.minorticks_off()
    lowest = min(100 * line["accuracy"] for line in lines)
    right.set_ylim(lowest - 0.5 * (100 * BEST - lowest), 100 * BEST + 2)  # room for the legend
    right.set_title(f"mean accuracy of {runs} runs", loc="left", size=10.5)
    right.legend(frameon=False, loc="lower right")
    right.grid(True, color="0.92", lw=0.7)
    save_figure(figure, out, "relevance_fig5")


def draw_weights(axes: Any, lines: list[dict[str, Any]]) -> None:
    """The paper's five examples a class, and the most."""
    shown = [lines[0], lines[-1]] if len(lines) > 1 else lines
    places = np.arange(1, D + 1)
    for line, shift, colour in zip(shown, (-0.2, 0.2), ("#7bb8a0", "#0b6e4f"), strict=False):
        low, _, high = np.array(line["quartiles of the weights"])
        label = f"{line['examples a class']} examples a class"
        axes.bar(places + shift, line["mean weights"], 0.36, color=colour, label=label)
        axes.vlines(places + shift, low, high, color="black", lw=1.4)
    axes.axhline(1 / D, color="black", lw=1, ls=":")
    axes.annotate("all equal", (D + 0.5, 1 / D), (0, 4), textcoords="offset points", size=9, ha="right")
    axes.set(xlabel="dimension (1 and 2 are informative)", ylabel="relative weight")
    axes.set_xticks(places)
    axes.legend(frameon=False, loc="upper right")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--examples", type=int, nargs="+", default=[5, 10, 20, 40, 80], help="a class")
    parser.add_argument("--only", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--processes", type=int, default=-1, help="-1: every core")
    options = parser.parse_args()
    if options.runs < 2:
        parser.error(f"--runs must be at least 2, got {options.runs}: a spread needs two.")
    start, sizes = time.perf_counter(), sorted(options.examples)
    rows = all_runs(options.runs, sizes, options.only, options.processes)
    lines = summary(rows, sizes, options.only)
    record = {
        "figure": "H Fig. 5",
        "runs": options.runs,
        "test examples a run": TEST,
        "best possible accuracy": BEST,
        "seconds": time.perf_counter() - start,
        "lines": lines,
    }
    write(options.out, "relevance_fig5", record)
    draw(lines, sizes, options.only, options.runs, options.out)


if __name__ == "__main__":
    main()
