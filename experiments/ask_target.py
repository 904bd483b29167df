"""A stop that costs less: how often is a campaign with a target stopped falsely, and what does the stop cost?

    python experiments/ask_target.py --data FOLDER --cache FOLDER [--campaigns 1000] [--real 300] [--only digits …]

Parts of the record that are not run anew stay as they were; --campaigns 0 leaves out the first two.

"price": audits until a model of a known accuracy is shown to be better than a target, and the probability that one of
just the target is; exact, by dynamic programming, for the first model that is tested and for today's looks.

"made up": campaigns of `TargetAudit` with learning curves accuracy(m) = top − (top − 0.3) exp(−m/scale), models whose
belief is too low, right or too high, and guesses of two models at one row that are as alike as can be, or independent.
A false stop is a stop with a model whose accuracy is below the target.

"grown": the worst that a pool that grows can do (docs/decisions/041), 20,000 simulated audits a line: it grows only in
campaigns that stopped, to a hair below the target; guesses at old rows never change, and no test is given up.

Collections of experiments/ask_data.py, and the made-up histograms of ask_stop_campaign.py: campaigns as there (least
margin, ten questions at a time, label regression), at most 1,500 rows in the pool, of which three
tenths are set apart. Each is run once, without audits, and serves all targets and three ways to audit:
"target", and "one in ten" and "three in ten", `Audit` with its looks. That is exact, because no way lets an
audit change a question; only that "one in ten" would set fewer rows apart. The truth is that of the rows outside the
pool, whose own error counts against us. "false, surely": the truth is below the target by more than two of its standard
errors. What a test may cost (PATIENCE, SPACING, the share of the k-th test) was chosen on 30 to 40 campaigns of digits,
made-up histograms and 15-Scenes; other campaigns of these are counted here. Breast cancer and Fashion-MNIST were not
looked at before.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ask_data import collection
from ask_stop_campaign import MOST, NOISE, Posterior, collections
from common import Array, arguments, show_progress, write

from saccade._core.progress import report
from saccade.active import target_audit
from saccade.active.stopping import Audit, reserve
from saccade.active.target_audit import LOW_SIDE, SHARE, TargetAudit
from saccade.scores.accuracy import share_evidence
from saccade.scores.probability import fit_sharpness, probabilities

BATCH = 10
NAMES = ("digits", "made up", "15-scenes", "breast-cancer", "fashion-mnist-pixels")
TARGETS = (0.8, 0.85, 0.9, 0.95)
PAIRS = ((0.9, 0.8), (0.95, 0.9), (0.98, 0.9), (0.99, 0.95), (0.97, 0.95))
DRAWS, SIZES = 20_000, ((60, 6), (60, 60), (300, 30), (300, 300))  # audits of the old pool and of its new rows
LONGEST = 1500  # audits in the exact calculation
POOL, HELD_OUT = 1500, 1000  # rows at most


class Round(NamedTuple):
    """A model of a campaign."""

    labels: int
    right: Array  # guesses at the rows set apart, in the order of the audit
    belief: float
    truth: float


class Stop(NamedTuple):
    """How a campaign ended."""

    stopped: bool
    asked: int
    audited: int
    truth: float
    tests: int


def price(accuracy: float, target: float, error: float) -> tuple[float, float]:
    """Mean audits until the evidence is enough, and the probability that it ever is, within LONGEST audits."""
    going, mean = np.ones(1), 0.0
    for n in range(1, LONGEST + 1):
        mean += float(going.sum())
        going = np.convolve(going, [1.0 - accuracy, accuracy])
        for right in range(n, -1, -1):
            if share_evidence(right, n, target) < -np.log(error):
                break
            going[right] = 0.0
    return mean, 1.0 - float(going.sum())


def late(rounds: Iterator[Round] | list[Round], target: float, apart: int) -> Stop:
    """The campaign with a target."""
    audit, asked, audited, r = TargetAudit(np.arange(apart), SHARE, target=target), 0, 0, None
    for r in rounds:
        audit = audit.follows(True, r.labels, lambda belief=r.belief: belief)
        audit = audit.looked(r.right[:audited], r.labels)
        asked = r.labels + audited
        while (due := audit.due(asked, BATCH, audited)) > 0:
            audited, asked = audited + due, asked + due
            audit = audit.looked(r.right[:audited], r.labels)
        if audit.accuracy().reaches(target) or asked >= MOST:
            break
    assert r is not None
    return Stop(audit.accuracy().reaches(target), asked, audited, r.truth, len(audit.looks))


def spread(rounds: list[Round], target: float, apart: int, share: float) -> Stop:
    """The campaign with audits spread over it, as without a target."""
    rows = apart if share == SHARE else round(apart * share / SHARE)
    audit, asked, audited, r = Audit(np.arange(rows), share), 0, 0, rounds[0]
    for r in rounds:
        audited = min(rows, int(share * r.labels / (1.0 - share) + 1e-9))
        asked = r.labels + audited
        audit = audit.looked(r.right[:audited], r.labels)
        if audit.accuracy().reaches(target) or asked >= MOST:
            break
    return Stop(audit.accuracy().reaches(target), asked, audited, r.truth, 0)


def curve(top: float, scale: float, bias: float, alike: bool, rng: np.random.Generator, apart: int) -> Iterator[Round]:
    """A made-up campaign."""
    luck = rng.random(apart)
    for labels in range(2 * BATCH, MOST, BATCH):
        accuracy = top - (top - 0.3) * np.exp(-labels / scale)
        right = (luck if alike else rng.random(apart)) < accuracy
        yield Round(labels, right, accuracy + bias, accuracy)


def made_up(campaigns: int) -> list[dict[str, Any]]:
    found = []
    for target in (0.8, 0.9):
        for above in (0.0, 0.02):
            for bias in (0.03, 0.08):
                for alike in (True, False):
                    row = {"target": target, "top": target + above, "bias": bias, "alike": alike}
                    top = target + above - 1e-9
                    rngs = (np.random.default_rng([seed, 7]) for seed in range(campaigns))
                    ends = [late(curve(top, 40.0, bias, alike, rng, 500), target, 500) for rng in rngs]
                    found.append(row | shares(ends, target))
    return found


def grown(target: float, accuracy: float, old: int, new: int, rng: np.random.Generator) -> dict[str, float]:
    """Share of campaigns that stop, grow to just below the target, and stop again."""
    level = -np.log(LOW_SIDE * 0.05 * 2 / 3)
    enough = np.array([_enough(n, target, level) for n in range(1, old + new + 1)])
    guesses = rng.random((DRAWS, old)) < accuracy
    stopped = guesses[(np.cumsum(guesses, axis=1) >= enough[:old]).any(axis=1)]
    after = (target * (old + new) - 1e-9 - accuracy * old) / new
    mixed = np.empty((len(stopped), old + new), bool)
    places = rng.permuted(np.tile(np.arange(old + new) < old, (len(stopped), 1)), axis=1)
    mixed[places] = stopped.reshape(-1)
    mixed[~places] = rng.random(len(stopped) * new) < after
    again = (np.cumsum(mixed, axis=1) >= enough).any(axis=1)
    row = {"target": target, "old accuracy": accuracy, "old audits": old, "new audits": new}
    return row | {"stop": len(stopped) / DRAWS, "stop again, falsely": int(again.sum()) / DRAWS}


def _enough(n: int, target: float, level: float) -> int:
    """The least number of right guesses among n that shows the target; n + 1 where none does."""
    return next((k for k in range(int(target * n), n + 1) if share_evidence(k, n, target) >= level), n + 1)


def shares(ends: list[Stop], target: float, held: float = np.inf) -> dict[str, Any]:
    """Of all campaigns: those that stop, and falsely; of those that stop, the questions."""
    stopped = [end for end in ends if end.stopped]
    false = sum(end.truth < target for end in stopped)
    found: dict[str, Any] = {"stopped": len(stopped) / len(ends), "false": false / len(ends)}
    spread = 2.0 * np.sqrt(target * (1.0 - target) / held)
    found["false, surely"] = sum(end.truth < target - spread for end in stopped) / len(ends)
    found["tests"] = float(np.mean([end.tests for end in ends]))
    return found | {
        name: float(np.median([getattr(end, name) for end in stopped])) if stopped else None
        for name in ("asked", "audited", "truth")
    }


def trajectory(K: Array, y: Array, pool: int, rng: np.random.Generator) -> list[Round]:
    """The models of a campaign without audits."""
    posterior = Posterior(K, np.where(y[:, None] == np.unique(y), 1, -1).astype(K.dtype))
    apart, free, rounds = reserve(np.arange(pool), SHARE, rng), np.ones(pool, bool), list[Round]()
    free[apart] = False
    while (labels := len(posterior.rows)) < MOST and free.sum() >= BATCH:
        two = np.partition(posterior.mean[:pool], -2, axis=1)[:, -2:]
        doubt = np.where(free, two[:, 0] - two[:, 1], -np.inf) + 1e-6 * rng.random(pool)
        chosen = np.argsort(-doubt)[: BATCH if labels else 2 * BATCH]
        free[chosen] = False
        posterior.tell(chosen)
        own, kept = posterior.Y[posterior.rows], 1.0 - posterior.variance[posterior.rows] / NOISE
        left_out = own - (own - posterior.mean[posterior.rows]) / kept[:, None]
        sharpness = fit_sharpness(left_out, y[posterior.rows])
        belief = float(probabilities(posterior.mean[:pool][free], sharpness).max(axis=1).mean()) if free.any() else 1.0
        right = posterior.mean.argmax(axis=1) == y
        rounds.append(Round(len(posterior.rows), right[apart], belief, float(right[pool:].mean())))
    return rounds


def real(name: str, campaigns: int, data: Any, cache: Any) -> dict[str, Any]:
    from saccade.kernels import HIK

    X, y = collections(cache)[name]()[:2] if name == "made up" else collection(name, data, cache)[:2]
    some = np.random.default_rng(0).permutation(len(y))[: 2 * (POOL + HELD_OUT)]
    X, y = X[some], np.unique(y[some], return_inverse=True)[1]
    K, pool = HIK().resolved(X)(X).astype(np.float32), min(POOL, 3 * len(y) // 5)
    ends: dict[tuple[str, float], list[Stop]] = {}
    for seed in range(campaigns):
        report(name, seed / campaigns)
        order = np.random.default_rng([13, seed]).permutation(len(y))[: pool + HELD_OUT]
        rounds = trajectory(np.ascontiguousarray(K[np.ix_(order, order)]), y[order], pool, np.random.default_rng(seed))
        apart = rounds[0].right.size
        for target in TARGETS:
            ends.setdefault(("target", target), []).append(late(rounds, target, apart))
            for way, share in (("one in ten", 0.1), ("three in ten", SHARE)):
                ends.setdefault((way, target), []).append(spread(rounds, target, apart, share))
    held = min(HELD_OUT, len(y) - pool)
    rows = [{"way": way, "target": target, **shares(found, target, held)} for (way, target), found in ends.items()]
    return {"pool": pool, "held out": held, "campaigns": campaigns, "rows": rows}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--real", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=list(NAMES))
    parser.add_argument("--data", type=Path, default=None, help="the folder that has fashion-mnist/")
    options = parser.parse_args()
    for slow in ("share_sequence", "draws_to_show"):  # the same numbers come again in thousands of campaigns
        setattr(target_audit, slow, cache(getattr(target_audit, slow)))
    first = LOW_SIDE * 0.05 * 2 / 3
    kept = options.out / "results" / "ask_target.json"
    record: dict[str, Any] = json.loads(kept.read_text()) if kept.is_file() else {}
    with show_progress():
        if options.campaigns:
            record["price"] = {f"{p} for {t}": price(p, t, first)[0] for p, t in PAIRS}
            record["false, exact"] = {f"{t}": price(t, t, first)[1] for t in (0.8, 0.9, 0.95)}
            print(record, flush=True)
            settings = ((t, up, old, new) for t in (0.8, 0.9) for up in (0.0, 0.02, 0.05) for old, new in SIZES)
            rng = np.random.default_rng(0)
            record["grown"] = [grown(t, t + up, old, new, rng) for t, up, old, new in settings if up * old <= t * new]
            print(record["grown"], flush=True)
            record["made-up curves"] = made_up(options.campaigns)
            for row in record["made-up curves"]:
                print(row, flush=True)
        for name in options.only:
            record[name] = real(name, options.real, options.data, options.cache)
            print(name, *record[name]["rows"], sep="\n", flush=True)
    write(options.out, "ask_target", record, quiet=True)


if __name__ == "__main__":
    main()
