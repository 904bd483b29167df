"""S §12: the proxy oracle on ground-truth boxes of the Portland photographs: looks until one has an overlap of a half.

    python experiments/find_boxes.py [--every 1] [--rivals-every 25] [--processes 2]

Needs portland in SACCADE_DATA. Pictures are scaled to 2000 × 2000 and boxes begin and end at multiples of 10, as on a
grid of 200 × 200. The oracle says 0.9 · IOU + 0.1 exp(−3 ‖difference of the centres‖ / 2000) plus noise of variance 0,
0.03 or 0.3. Looks come in batches of 10, up to 150. Dogs are searched; size known and not known, with the prior of dogs
in the other three quarters of the photographs and without. A look counts where its box first overlaps the dog by 0.5
and by 0.9; and, apart, the batch after which the search's own answer does. Rivals search every 25th dog, and
ours is compared on the same ones. Shares of a batch were chosen on the leashes of the photographs.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, plots, save_figure, show_progress, write
from find_rivals import RIVALS

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.datasets.on_disk import portland
from saccade.localize import BoxPrior, Localizer, SituationModel, iou

SIDE, STEP, BATCH, MOST, FOLDS = 2000.0, 10.0, 10, 150, 4
ALPHA, GAMMA = 0.9, 3.0
NOISES = (0.0, 0.03, 0.3)
FURTHER = 40  # looks after the first of 0.5, for 0.9
NEVER = np.inf
OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours, PI": {"policy": "pi"},
    "ours, 3 of 10 drawn": {"from_prior": 0.2, "at_random": 0.1},
    "ours, noise learned": {"noise": None},
}
SLOW = ("BoTorch",)  # searches with the prior on only


def scaled_boxes(name: str) -> Array:  # (n, 4)
    """Boxes of one object in pictures of one size."""
    photographs = portland()
    return np.asarray(photographs.boxes[name] * (SIDE / np.tile(photographs.sizes, 2)))


def median_area(name: str) -> float:
    """Of one object: its share of the picture's area."""
    boxes = scaled_boxes(name)
    return float(np.nanmedian(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)) / SIDE**2)


def oracle(boxes: Array, truth: Array, noise: float, rng: np.random.Generator) -> Array:  # (n,)
    """The intensity proxy of S §12."""
    away = np.linalg.norm((boxes[:, :2] + boxes[:, 2:] - truth[:2] - truth[2:]) / 2.0, axis=1)
    clean = ALPHA * iou(boxes, truth) + (1.0 - ALPHA) * np.exp(-GAMMA * away / SIDE)
    return np.asarray(clean + rng.normal(0.0, np.sqrt(noise), len(boxes)))


def searcher(way: str, prior: BoxPrior | None, size: Array | None, noise: float, seed: int) -> Any:
    if way in OURS:
        options = {"noise": noise} | OURS[way]
        return Localizer((SIDE, SIDE), prior, size=size, step=STEP, random_state=seed, **options)
    start = BoxPrior.unknown((SIDE, SIDE)) if prior is None else prior
    return RIVALS[way](start if size is None else start.of_size(size), seed, noise)


def looks_of(way: str, truth: Array, prior: BoxPrior | None, known: bool, noise: float, seed: int) -> list[float]:
    """Looks until 0.5, until 0.9, and until the search's own answer has 0.5; and seconds."""
    began, rng = time.process_time(), np.random.default_rng([seed, 1])
    search = searcher(way, prior, truth[2:] - truth[:2] if known else None, noise, seed)
    half = fine = own = NEVER
    looks = 0
    while looks < MOST and (
        half == NEVER or own == NEVER or (fine == NEVER and noise == 0.0 and looks < half + FURTHER)
    ):
        boxes = search.ask(BATCH)
        overlap = iou(boxes, truth)
        search.tell(boxes, oracle(boxes, truth, noise, rng))
        half = min(half, first_above(overlap, 0.5, looks))
        fine = min(fine, first_above(overlap, 0.9, looks))
        looks += len(boxes)
        if own == NEVER and half < NEVER:
            box = search.best().box if isinstance(search, Localizer) else search.best_box()
            own = looks if iou(box, truth) >= 0.5 else NEVER
    return [half, fine, own, time.process_time() - began]


def first_above(overlap: Array, least: float, before: int) -> float:
    found = np.flatnonzero(overlap >= least)
    return float(before + 1 + found[0]) if found.size else NEVER


def summary(found: Array) -> dict[str, Any]:  # (n, 4)
    """Medians over all searches; a search that never got there counts as longer than any."""
    half, fine, own, seconds = found.T
    reached = half < NEVER
    further = np.where(reached, fine - np.where(reached, half, 0.0), NEVER)
    plain = {
        name: float(np.median(values)) for name, values in (("looks", half), ("answer", own), ("further", further))
    }
    return {
        "searches": len(found),
        **{name: value if value < NEVER else None for name, value in plain.items()},
        "quartiles": [float(q) if q < NEVER else None for q in np.quantile(half, [0.25, 0.75], method="nearest")],
        "solved": float(reached.mean()),
        "answered": float((own < NEVER).mean()),
        "curve": [float((half <= n).mean()) for n in range(0, MOST + 1, 5)],
        "seconds_each": float(seconds.mean()),
    }


def measure(name: str, every: int, rivals_every: int, ways: list[str], processes: int) -> Iterator[dict[str, Any]]:
    from joblib import Parallel, delayed

    boxes = scaled_boxes(name)
    known_ones = np.flatnonzero(~np.isnan(boxes).any(axis=1))
    models = [
        SituationModel().fit({name: boxes[known_ones[known_ones % FOLDS != fold]]}, (SIDE, SIDE))
        for fold in range(FOLDS)
    ]
    priors = [model.prior(name, None, (SIDE, SIDE)) for model in models]
    settings = [
        (way, known, noise, on)
        for way in ways
        for known in (True, False)
        for noise in NOISES
        for on in ((True,) if way in SLOW else (True, False))
    ]
    for done, (way, known, noise, on) in enumerate(settings):
        ours, began = way == "ours", time.perf_counter()
        chosen = known_ones[:: every if ours else rivals_every]
        found = Parallel(processes)(
            delayed(looks_of)(way, boxes[i], priors[i % FOLDS] if on else None, known, noise, int(i)) for i in chosen
        )
        row = {"way": way, "size_known": known, "noise": noise, "prior": on, **summary(np.array(found))}
        row["minutes"] = (time.perf_counter() - began) / 60.0
        if ours and rivals_every != every:
            row["same_as_rivals"] = summary(np.array(found)[np.isin(chosen, known_ones[::rivals_every])])
        report("settings", (done + 1) / len(settings))
        yield row


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    plt = plots()
    figure, axes = plt.subplots(
        2, len(NOISES), figsize=(4 * len(NOISES), 6.5), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for axis, (known, noise) in zip(axes.ravel(), [(k, n) for k in (True, False) for n in NOISES], strict=True):
        for row in rows:
            if (row["size_known"], row["noise"], row["prior"]) == (known, noise, True):
                curve = row.get("same_as_rivals", row)["curve"]
                axis.plot(np.arange(len(curve)) * 5, curve, label=row["way"], lw=2.5 if row["way"] == "ours" else 1.2)
        axis.set_title(f"size {'known' if known else 'not known'}, noise {noise:g}")
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("looks")
    for axis in axes[:, 0]:
        axis.set_ylabel("dogs with IOU ≥ 0.5")
    axes[0, 0].legend(fontsize=8)
    save_figure(figure, out, "find_boxes")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--every", type=int, default=1, help="every how many-th photograph ours searches")
    parser.add_argument("--rivals-every", type=int, default=25, help="and all others")
    parser.add_argument("--object", default="dog", choices=("dog", "dog_walker", "leash"))
    parser.add_argument("--ways", nargs="*", default=[*OURS, *RIVALS])
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    for variable in ("SACCADE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"  # for the processes that joblib starts
    began = time.perf_counter()
    settings: dict[str, Any] = {
        "object": options.object,
        "alpha": ALPHA,
        "gamma": GAMMA,
        "batch": BATCH,
        "most_looks": MOST,
    }
    settings |= {
        "median_area": median_area(options.object),
        "every": options.every,
        "rivals_every": options.rivals_every,
        "processes": options.processes,
    }
    rows = list[dict[str, Any]]()
    with show_progress():
        for row in measure(options.object, options.every, options.rivals_every, options.ways, options.processes):
            rows.append(row)
            minutes = (time.perf_counter() - began) / 60.0
            write(options.out, "find_boxes", {"settings": settings, "minutes": minutes, "rows": rows}, quiet=True)
    for row in rows:
        print(
            f"{row['way']:20} size {'known' if row['size_known'] else 'open':5} noise {row['noise']:<4} "
            f"prior {'on ' if row['prior'] else 'off'} looks {row['looks']} ({row['solved']:.1%}) "
            f"answer {row['answer']} ({row['answered']:.1%}) to 0.9 {row['further']}"
        )
    draw(rows, options.out)


if __name__ == "__main__":
    main()
