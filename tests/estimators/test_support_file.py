"""Inducing models without tables: their files keep the rows that carry them, and answer as before without a fit."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saccade import GPClassifier, GPRegressor, OneClassGP, load
from saccade._core import limits, model_file
from saccade._core.errors import InvalidInput, ModelFileError
from saccade.inference.posterior.gp import GP
from saccade.inference.posterior.supported import Supported
from saccade.kernels import HIK, RBF, Centred, GeneralizedRBF, Linear
from tests.memory import at_most
from tests.tolerances import assert_close

rng = np.random.default_rng(0)
X = rng.gamma(0.5, size=(620, 4))  # more than the 501 quantiles that files of tables keep of scores
NEW = rng.gamma(0.7, size=(40, 4))
CLASS = np.array(["ant", "bee", "cow"])[np.digitize(X[:, 0] + X[:, 1], [0.4, 1.2])]
NUMBER = 10.0 + X @ np.arange(4.0)
TARGETS: dict[Any, Any] = {GPClassifier: CLASS, GPRegressor: NUMBER, OneClassGP: None}
KERNELS = [RBF(0.7), RBF(1.0) + 0.5 * Linear()]
METHODS = ("fitc", "dtc", "sor", "sod")
QUESTIONS = (
    "predict",
    "predict_proba",
    "decision_function",
    "latent_mean_and_variance",
    "novelty",
    "score_samples",
)


def reloaded(model: Any, path: Path, rows: int = 31) -> Any:
    with pytest.warns(UserWarning, match=f"keeps {rows} training rows, because .* has no tables"):
        model.save(path)
    return load(path)


def assert_same(copy: Any, model: Any, new: Any = NEW) -> None:
    assert isinstance(copy.gp_, Supported)
    for question in QUESTIONS:
        if hasattr(model, question):
            found, wanted = (getattr(each, question)(new) for each in (copy, model))
            if not isinstance(wanted, tuple):
                found, wanted = (found,), (wanted,)
            for a, b in zip(found, wanted, strict=True):
                (np.testing.assert_array_equal if b.dtype.kind == "U" else assert_close)(a, b)
    if isinstance(model, GPRegressor):
        assert_close(copy.predict(new, return_std=True)[1], model.predict(new, return_std=True)[1])
    assert copy.variance_method_ == model.variance_method_


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("method", METHODS)
def test_file_and_memory_agree(method: Any, kind: Any, kernel: Any, tmp_path: Path) -> None:
    model = kind(kernel, noise=0.2, approximation=method, inducing=0.05).fit(X, TARGETS[kind])
    rows = len(model.gp_.support)  # Linear() determines some of them
    copy = reloaded(model, tmp_path / "m", rows)
    assert_same(copy, model)
    assert_same(reloaded(copy, tmp_path / "again", rows), model)
    assert (tmp_path / "m").stat().st_size < X.nbytes + 16_000  # scores and header
    assert repr(copy.kernel) == repr(kernel)


@pytest.mark.parametrize("options", [{}, {"levels": 16}, {"scale": "columns"}], ids=str)
@pytest.mark.parametrize("shift", [0.0, 0.3])
@pytest.mark.parametrize("method", METHODS)
def test_one_class_with_tables_of_the_mean_alone(method: Any, shift: float, options: Any, tmp_path: Path) -> None:
    """A file of HIK keeps the inducing rows too, signed ones as they came; prediction needs no other row."""
    model = OneClassGP(HIK(), noise=0.2, approximation=method, inducing=0.05, **options).fit(X - shift)
    rows = len(model.gp_.support)
    copy = reloaded(model, tmp_path / "m", rows)
    assert_same(copy, model, NEW - shift)
    assert_same(reloaded(copy, tmp_path / "again", rows), model, NEW - shift)
    assert copy.gp_.gram.shape[0] == rows <= 31


def test_tables_of_the_mean_are_those_of_the_support() -> None:
    model = GPClassifier(HIK(), noise=0.2, approximation="fitc", inducing=0.05).fit(X, CLASS)
    rows, gp = model.gp_.support, model.gp_
    assert gp.tables.levels.size <= (rows.size + 1) * X.shape[1]
    assert_close(gp.mean(NEW), gp.kernel(X[rows], NEW).T @ gp.solution.alpha[rows])


def test_signed_rows_are_kept_as_they_came(tmp_path: Path) -> None:
    model = GPClassifier(HIK(), noise=0.2).fit(X[:80] - 0.3, CLASS[:80])
    model.save(tmp_path / "m", examples=True)
    assert_close(load(tmp_path / "m").predict_proba(NEW - 0.3), model.predict_proba(NEW - 0.3))


@pytest.mark.parametrize("options", [{"variance": None}, {"variance": "sod"}, {"inference": "laplace"}], ids=str)
def test_variance_of_its_own(options: Any, tmp_path: Path) -> None:
    """With equal rows FITC drops one that the others determine; the subset keeps it."""
    Z = X[:120].copy()
    Z[7] = Z[3]
    model = GPClassifier(RBF(), approximation="fitc", inducing=np.arange(10), noise=0.2, **options)
    model.fit(Z, CLASS[:120])
    copy = reloaded(model, tmp_path / "m", 10 if "sod" in options.values() else 9)
    assert_close(copy.predict_proba(NEW), model.predict_proba(NEW))
    assert copy.inducing.tolist() == list(range(10))
    if options.get("variance", "") is None:
        with pytest.raises(InvalidInput, match="variance=None"):
            copy.latent_mean_and_variance(NEW)
    else:
        assert_same(copy, model)


def test_classes_with_noise_of_their_own(tmp_path: Path) -> None:
    for method in METHODS:
        model = GPClassifier(RBF(), approximation=method, inducing=0.05, balanced=True, noise=0.2)
        model.fit(X, CLASS, sample_weight=np.arange(620) % 3 + 1.0)
        assert model.latent_mean_and_variance(NEW)[1].shape == (40, 3)
        assert_same(reloaded(model, tmp_path / "m"), model)


def test_sparse_rows_and_two_targets(tmp_path: Path) -> None:
    sparse = sp.csr_matrix(np.where(X > 0.3, X, 0.0))
    model = GPRegressor(GeneralizedRBF(HIK(), beta="auto"), approximation="fitc", inducing=0.05)
    model.fit(sparse, np.column_stack([NUMBER, -NUMBER]))
    copy = reloaded(model, tmp_path / "m", len(model.gp_.support))  # some rows are zero
    assert_same(copy, model)
    assert_same(copy, model, sp.csr_matrix(NEW))
    assert sp.issparse(copy.gp_.gram.all_rows())
    assert copy.kernel.beta == "auto"


def test_scaled_columns_and_trimmed_rows(tmp_path: Path) -> None:
    model = OneClassGP(RBF(), scale="columns", trim=0.1, approximation="dtc", inducing=np.arange(20)).fit(X)
    copy = reloaded(model, tmp_path / "m", 20)
    assert_same(copy, model)
    assert copy.offset_ == model.offset_
    assert_close(copy.normal_scores_, model.normal_scores_)


def test_what_needs_all_examples_says_so(tmp_path: Path) -> None:
    model = GPClassifier(RBF(), approximation="fitc", inducing=0.05).fit(X, CLASS)
    copy = reloaded(model, tmp_path / "c")
    number = reloaded(GPRegressor(RBF(), approximation="sod", inducing=0.05).fit(X, NUMBER), tmp_path / "r")
    questions = (
        lambda: copy.partial_fit(NEW, CLASS[:40]),
        lambda: copy.log_marginal_likelihood(),
        lambda: copy.sample_latent(NEW),
        lambda: number.sample_y(NEW),
        lambda: number.predict(NEW, return_cov=True),
        lambda: number.partial_fit(NEW, NUMBER[:40]),
        lambda: copy.gp_.leave_one_out(),
    )
    for question in questions:
        with pytest.raises(InvalidInput, match="A loaded model holds no training examples"):
            question()
    with pytest.raises(AttributeError, match="leave_one_out_proba_"):
        _ = copy.leave_one_out_proba_
    with pytest.raises(InvalidInput, match="has none to save"):
        copy.save(tmp_path / "n", examples=True)
    with pytest.raises(ModelFileError, match="Leave `examples` out"):
        copy.save(tmp_path / "n", examples=False)
    with pytest.raises(ModelFileError, match="examples=True"):
        model.save(tmp_path / "n", examples=False)
    with pytest.raises(InvalidInput, match="quantise"):
        copy.quantized(16)
    assert not (tmp_path / "n").exists()


def test_all_rows_on_demand(tmp_path: Path) -> None:
    model = GPClassifier(RBF(), approximation="fitc", inducing=0.05).fit(X, CLASS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.save(tmp_path / "m", examples=True)
    copy = load(tmp_path / "m")
    assert isinstance(copy.gp_, GP)
    assert_close(copy.predict_proba(NEW), model.predict_proba(NEW))
    assert_close(copy.leave_one_out_proba_, model.leave_one_out_proba_)


@pytest.mark.parametrize(
    "options",
    [{"variance": "exact"}, {"variance": "diagonal"}, {"approximation": "exact"}, {"kernel": Centred(RBF())}],
    ids=str,
)
def test_all_rows_where_all_are_needed(options: Any, tmp_path: Path) -> None:
    """The centre of a kernel is a mean over all examples."""
    how = {"kernel": RBF(), "approximation": "fitc", "inducing": 0.05} | options
    model = GPRegressor(**how).fit(X[:100], NUMBER[:100])
    with pytest.warns(UserWarning, match="keeps 100 training rows"):
        model.save(tmp_path / "m")
    assert_close(load(tmp_path / "m").predict(NEW, return_std=True), model.predict(NEW, return_std=True))


CHANGES: dict[str, Any] = {
    "unknown method": lambda h, t: h["support"].update(method="lowrank"),
    "no method": lambda h, t: h["support"].update(method=None),
    "subset with two factors": lambda h, t: h["support"].update(method="sod"),
    "unknown kernel": lambda h, t: h["described"].update(name="os.system"),
    "negative length": lambda h, t: h["described"]["given"].update(length_scale=-1.0),
    "lengths of another width": lambda h, t: h["described"]["given"].update(length_scale={"array": [1.0] * 3}),
    "ball": lambda h, t: h.update(estimator="SVDD", parameters={}),
    "two classes": lambda h, t: h["classes"].update(values=["ant", "bee"]),
    "more rows in the header": lambda h, t: h.update(examples=32),
    "no rows": lambda h, t: t.pop("support_X"),
    "rows of another width": lambda h, t: t.update(support_X=t["support_X"][:, :-1]),
    "weights of too few": lambda h, t: t.update(support_alpha=t["support_alpha"][:-1]),
    "weights of too many": lambda h, t: t.update(support_alpha=np.vstack([t["support_alpha"]] * 2)),
    "places beyond the rows": lambda h, t: t.update(support_places=t["support_places"] + 1),
    "negative places": lambda h, t: t.update(support_places=t["support_places"] - 1),
    "no places": lambda h, t: h["support"].update(places=None),
    "a factor that is none": lambda h, t: t.update(support_L=0.0 * t["support_L"]),
    "a wide factor": lambda h, t: t.update(support_L=np.hstack([t["support_L"]] * 2)),
    "too few roots": lambda h, t: t.update(support_roots=t["support_roots"][:, :-1]),
    "two roots": lambda h, t: t.update(support_roots=np.hstack([t["support_roots"]] * 2)),
    "no roots": lambda h, t: h["support"].update(roots=None),
    "a negative root": lambda h, t: t.update(support_roots=-t["support_roots"]),
    "no factor": lambda h, t: t.pop("support_L"),
    "nan": lambda h, t: t.update(support_X=np.full_like(t["support_X"], np.nan)),
    "nan in a root": lambda h, t: t.update(support_roots=np.full_like(t["support_roots"], np.nan)),
    "unsharp": lambda h, t: h["extra"].update(sharpness=-1.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_fit_together_is_refused(change: str, tmp_path: Path) -> None:
    reloaded(GPClassifier(RBF(), approximation="fitc", inducing=0.05).fit(X, CLASS), tmp_path / "m")
    header, tensors = model_file.read(tmp_path / "m")
    CHANGES[change](header, tensors)
    model_file.write(tmp_path / "m", header, tensors)
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load(tmp_path / "m")


def test_declared_sizes_are_bounded(tmp_path: Path) -> None:
    """A sparse matrix of forged width or height would ask for gigabytes."""
    reloaded(GPRegressor(RBF(), approximation="sod", inducing=0.05).fit(sp.csr_matrix(X), NUMBER), tmp_path / "m")
    header, tensors = model_file.read(tmp_path / "m")
    for name in ("features", "examples"):
        model_file.write(tmp_path / "m", header | {name: 2_000_000_000}, tensors)
        with at_most(1 << 30), pytest.raises(ModelFileError, match=r"2,000,000,000"):
            load(tmp_path / "m")
    tensors["support_indices"][0] = 10**9
    model_file.write(tmp_path / "m", header, tensors)
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load(tmp_path / "m")


def test_rows_too_wide_to_be_loaded_are_not_saved(tmp_path: Path) -> None:
    few = sp.csr_matrix(X[:30])
    wide = sp.csr_matrix((few.data, few.indices, few.indptr), shape=(30, limits.SPARSE_SIDE + 1))
    model = GPRegressor(RBF(), approximation="sod", inducing=0.2).fit(wide, NUMBER[:30])
    with pytest.raises(InvalidInput, match="zero throughout"):
        model.save(tmp_path / "m")
