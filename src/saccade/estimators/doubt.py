"""What a fitted model does not know: variance, covariance and samples, made ready when first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, gen_batches

from saccade._core.checks import check_count
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.inference.base import Approximation, own
from saccade.inference.eigenvalue_bounds import RoughTables, rough_tables
from saccade.inference.low_rank import LowRank, hold_out, low_rank
from saccade.inference.sampling import sample_intersection, sample_normal
from saccade.inference.variance import Exact, Explains, Trained, explainer
from saccade.kernels import HIK
from saccade.operators.codes import decode
from saccade.operators.intersection import Intersection
from saccade.operators.norms import NormTables, norm_tables
from saccade.operators.tables import GridTables
from saccade.solvers.cg import solve_cg

Array = np.ndarray[Any, np.dtype[Any]]
AT_ONCE = 4_000_000  # kernel values between training and new examples held at a time
IN_TABLES = ("lowrank", "rough")  # methods that the intersection kernel has tables for


def variance(
    model: Any,
    X: Any,  # (b, d), checked
) -> Array:  # (b, 1) or (b, m)
    """k** − k*ᵀK̃⁻¹k* or an upper bound of it, from 0 to k**; one column when all outputs share it."""
    check_wanted(model)
    if isinstance(model.kernel_, HIK) and model.variance_method_ in IN_TABLES:
        features, tables = model.kernel_.features(X), variance_tables(model)
        prior = np.asarray(features.sum(axis=1))
        known = tables.squared_norms(features) if isinstance(tables, NormTables) else tables.explained(features)
        return np.asarray(np.clip(prior - known[:, None], 0.0, prior))
    method = _explainer(model)
    return np.concatenate([method.variance(k_star, prior) for k_star, prior in _columns(model, X)])


def mean_and_variance(
    model: Any,
    X: Any,  # (b, d), checked
) -> tuple[Array, Array]:  # (b, m), and (b, 1) or (b, m)
    """Both, of kernel values that are found once where there are no tables of the mean."""
    if model.tables_ is not None:
        return model._mean(X), variance(model, X)
    check_wanted(model)
    method = _explainer(model)
    found = [(k_star.T @ model._alpha, method.variance(k_star, prior)) for k_star, prior in _columns(model, X)]
    mean, doubt = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return mean, doubt


def _columns(model: Any, X: Any) -> Iterator[tuple[Array, Array]]:  # (n, some), (some,)
    """k* and k** of the rows of X, some at a time."""
    train = train_rows(model)
    for rows in gen_batches(X.shape[0], _rows_at_once(train)):
        new = X[rows].astype(np.float64)
        yield model.kernel_(train, new), model.kernel_.diag(new)
        report("variance", rows.stop / X.shape[0])


def prepare(model: Any) -> None:
    """Make ready now what a variance takes, rather than at the first call."""
    if isinstance(model.kernel_, HIK) and model.variance_method_ in IN_TABLES:
        variance_tables(model)
    else:
        _explainer(model)


def left_out(
    model: Any,
    rows: Array,  # (b,) numbers of training examples, ascending
    X: Any,  # (b, d): the same as they came, see `as_they_came`
) -> tuple[Array, Array]:  # (b, m), and (b, 1) or (b, m)
    """Mean and variance of f at training examples, each as if it had not been there.

    In closed form, for examples as the codes have them and without the slack of tables. Where new examples are judged
    otherwise, the difference that makes for each of these is added: so new and old ones are judged alike.
    Of an example with a weight, one copy is left out; of one that is held out, all are.
    """
    method, targets = _explainer(model), model._sites.targets
    if isinstance(method, LowRank):
        prior, products = _examples(model).K.diag()[rows], method.KW[rows].T
        mean, variance_ = method.left_out_by(products, prior, rows, targets)
        with_itself = np.maximum(prior - np.square(products).sum(axis=0), 0.0)[:, None]
    elif isinstance(method, Approximation):
        mean, variance_, with_itself = _left_out_by_columns(model, method, rows)
    else:
        raise InvalidInput(
            f'variance="{model.variance_method_}" cannot leave examples out. Use "auto", "exact" or "lowrank".'
        )
    if not isinstance(method, LowRank) or not method.held_out.size:
        mean, variance_ = _with_other_copies(model, rows, mean, variance_)
    if isinstance(model.kernel_, HIK) and (_is_binned(model) or isinstance(method, LowRank)):
        shifted = variance_ + variance(model, X) - with_itself
        variance_ = np.clip(shifted, 0.0, model.kernel_.diag(X)[:, None])
    return mean + mean_shift(model, rows, X), variance_


def mean_shift(model: Any, rows: Array, X: Any) -> Array | float:  # (b, m)
    """What levels and quantised tables change about the mean at training examples."""
    if not _is_binned(model) and not isinstance(model.tables_, GridTables):
        return 0.0
    return np.asarray(model._mean(X) - _examples(model).K.matmul(model._alpha)[rows])


def _left_out_by_columns(model: Any, method: Approximation, rows: Array) -> tuple[Array, Array, Array]:
    """Mean and variance without each example, and variance with it, from columns of K, some at a time."""
    train, targets, found = train_rows(model), model._sites.targets, []
    for some in gen_batches(rows.size, max(1, AT_ONCE // len(targets))):
        k_rows = model.kernel_(train, train[rows[some]])
        with_itself = method.variance(k_rows, own(k_rows, rows[some])) if _is_binned(model) else np.zeros((0, 1))
        found.append((*method.left_out(k_rows, rows[some], targets), with_itself))
        report("leaving one out", some.stop / rows.size)
    mean, variance_, with_itself = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return mean, variance_, with_itself


def comparable(
    model: Any,
    most: int | None = None,  # None for all
) -> Array:  # (b,)
    """Numbers of the training examples that new ones are to be compared with, as `left_out` has them."""
    method = _explainer(model)
    rows = method.comparable() if isinstance(method, Approximation) else None
    rows = np.arange(len(model._sites.targets)) if rows is None else rows
    rows = np.intersect1d(rows, model._raw.numbers) if _is_binned(model) else rows
    return rows if most is None or rows.size <= most else np.sort(model._rng().choice(rows, most, replace=False))


def as_they_came(model: Any, rows: Array) -> Any:
    """Training examples among the comparable ones, before their values became levels."""
    return model._raw[rows] if _is_binned(model) else train_rows(model, rows)


def held_out(model: Any) -> Array | None:
    """The examples that stay new to a low-rank variance, if this kind of model compares new ones with them."""
    if not model.compares_novelty:
        return None
    n = len(model._sites.targets)
    pool = model._raw.numbers if _is_binned(model) else np.arange(n)
    return hold_out(pool, n, model.variance_rank, model._rng())


def _is_binned(model: Any) -> bool:
    return isinstance(model.kernel_, HIK) and model._raw is not None


def _with_other_copies(model: Any, rows: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and variance at examples left out with all their copies, once all copies but one are back.

    An example of weight w has the noise N; w − 1 of its copies are an observation there with the noise N w/(w − 1).
    """
    if model._weight is None:
        return mean, variance
    targets, noise = model._sites.targets[rows], model._sites.noise[rows]
    noise = noise.max(axis=1, keepdims=True) if variance.shape[1] == 1 else noise  # a variance for all has the largest
    kept = 1.0 / (1.0 + variance * np.maximum(0.0, 1.0 - 1.0 / model._weight[rows])[:, None] / noise)
    return targets + kept * (mean - targets), variance * kept


def left_out_variance(
    model: Any,
    exact: Array | None,  # (n, 1) or (n, m); None where the method has its own way of leaving one out
    most: int,
) -> tuple[Array, Array]:  # (b,), and (b, 1) or (b, m)
    """Numbers of training examples and their variance by the model's method, each as if it had not been there."""
    if exact is not None and model.variance_method_ == "exact":
        return np.arange(len(exact)), exact
    rows = comparable(model, most)
    if exact is None or model.variance_method_ in ("lowrank", "diagonal"):
        return rows, left_out(model, rows, as_they_came(model, rows))[1]
    # "fine" and "rough" cannot leave an example out: they are at least what they are with it, and what is true
    return rows, np.maximum(exact[rows], variance(model, as_they_came(model, rows)))


def variance_tables(model: Any) -> NormTables | RoughTables:
    """The tables that a model file keeps, made at the first call: low-rank ones unless the method is "rough"."""
    if not hasattr(model, "variance_tables_"):
        K = _examples(model).K
        assert isinstance(K, Intersection)
        if model.variance_method_ == "rough":
            model.variance_tables_ = rough_tables(K, model._sites.noise)
        else:
            known = getattr(model, "_explainer", None)
            if not isinstance(known, LowRank):
                known = low_rank(K, model._sites.noise, model.variance_rank, model._rng(), held_out(model))
            model.variance_tables_ = norm_tables(K, known.W)
    tables: NormTables | RoughTables = model.variance_tables_
    return tables


def covariances(
    model: Any,
    X: Any,  # (b, d), checked
) -> list[Array]:  # (b, b) a column of the noise
    """The exact posterior covariance of the latent function between the rows of X, whatever the method."""
    method = Exact(_examples(model))
    k_star, prior = model.kernel_(train_rows(model), X), model.kernel_(X)
    return [prior - explained for explained in method.covariances(k_star)]


def sample(
    model: Any,
    X: Any,  # (b, d), checked
    count: Any,
    random_state: Any,
) -> Array:  # (b, m, count)
    """Draws from the joint posterior of the latent function at the rows of X."""
    count = check_count("n_samples", count, "The default is 1.")
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    trained = _examples(model)
    if not isinstance(trained.K, Intersection):
        found, mean = covariances(model, X), model._mean(X)
        columns = [sample_normal(mean[:, j], found[min(j, len(found) - 1)], count, rng) for j in range(mean.shape[1])]
        return np.stack(columns, axis=1)

    def solve(B: Array, j: int) -> Array:
        if trained.factors:
            return trained.factors[j].solve(B)
        return solve_cg(trained.K, trained.noise[:, [j]], B, tol=trained.tol, max_iter=trained.max_iter).x

    train, new = model.kernel_.features(train_rows(model)), model.kernel_.features(X)
    return sample_intersection(trained.K, train, new, trained.noise, model._sites.targets, solve, count, rng)


def forget(model: Any) -> None:
    """Drop what belongs to an earlier fit."""
    for name in ("variance_tables_", "_explainer", "_known_scores"):
        model.__dict__.pop(name, None)


def _explainer(model: Any) -> Explains:
    if not hasattr(model, "_explainer"):
        model._explainer = explainer(
            model.variance_method_, _examples(model), model.variance_rank, model._rng(), held_out(model)
        )
    method: Explains = model._explainer
    return method


def check_wanted(model: Any) -> None:
    """Complain where there is no variance."""
    if model.variance_method_ is None:
        raise InvalidInput(
            f'This {type(model).__name__} was fitted with variance=None, so it has none. Fit it with variance="auto".'
        )


def _examples(model: Any) -> Trained:
    if not hasattr(model, "_sites"):
        raise InvalidInput(
            "A loaded model holds no training examples, which this needs. Ask the model that was fitted, or fit again."
        )
    return Trained(model._operator(), model._sites.noise, model._factors, model.tol, model.max_iter)


def train_rows(
    model: Any,
    rows: Array | None = None,  # ascending numbers, None for all
) -> Any:
    """The training examples; of an intersection kernel, as its codes have them."""
    if isinstance(model.kernel_, HIK):
        return decode(model._codes, rows)
    return model._X if rows is None else model._X[rows]


def _rows_at_once(train: Any) -> int:
    return int(np.clip(AT_ONCE // max(train.shape[0], 1), 16, 512))
