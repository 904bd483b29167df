"""A pool that grows during a campaign: how often does the rule say stop although the whole pool is below the target?

    python experiments/ask_grown.py [--campaigns 1000] [--only "new classes" …]

Campaigns of `ActiveLearner` on digits (scikit-learn). The pool has 250 rows of five classes and three audits in ten. It
grows by 250 rows of the other five classes, or by 50 rows of all ten, either when the rule says stop or after 100
questions. The true accuracy of a model comes from the rows outside the pool, old and new kinds weighted as in the pool;
their own error counts against us. For contrast: "stays", what was said before the audit followed the pool: the last
look at the old rows. A false stop is one where the true accuracy is below the target; a miss is any look after the
growth whose interval does not hold the true accuracy. Both count campaigns.

"lucky": the worst case for answers that count again, by 20,000 simulated audits for each line. The pool grows only in
campaigns that stopped, and then lies below the target by a hair. Guesses at old rows never change.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, show_progress, write
from sklearn.datasets import load_digits

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.active import ActiveLearner
from saccade.active.stopping import Audit

START, BATCH, MOST, FIXED = 250, 10, 400, 100  # rows, questions at a time, in a campaign, and until a fixed growth
TARGETS = (0.7, 0.8)
GROWTHS = {"new classes": 250, "all classes": 50}  # rows
DRAWS = 20_000


def pools(growth: str, rng: np.random.Generator, y: Array) -> tuple[Array, Array, Array]:
    """Rows of the pool in order, and those outside that tell the truth about its old and its new part."""
    classes, order = rng.permutation(10), rng.permutation(y.size)
    old = order[np.isin(y[order], classes[:5])]
    others = order[~np.isin(order, old[:START])]
    new = others[np.isin(y[others], classes[5:])] if growth == "new classes" else others
    return np.concatenate([old[:START], new[: GROWTHS[growth]]]), old[START:], new[GROWTHS[growth] :]


def campaign(growth: str, moment: str, target: float, seed: int) -> dict[str, Any]:
    """What was said before and after the growth, and what was true."""
    X, y = load_digits(return_X_y=True)
    pool, *outside = pools(growth, np.random.default_rng(seed), y)

    def truth(learner: ActiveLearner) -> float:
        parts = (START, learner.rows_in_pool - START)
        right = [float((learner.model.predict(X[rows]) == y[rows]).mean()) for rows in outside[: 1 + (parts[1] > 0)]]
        return float(np.average(right, weights=parts[: len(right)]))

    def asks(learner: ActiveLearner, most: int, until_stop: bool) -> bool:
        """Ask until the rule says stop, or so many questions were put; whether an interval missed."""
        missed, looks = False, -1
        while not (until_stop and learner.should_stop(target)):
            if len(learner.accuracy().curve) != looks:
                looks, known = len(learner.accuracy().curve), learner.accuracy()
                missed |= looks > 0 and not known.low <= truth(learner) <= known.high
            if len(learner.labels) >= min(most, learner.rows_in_pool):
                break
            rows = learner.ask(BATCH)
            learner.tell(rows, y[pool[rows]])
        return missed

    learner = ActiveLearner(X[pool[:START]], audit=0.3, joint=False, strategy="margin", random_state=seed)
    asks(learner, FIXED if moment == "fixed" else MOST // 2, moment == "stop")
    said = learner.accuracy().low >= target
    found = {"stopped": said, "false before": said and truth(learner) < target, "grew": moment == "fixed" or said}
    if not found["grew"]:
        return found | dict.fromkeys(("false if it stays", "stopped again", "false after", "missed after"), False)
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder) / "c.saccade")
        learner = ActiveLearner.load(Path(folder) / "c.saccade", X[pool])
    stays = said and truth(learner) < target
    missed = asks(learner, MOST, True)
    again, true = learner.should_stop(target), truth(learner)
    missed |= again and not learner.accuracy().low <= true <= learner.accuracy().high
    return found | {
        "false if it stays": stays,
        "stopped again": again,
        "false after": again and true < target,
        "missed after": missed,
    }


def lower_ends(m: int) -> dict[int, Array]:
    """For each look of an audit of m rows, the lower end for every number of right guesses."""
    found, audit = dict[int, Array](), Audit(np.arange(m))
    for n in range(1, m + 1):
        if audit.looks_at(n):
            found[n] = np.array([audit.looked(np.arange(n) < right, 0).accuracy().low for right in range(n + 1)])
            audit = audit.looked(np.zeros(n, bool), 0)
    return found


def stops(right: Array, ends: dict[int, Array], target: float) -> Array:
    """Which sequences of guesses (campaigns, m) are stopped at any look."""
    seen = np.cumsum(right, axis=1)
    return np.any([low[seen[:, n - 1]] >= target for n, low in ends.items()], axis=0)


def lucky(target: float, accuracy: float, old: int, new: int, rng: np.random.Generator) -> dict[str, Any] | None:
    """Share of campaigns that stop, grow to just below the target, and stop again."""
    after = (target * (old + new) - 1e-9 - accuracy * old) / new
    if not 0.0 <= after <= 1.0:
        return None
    guesses = rng.random((DRAWS, old)) < accuracy
    stopped = guesses[stops(guesses, lower_ends(old), target)]
    mixed = np.empty((len(stopped), old + new), bool)
    places = rng.permuted(np.tile(np.arange(old + new) < old, (len(stopped), 1)), axis=1)
    mixed[places] = stopped.reshape(-1)
    mixed[~places] = rng.random(len(stopped) * new) < after
    again = stops(mixed, lower_ends(old + new), target)
    row = {"target": target, "old accuracy": accuracy, "old audits": old, "new audits": new}
    return row | {"stop": len(stopped) / DRAWS, "stop again, falsely": int(again.sum()) / DRAWS}


def main() -> None:
    from joblib import Parallel, delayed

    parser = arguments(__doc__)
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--only", nargs="*", default=list(GROWTHS))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    for variable in ("SACCADE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"  # for the processes that joblib starts
    rng, rows = np.random.default_rng(0), list[dict[str, Any]]()
    sizes = ((60, 6), (60, 60), (300, 30), (300, 300))
    worst = [
        row
        for target in (0.7, 0.8, 0.9)
        for old, new in sizes
        for above in (-0.03, 0.0, 0.02, 0.05)
        if (row := lucky(target, target + above, old, new, rng)) is not None
    ]
    settings = [(g, moment, target) for g in options.only for moment in ("stop", "fixed") for target in TARGETS]
    with show_progress():
        for done, (growth, moment, target) in enumerate(settings):
            seeds = range(options.campaigns)
            found = Parallel(options.processes)(delayed(campaign)(growth, moment, target, seed) for seed in seeds)
            shares = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
            rows.append({"growth": growth, "moment": moment, "target": target, "campaigns": len(found), **shares})
            print(rows[-1], flush=True)
            report("settings", (done + 1) / len(settings))
    most = max(row["stop again, falsely"] for row in worst)
    write(options.out, "ask_grown", {"rows": rows, "lucky": worst, "lucky, most": most})


if __name__ == "__main__":
    main()
