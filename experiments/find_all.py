"""All of them: hits found over the share of tiles looked at, and whether the stated number left covers the truth.

    python experiments/find_all.py [--pictures 10] [--coverage 200]

Pictures are those of giant_pictures.py, 32 × 32 tiles of 1,024 pixels (1.07 gigapixels), 40 targets among 80
distractors, and for the number left 24 × 24 tiles with 24 targets. The judge knows the truth. Seeds begin at 0; length
scales, the share of the start and the factor of the interval were chosen on pictures with seeds from 5000 on. The real
picture is the Hubble deep field of scikit-image (872 × 1,000 pixels; the packages have no larger photograph with many
things of one kind): all bright spots.
"""

import time
from typing import Any

import numpy as np
from common import Array, arguments, plots, save_figure, show_progress, write
from giant_pictures import KINDS, TILE, GiantPicture

from saccade._core.progress import report

SIDE, TARGETS = 32, 40  # tiles, hits
SMALL, FEW = 24, 24  # of the pictures for the number left
BUDGET, CHECKED, BATCH = 0.1, (0.025, 0.05, 0.1), 8
GALAXY_TILE, GALAXY_PIXELS = 40, 4  # side of a tile, and of a tile in the overview
BRIGHT = 240  # of 255: a spot that counts
METHODS = ("search, overview", "nonmyopic, overview", "search, position only")


def search(
    counts: Array, features: Array | None, seed: int, policy: Any = "auto", budget: float = BUDGET
) -> dict[str, Any]:
    """Hits in the order of the looks, and what was said about the rest at some of them."""
    from saccade.localize import TileSearch

    y, n = counts.ravel(), counts.size
    looks, stops = round(budget * n), [round(share * n) for share in CHECKED if share <= budget]
    size, options = counts.shape[::-1], {"features": features, "budget": looks, "policy": policy}
    one = TileSearch(size, tile=1, random_state=seed, **options)
    hits, left = list[int](), list[list[float]]()
    start = time.perf_counter()
    while len(hits) < looks:
        until = min(stop for stop in [*stops, looks] if stop > len(hits))
        boxes = one.ask(min(BATCH, until - len(hits)))
        found = y[one.tiles.numbers(boxes)]
        one.tell(boxes, found)
        hits += found.tolist()
        if len(hits) in stops:
            tiles = int((y > 0).sum() - (np.array(hits) > 0).sum())
            left.append([*(float(each) for each in one.left()), int(y.sum()) - sum(hits), tiles])
    return {"hits": hits, "left": left, "seconds": time.perf_counter() - start}


def picture(seed: int, kind: str, side: int, targets: int) -> tuple[Array, Array]:
    """Hits in each tile, and features of each from the overview."""
    from saccade.localize.tiles.grid import Tiles, overview

    giant = GiantPicture(seed, kind, side, targets)
    return giant.counts(), overview(giant, Tiles.of((giant.side, giant.side), TILE))


def curves(kind: str, pictures: int) -> dict[str, Any]:
    """Mean share of the hits after each look, for every method on the same pictures."""
    runs: dict[str, list[Any]] = {method: [] for method in METHODS}
    raster = []
    for seed in range(pictures):
        report(f"search, {kind}", seed / pictures)
        counts, features = picture(seed, kind, SIDE, TARGETS)
        for method in METHODS:
            given = features if "overview" in method else None
            run = search(counts, given, seed, "nonmyopic" if "nonmyopic" in method else "auto")
            runs[method].append((np.cumsum(run["hits"]) / counts.sum(), run["seconds"], run["left"]))
        raster.append(np.cumsum(counts.ravel())[: len(run["hits"])] / counts.sum())
    looks = len(raster[0])
    found = {method: summary(runs[method]) for method in METHODS}
    found["raster"] = {"mean": np.mean(raster, axis=0).round(4).tolist()}
    found["random"] = {"mean": (np.arange(1, looks + 1) / SIDE**2).round(4).tolist()}
    return found


def summary(runs: list[Any]) -> dict[str, Any]:
    share = np.array([run[0] for run in runs])
    return {
        "mean": share.mean(axis=0).round(4).tolist(),
        "at the end, each picture": share[:, -1].round(3).tolist(),
        "at the end": float(share[:, -1].mean()),
        "standard error": float(share[:, -1].std() / np.sqrt(len(share))),
        "seconds a picture": float(np.median([run[1] for run in runs])),
        "covered": covered([run[2] for run in runs]),
    }


def covered(left: list[Any]) -> dict[str, Any]:
    """Shares of pictures, for each checked share of looks, in which the interval and the bound hold the truth."""
    expected, low, high, at_most, truth, tiles = np.moveaxis(np.array(left, float), 2, 0)
    return {
        "interval": ((low <= truth) & (truth <= high)).mean(axis=0).tolist(),
        "truth below": (truth < low).mean(axis=0).tolist(),
        "truth above": (truth > high).mean(axis=0).tolist(),
        "bound without a model": (tiles <= at_most).mean(axis=0).tolist(),
        "median expected, low, high, truth": np.median([expected, low, high, truth], axis=1).T.tolist(),
        "median bound and tiles": np.median([at_most, tiles], axis=1).T.tolist(),
    }


def coverage(pictures: int, policy: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """The number left on many smaller pictures, half of each kind."""
    left: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for seed in range(pictures // 2):
        report("number left", 2 * seed / pictures)
        for kind in KINDS:
            counts, features = picture(seed, kind, SMALL, FEW)
            left[kind].append(search(counts, features, seed, policy)["left"])
    every = {kind: covered(left[kind]) for kind in KINDS}
    return every | {"both": covered([*left["clustered"], *left["scattered"]])}, {
        k: np.array(v) for k, v in left.items()
    }


def galaxies() -> dict[str, Any]:
    """A real picture: tiles with a bright spot in the Hubble deep field, with a budget of a quarter of the tiles."""
    from skimage import data
    from skimage.feature import peak_local_max

    from saccade.localize.sources.base import open_picture
    from saccade.localize.tiles.grid import Tiles, overview

    pixels = data.hubble_deep_field()
    tiles = Tiles.of(
        (pixels.shape[1] // GALAXY_TILE * GALAXY_TILE, pixels.shape[0] // GALAXY_TILE * GALAXY_TILE), GALAXY_TILE
    )
    spots = peak_local_max(pixels.mean(axis=2), min_distance=8, threshold_abs=BRIGHT, exclude_border=False)
    counts, places = np.zeros(tiles.shape, int), spots // GALAXY_TILE
    np.add.at(counts, tuple(places[(places < tiles.shape).all(axis=1)].T), 1)
    run = search(counts, overview(open_picture(pixels), tiles, GALAXY_PIXELS), 0, budget=0.25)
    share = np.cumsum(run["hits"]) / counts.sum()
    return {
        "tiles": counts.size,
        "tiles with hits": int((counts > 0).sum()),
        "hits": int(counts.sum()),
        "share found at a tenth, a fifth and a quarter of the looks": [
            float(share[round(part * counts.size) - 1]) for part in (0.1, 0.2, 0.25)
        ],
        "left: expected, low, high, bound, truth, tiles": run["left"],
    }


def draw(record: dict[str, Any], left: dict[str, Array]) -> Any:
    figure, axes = plots().subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    colours = dict(zip((*METHODS, "raster", "random"), ("C0", "C1", "C2", "0.6", "0.3"), strict=True))
    for panel, kind in zip(axes, KINDS, strict=False):
        for method, colour in colours.items():
            mean = record[kind][method]["mean"]
            style = "--" if method == "random" else ":" if method == "raster" else "-"
            panel.plot(
                100 * np.arange(1, len(mean) + 1) / SIDE**2, 100 * np.array(mean), style, color=colour, label=method
            )
        panel.axhline(95, color="0.85", zorder=0)
        panel.set(title=f"hits {kind}", xlabel="tiles looked at, %", ylabel="hits found, %", ylim=(0, 100))
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    for shift, (kind, colour) in enumerate(zip(KINDS, ("C0", "C3"), strict=True)):
        last = left[kind][:, -1][np.argsort(left[kind][:, -1, 4], kind="stable")]
        x = np.arange(len(last)) + shift * (len(last) + 2)
        axes[2].vlines(x, last[:, 1], last[:, 2], color=colour, lw=0.8, alpha=0.5, label=f"{kind}: interval")
        axes[2].plot(x, last[:, 4], ".", color="black", ms=2, label="truth" if shift else None)
    axes[2].set(title="hits left after a tenth of the looks", xlabel="picture, by truth", ylabel="hits")
    axes[2].legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pictures", type=int, default=10)
    parser.add_argument("--coverage", type=int, default=200)
    parser.add_argument("--policy", default="auto", help="of the searches for the number left")
    options = parser.parse_args()
    record: dict[str, Any] = {
        "pictures": options.pictures,
        "tiles": SIDE**2,
        "pixels": (SIDE * TILE) ** 2,
        "targets": TARGETS,
        "batch": BATCH,
        "seeds": f"0 to {options.pictures - 1}; number left 0 to {options.coverage // 2 - 1} of each kind",
    }
    with show_progress():
        record["number left"], left = coverage(options.coverage, options.policy)
        record["number left"] |= {
            "policy": options.policy,
            "pictures": options.coverage,
            "tiles": SMALL**2,
            "targets": FEW,
            "at": CHECKED,
        }
        record |= {kind: curves(kind, options.pictures) for kind in KINDS}
        record["Hubble deep field"] = galaxies()
    write(options.out, "find_all", record, quiet=True)
    save_figure(draw(record, left), options.out, "find_all")
    for kind in KINDS:
        print(kind, {method: round(record[kind][method]["mean"][-1], 3) for method in (*METHODS, "raster", "random")})
    print("number left", record["number left"]["both"])
    print(record["Hubble deep field"])


if __name__ == "__main__":
    main()
