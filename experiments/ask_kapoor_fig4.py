"""K Fig. 4 and 5: finding one class of Caltech-101 among all, with K's uncertain pictures asked first.

    python experiments/ask_kapoor_fig4.py --cache FOLDER [--runs 100] [--features pyramid deep]

For each class a binary task. Ten pictures of each of the 101 classes are the validation set, drawn anew in each run;
one picture of the class and one of the others are labelled at the start; every other picture may be asked about. The
rate is the mean of the shares right of the class and of the others. Fig. 4: the gain over random questions after five
questions, for every class. Fig. 5: the rate over the questions for four classes.

K's pyramid match kernel is here that of image_features("pyramid"), whose vocabulary is learned on five pictures of each
class; deep features are what a user would take today. Noise as in the paper, σ² = 1e-5.
"""

from pathlib import Path
from typing import Any

import numpy as np
from ask_kapoor import TITLES, Detector, add_options, similarity
from common import Array, arguments, plots, save_figure, show_progress, write

QUESTIONS, LONG = 5, 40  # of Fig. 4 and of Fig. 5
VALIDATION = 10  # pictures of each class
SHOWN = ("Motorbikes", "car_side", "watch", "ketch")
COLOURS = {"uncertainty": "#0b6e4f", "random": "#666666"}


def validation_set(y: Array, rng: np.random.Generator) -> Array:
    return np.concatenate([rng.permutation(np.flatnonzero(y == label))[:VALIDATION] for label in np.unique(y)])


def run(
    K: Array,  # (n, n)
    positive: Array,  # (n,) bool
    validation: Array,
    pool: Array,
    questions: int,
    active: bool,
    rng: np.random.Generator,
) -> list[float]:
    """The rate at the start and after each question."""
    known = [int(rng.choice(pool[positive[pool] == side])) for side in (True, False)]
    prior, truth, rates = np.diagonal(K), positive[validation], []
    may_be_asked = np.isin(np.arange(len(K)), pool)
    for _ in range(questions):
        model = _learn(K, positive, known)
        rates.append(both_sides(truth, model.mean(K[known][:, validation].T)[:, 0] > 0))
        may_be_asked[known] = False
        candidates = np.flatnonzero(may_be_asked)
        if active:
            at = model.doubt(K[known][:, candidates].T, prior[candidates])[:, 0].argmin()
        else:
            at = rng.integers(len(candidates))
        known.append(int(candidates[at]))
    return [*rates, both_sides(truth, _learn(K, positive, known).mean(K[known][:, validation].T)[:, 0] > 0)]


def _learn(K: Array, positive: Array, known: list[int]) -> Detector:
    return Detector(K[np.ix_(known, known)], np.where(positive[known], 1.0, -1.0)[:, None])


def both_sides(truth: Array, answer: Array) -> float:
    """The mean of the shares right of the class and of the others."""
    return float((answer[truth].mean() + (~answer[~truth]).mean()) / 2)


def measure(K: Array, y: Array, names: list[str], runs: int) -> dict[str, Any]:
    """Rates (class, run, question) of both ways to ask: five questions for all classes, more for some."""
    found: dict[str, dict[str, list[list[float]]]] = {name: {policy: [] for policy in COLOURS} for name in names}
    for seed in range(runs):
        validation = validation_set(y, np.random.default_rng(seed))
        pool = np.setdiff1d(np.arange(len(y)), validation)
        for label, name in enumerate(names):
            questions = LONG if name in SHOWN else QUESTIONS
            for policy in COLOURS:
                rng = np.random.default_rng([seed, label])  # the same start for both
                active = policy == "uncertainty"
                found[name][policy].append(run(K, y == label, validation, pool, questions, active, rng))
        if (seed + 1) % 10 == 0:
            print(f"{seed + 1} of {runs} runs", flush=True)
    return found


def summary(found: dict[str, Any], runs: int) -> dict[str, Any]:
    gains = {}
    for name, rates in found.items():
        after = {policy: np.array([some[QUESTIONS] for some in rates[policy]]) for policy in rates}
        gain = after["uncertainty"] - after["random"]
        gains[name] = {
            "gain": float(gain.mean()),
            "standard error": float(gain.std(ddof=min(1, runs - 1)) / np.sqrt(runs)),
            "random": float(after["random"].mean()),
        }
    values = np.array([g["gain"] for g in gains.values()])
    errors = np.array([g["standard error"] for g in gains.values()])
    return {
        "mean gain after 5 questions": float(values.mean()),
        "classes with a gain above two standard errors": int((values > 2 * errors).sum()),
        "classes with a loss above two standard errors": int((values < -2 * errors).sum()),
        "classes": len(values),
        "gains": gains,
        "curves": {n: {p: np.mean(found[n][p], axis=0).tolist() for p in COLOURS} for n in SHOWN if n in found},
    }


def draw(record: dict[str, Any], out: Path) -> None:
    kinds = list(record["features"])
    figure, grid = plots().subplots(
        len(kinds), 1, figsize=(11, 3.4 * len(kinds)), constrained_layout=True, squeeze=False
    )
    for axes, kind in zip(grid[:, 0], kinds, strict=True):
        gains = record["features"][kind]["gains"]
        order = sorted(gains, key=lambda name: -gains[name]["gain"])
        values = [100 * gains[name]["gain"] for name in order]
        errors = [100 * gains[name]["standard error"] for name in order]
        axes.bar(range(len(order)), values, yerr=errors, color="#0b6e4f", ecolor="#555555", width=0.8)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set(title=f"K Fig. 4, {TITLES[kind]}: gain over random after {QUESTIONS} questions", ylabel="points")
        axes.set_xticks(range(len(order)), order, rotation=90, fontsize=5)
        axes.set_xlim(-1, len(order))
    save_figure(figure, out, "ask_kapoor_fig4")
    shown = list(record["features"][kinds[0]]["curves"])
    figure, grid = plots().subplots(
        len(kinds),
        max(len(shown), 1),
        figsize=(3 * max(len(shown), 1), 2.8 * len(kinds)),
        constrained_layout=True,
        squeeze=False,
    )
    for row, kind in zip(grid, kinds, strict=True):
        for axes, name in zip(row, shown, strict=False):
            for policy, rates in record["features"][kind]["curves"][name].items():
                axes.plot(100 * np.array(rates), color=COLOURS[policy], label=policy)
            axes.set(title=f"{name}, {TITLES[kind]}", xlabel="questions", ylim=(45, 101))
            axes.title.set_fontsize(9)
        row[0].set_ylabel("mean rate of both sides, %")
    grid[0, 0].legend(frameon=False, loc="lower right")
    save_figure(figure, out, "ask_kapoor_fig5")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=100)
    add_options(parser)
    options = parser.parse_args()
    record: dict[str, Any] = {"figure": "K Fig. 4 and 5", "runs": options.runs, "seeds": f"0 to {options.runs - 1}"}
    record |= {"validation pictures of each class": VALIDATION, "features": {}}
    with show_progress():
        for kind in options.features:
            K, y, names = similarity(kind, options.cache)
            record["pictures"] = len(y)
            record["features"][kind] = found = summary(measure(K, y, names, options.runs), options.runs)
            print(kind, {k: v for k, v in found.items() if k not in ("gains", "curves")}, flush=True)
            write(options.out, "ask_kapoor_fig4", record, quiet=True)
    draw(record, options.out)


if __name__ == "__main__":
    main()
