"""An honest stop: does the stated interval cover the true accuracy when the rule says stop, and what does it cost?

    python experiments/ask_stop.py --cache FOLDER [--campaigns 500] [--only digits …]

Simulated campaigns ask for the least margin, ten questions at a time, in four collections: digits and breast cancer
(scikit-learn), 15-Scenes (deep features; from SACCADE_DATA) and made-up histograms. Each campaign has its own split
into a pool and held-out rows, which tell the true accuracy, and its own seeds. The model is label regression, one
against rest, with dense algebra. A campaign goes on to its last round, so that one run serves all targets.

Ways to audit: "one in ten", "three in ten" and "late" (three tenths are set apart; no audit before the guesses have
settled, every second question from then on). For contrast: "own labels" (leave-one-out at the rows that the model asked
for), "peeking" (a plain 95 % interval of the audits, looked at after each round) and "leftover" (three in ten, drawn
from the rows that are still unlabelled, with the intervals of the honest way). The schedule of looks comes from exact
calculation ("price" in the record) before any campaign. That looks share the whole error was added after a first run of
digits and breast cancer; it holds for any data, and every figure comes from runs with it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ask_stop_campaign import BATCH, HONEST, MOST, TARGETS, Round, campaign, collections
from common import arguments, plots, save_figure, show_progress, write
from scipy.stats import binom

from saccade.scores.accuracy import FIRST_LOOK, FLATNESS, GROWTH, LOW_SIDE, share_interval

SHOWN = {"digits": 0.85, "breast cancer": 0.85, "made up": 0.85, "15-Scenes, deep": 0.8}  # targets in the figure
HELD_OUT = 1000  # rows that tell the true accuracy, or as many as there are
LONGEST = 4000  # audited rows in the exact calculation
SCHEDULES = {  # first look, part by which the next is further on, flatness, share of the error for the lower end
    "chosen": (FIRST_LOOK, GROWTH, FLATNESS, LOW_SIDE),
    "equal ends": (FIRST_LOOK, GROWTH, FLATNESS, 0.5),
    "half, a sixth, a twelfth …": (FIRST_LOOK, GROWTH, 1, LOW_SIDE),
    "doubled": (FIRST_LOOK, 1, FLATNESS, LOW_SIDE),
    "first look at 8": (8, GROWTH, FLATNESS, LOW_SIDE),
    "no last look": (FIRST_LOOK, GROWTH, FLATNESS, LOW_SIDE, False),
    "after each tenth more": (FIRST_LOOK, 10, FLATNESS, LOW_SIDE),
}
COLOURS = {"one in ten": "#1d4ed8", "three in ten": "#0e7490", "late": "#15803d"}
COLOURS |= {"own labels": "#b45309", "peeking": "#b91c1c", "leftover": "#9d174d"}


def plain(right: int, n: int) -> tuple[float, float]:
    return share_interval(right, n, 0.05)


# The interval that each way states after a round; None: it states none.
STATED: dict[str, Callable[[Round], tuple[float, float] | None]] = {
    **dict.fromkeys((*HONEST, "leftover"), lambda r: r.look),
    "own labels": lambda r: plain(*r.own) if r.own[1] >= 16 else None,
    "peeking": lambda r: plain(r.right, r.audited) if r.audited >= 16 else None,
}


def stop(rounds: list[Round], way: str, target: float) -> dict[str, Any] | None:
    """The first round whose interval lies above the target."""
    for r in rounds:
        ends = STATED[way](r)
        if ends is not None and ends[0] >= target:
            covers = ends[0] <= r.truth <= ends[1]
            return {"asked": r.asked, "audited": r.audited, "truth": r.truth, "covers": covers, "every": r.all_labels}
    return None


def missed_anywhere(rounds: list[Round], way: str) -> bool:
    stated = [(STATED[way](r), r.truth) for r in rounds]
    return any(ends is not None and not ends[0] <= truth <= ends[1] for ends, truth in stated)


def summary(runs: dict[str, list[list[Round]]]) -> dict[str, Any]:
    """For each way and target: misses among all campaigns, and the labels at the stop."""
    found: dict[str, Any] = {}
    for way in STATED:
        campaigns = runs["three in ten" if way in ("own labels", "peeking") else way]
        row: dict[str, Any] = {"missed at some round": np.mean([missed_anywhere(c, way) for c in campaigns])}
        for target in TARGETS:
            ends = [stop(c, way, target) for c in campaigns]
            stopped = [e for e in ends if e is not None]
            kept: dict[str, Any] = {"stopped": len(stopped) / len(ends)}
            kept["covered or not stopped"] = 1 - sum(not e["covers"] for e in stopped) / len(ends)
            if stopped:
                kept["covered, of those stopped"] = np.mean([e["covers"] for e in stopped])
                kept["below target"] = sum(e["truth"] < target for e in stopped) / len(ends)
                kept |= {k: np.median([e[k] for e in stopped]) for k in ("asked", "audited")}
                kept["asked, 90 %"] = np.quantile([e["asked"] for e in stopped], 0.9)
                if way in HONEST:
                    kept |= losses(ends, runs["none"])
            row[f"target {target:g}"] = kept
        found[way] = row
    return found


def losses(ends: list[dict[str, Any] | None], without: list[list[Round]]) -> dict[str, float]:
    """Accuracy at the stop against a campaign without audits that asked as much; and with the audited rows learned."""
    gone, back = [], []
    for end, rounds in zip(ends, without, strict=True):
        if end is not None:
            same = [r.truth for r in rounds if r.asked <= end["asked"]][-1]
            gone.append(same - end["truth"])
            back.append(same - end["every"])
    return {"accuracy lost": float(np.mean(gone)), "lost if trained on at the end": float(np.mean(back))}


def price(first: int, growth: float, flatness: float, low_side: float, ends: bool = True) -> dict[str, float]:
    """Exact: mean audited rows until the interval of a model with accuracy p lies above the target.

    LONGEST rows are set apart, and with `ends` their looks share all of the error.
    """
    counts = [first]
    while counts[-1] < LONGEST:
        counts.append(counts[-1] + int(np.ceil(counts[-1] / growth)))
    J = np.arange(len(counts) + 1)
    errors = 0.05 * np.diff(J / (J + flatness)) * ((J[-2] + flatness) / J[-2] if ends else 1.0)
    found: dict[str, float] = {}
    for p, target in ((0.9, 0.8), (0.95, 0.9), (0.98, 0.9), (0.99, 0.95), (0.97, 0.95)):
        going, n, total = np.ones(1), 0, 0.0  # probability of each number of right guesses, while not above
        for count, error in zip(counts[:-1], errors, strict=False):
            going = np.convolve(going, binom.pmf(np.arange(count - n + 1), count - n, p))
            total, n = total + (count - n) * going.sum(), count
            lows = [share_interval(k, count, error, low_side)[0] for k in range(count + 1)]
            going[np.searchsorted(lows, target) :] = 0.0
        found[f"{p} for {target}"] = total
    return found


def draw(record: dict[str, Any], out: Path) -> None:
    names = [name for name in SHOWN if name in record]
    figure, (left, middle, right) = plots().subplots(1, 3, figsize=(15, 4.8), layout="constrained")
    draw_example(left, [Round(*r) for r in record["example"]["rounds"]], record["example"]["collection"])
    draw_misses(middle, record, names)
    draw_questions(right, record, names)
    save_figure(figure, out, "ask_stop")


def draw_misses(axes: Any, record: dict[str, Any], names: list[str]) -> None:
    for place, way in enumerate(STATED):
        rows = [record[name][way] for name in names]
        at = np.arange(len(names)) + 0.12 * (place - 2.5)
        ever = [100 * row["missed at some round"] for row in rows]
        worst = [100 * max(1 - row[f"target {t:g}"]["covered or not stopped"] for t in TARGETS) for row in rows]
        axes.plot(at, ever, "o", color=COLOURS[way], label=way)
        axes.plot(at, worst, "_", color=COLOURS[way], markersize=11, markeredgewidth=2)
    axes.axhline(5, color="black", linewidth=0.8, linestyle="--")
    axes.set_title("Misses: ● at some round, ▬ at the stop (worst target)", fontsize=11)
    axes.set_yscale("symlog", linthresh=5)
    axes.set_yticks([0, 1, 2, 3, 4, 5, 10, 20, 50, 100], ["0", "1", "2", "3", "4", "5", "10", "20", "50", "100"])
    axes.set(ylabel="campaigns, %  (dashed: allowed)", ylim=(-0.3, 130))
    axes.set_xticks(range(len(names)), names)
    axes.figure.legend(*axes.get_legend_handles_labels(), frameon=False, ncols=len(STATED), loc="outside lower center")


def draw_questions(axes: Any, record: dict[str, Any], names: list[str]) -> None:
    for place, way in enumerate(HONEST):
        kept = [record[name][way][f"target {SHOWN[name]:g}"] for name in names]
        at = np.arange(len(names)) + 0.27 * (place - 1)
        asked, audited = (np.array([k.get(part, 0.0) for k in kept]) for part in ("asked", "audited"))
        axes.bar(at, asked - audited, 0.25, color=COLOURS[way], alpha=0.45)
        axes.bar(at, audited, 0.25, bottom=asked - audited, color=COLOURS[way])
        for x, k, top in zip(at, kept, asked, strict=True):
            axes.annotate(f"{100 * k['stopped']:.0f} %", (x, top), ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(names)), [f"{name}\n≥ {100 * SHOWN[name]:g} %" for name in names])
    axes.set_ylabel("questions (median of those that stop; dark: audits)")
    axes.set_title("Questions until the stop; share of campaigns that stop", fontsize=11)


def draw_example(axes: Any, rounds: list[Round], title: str) -> None:
    asked = np.array([r.asked for r in rounds])
    looks = [r for r in rounds if r.look is not None]
    own = [(r.asked, r.own[0] / r.own[1]) for r in rounds if r.own[1] >= 16]
    axes.plot(asked, [r.truth for r in rounds], color="black", label="true accuracy")
    axes.plot(*zip(*own, strict=True), color=COLOURS["own labels"], label="leave-one-out, own labels")
    if looks:
        at, share = [r.asked for r in looks], np.array([r.right / r.audited for r in looks])
        ends = np.array([r.look for r in looks])
        error = np.abs(ends.T - share)
        axes.errorbar(at, share, error, fmt="o", capsize=3, color=COLOURS["three in ten"], label="audit, 95 % for all")
    axes.set(xlabel="questions", ylabel="accuracy", ylim=(0, 1.02))
    axes.set_title(f"One campaign: {title}", fontsize=11)
    axes.legend(frameon=False, loc="lower right")


def main() -> None:
    from saccade._core.progress import report
    from saccade.kernels import HIK

    parser = arguments(__doc__)
    parser.add_argument("--campaigns", type=int, default=500)
    parser.add_argument("--only", nargs="+", default=list(SHOWN), help="collections")
    options = parser.parse_args()
    record: dict[str, Any] = {"campaigns": options.campaigns, "seeds": f"0 to {options.campaigns - 1}"}
    record |= {"most": MOST, "batch": BATCH, "price": {title: price(*values) for title, values in SCHEDULES.items()}}
    with show_progress():
        for name in options.only:
            X, y, pool = collections(options.cache)[name]()
            K, pool = HIK(scale=1.0)(X, X).astype(np.float32), min(pool, 3 * len(y) // 5)
            runs: dict[str, list[list[Round]]] = {way: [] for way in (*HONEST, "none", "leftover")}
            for seed in range(options.campaigns):
                report(name, seed / options.campaigns)
                order = np.random.default_rng([12, seed]).permutation(len(y))[: pool + HELD_OUT]
                K_seed = np.ascontiguousarray(K[np.ix_(order, order)])
                for way, kept in runs.items():
                    rng = np.random.default_rng([seed, *way.encode()])
                    kept.append(list(campaign(K_seed, y[order], pool, way, rng)))
            record["example"] = {"collection": name, "rounds": runs["three in ten"][0]}
            record[name] = {"pool": pool, "held out": min(HELD_OUT, len(y) - pool), **summary(runs)}
            print(name, record[name], flush=True)
    write(options.out, "ask_stop", record, quiet=True)
    draw(record, options.out)


if __name__ == "__main__":
    main()
