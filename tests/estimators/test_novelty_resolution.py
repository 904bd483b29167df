"""Novelty has the resolution that the guide promises: with few known examples, in memory and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier, OneClassGP, load
from saccade.features.recipes import recommended_settings
from saccade.kernels import HIK

Array = np.ndarray[Any, np.dtype[Any]]


def kinds(n: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of four kinds, and the kinds: a kind is known by its larger features."""
    y = np.arange(n) % 4
    X = rng.gamma(0.5, size=(n, d))
    X[np.arange(d) % 4 == y[:, None]] *= 3.0
    return X, y


def test_a_file_of_few_examples_says_more_than_095(tmp_path: Path) -> None:
    """68 examples and 64 directions: a quarter of them alone was known to the file, and 17/18 the most it said."""
    rng, n = np.random.default_rng(0), 68
    X, y = np.abs(rng.normal(size=(n, 160))) * (rng.random((n, 160)) < 0.5), np.arange(n) % 4
    X[np.arange(n), y] += 30.0
    model = GPClassifier(**recommended_settings(1280)).fit(X, y)
    model.save(tmp_path / "m", compact=True)
    back, new = load(tmp_path / "m"), np.abs(rng.normal(size=(20, 160))) * 5.0
    assert back.novelty_reference_.known == n
    for one in (model, back):
        found = one.novelty(new)
        assert found.min() > 0.95
        assert found.max() < 1.0
        assert np.unique(found).size == 20  # beyond all that is known they are still ranked


@pytest.mark.parametrize(
    ("n", "inference"),
    [(24, "regression"), (70, "regression"), (120, "regression"), (200, "regression"), (70, "laplace")],
)
def test_about_a_twentieth_of_the_known_passes_095(n: int, inference: str, tmp_path: Path) -> None:
    """Over models of few examples, on both sides of the number from which a low rank holds some out."""
    models, new = 24 if inference == "regression" else 10, 200
    alarms = np.empty((2, models))
    for seed in range(models):
        X, y = kinds(n + new, 24, np.random.default_rng(seed))
        model = GPClassifier(inference=inference, variance_rank=20, noise=0.1).fit(X[:n], y[:n])
        model.save(tmp_path / "m")
        both = model, load(tmp_path / "m")
        alarms[:, seed] = [(one.novelty(X[n:]) > 0.95).mean() for one in both]
    spread = 3.0 * alarms.std(axis=1) / np.sqrt(models)
    steps = [
        int(0.05 * (one.novelty_reference_.known + 1) - 1e-9) / (one.novelty_reference_.known + 1) for one in both
    ]  # p-values have n + 1 steps
    assert (alarms.mean(axis=1) < 0.05 + spread).all()
    assert (alarms.mean(axis=1) > 0.8 * np.array(steps) - spread).all()


@pytest.mark.parametrize("measure", ["probability", "variance", "mean", "ratio"])
def test_beyond_all_known_the_farther_is_the_newer(measure: str, tmp_path: Path) -> None:
    X = np.random.default_rng(0).gamma(2.0, size=(30, 6))
    model = OneClassGP(scale=None, measure=measure).fit(X)
    model.save(tmp_path / "m")
    far = X.max(axis=0) * np.logspace(1, 9, 9)[:, None]
    for one in (model, load(tmp_path / "m")):
        scores = one.score_samples(far)
        found = one.novelty(far)[np.argsort(-scores)]
        beyond = np.sort(scores)[::-1] < one.normal_scores_[0]
        assert (np.diff(found[beyond]) > 0).all()
        assert (found < 1.0).all()
        assert beyond.sum() >= 5 or measure == "mean"


def test_weights_of_less_than_one_example() -> None:
    X, y = kinds(20, 8, np.random.default_rng(0))
    model = GPClassifier(HIK(), noise=0.1).fit(X, y, sample_weight=np.full(20, 1e-3))
    found = model.novelty(X)
    assert model.novelty_reference_.known == 1
    assert found.min() >= 0.0
    assert found.max() < 1.0


def test_trimmed_examples_are_compared_with_as_often_as_the_others() -> None:
    """A low rank compares with a quarter of the examples: with a quarter of the trimmed ones too."""
    X = np.random.default_rng(0).gamma(0.5, size=(300, 12))
    model = OneClassGP(approximation="lowrank", variance_rank=20, trim=0.1, scale=None).fit(X)
    held_out = model.gp_.comparable().size
    assert held_out == 270 // 4
    assert model.n_known_ == held_out + len(range(0, 30, 4))


def test_known_examples_are_compared_with_the_others() -> None:
    """Their p-values are k/n: with themselves among the others they were (k + 1)/(n + 1), and new ones too novel."""
    n = 23
    X, y = kinds(n, 24, np.random.default_rng(0))
    joined = GPClassifier(noise=0.1).fit(X, y)._known().both * n**2
    np.testing.assert_allclose(joined, joined.round(), atol=1e-6)


def test_one_of_several_copies_is_left_out_of_a_low_rank() -> None:
    """The other copies still explain the example, a little less than all of them."""
    X, y = kinds(40, 8, np.random.default_rng(0))
    weight = np.where(np.arange(40) < 5, 6.0, 1.0)
    model = GPClassifier(HIK(scale=1.0), noise=0.1, variance="lowrank", variance_rank=20)
    gp = model.fit(X, y, sample_weight=weight).gp_
    with_all, without_one = gp.variance(X[:5])[:, 0], gp.left_out(np.arange(5))[1][:, 0]
    for i in range(5):
        rest = np.delete(np.arange(40), i)
        without_any = model.fit(X[rest], y[rest], sample_weight=weight[rest]).gp_.variance(X[[i]])[0, 0]
        assert 1.001 * with_all[i] < without_one[i] < without_any
