"""Models without tables: their files keep the training rows, say so, and answer as before."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saccade import SVDD, GPClassifier, GPRegressor, OneClassGP, load
from saccade._core import model_file
from saccade._core.errors import InvalidInput, ModelFileError
from saccade.kernels import (
    HIK,
    RBF,
    Centred,
    Chi2,
    GeneralizedRBF,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Power,
    Scaled,
    Weights,
)
from tests.tolerances import assert_close

rng = np.random.default_rng(0)
X = rng.gamma(0.5, size=(60, 5)) * (rng.random((60, 5)) < 0.7)
NEW = rng.gamma(0.7, size=(40, 5)) * (rng.random((40, 5)) < 0.7)
NUMBER = np.arange(60) % 3
KERNELS = [
    RBF(0.7),
    RBF([0.5, 1.0, 2.0, 1.0, 1.0]),
    GeneralizedRBF(HIK([Power(0.5), Weights([1, 0, 2, 0.5, 1])]), beta="auto"),
    Matern(1.5, nu=2.5) + 2.0 * Linear(),
    Laplacian(0.5) * Chi2(0.5),
    Centred(HIK()),
]


def reloaded(model: Any, path: Path, says: str = "training rows", **how: Any) -> Any:
    with pytest.warns(UserWarning, match=says) if says else warnings.catch_warnings():
        model.save(path, **how)
    return load(path)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_classifier(kernel: Kernel, tmp_path: Path) -> None:
    model = GPClassifier(kernel, noise=0.2, random_state=0).fit(X, np.array(["ant", "bee", "cow"])[NUMBER])
    copy = reloaded(model, tmp_path / "m", "keeps 60 training rows, because .* has no tables")
    assert_close(copy.predict_proba(NEW), model.predict_proba(NEW))
    assert_close(copy.latent_mean_and_variance(NEW)[1], model.latent_mean_and_variance(NEW)[1])
    assert_close(copy.novelty(NEW), model.novelty(NEW))
    assert_close(copy.leave_one_out_proba_, model.leave_one_out_proba_)
    assert_close(copy.kernel.resolved(3.0 * X)(NEW), model.kernel.resolved(3.0 * X)(NEW))
    copy.partial_fit(NEW, np.array(["dog"] * len(NEW)))
    assert copy.classes_.tolist() == ["ant", "bee", "cow", "dog"]


@pytest.mark.parametrize("weight", [None, np.arange(60) % 4 / 2.0], ids=["equal", "weighed"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_regressor(weight: Any, outputs: int, tmp_path: Path) -> None:
    y = np.column_stack([X.sum(axis=1), X[:, 0] - 3.0])[:, :outputs].squeeze()
    model = GPRegressor(RBF(), noise=0.1).fit(np.vstack([X, X]), np.concatenate([y, y + 0.1]), None)
    copy = reloaded(model, tmp_path / "m")
    for found, wanted in zip(copy.predict(NEW, return_std=True), model.predict(NEW, return_std=True), strict=True):
        assert_close(found, wanted)
    assert_close(copy.log_marginal_likelihood().value, model.log_marginal_likelihood().value)
    weighed = GPRegressor(RBF(), noise=0.1).fit(X, y, weight)
    assert_close(reloaded(weighed, tmp_path / "w").predict(NEW), weighed.predict(NEW))


def test_without_noise(tmp_path: Path) -> None:
    model = GPRegressor(Matern(1.0), noise=0.0).fit(X, X.sum(axis=1))
    copy = reloaded(model, tmp_path / "m")
    assert_close(copy.predict(NEW), model.predict(NEW))
    copy.partial_fit(X[:3], X[:3].sum(axis=1))  # seen already


@pytest.mark.parametrize(
    "model",
    [
        OneClassGP(RBF(0.5)),
        OneClassGP(HIK(), approximation="diagonal"),
        OneClassGP(RBF(), approximation="fitc", inducing=np.arange(7)),
        SVDD(RBF(0.5), nu=0.3),
    ],
    ids=str,
)
@pytest.mark.parametrize("sparse", [False, True])
def test_one_class(model: Any, sparse: bool, tmp_path: Path) -> None:
    model.fit(sp.csr_matrix(X) if sparse else X)
    copy = reloaded(model, tmp_path / "m")
    assert_close(copy.score_samples(NEW), model.score_samples(NEW))
    assert_close(copy.offset_, model.offset_)
    assert_close(reloaded(copy, tmp_path / "again").score_samples(NEW), model.score_samples(NEW))


def test_rows_on_demand(tmp_path: Path) -> None:
    """Tables have another variance than the exact one, rows have all there was; asked for, they need no warning."""
    model = GPClassifier(random_state=0).fit(X, NUMBER)
    copy = reloaded(model, tmp_path / "m", "", examples=True)
    assert_close(copy.latent_mean_and_variance(NEW)[1], model.latent_mean_and_variance(NEW)[1])
    assert copy.variance_method_ == "exact"
    assert reloaded(model, tmp_path / "t", "").variance_method_ == "lowrank"


def test_tuned(tmp_path: Path) -> None:
    """What was learned is not learned again."""
    model = GPClassifier(GeneralizedRBF(HIK(Power(1.0))), tune="loo", random_state=0).fit(X, NUMBER)
    copy = reloaded(model, tmp_path / "m")
    assert copy.tuning_ is None
    assert_close(copy.predict_proba(NEW), model.predict_proba(NEW))


class Mine(RBF):
    """A kernel of the user."""


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="examples=True"):
        GPClassifier(RBF()).fit(X, NUMBER).save(tmp_path / "m", examples=False)
    with pytest.raises(ModelFileError, match="holds no code"):
        GPClassifier(Mine()).fit(X, NUMBER).save(tmp_path / "m")
    rounded = GPClassifier(levels=8).fit(X, NUMBER)
    with pytest.raises(ModelFileError, match="levels=None"):
        rounded.save(tmp_path / "m", examples=True)
    with pytest.raises(ModelFileError, match="quantised"):
        GPClassifier().fit(X, NUMBER).quantized(16).save(tmp_path / "m", examples=True)
    assert not (tmp_path / "m").exists()
    rounded.save(tmp_path / "m")
    with pytest.raises(InvalidInput, match="has none to save"):
        load(tmp_path / "m").save(tmp_path / "n", examples=True)


CHANGES: dict[str, Any] = {
    "unknown kernel": lambda h, t: h["described"].update(name="os.system"),
    "a transform as kernel": lambda h, t: h.update(described={"name": "Power", "given": {"eta": 1.0}}),
    "unknown parameter": lambda h, t: h["described"]["given"].update(evil=1),
    "unknown value": lambda h, t: h["described"]["given"].update(length_scale={"call": "exit"}),
    "negative length": lambda h, t: h["described"]["given"].update(length_scale=-1.0),
    "labels beyond the classes": lambda h, t: t.update(examples_y=t["examples_y"] + 1),
    "labels of too few": lambda h, t: t.update(examples_y=t["examples_y"][:-1]),
    "rows of another width": lambda h, t: t.update(examples_X=t["examples_X"][:, :-1]),
    "more rows in the header": lambda h, t: h.update(examples=61),
    "nan": lambda h, t: t.update(examples_X=np.full_like(t["examples_X"], np.nan)),
    "no rows": lambda h, t: t.pop("examples_X"),
    "two equal classes": lambda h, t: h["classes"].update(values=[0, 0, 1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_fit_together_is_refused(change: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="training rows"):
        GPClassifier(RBF()).fit(X, NUMBER).save(tmp_path / "m")
    header, tensors = model_file.read(tmp_path / "m")
    CHANGES[change](header, tensors)
    model_file.write(tmp_path / "m", header, tensors)
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load(tmp_path / "m")


def test_a_column_beyond_the_matrix_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="training rows"):
        GPClassifier(RBF()).fit(sp.csr_matrix(X), NUMBER).save(tmp_path / "m")
    header, tensors = model_file.read(tmp_path / "m")
    tensors["examples_indices"][0] = 10**9
    model_file.write(tmp_path / "m", header, tensors)
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load(tmp_path / "m")


@pytest.mark.parametrize("deep", [16, 17])
def test_kernels_within_kernels(deep: int, tmp_path: Path) -> None:
    kernel: Kernel = RBF()
    for _ in range(deep):
        kernel = Scaled(kernel, 1.0)
    model = GPClassifier(kernel).fit(X[:6], NUMBER[:6])
    if deep == 17:
        with pytest.raises(ModelFileError, match="up to 16"):
            model.save(tmp_path / "m")
    else:
        reloaded(model, tmp_path / "m")


def test_a_kernel_centred_twice_is_refused(tmp_path: Path) -> None:
    """Every further one would multiply the time that a forged file takes to load."""
    with pytest.raises(ModelFileError, match="Centre it once"):
        GPClassifier(Centred(Scaled(Centred(RBF()), 2.0))).fit(X[:6], NUMBER[:6]).save(tmp_path / "m")
    with pytest.warns(UserWarning, match="training rows"):
        GPClassifier(Centred(RBF())).fit(X[:6], NUMBER[:6]).save(tmp_path / "m")
    header, tensors = model_file.read(tmp_path / "m")
    header["described"] = {"name": "Centred", "given": {"base": {"part": header["described"]}}}
    model_file.write(tmp_path / "m", header, tensors)
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load(tmp_path / "m")


def test_compact_tables(tmp_path: Path) -> None:
    """Half the size, nearly the same answers, and still an upper bound of the variance."""
    wide = rng.gamma(0.5, size=(60, 400))
    model = GPClassifier(levels=16, variance="lowrank", random_state=0).fit(wide, NUMBER)
    model.save(tmp_path / "whole")
    model.save(tmp_path / "compact", compact=True)
    whole, compact = load(tmp_path / "whole"), load(tmp_path / "compact")
    sizes = [(tmp_path / name).stat().st_size for name in ("whole", "compact")]
    assert sizes[1] < 0.55 * sizes[0]
    new = rng.gamma(0.5, size=(30, 400))
    np.testing.assert_allclose(compact.predict_proba(new), whole.predict_proba(new), rtol=1e-4, atol=1e-5)
    (_, variance), (_, bound) = whole.latent_mean_and_variance(new), compact.latent_mean_and_variance(new)
    assert (bound >= variance - 1e-6 * model.kernel_.diag(new)).all()
    np.testing.assert_allclose(bound, variance, atol=0.01 * float(model.kernel_.diag(new).mean()))
    compact.save(tmp_path / "again", compact=True)
    np.testing.assert_array_equal(load(tmp_path / "again").predict_proba(new), compact.predict_proba(new))


COMPACT: dict[str, Any] = {
    "no unit": lambda h, t: h["variance"].pop("unit"),
    "unit of 0": lambda h, t: h["variance"].update(unit=0.0),
    "another type": lambda h, t: t.update(variance_T=t["variance_T"].astype(np.float32)),
    "mean of another type": lambda h, t: t.update(T=t["T"].astype(np.float64)),
    "not compact after all": lambda h, t: h.pop("compact"),
}


@pytest.mark.parametrize("change", COMPACT)
def test_compact_tables_that_do_not_fit_together(change: str, tmp_path: Path) -> None:
    GPClassifier(random_state=0).fit(X, NUMBER).save(tmp_path / "m", compact=True)
    header, tensors = model_file.read(tmp_path / "m")
    COMPACT[change](header, tensors)
    model_file.write(tmp_path / "m", header, tensors)
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load(tmp_path / "m")
