"""A model and a pool: its kernel and noise, the posterior that they make, and what it believes of the classes."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.active.choosing import Beliefs, beliefs_of_field
from saccade.active.pool import one_against_rest, pool_gram
from saccade.active.strategies import STRATEGIES
from saccade.estimators.classifier import GPClassifier
from saccade.estimators.one_class import OneClassGP
from saccade.estimators.predictor import Predictor
from saccade.inference.posterior.pool import PoolPosterior
from saccade.kernels import HIK, Kernel
from saccade.kernels.engines import MEMORY, Engine
from saccade.scores.probability import class_means

NOISE = 0.1  # beside a classifier that has none
MEMBER, NO_MEMBER = ("1", "1.0", "true"), ("0", "0.0", "-1", "-1.0", "false")  # labels of one class


@dataclass(frozen=True)
class Prior:
    """What is known before any label."""

    kernel: Kernel
    noise: float
    levels: int | None = None
    binning: str = "quantile"
    engine: Engine = MEMORY


def is_plain(clf: Predictor) -> bool:
    """Whether the fit of the classifier is label regression with one noise for all: the field is its posterior."""
    return (
        isinstance(clf, GPClassifier)
        and clf.inference == "regression"
        and not clf.balanced
        and clf.approximation in ("auto", "exact")
    )


def kernel_and_noise(clf: Predictor, X: Any, rows: Array, labels: Array, fit: bool) -> Prior:
    """Kernel and noise of a model; if it tunes them, they are learned from the labels where these suffice."""
    if not isinstance(clf, GPClassifier | OneClassGP):
        return Prior(HIK(), NOISE)
    if not fit:
        check_is_fitted(clf)
        return Prior(clf.kernel_, clf.noise_, clf.levels, clf.binning, clf.engine)
    settings = clf.settings()
    learns = clf.tune is not None or clf.kernel == "auto"
    if learns and np.unique(labels).size >= 2:
        tuned = clone(clf).fit(X[rows], labels)
        return Prior(tuned.kernel_, tuned.noise_, clf.levels, clf.binning, clf.engine)
    return Prior(settings.kernel, settings.noise, clf.levels, clf.binning, clf.engine)


def field_of(prior: Prior, X: Any, rows: Array, labels: Array) -> PoolPosterior:
    """The posterior of the pool given its labels, one output for each class."""
    gram = pool_gram(prior.kernel, X, prior.levels, prior.binning, prior.engine)
    field = PoolPosterior.unobserved(gram, prior.noise)
    return field.observing(rows, one_against_rest(labels, np.unique(labels)))


def beliefs_of(
    clf: Predictor, prior: Prior, field: PoolPosterior, X: Any, rows: Array, labels: Array, strategy: str, fit: bool
) -> Beliefs:
    """By the field if that is the fit of the classifier, else by the classifier, fitted to the labels so far."""
    if isinstance(clf, OneClassGP):
        return _one_class(clf, field, X, rows, labels, strategy, fit)
    classes, label = np.unique(labels, return_inverse=True)
    if classes.size < 2 or _by_field(clf, strategy):
        return beliefs_of_field(field, label, classes)
    ours = clf if isinstance(clf, GPClassifier) else None
    if ours is None and STRATEGIES[strategy].needs_mean:
        raise InvalidParameter(
            f'strategy="{strategy}" needs the mean of a Gaussian process, and {type(clf).__name__} has none. Use '
            'GPClassifier(), or strategy="auto", "entropy" or "least-margin".'
        )
    if not hasattr(clf, "predict_proba"):
        raise InvalidParameter(
            f"`clf` must have predict_proba, and {type(clf).__name__} has none. Use GPClassifier(), or wrap it in "
            "scikit-learn's CalibratedClassifierCV."
        )
    if fit:
        if ours is not None:
            ours.set_params(kernel=field.gram.kernel, noise=prior.noise, tune=None)
        clf.fit(X[rows], labels)
    return Beliefs(
        classes.size,
        lambda some: np.zeros((some.size, classes.size)) if ours is None else _means(ours, X[some]),
        lambda some: np.asarray(clf.predict_proba(X[some])),
        lambda some: field.variance[some],
    )


def _by_field(clf: Predictor, strategy: str) -> bool:
    """Whether the field answers for the classifier; "value" moves the means of label regression."""
    return is_plain(clf) or (strategy == "value" and isinstance(clf, GPClassifier))


def _means(clf: GPClassifier, X: Any) -> Annotated[Array, "s, m"]:
    return class_means(np.reshape(clf.decision_function(X), (X.shape[0], -1)))


def _one_class(
    clf: OneClassGP, field: PoolPosterior, X: Any, rows: Array, labels: Array, strategy: str, fit: bool
) -> Beliefs:
    """A §7: the model of the members known so far, labels that are 1 or true; the others only leave the pool."""
    known = np.char.lower(labels.astype(str))
    unknown = labels[~np.isin(known, (*MEMBER, *NO_MEMBER))]
    if unknown.size and labels.dtype.kind == "U":  # any other number is no member
        raise InvalidInput(
            f"Labels for a OneClassGP are 1 or true for members, 0, -1 or false for others, got {unknown[0].item()!r}."
        )
    members = rows[np.isin(known, MEMBER)]
    if fit and not members.size:
        return beliefs_of_field(field, np.zeros(rows.size, np.int64))
    model = clf.fit(X[members]) if fit else clf

    def scores(some: Array) -> Array:
        """Positive, the highest is asked: distance from the most normal candidate, or nearness to the threshold."""
        normal = model.score_samples(X[some])
        if strategy == "novel":
            return np.asarray(normal.max() - normal + np.spacing(np.abs(normal).max()))
        spread = max(float(np.ptp(model.normal_scores_)), float(np.spacing(abs(model.offset_))))
        return np.asarray(1.0 / (1.0 + np.abs(normal - model.offset_) / spread))

    given = None if strategy in ("random", "variance", "typical") else scores
    return Beliefs(1, lambda s: field.mean[s], lambda s: np.ones((s.size, 1)), lambda s: field.variance[s], given)
