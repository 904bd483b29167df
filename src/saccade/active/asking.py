"""`query`: which examples to label next, in the shape of scikit-activeml's query strategies."""

import warnings
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from saccade._core.arrays import Array
from saccade._core.checks import check_choice, check_costs, check_count, check_flag, check_positive
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.random_state import seed_of
from saccade.active.choosing import Lines, QueryRequest, choose_rows
from saccade.active.losses import check_losses
from saccade.active.models import beliefs_of, field_of, kernel_and_noise
from saccade.active.others import query_by
from saccade.active.pool import check_pool, known_labels
from saccade.active.strategies import STRATEGIES, Strategy
from saccade.estimators.classifier import GPClassifier
from saccade.estimators.one_class import OneClassGP
from saccade.estimators.predictor import Predictor


def query(
    X: Any,
    y: Any,
    clf: Predictor | None = None,
    candidates: Any = None,
    strategy: Strategy | Any = "auto",
    batch_size: int = 1,
    return_utilities: bool = False,
    *,
    joint: bool = True,
    missing_label: Any = None,
    costs: Any = None,
    budget: float | None = None,
    losses: Mapping[tuple[Any, Any], float] | None = None,
    targets: Any = None,
    fit_clf: bool = True,
    random_state: Any = None,
) -> Array | tuple[Array, Array]:
    """The rows of X whose labels are worth most.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        All examples, labelled or not.
    y : array of shape (n,)
        Labels; NaN, None or `missing_label` where there is none yet. All may be missing.
    clf : GPClassifier, OneClassGP or another classifier, optional
        Its kernel and noise make the posterior, and its probabilities are those of its fit. Another classifier gives
        its probabilities alone, and strategies that need a mean refuse it. It is never changed. None: GPClassifier().
    candidates : array of int, array of shape (c, d), or None
        The rows that may be asked for; None for all without a label. Rows of features: the answer numbers these.
    strategy : str, or a query strategy of scikit-activeml
        "auto"              "medoids" up to 8 labels per class, then "variance-reduction" times squared doubt
        "random"            uniformly at random
        "margin"            |μ|, the distance to the border between the two likeliest classes (K)
        "variance"          σ² (K, A)
        "uncertainty"       |μ|/√(σ² + σ_n²) (K)
        "one-a-class"       "uncertainty" of each class against the rest, in turns (K's rounds of several classes)
        "entropy", "least-margin"   of the calibrated probabilities
        "medoids"           the row nearest to doubtful rows that have no label near them, in distances of the kernel;
                            of a large pool 2,048 rows drawn at random are looked at
        "typical", "sigma"  Σ-optimality over `targets`; without a label, examples like many others
        "variance-reduction"  by how much a label lowers the variances of all targets together
        "information-gain"  what a label tells about the labels of the targets, in nats
        "output-change"     the expected change of all outputs at the targets; this and "information-gain" look at 512
                            targets and 16,384 candidates at most, drawn at random
        "value"             value of information (K §9): by how much a label lowers the expected cost of mistakes at
                            the targets, less its own cost, by label regression; with `costs`, questions that are not
                            worth their own are not asked. It looks at 512 targets and 256 candidates at most
        "novel", "doubtful" of a OneClassGP: the least normal, or the nearest to its threshold (A)
        A strategy that needs two classes asks for typical examples until there are two; "novel" and "doubtful" ask at
        random until there is a member.
    batch_size : int
        Number of rows to ask for.
    return_utilities : bool
        Return the scores too.
    joint : bool
        True: rows are chosen one by one, with variance and covariance conditioned on the rows of the batch so far.
        False: the best ones as if each were asked alone.
    missing_label : label, optional
        A value of `y` that means no label, besides NaN and None.
    costs, budget : array of shape (n,), float
        The positive cost of labelling each row. The score per cost decides, and the costs of a batch stay within the
        budget.
    losses : dict, optional
        For "value": the cost of saying one class where it is another, such as {("healthy", "sick"): 20.0}, in the units
        of `costs`. A pair that is left out costs 1.
    targets : array of int or None
        Rows of X whose answers matter; None for all.
    fit_clf : bool
        False takes kernel and noise of a fitted `clf` as they are, and does not adapt them to X.
    random_state : int, RandomState, Generator or None
        Seed of "random", and of the sample of targets that "information-gain" and "output-change" look at. None means
        the same random numbers at every call.

    Returns
    -------
    indices : array of shape (b,)
        In the order of choice. Fewer, with a warning, where there are no more candidates; or where the budget ends.
    utilities : array of shape (b, n), with `return_utilities`
        The scores by which each was chosen; NaN for rows that were not candidates then.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> known = np.full(len(y), np.nan)
    >>> first = query(X, known, batch_size=20)
    >>> known[first] = y[first]
    >>> len(np.unique(y[first])) > 5, query(X, known, batch_size=3).shape
    (True, (3,))
    """
    if isinstance(strategy, str):
        check_choice("strategy", strategy, tuple(STRATEGIES))
    for name, flag in {"return_utilities": return_utilities, "joint": joint, "fit_clf": fit_clf}.items():
        check_flag(name, flag)
    prices = check_losses(losses, strategy)
    size, X = check_count("batch_size", batch_size, "The default is 1."), check_pool(X)
    n, (rows, labels) = X.shape[0], known_labels(y, X.shape[0], missing_label)
    pool, open_, first = _candidates(X, candidates, rows)
    if not isinstance(strategy, str):
        _check_ours(strategy, costs=costs, budget=budget, targets=targets, fit_clf=None if fit_clf else False)
        allowed = None if candidates is None else pool[n:] if first else open_
        options = {"candidates": allowed, "batch_size": size, "return_utilities": return_utilities}
        by_other: Array | tuple[Array, Array] = query_by(strategy, X, rows, labels, clf, **options)
        return by_other
    X = pool
    if size > open_.size:
        warnings.warn(f"`batch_size` is {size} and there are {open_.size} candidates: all are asked.", stacklevel=2)
    clf = GPClassifier() if clf is None else clf
    _check_pair(strategy, clf)
    model = kernel_and_noise(clf, X, rows, labels, fit_clf)
    field = field_of(model, X, rows, labels)
    beliefs = beliefs_of(clf if not fit_clf else clone(clf), model, field, X, rows, labels, strategy, fit_clf)
    cost = _costs(costs, n, X.shape[0] - n, first)
    aims = _targets(targets, n)
    wanted = QueryRequest(
        size, joint, cost, _budget(budget, costs), aims, seed_of(random_state), prices, return_utilities
    )
    found, lines = choose_rows(field, beliefs, open_, strategy, wanted)
    return (found - first, _utilities(lines, X.shape[0])[:, first:]) if return_utilities else found - first


def _utilities(lines: Lines, n: int) -> Annotated[Array, "b, n"]:
    """The scores of each question; NaN for rows that were not candidates then."""
    utilities = np.full((len(lines), n), np.nan)
    for line, (scored, score) in zip(utilities, lines, strict=True):
        line[scored] = np.where(np.isfinite(score), score, np.nan)
    return utilities


def _check_pair(strategy: str, clf: Predictor) -> None:
    """An error for a strategy that asks a model what it does not know."""
    if STRATEGIES[strategy].one_class != isinstance(clf, OneClassGP) and strategy not in (
        "random",
        "variance",
        "typical",
    ):
        raise InvalidParameter(
            f'strategy="{strategy}" and {type(clf).__name__} do not go together: "novel" and "doubtful" are for '
            "OneClassGP, the others for classifiers."
        )


def _check_ours(strategy: Any, **given: Any) -> None:
    """An error for arguments that a strategy of scikit-activeml does not know and would ignore."""
    name = next((name for name, value in given.items() if value is not None), None)
    if name is not None:
        raise InvalidParameter(
            f"`{name}` is for strategies by name, and {type(strategy).__name__} does not know it. Leave it out."
        )


def _candidates(X: Any, candidates: Any, labelled: Array) -> tuple[Any, Array, int]:
    """The pool, the rows of it that may be asked for, and the row that the answer counts from."""
    n = X.shape[0]
    if candidates is None:
        open_ = np.setdiff1d(np.arange(n), labelled)
        if not open_.size:
            raise InvalidInput(f"All {n} examples are labelled, so there is nothing to ask. Add rows to X.")
        return X, open_, 0
    if not sp.issparse(candidates) and np.ndim(candidates) == 1:
        some = _rows(candidates, "candidates", n)
        if some is None or not some.size:
            raise InvalidInput("`candidates` is empty, so there is nothing to ask. Pass None for all without a label.")
        return X, some, 0
    more = check_pool(candidates)
    if more.shape[1] != X.shape[1]:
        raise InvalidInput(f"`candidates` has {more.shape[1]} features and X has {X.shape[1]}. They must be equal.")
    stack = sp.vstack([X, more], format="csr") if sp.issparse(X) or sp.issparse(more) else np.vstack([X, more])
    return stack, np.arange(n, n + more.shape[0]), n


def _targets(targets: Any, n: int) -> Array | None:
    found = _rows(targets, "targets", n)
    if found is not None and not found.size:
        raise InvalidInput("`targets` is empty, so no label is worth anything. Pass None for all rows.")
    return found


def _rows(numbers: Any, name: str, n: int) -> Array | None:
    """Row numbers, ascending and each once."""
    if numbers is None:
        return None
    found = np.asarray(numbers)
    if found.dtype == bool and found.shape == (n,):
        return np.flatnonzero(found)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise InvalidInput(f"`{name}` must be row numbers, got {numbers!r:.100}.")
    if found.size and not (found.min() >= 0 and found.max() < n):
        bad = found[(found < 0) | (found >= n)][0]
        raise InvalidInput(f"`{name}` has row {bad}, and X has rows 0 to {n - 1}.")
    return np.unique(found).astype(np.int64)


def _costs(costs: Any, n: int, added: int, first: int) -> Array | None:
    """A cost per row of the pool; where candidates are rows of features, one per candidate is given."""
    if costs is None:
        return None
    found = check_costs(costs, added if first else n)
    return np.append(np.ones(n), found) if first else found


def _budget(budget: float | None, costs: Any) -> float:
    if budget is None:
        return float("inf")
    if costs is None:
        raise InvalidParameter("`budget` needs `costs`: what each label costs. For a number of labels, use batch_size.")
    return check_positive("budget", budget, "None means no limit.")
