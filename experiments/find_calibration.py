"""Is an object found as often as the search says? Objects and scores are drawn from the model itself.

    python experiments/find_calibration.py [--searches 300] [--looks 40] [--processes 2]

The looks are the search's own. An object is drawn from what it believes before any look; offset, shares of overlap and
nearness, noise and clutter from what its score model assumes. After every batch of 10 looks the probability of the
answer is compared with whether it overlaps the object by a half or more: size known and not, noise known (0.03) and
learned, with and without a prior. With `present`, half of the pictures have no object, and what is compared is the
probability that there is one.
"""

import os
from typing import Any

import numpy as np
from common import arguments, plots, save_figure, show_progress, write

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.localize import BoxPrior, Localizer, iou
from saccade.localize.priors.densities import Normals
from saccade.localize.search.asking import prior_of
from saccade.localize.search.misfits import Misfits
from saccade.localize.search.score_model import BETA, BETA_SPREAD, clutter_and_offset, shares

BOUNDS = np.array([0.0, 0.0, 640.0, 480.0])
SIZE, BATCH, NOISE = (90.0, 70.0), 10, 0.03
BINS = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0])  # of what is said
ENOUGH = 100  # searches in a bin, for its difference to count


def some_prior() -> BoxPrior:
    """Objects in the lower middle of the picture, an eighth of its width wide, give or take a third."""
    spread = np.diag(np.square([0.12, 0.1, 0.35, 0.25]))[None]
    return BoxPrior(BOUNDS, Normals(np.ones(1), np.array([[0.5, 0.65, -4.0, 0.1]]), spread))


class Simulated:
    """A judge drawn from the score model: what it says of boxes looked at stays as it is said."""

    def __init__(self, truth: Array | None, noise: float | None, rng: np.random.Generator) -> None:
        misfits = Misfits.of(noise)
        self.misfit = misfits.each[rng.choice(len(misfits.shares), p=misfits.shares)]
        self.truth, self.rng, self.drawn, self.boxes = truth, rng, np.zeros(0), np.zeros((0, 4))
        self.beta = rng.normal(BETA, BETA_SPREAD)

    def __call__(self, boxes: Array) -> Array:
        self.boxes = np.vstack([self.boxes, boxes])
        C = clutter_and_offset(self.boxes, self.boxes, BOUNDS, self.misfit)
        self.drawn = np.append(self.drawn, self.rng.standard_normal(len(boxes)))
        smooth = (np.linalg.cholesky(C + 1e-9 * np.eye(len(C))) @ self.drawn)[-len(boxes) :]
        if self.truth is not None:
            smooth += self.beta @ shares(boxes, self.truth[None], BOUNDS)[:, :, 0]
        return np.asarray(smooth + self.rng.normal(0.0, self.misfit.noise, len(boxes)))


def searched(setting: dict[str, Any], looks: int, seed: int) -> list[tuple[float, float]]:
    """After every batch, what is said and whether it is true; nothing of a search that was refused."""
    rng, options = np.random.default_rng([seed, 7]), {key: setting[key] for key in ("prior", "size", "noise", "absent")}
    search = Localizer(BOUNDS, random_state=seed, **options)
    truth = prior_of(search).sample(1, rng)[0]
    there = rng.random() >= search.absent
    judge = Simulated(truth if there else None, None if search.noise is None else np.sqrt(search.noise), rng)
    rows = []
    while search.looks < looks:
        boxes = search.ask(BATCH)
        try:
            search.tell(boxes, judge(boxes))
        except InvalidInput:  # with the largest noises a score may be refused as one of another scale
            return []
        found = search.best()
        right = there and iou(found.box, truth) >= 0.5
        rows.append((found.present, float(there)) if search.absent else (found.probability, float(right)))
    return rows


def settings() -> dict[str, dict[str, Any]]:
    found = {}
    for size in (None, SIZE):
        for noise in (NOISE, None):
            for prior in (None, some_prior()):
                name = (
                    f"size {'open' if size is None else 'known'}, noise {'learned' if noise is None else 'known'}, "
                    f"{'no ' if prior is None else ''}prior"
                )
                found[name] = {"size": size, "noise": noise, "prior": prior, "absent": 0.0}
    found["present"] = {"size": None, "noise": None, "prior": some_prior(), "absent": 0.5}
    return found


def reliability(said: Array, true: Array) -> list[dict[str, Any]]:
    """In each bin of what is said: its mean, how often it was true, and the error of that."""
    place = np.clip(np.searchsorted(BINS, said, side="right") - 1, 0, len(BINS) - 2)
    found = []
    for i in range(len(BINS) - 1):
        s, t = said[place == i], true[place == i]
        if s.size:
            error = float(np.sqrt(max(t.mean() * (1 - t.mean()), 0.25 / s.size) / s.size))
            found.append({"n": int(s.size), "said": float(s.mean()), "true": float(t.mean()), "error": error})
    return found


def measure(name: str, searches: int, looks: int, processes: int) -> dict[str, Any]:
    from joblib import Parallel, delayed

    setting = settings()[name]
    found = Parallel(processes)(delayed(searched)(setting, looks, seed) for seed in range(searches))
    rows = np.array([row for row in found if row])
    said, true = rows[..., 0], rows[..., 1]
    off = [abs(row["said"] - row["true"]) for row in reliability(said.ravel(), true.ravel()) if row["n"] >= ENOUGH]
    by_looks = [
        {"looks": BATCH * (i + 1), "said": float(said[:, i].mean()), "true": float(true[:, i].mean())}
        for i in range(said.shape[1])
    ]
    bins = reliability(said.ravel(), true.ravel())
    return {"setting": name, "searches": len(rows), "bins": bins, "worst": max(off, default=0.0), "by looks": by_looks}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--searches", type=int, default=300, help="of each setting")
    parser.add_argument("--looks", type=int, default=40)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--settings", nargs="*", default=list(settings()), choices=list(settings()))
    options = parser.parse_args()
    for variable in ("SACCADE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"  # for the processes that joblib starts
    rows = list[dict[str, Any]]()
    with show_progress():
        for name in options.settings:
            rows.append(measure(name, options.searches, options.looks, options.processes))
            report("settings", len(rows) / len(options.settings))
            told = {"searches": options.searches, "looks": options.looks, "rows": rows}
            write(options.out, "find_calibration", told, quiet=True)
            print(f"{name}: worst bin {rows[-1]['worst']:.3f}; " + ", ".join(
                f"{row['said']:.2f}→{row['true']:.2f} ({row['n']})" for row in rows[-1]["bins"]))  # fmt: skip
    draw(rows, options.out)


def draw(rows: list[dict[str, Any]], out: Any) -> None:
    figure, axes = plots().subplots(figsize=(5.5, 5.5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", lw=1)
    for row in rows:
        said, true, error = (np.array([one[key] for one in row["bins"]]) for key in ("said", "true", "error"))
        axes.errorbar(said, true, error, fmt="o-", ms=4, lw=1, label=row["setting"])
    axes.set(xlabel="said", ylabel="true", aspect="equal")
    axes.legend(fontsize=7, frameon=False)
    axes.grid(alpha=0.3)
    save_figure(figure, out, "find_calibration")


if __name__ == "__main__":
    main()
