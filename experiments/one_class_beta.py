"""How to choose β of the generalised RBF exp(−β d) from the training set alone: O §6.3 calls it unsolved.

    python experiments/one_class_beta.py --cache FOLDER [--splits 5]

Needs the pictures in SACCADE_DATA. Every rule sees only the squared distances d of the training pictures (the permuted
rows need their features too); it is judged by the mean AUC of GP regression against the background class, for 15
training pictures of all 101 classes and for 100 of the classes that have at least 110.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, plots, save_figure, write
from one_class_kernels import LAZEBNIK, LEAVES, SIDES, TREES, Blocks, Caltech, Task, grown, pyramids, tasks
from one_class_methods import MEASURES, NOISE, auc, local, measures

from saccade._core.arrays import Array

BETAS = 2.0 ** np.arange(-6, 7.5, 0.5)
TYPICAL = "β = 1 / (2 mean d)"
REPRESENTATIONS = ("phog", "colour", "deep")
MANY, ENOUGH = 100, 110


def apart(D: Array) -> Array:
    """The distances of different pictures."""
    return np.asarray(D[np.triu_indices_from(D, 1)])


def typical(D: Array) -> float:
    """k falls to e^(−1/2) at the mean squared distance."""
    return 0.5 / float(apart(D).mean())


def left_out(K: Array) -> tuple[Array, Array]:
    """Mean and variance of each label 1 from all the others."""
    from saccade.inference.solving.closed_form import leave_one_out
    from saccade.solvers.cholesky import factorise

    ones = np.ones((len(K), 1))
    factor = factorise(K, np.full(len(K), NOISE))
    mean, variance = leave_one_out(ones, factor.solve(ones), factor.inverse_diagonal()[:, None], NOISE * ones)
    return mean[:, 0], variance[:, 0]


def evidence(K: Array) -> float:
    """log p(all labels are 1)."""
    from saccade.solvers.cholesky import factorise

    factor = factorise(K, np.full(len(K), NOISE))
    return -0.5 * (float(factor.solve(np.ones(len(K))).sum()) + factor.log_determinant())


def left_out_density(K: Array) -> float:
    mean, variance = left_out(K)
    return float(-0.5 * (np.log(variance + NOISE) + (1 - mean) ** 2 / (variance + NOISE)).sum())


def intrinsic_dimension(D: Array) -> float:
    """Levina and Bickel 2004, with all neighbours."""
    sorted_distances = np.sqrt(np.sort(D + np.diag(np.full(len(D), np.inf)), axis=1)[:, :-1])
    return float(1 / np.log(sorted_distances[:, -1:] / np.maximum(sorted_distances[:, :-1], 1e-9)).mean())


def parzen(D: Array) -> float:
    """Leave-one-out likelihood of the kernel density, whose normaliser is β^(m/2) in m dimensions."""
    dimension = intrinsic_dimension(D)

    def likelihood(beta: float) -> float:
        K = np.exp(-beta * D)
        others = K.sum(axis=1) - 1
        return float(np.log(others + 1e-300).mean() + dimension / 2 * np.log(beta))

    return best(likelihood)


def outlier_auc(D: Array, far: Array) -> Callable[[float], float]:
    """How well the variance tells training pictures, left out, from the pseudo-outliers at the distances `far`."""

    def value(beta: float) -> float:
        K, k_star = np.exp(-beta * D), np.exp(-beta * far)
        inverse = np.linalg.inv(K + NOISE * np.eye(len(K)))
        explained = np.append(1 - left_out(K)[1], np.einsum("ij,ij->i", k_star @ inverse, k_star))
        return float(auc(np.arange(len(explained)) < len(K), explained[:, None])[0])

    return value


def best(value: Callable[[float], float]) -> float:
    return float(BETAS[np.argmax([value(beta) for beta in BETAS])])


def extrapolated(D: Array) -> Array:
    """The squared distances from training points to Φ_i + (Φ_i − mean), twice as far out: from the kernel alone."""
    K = 1 - D / 2
    mean = K.mean(axis=0)
    own = 4 * K.diagonal() - 4 * mean + mean.mean()
    return np.asarray(own[:, None] + 1 - 2 * (2 * K - mean))


def permuted(data: Caltech, representation: str, task: Task) -> Array:
    """The same for rows whose every dimension comes from another training picture."""
    from saccade.kernels import HIK

    if representation == "colour":
        forest = grown(data.sifts, task, TREES, LEAVES)
        weights = np.repeat(LAZEBNIK, [forest.n_words_ * side**2 for side in SIDES])
        X = (pyramids(data.sifts, task.train, forest) * weights[:, None]).T
    else:
        X = data.vectors(representation)[task.train].toarray()
    Z = np.random.default_rng(task.split).permuted(X, axis=0)
    kernel = HIK(scale=1.0).resolved(X)
    return np.asarray(kernel.diag(Z)[:, None] + kernel.diag(X) - 2 * kernel(Z, X))


def nearest(D: Array) -> float:
    """The median squared distance to the nearest other picture."""
    return float(np.median((D + np.diag(np.full(len(D), np.inf))).min(axis=1)))


def of_kernel(value: Callable[[Array], float]) -> Callable[[Array], float]:
    return lambda D: best(lambda beta: value(np.exp(-beta * D)))


RULES: dict[str, Callable[[Array], float]] = {
    "β = 1": lambda D: 1.0,
    TYPICAL: typical,
    "1 / (4 median d)": lambda D: 0.25 / float(np.median(apart(D))),
    "1 / (2 median d)": lambda D: 0.5 / float(np.median(apart(D))),
    "1 / median d": lambda D: 1 / float(np.median(apart(D))),
    "2 / median d": lambda D: 2 / float(np.median(apart(D))),
    "1 / (2 nearest d)": lambda D: 0.5 / nearest(D),
    "1 / nearest d": lambda D: 1 / nearest(D),
    "largest var k": of_kernel(lambda K: float(apart(K).var())),
    "largest var k / mean k": of_kernel(lambda K: float(apart(K).var() / apart(K).mean())),
    "evidence": of_kernel(evidence),
    "leave-one-out density": of_kernel(left_out_density),
    "largest spread of left-out V": of_kernel(lambda K: float(left_out(K)[1].std())),
    "Parzen likelihood": parzen,
    "outliers: extrapolated": lambda D: best(outlier_auc(D, extrapolated(D))),
}
PERMUTED = "outliers: permuted rows"


def judge(data: Caltech, representation: str, task: Task) -> tuple[dict[str, float], dict[str, Array]]:
    """β and AUC (4,) of each rule; beside them the kernel without β, and the best β for each measure."""
    blocks = data.blocks(representation, task)
    D = 2 - 2 * blocks.K
    chosen = {name: rule(D) for name, rule in RULES.items()}
    chosen[PERMUTED] = best(outlier_auc(D, permuted(data, representation, task)))
    at = {beta: aucs(local(blocks, beta)) for beta in {*chosen.values(), *BETAS.tolist()}}
    found = {name: at[beta] for name, beta in chosen.items()}
    found["no β"] = aucs(blocks)
    found["best β of each task"] = np.max([at[beta] for beta in BETAS.tolist()], axis=0)
    return chosen, found


def aucs(blocks: Blocks) -> Array:  # (4,)
    return auc(blocks.normal, measures(blocks, "regression", NOISE))


def group(data: Caltech, representation: str, chosen: list[Task]) -> dict[str, Any]:
    """Means over the tasks, a rule each."""
    judged = [judge(data, representation, task) for task in chosen]
    record: dict[str, Any] = {"tasks": len(chosen), "auc": {}, "beta": {}}
    for name in judged[0][1]:
        means = np.mean([found[name] for _, found in judged], axis=0)
        record["auc"][name] = dict(zip(MEASURES, means.round(4).tolist(), strict=True))
        if name in judged[0][0]:
            betas = [beta for beta, _ in judged]
            record["beta"][name] = np.quantile([b[name] for b in betas], (0.1, 0.5, 0.9)).round(4).tolist()
    return record


def draw(record: dict[str, Any], out: Path) -> None:
    """What each rule leaves to the best β, for the variance and the mean."""
    groups = record["groups"]
    names = [name for name in groups["colour 15"]["auc"] if name != "best β of each task"]
    names.sort(key=lambda name: np.mean([groups[g]["auc"][name][m] for g in shown(groups) for m in "VM"]))
    figure, panels = plots().subplots(1, 4, figsize=(14, 5.5), sharey=True, constrained_layout=True)
    for axes, g in zip(panels, shown(groups), strict=True):
        for measure, colour, mark in (("V", "#0b6e4f", "D"), ("P", "#1f77b4", "s"), ("M", "#b45309", "o")):
            values = [groups[g]["auc"][name][measure] for name in names]
            axes.plot(values, range(len(names)), mark, color=colour, ms=6, alpha=0.85, label=f"Reg-{measure}")
            axes.axvline(groups[g]["auc"]["best β of each task"][measure], color=colour, lw=0.8, ls=":")
        axes.set(
            yticks=range(len(names)), yticklabels=names, xlabel="mean AUC", title=g.replace(" ", ", ") + " pictures"
        )
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=3, frameon=False, loc="outside lower center")
    figure.suptitle("β from the training set alone (dotted: the best β of each task, chosen on the test set)")
    save_figure(figure, out, "one_class_beta")


def shown(groups: dict[str, Any]) -> list[str]:
    return [g for g in groups if not g.startswith("deep")]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    data = Caltech(options.cache)
    large = [label for label in data.classes if (data.y == label).sum() >= ENOUGH]
    record: dict[str, Any] = {"data": "Caltech-101 against its background class", "splits": options.splits}
    record |= {"noise": NOISE, "betas": BETAS.tolist(), "large_classes": large, "recommended": TYPICAL, "groups": {}}
    few = list(tasks(data, options.splits))
    many = [data.task(label, split, MANY) for split in range(options.splits) for label in large]
    for representation in REPRESENTATIONS:
        for size, chosen in ((15, few), (MANY, many)):
            name = f"{representation} {size}"
            record["groups"][name] = group(data, representation, chosen)
            print(name, *record["groups"][name]["auc"].items(), sep="\n  ", flush=True)
    write(options.out, "one_class_beta", record, quiet=True)
    draw(record, options.out)


if __name__ == "__main__":
    main()
