"""Scores of a model of one class, and the threshold that left-out training examples set."""

from __future__ import annotations

from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade.estimators.base import GaussianProcess
from saccade.estimators.nothing_to_compare import warn_of_training
from saccade.inference.posterior.gp import GP
from saccade.scores.novelty import NOTHING, Measure, lowest_membership, membership, threshold


class JudgedExamples(GaussianProcess):
    """What `OneClassGP` compares new examples with."""

    measure: Measure
    contamination: float
    offset_: float
    leave_one_out_scores_: Array  # (n,)
    normal_scores_: Array  # ascending
    n_known_: int
    _aside: Any  # (t, d): training examples that were trimmed
    _left_out_mean: Array  # (n − t,)
    _least_prior = -1.0  # k(x, x) up to which a row has nothing to compare: none, in files of earlier versions
    _middle_score = 0.0  # what such a row scores

    def _judge(self, gp: GP, X: Any, trained: Array) -> None:
        """Scores and threshold, from all examples X as if each had not been there; some of them trained gp."""
        n, prior = X.shape[0], self.kernel_.diag(X)
        self._aside = X[np.setdiff1d(np.arange(n), trained)]
        self._least_prior = -1.0 if self.measure == "mean" else float(NOTHING * prior.mean())
        warn_of_training(prior, self._least_prior)
        mean, variance = (found[:, 0] for found in gp.left_out(np.arange(trained.size), X[trained]))
        self._left_out_mean = mean
        rows = gp.comparable()
        self._compare_with(gp, mean[rows], variance[rows], prior[trained[rows]])
        found = np.empty(n)
        found[trained] = self._scored(mean, variance, X[trained])
        if trained.size < n:
            found[np.setdiff1d(np.arange(n), trained)] = self._measured(self._aside)
        self.leave_one_out_scores_ = self._unless_empty(found, prior)

    def _compare_with(self, gp: GP, mean: Array, variance: Array, prior: Array) -> None:
        """The threshold, and what p-values are taken against: the scores of left-out examples, ties being ties.

        Examples that were trimmed are among them, as many of them as of the others.
        """
        some = self._aside[:: max(1, gp.gram.shape[0] // max(1, mean.size))]
        if some.shape[0]:
            found = gp.mean_and_variance(some)
            mean, variance = (np.append(a, b[:, 0]) for a, b in zip((mean, variance), found, strict=True))
            prior = np.append(prior, self.kernel_.diag(some))
        sign, told = self.inference != "regression", prior > self._least_prior
        if not told.any():
            told = np.ones_like(told)
        lowest = lowest_membership(self.measure, mean[told], variance[told], prior[told], self.noise_, sign=sign)
        self.offset_ = threshold(lowest, self.contamination)
        self.normal_scores_, self.n_known_ = np.sort(lowest), lowest.size
        self._middle_score = float(np.median(lowest))

    def _unless_empty(
        self,
        scores: Array,  # (b,)
        prior: Array,  # (b,) k(x, x)
    ) -> Array:  # (b,)
        """The scores; the middle one of the training examples where a row has next to nothing to compare."""
        return np.where(prior > self._least_prior, scores, self._middle_score)

    def _compare_anew(self, gp: GP) -> None:
        """The same for a copy that judges otherwise than its original, by examples that are still at hand."""
        rows = gp.comparable()
        X = gp.gram.as_given(rows)
        self._compare_with(gp, self._left_out_mean[rows], gp.left_out(rows, X)[1][:, 0], self.kernel_.diag(X))

    def _scored(self, mean: Array | None, variance: Array | None, X: Any = None) -> Array:
        sign = self.inference != "regression"
        prior = self.kernel_.diag(X) if self.measure == "ratio" else 1.0
        return membership(self.measure, mean, variance, self.noise_, sign=sign, prior=prior)

    def _measured(self, X: Any) -> Array:  # (n,)
        if self.measure == "mean":
            return self._scored(self.gp_.mean(X)[:, 0], None)
        if self.measure == "variance":
            return self._scored(None, self.gp_.variance(X)[:, 0])
        mean, variance = self.gp_.mean_and_variance(X)
        return self._scored(mean[:, 0], variance[:, 0], X)
