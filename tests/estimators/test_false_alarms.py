"""False alarms come as often as promised: on both sides of 2,048 examples, by every approximation, and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from saccade import GPClassifier, OneClassGP, load
from saccade._core.errors import InvalidParameter
from saccade.inference.approximations.by_name import APPROXIMATIONS
from saccade.kernels import HIK, RBF, Centred, GeneralizedRBF, Kernel, Linear
from saccade.scores.novelty import threshold

Array = np.ndarray[Any, np.dtype[Any]]


def rows_of(kind: str, n: int, d: int, rng: np.random.Generator) -> Array:
    if kind == "uniform":
        return rng.random((n, d))
    histograms = rng.gamma(0.5, size=(n, d))  # a flat spectrum: leading directions follow the examples they come from
    return np.asarray(histograms / histograms.sum(axis=1, keepdims=True))


def assert_honest(alarms: Array, promised: float, compared: int) -> None:
    """The rate of a threshold set on `compared` examples is spread by their number and by that of the new ones."""
    deviation = np.sqrt(promised * (1 - promised) * (1 / compared + 1 / alarms.size))
    assert abs(alarms.mean() - promised) < 4.0 * deviation + 1 / compared


@pytest.mark.parametrize("n", [2048, 2049])
@pytest.mark.parametrize(
    ("kind", "d"), [("uniform", 1), ("uniform", 3), ("uniform", 50), ("histograms", 2), ("histograms", 50)]
)
def test_both_sides_of_the_largest_exact_model(kind: str, d: int, n: int, tmp_path: Path) -> None:
    rows = rows_of(kind, n + 2000, d, np.random.default_rng(d))
    model = OneClassGP().fit(rows[:n])
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert model.variance_method_ == ("exact" if n == 2048 else "lowrank")
    for one in (model, back):
        scores = one.score_samples(rows[n:])
        for promised in (0.05, 0.2, 0.5):
            assert_honest(scores < threshold(one.normal_scores_, promised), promised, one.n_known_)
    assert_honest(model.predict(rows[n:]) < 0, 0.05, model.n_known_)


@pytest.mark.parametrize("approximation", [a for a in APPROXIMATIONS if a != "optimized-signed"])  # see its docs
@pytest.mark.parametrize("measure", ["probability", "variance"])
def test_every_approximation(approximation: str, measure: str) -> None:
    """Ten small models each: a threshold of one is spread too widely to see a bias of a third."""
    if approximation == "sor":
        measure = "mean"  # its variance says nothing far from its points
    found, n = [], 40 if approximation.startswith("optimized") else 150
    for seed in range(10):
        rows = rows_of("histograms", n + 1000, 12, np.random.default_rng(seed))
        options: dict[str, Any] = {"variance_rank": 20, "inducing": 0.3, "contamination": 0.2, "random_state": seed}
        model = OneClassGP(approximation=approximation, measure=measure, **options).fit(rows[:n])
        found.append(model.predict(rows[n:]) < 0)
        assert model.n_known_ >= n // 4
    assert_honest(np.concatenate(found), 0.2, 10 * model.n_known_)


@pytest.mark.parametrize("n", [1500, 2500])
@pytest.mark.parametrize("d", [3, 40])
def test_novelty_of_classifiers(d: int, n: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rows_of("uniform", n + 2000, d, rng)
    label = (rows[:, 0] + 0.1 * rng.standard_normal(len(rows)) > 0.5).astype(int)
    model = GPClassifier().fit(rows[:n], label[:n])
    model.save(tmp_path / "m")
    for one in (model, load(tmp_path / "m")):
        for promised in (0.05, 0.2, 0.5):
            assert_honest(one.novelty(rows[n:]) > 1 - promised, promised, one.novelty_reference_.known)


@pytest.mark.parametrize("n", [500, 2100])
@pytest.mark.parametrize("binning", ["quantile", "width"])
def test_few_levels(n: int, binning: str, tmp_path: Path) -> None:
    """Training examples are rounded to levels, and new ones are not."""
    rows = rows_of("uniform", n + 1000, 5, np.random.default_rng(0))
    model = OneClassGP(levels=16, binning=binning, contamination=0.2).fit(rows[:n])
    model.save(tmp_path / "m")
    for one in (model, load(tmp_path / "m"), model.quantized(64)):
        assert_honest(one.predict(rows[n:]) < 0, 0.2, one.n_known_)
    label = (rows[:, 0] > 0.5).astype(int)
    classes = GPClassifier(levels=16, binning=binning).fit(rows[: n // 2], label[: n // 2])
    classes.partial_fit(rows[n // 2 : n], label[n // 2 : n])
    assert_honest(classes.novelty(rows[n:]) > 0.8, 0.2, classes.novelty_reference_.known)


def test_coarse_steps_of_the_mean() -> None:
    rows = rows_of("uniform", 1500, 4, np.random.default_rng(0))
    model = OneClassGP(measure="mean", contamination=0.2).fit(rows[:500])
    assert_honest(model.quantized(5).predict(rows[500:]) < 0, 0.2, 500)


def test_a_real_table_and_its_file(tmp_path: Path) -> None:
    """Columns of scales from 1e-3 to 1e3; the file has a low-rank variance in the place of the exact one."""
    rows = load_breast_cancer().data
    alarms: dict[str, list[float]] = {"fitted": [], "loaded": []}
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(len(rows))
        model = OneClassGP(contamination=0.2).fit(rows[order[:300]])
        model.save(tmp_path / "m")
        for name, one in (("fitted", model), ("loaded", load(tmp_path / "m"))):
            alarms[name].append((one.predict(rows[order[300:]]) < 0).mean())
    for rates in alarms.values():  # six splits of the same rows are not six times as many rows
        assert abs(np.mean(rates) - 0.2) < 0.05


CENTRED: dict[str, Kernel] = {
    "linear": Centred(Linear()),
    "HIK": 2.0 * Centred(HIK()),
    "sum": Centred(Linear()) + RBF(4.0),
    "product": Centred(Linear()) * RBF(10.0),
    "distance": GeneralizedRBF(Centred(Linear())),
}


@pytest.mark.parametrize(("n", "d"), [(100, 500), (60, 10), (40, 40)])
@pytest.mark.parametrize("name", CENTRED)
def test_centred_kernels(name: str, n: int, d: int, tmp_path: Path) -> None:
    """The left-out example takes its part of the centre along; 100 % of new rows were novel before, of 100 × 500."""
    kernel, some, models = CENTRED[name], 400, 3 if name == "product" else 6
    told = kernel.centred_part() is not kernel
    for measure in ("variance", "probability", "mean", "ratio") if told else ("variance", "probability"):
        found = []
        for seed in range(models):
            rows = np.random.default_rng(seed).normal(size=(n + some, d))
            options: dict[str, Any] = {"measure": measure, "contamination": 0.2, "noise": 0.01 if d > n else 0.1}
            model = OneClassGP(kernel, **options).fit(rows[:n])
            found.append(model.predict(rows[n:]) < 0)
        assert_honest(np.concatenate(found), 0.2, models * n)
        model.save(tmp_path / "m", examples=True)
        np.testing.assert_array_equal(load(tmp_path / "m").predict(rows[n:]) < 0, found[-1])


def test_the_mean_of_a_centred_kernel_is_refused() -> None:
    rows = rows_of("uniform", 20, 3, np.random.default_rng(0))
    for kernel in (Centred(Linear()), 2.0 * Centred(HIK()), Centred(RBF()) + Centred(Linear())):
        with pytest.raises(InvalidParameter, match="tells nothing"):
            OneClassGP(kernel, measure="mean").fit(rows)
    OneClassGP(Centred(Linear()) + RBF(), measure="mean").fit(rows)
