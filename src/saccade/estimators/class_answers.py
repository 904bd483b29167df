"""What a fitted classifier answers: decisions, classes, probabilities, novelty and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_draws, check_rows
from saccade.estimators.base import GaussianProcess, squeezed
from saccade.estimators.unknown_classes import EVEN, FEWEST, choose_weight
from saccade.inference.posterior.compressed import no_variance
from saccade.inference.posterior.gp import GP
from saccade.scores.accuracy import left_out_accuracy
from saccade.scores.novelty import ROUNDING, fisher_product, own_p_values, p_values, quantiles, repeated, unexplained
from saccade.scores.probability import class_means, probabilities, standardized_mean


class ClassAnswers(GaussianProcess):
    """The questions to a `GPClassifier`, which is trained in classifier.py or read from a file."""

    classes_: Array  # (M,)
    sharpness_: float
    leave_one_out_decision_: Array  # (n,) or (n, M): not in a loaded model
    leave_one_out_error_: float
    _label: Array  # (n,): numbers of classes
    _known_scores: dict[str, Array] | None = None  # what `novelty` compares with, once it was asked
    _n_known = 0  # the number of examples that they stand for
    _confidence_weight = EVEN  # of the confidence, where `novelty` joins it with the variance

    def _weighed_with_variance(self, mean: Array, variance: Array) -> Array:
        return mean if self.inference == "regression" else standardized_mean(mean, variance, self.noise_)

    def decision_function(self, X: Any) -> Array:
        """The latent mean μ, or μ/√(v + σ²) with "laplace" and "ep": (n,) for two classes, (n, M) for more."""
        return squeezed(self._decision(X))

    def predict(self, X: Any) -> Array:
        """The class with the largest decision value."""
        best = class_means(self._decision(X)).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Array:
        """Calibrated class probabilities (n, M), columns as in `classes_`."""
        return probabilities(self._decision(X), self.sharpness_)

    @property
    def leave_one_out_proba_(self) -> Array:  # (n, M)
        return probabilities(self._left_out_decision("leave_one_out_proba_"), self.sharpness_)

    @property
    def leave_one_out_accuracy_(self) -> tuple[float, float]:
        decision = class_means(self._left_out_decision("leave_one_out_accuracy_"))
        return left_out_accuracy(decision, self._label, np.nan_to_num(self.leave_one_out_error_))

    def _left_out_decision(self, name: str) -> Array:  # (n, 1) or (n, M)
        check_is_fitted(self)
        if not hasattr(self, "leave_one_out_decision_"):
            raise AttributeError(f"A loaded model has no {name}: it holds no training examples. Fit again.")
        return self.leave_one_out_decision_.reshape(self._label.size, -1)

    def _decision(self, X: Any) -> Array:  # (n, 1) or (n, M)
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        if self.inference == "regression":
            return self.gp_.mean(X)
        return standardized_mean(*self.gp_.mean_and_variance(X), self.noise_)

    def _additive(self, X: Any) -> tuple[Array, Array]:
        if self.inference == "regression":
            return super()._additive(X)
        return standardized_mean(np.ones((1, self._outputs)), self.gp_.variance(X), self.noise_), np.zeros(
            self._outputs
        )

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of the latent f (no noise added); the variance is (n,) when the classes share it.

        With `balanced`, "laplace" and "ep" each class has its own noise, and a variance of its own. "fine" gives one
        that bounds them all, and so does "lowrank" with `balanced`.
        """
        check_is_fitted(self)
        mean, variance = self.gp_.mean_and_variance(check_rows(self, X, reset=False))
        return squeezed(mean), squeezed(variance)

    def novelty(self, X: Any) -> Array:  # (n,)
        """How little each example is like the known classes: 0 for one like many, near 1 for one like none.

        Two signs, each compared with what training examples show when left out: the share of the variance that
        training does not explain, and how unsure the classes are. Their p-values are multiplied (Fisher's method), and
        the product again compared: above 0.95 is about a twentieth of all examples of known classes, and what is new.
        One sign counts more than the other, or alone, where that finds known classes better that were hidden from
        training in turn (unknown_classes.py).
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        known, n = self._known(), self._n_known  # first: its directions serve the tables of the variance too
        mean, variance = self.gp_.mean_and_variance(X)
        confidence = probabilities(self._weighed_with_variance(mean, variance), self.sharpness_).max(axis=1)
        left = unexplained(variance.mean(axis=1), self.kernel_.diag(X))
        signs = p_values(-left, known["explained"], n), p_values(confidence, known["confidence"], n)
        rare = fisher_product(*signs, self._confidence_weight)
        return np.asarray(1.0 - p_values(np.log(rare), np.log(known["both"]), n))

    def _known(self) -> dict[str, Array]:
        """The signs of novelty at training examples, each as if it had not been there; ascending."""
        if self._known_scores is None:
            if self.variance_method_ is None:
                no_variance()
            gp = self._examples()
            rows = gp.comparable(limits.EXAMPLES_COMPARED)
            known = gp.gram.as_given(rows)
            mean, variance = gp.left_out(rows, known)
            left = unexplained(variance.mean(axis=1), self.kernel_.diag(known))
            confidence = probabilities(self._weighed_with_variance(mean, variance), self.sharpness_).max(axis=1)
            weight = None if self._weight is None else self._weight[rows]
            signs = {"explained": -left - ROUNDING, "confidence": confidence - ROUNDING}
            explained, sure = (repeated(signs[name], weight) for name in ("explained", "confidence"))
            self._confidence_weight = self._weight_of_confidence(gp)
            signs["both"] = fisher_product(
                own_p_values(-left, explained), own_p_values(confidence, sure), self._confidence_weight
            )
            # before the scores, which tell other threads that both are there
            self._n_known = rows.size if weight is None else max(1, round(weight.sum()))
            self._known_scores = {k: quantiles(repeated(scores, weight)) for k, scores in signs.items()}
        return self._known_scores

    def _weight_of_confidence(self, gp: GP) -> float:
        """From some of the training examples, where there are classes enough."""
        if self.classes_.size < FEWEST:
            return EVEN
        some = np.random.default_rng(0).permutation(self._label.size)[: limits.EXAMPLES_HIDDEN]
        X = gp.gram.as_given(some)
        return choose_weight(self.kernel_(X), self.kernel_.diag(X), self._label[some], self.noise_, self.sharpness_)

    def sample_latent(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws of the latent f from its joint posterior at the rows of X: (n, n_samples), or (n, M, n_samples).

        Classes are drawn independently of each other. The training examples are needed: not for a loaded model.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return squeezed(self.gp_.sample(X, *check_draws(n_samples, random_state)))
