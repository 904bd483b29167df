"""Dog, walker and leash in few looks: a recorded classifier as judge, with and without context.

    python experiments/find_context.py [--photographs 400]

Needs portland in SACCADE_DATA: 500 photographs; for each object 300 proposals with the confidence of a classifier and
the true overlap. The proposals come in an order made at random. In four folds the situation model, the response of the
judge and the score that stops a search are learned on the other three. A search ends at the first look whose
confidence is so high that such windows of the training folds overlap the object by a half or more with probability
0.7, or after 60 looks. Its answer is the look with the highest confidence. Objects are searched for in the order of how
well confidence tells overlap in the training folds; with context, answers so far condition the next prior.

The first 100 photographs were looked at while the stopping rule and the count of crowds were chosen, so searches are
measured on those after them; models learn from all other folds.

The proposals of this set crowd around the objects. "crowd" counts that as knowledge; all other searches do not.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import arguments, plots, save_figure, show_progress, write

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.datasets.on_disk import Photographs, portland
from saccade.localize import BoxPrior, Localizer, Response, SituationModel

FOLDS = 4
FIRST = 100  # photographs before this one were looked at while rules were chosen
MOST = 60  # looks for one object
BATCH = 2  # looks at a time
SURE = 0.7  # probability that a window with the stopping score overlaps by a half or more, in the training folds
FOUND = 0.5  # overlap
WAYS = (
    "random order",
    "order by prior",
    "order by prior in context",
    "search alone",
    "search, prior",
    "search, prior in context",
    "search, crowd",
    "search, crowd and prior in context",
    "search, linear response",
)


class Learned(NamedTuple):
    """What is learned from the photographs of the other folds."""

    situation: SituationModel
    responses: dict[str, Response]
    stops: dict[str, float]  # confidence at which a search ends
    order: list[str]


class Pool(NamedTuple):
    """The proposals of one object in one photograph."""

    size: Array  # (2,)
    boxes: Array  # (p, 4)
    confidence: Array  # (p,)
    overlap: Array  # (p,)

    @classmethod
    def of(cls, data: Photographs, photograph: int, object: int) -> "Pool":
        rows = np.random.default_rng([photograph, object]).permutation(data.proposals[photograph, object])
        size = data.sizes[photograph]
        return cls(size, np.clip(rows[:, :4], 0.0, np.tile(size, 2)), rows[:, 4], rows[:, 5])


def learn(data: Photographs, train: Array) -> Learned:
    situation = SituationModel().fit({name: box[train] for name, box in data.boxes.items()}, data.sizes[train])
    responses, stops, told = {}, {}, {}
    for place, name in enumerate(data.boxes):
        confidence, overlap = data.proposals[train, place, :, 4].ravel(), data.proposals[train, place, :, 5].ravel()
        responses[name] = Response.learn(overlap, confidence)
        stops[name], told[name] = stopping_score(confidence, overlap), np.corrcoef(confidence, overlap)[0, 1]
    return Learned(situation, responses, stops, sorted(data.boxes, key=lambda name: -told[name]))


def stopping_score(confidence: Array, overlap: Array) -> float:
    """The lowest score whose windows overlap by a half or more with probability SURE, by isotonic regression."""
    from sklearn.isotonic import IsotonicRegression

    chance = IsotonicRegression().fit_transform(confidence, overlap >= FOUND)
    return float(confidence[chance >= SURE].min(initial=np.inf))


def order_of(way: str, pool: Pool, prior: BoxPrior) -> Array:
    """Places of proposals, for the ways that do not listen to the judge."""
    if way == "random order":
        return np.arange(len(pool.boxes))
    return np.argsort(-prior.log_density(pool.boxes), kind="stable")


def looks_of(way: str, pool: Pool, prior: BoxPrior, response: Response, stop: float) -> list[int]:
    """Places of proposals in the order of the looks, until one scores enough."""
    taken = list[int]()
    if not way.startswith("search"):
        order = order_of(way, pool, prior)[:MOST]
        enough = np.flatnonzero(pool.confidence[order] >= stop)
        return [int(place) for place in (order[: enough[0] + 1] if enough.size else order)]
    search = Localizer(
        pool.size,
        prior if "prior" in way else None,
        proposals=pool.boxes,
        crowd="crowd" in way,
        response=None if "linear" in way else response,
        random_state=0,
    )
    while len(taken) < min(MOST, len(pool.boxes)):
        boxes = search.ask(BATCH)
        places = [int(np.flatnonzero((pool.boxes == box).all(axis=1))[0]) for box in boxes]
        for place in places:
            taken.append(place)
            if pool.confidence[place] >= stop:
                return taken
        search.tell(boxes, pool.confidence[places])
    return taken


def one_photograph(data: Photographs, photograph: int, learned: Learned, way: str) -> dict[str, dict[str, Any]]:
    """For each object the looks, the look that first overlaps by a half, and the overlap of the answer."""
    found: dict[str, Any] = {}
    rows: dict[str, dict[str, Any]] = {}
    for name in learned.order:
        pool = Pool.of(data, photograph, list(data.boxes).index(name))
        prior = learned.situation.prior(name, found if "context" in way else None, pool.size)
        taken = looks_of(way, pool, prior, learned.responses[name], learned.stops[name])
        hits = np.flatnonzero(pool.overlap[taken] >= FOUND)
        answer = taken[int(np.argmax(pool.confidence[taken]))]
        sure = bool(pool.confidence[answer] >= learned.stops[name])
        best = pool.overlap[taken][[int(np.argmax(pool.confidence[taken[:n]])) for n in range(1, len(taken) + 1)]]
        rows[name] = {
            "looks": len(taken),
            "first": int(hits[0]) + 1 if hits.size else None,
            "sure": sure,
            "right": bool(pool.overlap[answer] >= FOUND),
            "curve": [bool(value >= FOUND) for value in best],
        }
        if sure:
            found[name] = pool.boxes[answer]
    return rows


def judged(data: Photographs) -> dict[str, dict[str, float]]:
    """How good the confidences are."""
    out = {}
    for place, name in enumerate(data.boxes):
        confidence, overlap = data.proposals[:, place, :, 4], data.proposals[:, place, :, 5]
        varies = (confidence.std(axis=1) > 0) & (overlap.std(axis=1) > 0)
        pairs = zip(confidence[varies], overlap[varies], strict=True)
        top = overlap[np.arange(len(overlap)), confidence.argmax(axis=1)]
        out[name] = {
            "correlation with overlap, within a photograph": round(
                float(np.mean([np.corrcoef(*p)[0, 1] for p in pairs])), 3
            ),
            "photographs with a proposal that overlaps by a half": round(
                float((overlap.max(axis=1) >= FOUND).mean()), 4
            ),
            "photographs whose most confident proposal does": round(float((top >= FOUND).mean()), 4),
            "share of proposals that do": round(float((overlap >= FOUND).mean()), 4),
        }
    return out


def summary(rows: list[dict[str, dict[str, Any]]], names: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in names:
        some = [row[name] for row in rows]
        first = np.array([row["first"] or np.inf for row in some])
        curve = np.array([row["curve"] + [row["curve"][-1]] * (MOST - len(row["curve"])) for row in some])
        out[name] = {
            "median looks until one overlaps by a half": _finite(np.median(first)),
            "looked at one within 10": round(float((first <= 10).mean()), 4),
            "looked at one": round(float(np.isfinite(first).mean()), 4),
            "mean looks": round(float(np.mean([row["looks"] for row in some])), 2),
            "median looks": float(np.median([row["looks"] for row in some])),
            "answer right": round(float(np.mean([row["right"] for row in some])), 4),
            "right of those sure": round(float(np.mean([row["right"] for row in some if row["sure"]] or [0.0])), 4),
            "sure": round(float(np.mean([row["sure"] for row in some])), 4),
            "answer right by looks": [round(float(value), 4) for value in curve.mean(axis=0)],
        }
    total = np.array([sum(row[name]["looks"] for name in names) for row in rows])
    right = np.array([all(row[name]["right"] for name in names) for row in rows])
    out["all three"] = {
        "right": round(float(right.mean()), 4),
        "mean looks": round(float(total.mean()), 2),
        "median looks": float(np.median(total)),
        "median looks where right": _finite(np.median(total[right])) if right.any() else None,
    }
    return out


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def draw(record: dict[str, Any], out: Path) -> None:
    names = list(record["judge"])
    figure, panels = plots().subplots(1, len(names), figsize=(13, 5), sharey=True, constrained_layout=True)
    for axes, name in zip(panels, names, strict=True):
        for way, found in record["ways"].items():
            style = "-" if way.startswith("search") else "--"
            axes.semilogx(range(1, MOST + 1), found[name]["answer right by looks"], style, lw=1.6, label=way)
        most = record["judge"][name]["photographs with a proposal that overlaps by a half"]
        axes.axhline(most, color="0.6", lw=0.8)
        axes.set(title=name.replace("_", " "), xlabel="looks", ylim=(0, 1.02))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("most confident look overlaps by a half or more")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(f"{record['photographs']} photographs, {FOLDS} folds; grey: what the proposals allow")
    save_figure(figure, out, "find_context")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--photographs", type=int, default=400)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS)
    options = parser.parse_args()
    data = portland()
    some = np.arange(len(data.names))[FIRST:][: options.photographs]
    learned = [learn(data, np.flatnonzero(np.arange(len(data.names)) % FOLDS != part)) for part in range(FOLDS)]
    record: dict[str, Any] = {"data": "Portland dog-walking", "photographs": len(some), "first": FIRST, "folds": FOLDS}
    record |= {
        "most looks for an object": MOST,
        "batch": BATCH,
        "seeds": "0 for every search; order of proposals by photograph",
    }
    record |= {"order of objects by fold": [part.order for part in learned], "judge": judged(data), "ways": {}}
    record["stopping confidence by fold"] = [part.stops for part in learned]
    with show_progress():
        for way in options.ways:
            rows = list[Any]()
            for place in some:
                rows.append(one_photograph(data, int(place), learned[place % FOLDS], way))
                report(way, len(rows) / len(some))
            record["ways"][way] = summary(rows, list(data.boxes))
            write(options.out, "find_context", record, quiet=True)
    draw(record, options.out)
    for way, found in record["ways"].items():
        print(way, {name: {k: v for k, v in row.items() if "by looks" not in k} for name, row in found.items()})


if __name__ == "__main__":
    main()
