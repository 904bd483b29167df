"""What a situation model learns from few photographs: held-out log densities of dog, walker and leash.

    python experiments/situations.py [--splits 20]

Needs portland in SACCADE_DATA. First the joint density of the three boxes (twelve coordinates) in 100 photographs,
learned from 1 to 380 others, with correlations shrunk in several ways and the same variances in all of them; and Ledoit
and Wolf's covariance, and the covariance as it is, where these have a factor. Then, in four folds, the density of each
box alone and after the two others were found, and the share of photographs in which these were thought unlikely and
not used.
"""

from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, plots, save_figure, write

from saccade._core.arrays import Array
from saccade.datasets.on_disk import Photographs, portland
from saccade.localize import SituationModel
from saccade.localize.priors.densities import Normals
from saccade.localize.priors.learn_normals import choose_shrinkage, shrunk
from saccade.localize.situations.coordinates import SPREAD, coordinates_of

SIZES = (1, 2, 3, 5, 8, 12, 20, 50, 150, 380)
TEST = 100
KINDS = {"normal": {}, "mixture of 2": {"components": 2}, "mixture of 3": {"components": 3}}
FOLDS = 4


def toward_diagonal(U: Array, spread: Array) -> float:
    """Schäfer and Strimmer (2005): Σ var(r_ij) / Σ r_ij², over all pairs."""
    n = len(U)
    if n < 3:
        return 1.0
    Z = (U - U.mean(axis=0)) / U.std(axis=0)
    r = Z.T @ Z / n
    noise = (np.square(Z).T @ np.square(Z) / n - np.square(r)) / (n - 1)
    pairs = ~np.eye(len(r), dtype=bool)
    return float(min(1.0, noise[pairs].sum() / np.square(r[pairs]).sum()))


RULES = {
    "left-out rows (ours)": choose_shrinkage,
    "Schäfer and Strimmer": toward_diagonal,
    "five rows' worth": lambda U, spread: 5.0 / (len(U) + 5.0),
    "no correlations": lambda U, spread: 1.0,
}


def ledoit_wolf(U: Array) -> Array:
    from sklearn.covariance import ledoit_wolf as towards_identity

    return np.asarray(towards_identity(U)[0])


def joint_log_density(U: Array, new: Array, C: Array) -> float:
    """Of new rows, under a normal with the mean of U; −inf where C has no factor."""
    try:
        normal = Normals(np.ones(1), U.mean(axis=0)[None], C[None] * (1.0 + 1.0 / len(U)))
        return float(normal.log_density(new).mean())
    except np.linalg.LinAlgError:
        return -np.inf


def by_size(U: Array, splits: int) -> dict[str, list[float]]:
    spread = np.tile(SPREAD, U.shape[1] // 4)
    curves: dict[str, list[float]] = {name: [] for name in (*RULES, "Ledoit and Wolf", "covariance as it is")}
    for size in SIZES:
        found: dict[str, list[float]] = {name: [] for name in curves}
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(U))
            some, new = U[order[:size]], U[order[-TEST:]]
            S = np.cov(some.T, bias=True) if size > 1 else np.zeros((U.shape[1], U.shape[1]))
            for name, rule in RULES.items():
                C = shrunk(S, size, rule(some, spread), spread)
                found[name].append(joint_log_density(some, new, C))
            full = size > U.shape[1]
            found["Ledoit and Wolf"].append(joint_log_density(some, new, ledoit_wolf(some)) if size > 1 else -np.inf)
            found["covariance as it is"].append(joint_log_density(some, new, S) if full else -np.inf)
        for name, values in found.items():
            curves[name].append(round(float(np.mean(values)), 3))
    return curves


def in_context(data: Photographs, options: dict[str, Any]) -> dict[str, dict[str, float]]:
    """For each object the mean log density alone and after the others, and how often these were not used."""
    fold = np.arange(len(data.names)) % FOLDS
    rows: dict[str, list[tuple[float, float, bool]]] = {name: [] for name in data.boxes}
    for part in range(FOLDS):
        train = {name: box[fold != part] for name, box in data.boxes.items()}
        model = SituationModel("mixture" if options else "normal", **options).fit(train, data.sizes[fold != part])
        for i in np.flatnonzero(fold == part):
            found = {name: box[i] for name, box in data.boxes.items() if np.isfinite(box[i]).all()}
            for name, box in found.items():
                prior = model.prior(name, found, data.sizes[i])
                alone = model.log_density(box, name, None, data.sizes[i])[0]
                rows[name].append((alone, prior.log_density(box)[0], prior.fell_back))
    columns = ("alone", "after the others", "not used")
    return {
        name: dict(zip(columns, np.mean(values, axis=0).round(4).tolist(), strict=True))
        for name, values in rows.items()
    }


def draw(record: dict[str, Any], out: Path) -> None:
    figure, axes = plots().subplots(figsize=(7, 4.6), constrained_layout=True)
    for name, values in record["mean log density"].items():
        shown = [value if np.isfinite(value) else np.nan for value in map(_number, values)]
        axes.semilogx(record["sizes"], shown, "o-", ms=4, label=name)
    axes.set(xlabel="photographs to learn from", ylabel="held-out log density, nats", ylim=(-16, 4))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.set_title(f"Dog, walker and leash; mean of {record['splits']} splits, {TEST} held out")
    save_figure(figure, out, "situations")


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    data = portland()
    U = coordinates_of(data.boxes, data.sizes)[1]
    U = U[np.isfinite(U).all(axis=1)]
    curves = by_size(U, options.splits)
    record: dict[str, Any] = {"data": "Portland dog-walking", "photographs": len(U), "splits": options.splits}
    record |= {"seeds": f"0 to {options.splits - 1}", "test": TEST, "sizes": SIZES, "folds": FOLDS}
    record["mean log density"] = {
        name: [value if np.isfinite(value) else None for value in values] for name, values in curves.items()
    }
    record["in context"] = {name: in_context(data, chosen) for name, chosen in KINDS.items()}
    write(options.out, "situations", record)
    draw(record, options.out)


if __name__ == "__main__":
    main()
