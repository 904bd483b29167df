"""All of them against simple orders, and whether the stated number left covers the truth.

    python experiments/find_all_rivals.py [--pictures 6] [--coverage 100] [--processes 2]

Pictures: cells and raccoons of find_all_sets.py, of the half that nothing was chosen on, and those of giant_pictures.py
with 24 × 24 tiles: 24 hits clustered or scattered, or 140 scattered. Methods: `TileSearch` with the overview; the same
with five example crops of other pictures; tiles in the order of the Mahalanobis distance of the same overview, row by
row, and at random. The number left is stated after a twentieth and a tenth of the looks.
"""

import os
from typing import Any

import numpy as np
from common import Array, arguments, plots, save_figure, show_progress, write
from find_all import covered, picture
from find_all_sets import SETS, Grid

SMALL = 24  # tiles across and down
KINDS = {"clustered": ("clustered", 24), "scattered": ("scattered", 24), "common": ("scattered", 140)}
BUDGET, CHECKED, BATCH = 0.1, (0.05, 0.1), 15
FIRST = 1000  # seed of the synthetic pictures; lower and higher ones were for choosing
METHODS = ("search", "search with examples", "outliers first", "row by row")


def searched(grid: Grid, seed: int, examples: Array | None) -> tuple[Array, list[list[float]]]:
    """Share of the hits found after each look, and what was said to be left, with the truth."""
    from saccade.localize import TileSearch

    y, n = grid.counts.ravel(), grid.counts.size
    options = {"features": grid.features, "examples": examples, "budget": round(BUDGET * n)}
    one = TileSearch(grid.counts.shape[::-1], tile=1, random_state=seed, **options)
    hits, left = list[int](), list[list[float]]()
    for stop in (round(share * n) for share in CHECKED):
        while len(hits) < stop:
            boxes = one.ask(min(BATCH, stop - len(hits)))
            found = y[one.tiles.numbers(boxes)]
            one.tell(boxes, found)
            hits += found.tolist()
        tiles = int((y > 0).sum() - (np.array(hits) > 0).sum())
        left.append([*(float(each) for each in one.left()), int(y.sum()) - sum(hits), tiles])
    return np.cumsum(hits) / y.sum(), left


def compared(name: str, seed: int) -> dict[str, Any]:
    """One picture by all methods: shares found at the checked looks."""
    from saccade.localize.tiles.grid import outliers, standardised

    if name in KINDS:
        grid = Grid(*picture(seed, KINDS[name][0], SMALL, KINDS[name][1]), np.zeros((0, 10)))
    else:
        grid = SETS[name](seed, 1)
    y = grid.counts.ravel()
    shares, left = searched(grid, seed, None)
    known = standardised(grid.features)
    assert known is not None
    found = {"search": shares, "outliers first": np.cumsum(y[outliers(known)]) / y.sum()}
    found["row by row"] = np.cumsum(y) / y.sum()
    if len(grid.examples):
        found["search with examples"] = searched(grid, seed, grid.examples)[0]
    looks = [round(share * y.size) - 1 for share in CHECKED]
    return {"hits": int(y.sum()), "left": left, "found": {key: each[looks].tolist() for key, each in found.items()}}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    methods = [method for method in METHODS if method in runs[0]["found"]]
    found = {method: np.array([run["found"][method] for run in runs]) for method in methods}
    ahead = found["search"] - found["outliers first"]
    return {
        "pictures": len(runs),
        "hits": float(np.mean([run["hits"] for run in runs])),
        "found": {method: each.mean(axis=0).round(4).tolist() for method, each in found.items()},
        "each, at the end": {method: each[:, -1].round(3).tolist() for method, each in found.items()},
        "ahead of outliers, standard error": (ahead.std(axis=0) / np.sqrt(len(runs))).round(4).tolist(),
        "left": covered([run["left"] for run in runs]),
    }


def draw(record: dict[str, Any]) -> Any:
    figure, axis = plots().subplots(figsize=(8, 3.6), layout="constrained")
    names = [name for name in (*SETS, *KINDS) if name in record]
    for place, method in enumerate(METHODS):
        rows = [
            (k, record[name]["found"][method][-1]) for k, name in enumerate(names) if method in record[name]["found"]
        ]
        x, height = np.array(rows).T
        axis.bar(x + 0.2 * place - 0.3, 100 * height, 0.2, label=method)
    axis.axhline(100 * BUDGET, color="0.3", ls="--", lw=0.8, label="at random")
    axis.set(ylabel="hits found in a tenth of the looks, %", ylim=(0, 100))
    axis.set_xticks(
        range(len(names)), [name.replace(" in ", "\nin ").replace(", ", ",\n") for name in names], fontsize=8
    )
    axis.legend(frameon=False, fontsize=8)
    return figure


def main() -> None:
    from joblib import Parallel, delayed

    parser = arguments(__doc__)
    parser.add_argument("--pictures", type=int, default=6)
    parser.add_argument("--coverage", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    for variable in ("OPENBLAS_NUM_THREADS", "SACCADE_NUM_THREADS"):
        os.environ[variable] = "1"  # for the processes that joblib starts
    jobs = [(name, seed) for name in KINDS for seed in range(FIRST, FIRST + options.coverage)]
    jobs += [(name, seed) for name in SETS for seed in range(options.pictures)]
    with show_progress():
        runs = Parallel(options.processes)(delayed(compared)(*job) for job in jobs)
    of = {name: [run for job, run in zip(jobs, runs, strict=True) if job[0] == name] for name in (*KINDS, *SETS)}
    record: dict[str, Any] = {"tiles of the synthetic": SMALL**2, "batch": BATCH, "looks": CHECKED}
    record |= {name: summary(each) for name, each in of.items()}
    for name, kinds in (("number left", KINDS), ("number left, cells and raccoons", SETS)):
        record[name] = covered([run["left"] for kind in kinds for run in of[kind]])
    write(options.out, "find_all_rivals", record, quiet=True)
    save_figure(draw(record), options.out, "find_all_rivals")
    for name in of:
        print(name, record[name]["found"], record[name]["left"]["interval"])


if __name__ == "__main__":
    main()
