"""The score model and the belief of a search against dense algebra."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from saccade._core.arrays import Array
from saccade.localize import BoxPrior
from saccade.localize.search.belief import Belief, grid_boxes, grid_moments
from saccade.localize.search.misfits import Misfits, Mixture
from saccade.localize.search.score_model import (
    BETA,
    BETA_SPREAD,
    FALL,
    Misfit,
    Views,
    WithMisfit,
    clutter_and_offset,
    shares,
)
from tests.localize.search import look_reference

BOUNDS = np.array([10.0, 20.0, 650.0, 500.0])
MISFIT = Misfit(noise=0.1, clutter=0.2)
ONE = Misfits((MISFIT,), np.ones(1))
# Two noises of one clutter and offset, by an eigendecomposition, another clutter by a factor, and another scale.
SEVERAL = Misfits(
    (
        Misfit(0.05, 0.2),
        Misfit(0.3, 0.2, scale=2.5),
        Misfit(0.1, 0.4),
    ),
    np.array([0.5, 0.2, 0.3]),
)


def some_boxes(n: int, seed: int) -> Array:
    return BoxPrior.unknown(BOUNDS).sample(n, np.random.default_rng(seed))


def some_evidence(n: int = 12, misfits: Misfits = ONE) -> Mixture:
    scores = np.random.default_rng(1).normal(0.3, 0.3, n)
    return Mixture(Views.of(BOUNDS, some_boxes(n, 0), scores), misfits)


def dense_prior(boxes: Array, object_: Array | None, misfit: Misfit = MISFIT) -> tuple[Array, Array]:
    """Mean and covariance of the scores of boxes, without noise, if this is the object, or if there is none."""
    C = clutter_and_offset(boxes, boxes, BOUNDS, misfit)
    if object_ is None:
        return np.zeros(len(boxes)), misfit.scale**2 * C
    H = shares(boxes, object_[None], BOUNDS)[:, :, 0].T
    return misfit.scale * (H @ BETA), misfit.scale**2 * (C + H @ np.diag(BETA_SPREAD**2) @ H.T)


def dense_log_likelihood(looks: Views, object_: Array | None, misfits: Misfits) -> float:
    logs = []
    for misfit, share in zip(misfits.each, misfits.shares, strict=True):
        mean, C = dense_prior(looks.boxes, object_, misfit)
        noise = (misfit.noise * misfit.scale) ** 2 * np.eye(len(C))
        logs.append(np.log(share) + multivariate_normal(mean, C + noise).logpdf(looks.scores))
    return float(logsumexp(logs))


def only(evidence: Mixture, objects: Array) -> WithMisfit:
    """The process of the only misfit."""
    return evidence.given(objects).parts(np.full(len(objects), 1.0 / len(objects)))[0].given


def test_shares_are_those_of_the_slow_twin() -> None:
    boxes, objects = some_boxes(40, 3), some_boxes(30, 4)
    expected = look_reference.shares(boxes, objects, 640.0, 480.0, FALL)
    np.testing.assert_allclose(shares(boxes, objects, BOUNDS), expected, atol=1e-12)


@pytest.mark.parametrize("misfits", [ONE, SEVERAL])
def test_log_likelihood_is_that_of_normals(misfits: Misfits) -> None:
    evidence, objects = some_evidence(12, misfits), some_boxes(7, 5)
    for object_, found in zip(objects, evidence.log_likelihood(objects), strict=True):
        assert found == pytest.approx(dense_log_likelihood(evidence.looks, object_, misfits), abs=1e-8)


@pytest.mark.parametrize("misfits", [ONE, SEVERAL])
def test_log_likelihood_without_an_object(misfits: Misfits) -> None:
    evidence = some_evidence(12, misfits)
    assert evidence.log_likelihood_of_none() == pytest.approx(
        dense_log_likelihood(evidence.looks, None, misfits), abs=1e-8
    )


def test_scores_of_other_boxes_are_those_of_all_misfits_by_their_probability() -> None:
    """Mean and variance over every misfit and object, each by conditioning a normal."""
    evidence, objects, boxes = some_evidence(12, SEVERAL), some_boxes(4, 6), some_boxes(9, 7)
    looks, weights = evidence.looks, np.array([0.4, 0.3, 0.2, 0.1])
    n, middle, square, total = len(looks.boxes), np.zeros(9), np.zeros(9), 0.0
    for object_, weight in zip(objects, weights, strict=True):
        for misfit, share in zip(SEVERAL.each, SEVERAL.shares, strict=True):
            alone = dense_log_likelihood(looks, object_, Misfits((misfit,), np.ones(1)))
            part = weight * share * np.exp(alone - dense_log_likelihood(looks, object_, SEVERAL))
            m, C = dense_prior(np.vstack([looks.boxes, boxes]), object_, misfit)
            K = C[:n, :n] + (misfit.noise * misfit.scale) ** 2 * np.eye(n)
            mean = m[n:] + C[n:, :n] @ np.linalg.solve(K, looks.scores - m[:n])
            left = np.diag(C[n:, n:] - C[n:, :n] @ np.linalg.solve(K, C[:n, n:]))
            middle, square, total = middle + part * mean, square + part * (left + mean**2), total + part
    assert total == pytest.approx(1.0)
    found, variance = evidence.given(objects).moments(boxes, objects, weights)
    np.testing.assert_allclose(found, middle, atol=1e-4)  # misfits of less than a hundredth are left out
    np.testing.assert_allclose(variance, square - middle**2, atol=1e-4)


def test_predictions_are_those_of_conditioned_normals() -> None:
    evidence, objects, boxes = some_evidence(), some_boxes(5, 6), some_boxes(9, 7)
    mean, variance = look_reference.predict(only(evidence, objects), boxes, objects)
    looked = evidence.looks.boxes
    n = len(looked)
    for j, object_ in enumerate(objects):
        m, C = dense_prior(np.vstack([looked, boxes]), object_)
        K = C[:n, :n] + MISFIT.noise**2 * np.eye(n)
        expected = m[n:] + C[n:, :n] @ np.linalg.solve(K, evidence.looks.scores - m[:n])
        left = np.diag(C[n:, n:] - C[n:, :n] @ np.linalg.solve(K, C[:n, n:]))
        np.testing.assert_allclose(mean[:, j], expected, atol=1e-9)
        np.testing.assert_allclose(variance[:, j], left, atol=1e-9)


def test_the_part_of_an_object_is_that_of_its_shares() -> None:
    """β given the looks, by conditioning its normal on them."""
    evidence, objects, boxes = some_evidence(), some_boxes(3, 6), some_boxes(5, 7)
    mean, variance = evidence.given(objects).of_object(boxes, objects)
    for j, object_ in enumerate(objects):
        H = shares(evidence.looks.boxes, object_[None], BOUNDS)[:, :, 0].T
        m, C = dense_prior(evidence.looks.boxes, object_)
        K, B = C + MISFIT.noise**2 * np.eye(len(C)), np.diag(BETA_SPREAD**2)
        beta = BETA + B @ H.T @ np.linalg.solve(K, evidence.looks.scores - m)
        left = B - B @ H.T @ np.linalg.solve(K, H @ B)
        new = shares(boxes, object_[None], BOUNDS)[:, :, 0].T
        np.testing.assert_allclose(mean[:, j], new @ beta, atol=1e-9)
        np.testing.assert_allclose(variance[:, j], np.einsum("ci,ij,cj->c", new, left, new), atol=1e-9)


def test_the_best_look_so_far_is_the_largest_part_of_the_object() -> None:
    evidence, objects = some_evidence(), some_boxes(4, 5)
    belief = Belief(evidence, None, 1.0)  # type: ignore[arg-type]
    looked = evidence.looks.boxes
    parts, _, best, noise = belief.choices(looked, objects)
    assert noise == pytest.approx(MISFIT.noise**2)
    np.testing.assert_array_equal(best, parts.max(axis=0))
    assert (parts.min(axis=0) < best).all()


def test_moments_of_the_mixture_are_those_of_its_parts() -> None:
    evidence, objects, boxes = some_evidence(), some_boxes(20, 8), some_boxes(50, 9)
    given, weights = only(evidence, objects), np.random.default_rng(2).dirichlet(np.ones(20))
    mean, variance = given.mixed(boxes, objects, weights, given.smooth(boxes))
    middle, spread = look_reference.moments(*look_reference.predict(given, boxes, objects), weights)
    np.testing.assert_allclose(mean, middle, atol=1e-10)
    np.testing.assert_allclose(variance, spread, atol=1e-10)


def test_repeated_looks_are_one_with_less_noise() -> None:
    boxes, scores = some_boxes(4, 0), np.array([0.1, 0.2, 0.3, 0.4])
    twice = Views.of(BOUNDS, boxes[[0, 1, 2, 3, 1, 1]], np.append(scores, [0.5, 0.8]))
    np.testing.assert_array_equal(twice.boxes, boxes)
    np.testing.assert_allclose(twice.scores, [0.1, 0.5, 0.3, 0.4])
    evidence, object_ = Mixture(twice, ONE), some_boxes(1, 5)
    all_ = boxes[[0, 1, 2, 3, 1, 1]]
    m, C = dense_prior(np.vstack([all_, boxes]), object_[0])
    K = C[:6, :6] + MISFIT.noise**2 * np.eye(6)
    expected = m[6:] + C[6:, :6] @ np.linalg.solve(K, np.append(scores, [0.5, 0.8]) - m[:6])
    np.testing.assert_allclose(
        look_reference.predict(only(evidence, object_), boxes, object_)[0][:, 0], expected, atol=1e-9
    )


def test_many_misfits_say_of_repeated_looks_what_one_look_with_less_noise_says() -> None:
    """Counts go another way through an eigendecomposition than through a factor."""
    boxes, scores, objects = some_boxes(4, 0), np.array([0.1, 0.2, 0.3, 0.4]), some_boxes(3, 5)
    twice = Views.of(BOUNDS, boxes[[0, 1, 2, 3, 1]], np.append(scores, 0.6))
    pair = Misfits((Misfit(0.1, 0.2), Misfit(0.3, 0.2)), np.array([1.0 - 1e-12, 1e-12]))
    one = Misfits((Misfit(0.1, 0.2),), np.ones(1))
    np.testing.assert_allclose(
        Mixture(twice, pair).log_likelihood(objects), Mixture(twice, one).log_likelihood(objects), atol=1e-6
    )


def test_a_map_is_what_is_predicted_at_its_places() -> None:
    boxes = some_boxes(30, 0)
    looks = Views.of(BOUNDS, boxes, look_reference.shares(boxes, some_boxes(1, 11), 640.0, 480.0, FALL)[0, :, 0])
    misfits = Misfits.of(None)
    belief = Belief.after(looks, BoxPrior.unknown(BOUNDS), misfits, 0.0, np.random.default_rng(0))
    size = np.array([120.0, 90.0])
    mean, variance = grid_moments(belief, size, 40, 60, np.random.default_rng(5))
    objects = belief.where.boxes[belief.where.resampled(64, np.random.default_rng(5))]
    expected, spread = belief.evidence.given(objects).moments(
        grid_boxes(BOUNDS, size, 40, 60), objects, np.full(64, 1.0 / 64.0)
    )
    np.testing.assert_allclose(mean.ravel(), expected, atol=2e-3)
    np.testing.assert_allclose(variance.ravel(), spread, atol=2e-3)


def test_noise_and_clutter_are_learned() -> None:
    truth = np.array([200.0, 150.0, 330.0, 260.0])
    boxes = np.vstack([some_boxes(60, 0), truth + np.random.default_rng(3).normal(0, 10, (60, 4))])
    boxes = np.clip(boxes, [10, 20, 10, 20], [650, 500, 650, 500])
    clean = look_reference.shares(boxes, truth[None], 640.0, 480.0, FALL)[0, :, 0]
    for noise in (0.0, 0.3):
        scores = clean + np.random.default_rng(4).normal(0, 1, len(boxes)) * noise
        given = Mixture(Views.of(BOUNDS, boxes, scores), Misfits.of(None)).given(truth[None])
        found = np.sqrt(given.noise)
        assert (found < 0.03) if noise == 0.0 else (0.2 < found < 0.45)


def test_no_object_is_believed_where_all_scores_are_low() -> None:
    boxes = grid_boxes(BOUNDS, np.array([150.0, 120.0]), 8, 8)
    boxes = np.vstack([boxes, grid_boxes(BOUNDS, np.array([320.0, 240.0]), 4, 4)])
    boxes = np.clip(boxes, [10, 20, 10, 20], [650, 500, 650, 500])
    prior = BoxPrior.unknown(BOUNDS).of_size((160.0, 120.0))
    present = []
    for truth in (None, np.array([200.0, 150.0, 360.0, 270.0])):
        overlap = np.zeros(len(boxes)) if truth is None else shares(boxes, truth[None], BOUNDS)[0, :, 0]
        looks = Views.of(BOUNDS, boxes, overlap)
        present.append(Belief.after(looks, prior, Misfits.of(0.1), 0.5, np.random.default_rng(0)).present)
    assert present[0] < 0.05
    assert present[1] > 0.99
