"""Transforms: monotone from zero on, and `pull` the derivative of what they do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from saccade._core import limits
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, Exponential, Monotone, Power, Transform, TransformSum, Weights
from saccade.kernels.chain import Chain
from tests.tolerances import assert_close

x = np.array([0.0, 0.1, 0.25, 0.7, 1.0, 1.3, 0.0, 2.0])
dims = np.array([0, 0, 0, 1, 1, 2, 2, 2])
KINDS = [
    Power(0.5),
    Power(2.0),
    Exponential(0.0),
    Exponential(1e-6),
    Exponential(1.5),
    Exponential(-3.0),
    Weights([0.5, 1.0, 2.0]),
    Weights([0.5, 2.0], blocks=[1, 2]),
    Weights(),
    Monotone(),
    Monotone(pieces=2),
    Monotone(shared=True),
    Monotone(shared=True, pieces=3),
    Chain([Power(0.5), Weights([0.5, 1.0, 2.0]), Exponential(1.5)]),
    TransformSum([HIK(Power(0.5), scale=2.0), HIK([Weights([0.5, 1.0, 2.0]), Exponential(-1.0)], scale=0.5)]),
    TransformSum(
        [HIK(Weights(), scale=2.0), HIK(scale=0.5), HIK(TransformSum([HIK(Power(2.0), scale=1.0)]), scale=1.0)]
    ),
]


@pytest.mark.parametrize("transform", KINDS, ids=repr)
def test_pull_is_the_derivative(transform: Transform) -> None:
    g = transform.resolved(x, dims, 3)
    table = g.coordinates(x, dims)
    rng = np.random.default_rng(0)
    theta = table[:, 0] + 0.3 * table[:, 3] * rng.uniform(-1.0, 1.0, len(table))
    up = rng.standard_normal(x.size)
    by_theta, by_x = g.moved(theta).pull(x, dims, up)
    assert_close(g.moved(theta).by_coordinates(x, dims, up), by_theta)

    def total(theta, x) -> float:
        return float(g.moved(theta)(x, dims) @ up)

    for k in range(theta.size):
        nudge = 1e-6 * np.eye(theta.size)[k]
        change = (total(theta + nudge, x) - total(theta - nudge, x)) / 2e-6
        assert by_theta[k] == pytest.approx(change, abs=1e-7 + 1e-5 * abs(change))
    if not isinstance(g, Monotone):  # whose corners have two slopes
        for k in np.flatnonzero(x > 0):
            nudge = 1e-6 * np.eye(x.size)[k]
            change = (total(theta, x + nudge) - total(theta, x - nudge)) / 2e-6
            assert by_x[k] == pytest.approx(change, abs=1e-7 + 1e-5 * abs(change))


@pytest.mark.parametrize("transform", [Weights(), Monotone(), Monotone(shared=True)], ids=repr)
def test_what_is_left_open_changes_nothing(transform: Transform) -> None:
    assert_close(transform(x, dims), x)
    resolved = transform.resolved(x, dims, 3)
    assert_close(resolved(x, dims), x)
    assert_close(resolved.coordinates(x, dims)[:, 0], 0.0)


@pytest.mark.parametrize("transform", KINDS, ids=repr)
def test_start_is_inside_its_bounds(transform: Transform) -> None:
    start, lower, upper, step = transform.resolved(x, dims, 3).coordinates(x, dims).T
    assert (lower < start).all()
    assert (start < upper).all()
    assert (step > 0).all()


@pytest.mark.parametrize("transform", KINDS, ids=repr)
def test_coordinates_have_names_and_a_penalty_with_its_derivative(transform: Transform) -> None:
    g = transform.resolved(x, dims, 3)
    theta = g.coordinates(x, dims)[:, 0] + np.linspace(-0.5, 0.7, len(g.names()))
    _, slope = g.penalty(theta)
    for k in range(theta.size):
        nudge = 1e-6 * np.eye(theta.size)[k]
        change = (g.penalty(theta + nudge)[0] - g.penalty(theta - nudge)[0]) / 2e-6
        assert slope[k] == pytest.approx(change, abs=1e-7)


def test_what_does_not_move_stays_beyond_the_bounds_too() -> None:
    weights = Weights([1e-6, 1.0, 1e6])
    chain = Chain([Power(0.3), weights])
    theta = chain.coordinates(x, dims)[:, 0]
    theta[0] += 0.1
    moved = chain.moved(theta)
    assert moved.steps[1] is weights
    assert moved.steps[0].eta == pytest.approx(0.3 * np.exp(0.1))


def test_names_of_a_sum_are_those_of_its_parts() -> None:
    g = TransformSum([HIK(Power(0.5), scale=2.0), HIK(Weights(blocks=[1, 2]), scale=1.0)]).resolved(x, dims, 3)
    assert g.names() == ["power", "part_scale", "weights", "weights", "part_scale"]


@settings(max_examples=60)
@given(
    slopes=hnp.arrays(np.float64, (2, 4), elements=st.floats(0.0, 5.0)),
    knots=hnp.arrays(np.float64, (2, 4), elements=st.floats(0.0, 3.0)),
    values=hnp.arrays(np.float64, 20, elements=st.floats(0.0, 5.0)),
)
def test_monotone_is_the_integral_of_its_slopes(slopes, knots, values) -> None:
    """Also with pieces of no length; the last slope goes on beyond the last knot."""
    slopes[0, 0] += 0.1
    knots = np.sort(knots, axis=1)
    where = np.arange(20) % 2
    found = Monotone(knots, slopes)(values, where)
    edges = np.column_stack([np.zeros(2), knots[:, :-1], np.full(2, np.inf)])
    for value, d, g in zip(values, where, found, strict=True):
        inside = np.clip(value - edges[d, :-1], 0.0, np.diff(edges[d]))
        assert g == pytest.approx(inside @ slopes[d], rel=1e-12, abs=1e-12)


def test_blocks_weigh_kernels() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.random((6, 3)), rng.random((6, 2))
    both = HIK(Weights([0.5, 2.0], blocks=[3, 2]), scale=1.0)(np.hstack([A, B]))
    assert_close(both, 0.5 * HIK(scale=1.0)(A) + 2.0 * HIK(scale=1.0)(B))


@pytest.mark.parametrize(
    ("kernel", "word"),
    [
        (HIK(Weights([1.0, 2.0])), "one weight"),
        (HIK(Weights([0.0, 0.0, 0.0])), "not all zero"),
        (HIK(Weights([1.0], blocks=[2, 1])), "per block"),
        (HIK(Weights(blocks=[2, 0])), "blocks"),
        (HIK(Monotone(np.ones((2, 3)))), "row of knots"),
        (HIK(Monotone([[2.0, 1.0]])), "ascend"),
        (HIK(Monotone([[np.nan, 1.0]])), "finite"),
        (HIK(Exponential(800.0)), "from -500 to 500"),
        (HIK(Monotone([[1.0, 2.0]], [[-1.0, 1.0]])), "slopes"),
    ],
)
def test_bad_parameters_are_explained(kernel: HIK, word: str) -> None:
    with pytest.raises(InvalidParameter, match=word):
        kernel(np.ones((2, 3)))


def test_overflow_is_explained() -> None:
    with pytest.raises(InvalidInput, match="overflows"):
        HIK(Power(4.0))(np.full((1, 1), 1e100))


def test_powers_of_very_many_numbers_are_made_in_pieces_that_fit_together() -> None:
    """More numbers than a piece has, and more than one thread takes."""
    many = np.random.default_rng(0).random(4 * limits.NUMBERS_IN_CACHE + 5)
    many[::7] = 0.0
    g, up, nothing = Power(0.3), np.sin(np.arange(many.size)), np.zeros(0, np.int64)
    assert many.size > limits.ONE_THREAD_UP_TO
    np.testing.assert_array_equal(g(many, nothing), np.power(many, 0.3))
    assert_close(g.by_coordinates(many, nothing, up), g.pull(many, nothing, up)[0])
    many[-1] = 1e300
    with pytest.raises(InvalidInput, match="overflows at the value 1e\\+300"):
        Power(2.0)(many, nothing)
