"""The best window: never below any other, whatever model, points, sizes and norm."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import saccade
from saccade import GPClassifier, GPRegressor, OneClassGP
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF, Power
from saccade.localize import best_window
from saccade.localize.windows import loops as window_loops
from saccade.localize.windows.best_window import running_maxima
from tests.localize.windows import window_reference as R
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
WORDS = 4


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[R.Point], R.Functions, bool]:
    """Points on 6 × 5 cells with words, and a function of each word."""
    cell = st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, WORDS - 1))
    points, l1 = draw(st.lists(cell, min_size=1, max_size=25)), draw(st.booleans())
    value = st.integers(-8, 8).map(float)
    functions: R.Functions = []
    for w in range(WORDS):
        if l1:
            nodes = np.array([0.0, *sorted(draw(st.sets(st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0]), max_size=4)))])
        else:
            nodes = np.arange(1.0 + sum(word == w for *_, word in points))
        functions.append((nodes, np.array([0.0, *(draw(value) for _ in nodes[1:])])))
    return points, functions, l1


def ours(points: list[R.Point], functions: R.Functions, l1: bool, sets: list[tuple[int, ...]]) -> tuple[Array, Array]:
    """`window_loops.bounds` of a list of sets."""
    points = sorted(points)
    columns, rows, words = (np.array(part) for part in zip(*points, strict=True))
    starts = np.searchsorted(columns, np.arange(7))
    node_starts = np.cumsum([0, *(nodes.size for nodes, _ in functions)])
    nodes, values = (np.concatenate(part) for part in zip(*functions, strict=True))
    peaks, logs = running_maxima(values)
    least, most, touched = np.zeros((3, WORDS), np.int64)
    across, down = np.zeros(7), np.zeros(6)
    out, sides = np.empty(len(sets)), np.empty(len(sets), np.int64)
    read = starts, rows, words, node_starts, nodes, peaks, logs, l1
    scratch = least, most, touched, np.zeros(WORDS), across, down, np.zeros(4)
    window_loops.bounds(*read, np.array(sets, np.int64), out, sides, *scratch)
    assert not any(part.any() for part in (least, most, across, down))  # ready for the next call
    return out, sides


sets_of_windows = st.tuples(
    *(
        st.integers(0, last).flatmap(lambda a, last=last: st.tuples(st.just(a), st.integers(a, last)))
        for last in (5, 4)
    ),
    *(
        st.integers(1, last).flatmap(lambda a, last=last: st.tuples(st.just(a), st.integers(a, last)))
        for last in (6, 5)
    ),
).map(lambda sides: tuple(np.ravel(sides).tolist()))


@given(problems(), st.lists(sets_of_windows, min_size=1, max_size=5))
def test_the_bound_is_one_and_is_that_of_its_slow_twin(problem: Any, sets: list[tuple[int, ...]]) -> None:
    points, functions, l1 = problem
    sets = [s for s in sets if R.windows_of(s)]
    if not sets:
        return
    found, sides = ours(points, functions, l1, sets)
    for windows, value, side in zip(sets, found, sides, strict=True):
        assert_close(value, R.bound(points, functions, l1, windows))
        scores = [R.score(R.counted(points, WORDS, *w), functions, l1) for w in R.windows_of(windows)]
        assert value >= max(scores) - 1e-9
        lengths = np.diff(np.reshape(windows, (4, 2)))[:, 0]
        assert (side < 0) == (not lengths.any())
        if side < 0:
            assert_close(value, scores[0])
        else:
            assert lengths[side] > 0


def histograms(rng: np.random.Generator, norm: Any) -> Array:
    X = rng.integers(0, 6, (14, WORDS)) * (rng.random((14, WORDS)) < 0.7)
    if norm == "l1":
        return np.asarray(X / np.maximum(X.sum(axis=1, keepdims=True), 1))
    return np.asarray(X / (1.0 if norm is None else norm))


@pytest.mark.parametrize("norm", [None, 3.0, "l1"])
@given(seed=st.integers(0, 10_000))
def test_no_window_of_a_scan_is_better(norm: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = histograms(rng, norm), rng.normal(size=14)
    if norm != "l1" and rng.random() < 0.5:
        model: Any = GPClassifier(HIK(Power(0.5)), levels=4).fit(X, np.where(y > np.median(y), "b", "a"))
    else:
        model = GPRegressor(noise=0.01).fit(X, y)
    label, sign = ("a", -1.0) if isinstance(model, GPClassifier) and rng.random() < 0.5 else (None, 1.0)
    width, height, step = rng.uniform(20, 50), rng.uniform(20, 40), rng.choice([7.0, 10.0])
    points, words = rng.random((int(rng.integers(1, 30)), 2)) * [width, height], rng.integers(0, WORDS, 30)
    points[0] = width, height  # the far corner belongs to the last cell
    least, most = float(rng.choice([0.0, 15.0])), float(rng.choice([np.inf, 25.0]))
    found = best_window(
        model,
        points,
        words[: len(points)],
        (width, height),
        label=label,
        norm=norm,
        step=step,
        min_size=least or None,
        max_size=None if most == np.inf else most,
    )
    lines = [np.append(np.arange(0.0, side, step), side) for side in (width, height)]

    def decisions(boxes: list[Array]) -> Array:
        found = np.array(boxes)[:, None]
        far = 1e-9 * (found[:, :, 2:] == (width, height))
        inside = ((points >= found[:, :, :2]) & (points < found[:, :, 2:] + far)).all(axis=2)
        H = inside @ np.eye(WORDS)[words[: len(points)]]
        H = H / np.maximum(H.sum(axis=1, keepdims=True), 1.0) if norm == "l1" else H / (1.0 if norm is None else norm)
        return np.asarray(sign * (model.predict(H) if isinstance(model, GPRegressor) else model.decision_function(H)))

    boxes = [
        np.array([x0, y0, x1, y1])
        for i, x0 in enumerate(lines[0])
        for x1 in lines[0][i + 1 :]
        for j, y0 in enumerate(lines[1])
        for y1 in lines[1][j + 1 :]
        if least - 1e-9 <= min(x1 - x0, y1 - y0) and max(x1 - x0, y1 - y0) <= most + 1e-9
    ]
    assert found.windows == len(boxes)
    assert found.gap == 0.0
    np.testing.assert_allclose(found.score, decisions([found.box])[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.score, decisions(boxes).max(), rtol=1e-9, atol=1e-9)


def planted(size: int = 30, step: float = 8.0) -> tuple[Any, Array, Array]:
    """Words 0 and 1 inside a box, 2 and 3 around it, and a model that tells them apart."""
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(step * (np.arange(size) + 0.5), step * (np.arange(size) + 0.5))
    points = np.column_stack([x.ravel(), y.ravel()])
    inside = ((points > [64, 80]) & (points < [144, 176])).all(axis=1)
    words = np.where(inside, rng.integers(0, 2, points.shape[0]), rng.integers(2, 4, points.shape[0]))
    good, bad = (rng.multinomial(100, p, 40) for p in ([0.45, 0.45, 0.05, 0.05], [0.05, 0.05, 0.45, 0.45]))
    X = np.vstack([good, bad]) / 100.0
    return GPClassifier().fit(X, np.repeat(["yes", "no"], 40)), points, words


def test_a_planted_object_is_found_with_few_bounds(tmp_path: Path) -> None:
    model, points, words = planted()
    found = best_window(model, points, words, (240, 240), norm="l1", min_size=48)
    overlap = saccade.localize.iou(found.box, [64, 80, 144, 176])
    assert overlap > 0.3
    assert found.bounds < 0.1 * found.windows
    model.save(tmp_path / "m.saccade")
    loaded = best_window(saccade.load(tmp_path / "m.saccade"), points, words, (240, 240), norm="l1", min_size=48)
    assert_close(loaded.score, found.score)
    np.testing.assert_array_equal(loaded.box, found.box)
    shifted = best_window(model, points + 100, words, (100, 100, 340, 340), norm="l1", min_size=48)
    np.testing.assert_array_equal(shifted.box - 100, found.box)


@pytest.mark.parametrize("budget", [1, 10, 50])
def test_a_budget_says_how_far_it_may_be_off(budget: int) -> None:
    model, points, words = planted()
    best = best_window(model, points, words, (240, 240), norm=900.0)
    found = best_window(model, points, words, (240, 240), norm=900.0, budget=budget)
    assert found.score <= best.score + 1e-9 <= found.score + found.gap + 2e-9
    assert found.bounds <= budget + 60  # two for each halving on the way down
    assert budget > 10 or found.gap > 0


def test_sizes_that_the_grid_hardly_has() -> None:
    """On the way down a set may turn out to have no window: another one is taken then."""
    model, points, words = planted()
    for budget in (1, 3, None):
        found = best_window(model, points, words, (244, 244), norm=900.0, min_size=20, max_size=20, budget=budget)
        np.testing.assert_array_equal(found.box, [224, 224, 244, 244])  # only the last cells are 4 px wide
        assert found.windows == 1


def test_one_class_and_several_targets() -> None:
    _, points, words = planted(size=10)
    X = np.random.default_rng(0).integers(0, 30, (30, 4)).astype(float)
    two = GPRegressor().fit(X, np.column_stack([X[:, 0], -X[:, 2]]))
    for label in (0, 1):
        found = best_window(two, points, words, (80, 80), label=label)
        assert found.score >= two.predict(np.bincount(words, minlength=4)[None].astype(float))[0, label] - 1e-9
    one = OneClassGP(measure="mean", scale=None).fit(X)
    found = best_window(one, points, words, (80, 80))
    assert found.score >= one.decision_function(np.bincount(words, minlength=4)[None].astype(float))[0] - 1e-9


MODEL, POINTS, NUMBERS = planted(size=3)
SMALL = {"points": POINTS, "words": NUMBERS, "bounds": (24, 24)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": POINTS + 10}, "Point 2 of `points`, .* is not inside the picture"),
        ({"points": POINTS * np.nan}, "Point 0 of `points`, .* is not inside"),
        ({"points": POINTS[:, :1]}, r"`points` must be \(k, 2\)"),
        ({"words": NUMBERS[:-1]}, "a word for each point"),
        ({"words": NUMBERS + 0.5}, "Word 0 of `words` must be a column from 0 to 3"),
        ({"words": NUMBERS + 4}, "Word 0 of `words` must be a column"),
        ({"words": NUMBERS * np.nan}, "Word 0 of `words`"),
        ({"words": ["x"] * 9}, "`words` must be an array of numbers"),
        ({"points": np.zeros((0, 2)), "words": np.zeros(0)}, "no point"),
        ({"bounds": (0, 24)}, "positive width and height"),
        ({"min_size": 25}, "No window of the grid has a size"),
        ({"min_size": 10, "max_size": 9}, "No window of the grid has a size"),
        ({"label": "maybe"}, "`label` must be one of the classes"),
        ({"model": GPClassifier(RBF()).fit(np.eye(4), [0, 1, 0, 1])}, "no sum over features"),
        ({"model": GPClassifier(inference="laplace").fit(np.eye(4), [0, 1, 0, 1])}, "no sum over words"),
        ({"model": OneClassGP().fit(np.eye(4))}, 'measure="mean"'),
        ({"model": GPRegressor(mean=lambda Z: Z[:, 0]).fit(np.eye(4), range(4))}, "`mean` is a function"),
        ({"model": GPRegressor(HIK(Power(0.5))).fit(np.eye(4), range(4)), "norm": "l1"}, "without transforms"),
        ({"model": GPClassifier().fit(np.eye(4), [0, 1, 0, 1]).quantized(8), "norm": "l1"}, "not quantised"),
    ],
)
def test_bad_input(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        best_window(**{"model": MODEL, **SMALL, **change})


@pytest.mark.parametrize(
    "change",
    [
        *({"step": 0}, {"step": np.nan}, {"step": 1e-9}, {"norm": "l2"}, {"norm": 0}, {"budget": 0}),
        *({"min_size": -1}, {"max_size": (1, 2, 3)}, {"min_size": "small"}),
    ],
)
def test_bad_parameters(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        best_window(**{"model": MODEL, **SMALL, **change})


def test_not_fitted() -> None:
    with pytest.raises(NotFittedError):
        best_window(GPClassifier(), **SMALL)


@pytest.mark.parametrize("step", [10.0, 7.0])
def test_points_on_lines_and_edges_belong_to_the_window_right_of_them(step: float) -> None:
    """x0 ≤ x < x1, and the last edge belongs to the last window: counted one by one, for every place of one point."""
    model = GPRegressor(HIK(scale=1.0), normalize_y=False, noise=1e-6).fit([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    lines = np.append(np.arange(0.0, 40.0 - 1e-9, step), 40.0)
    for x in [*lines, 5.0, 33.0]:
        for y in (0.0, 10.0, 20.0):
            found = best_window(model, [[x, y]], [0], (40, 20), step=step, max_size=step)
            x0, y0, x1, y1 = found.box
            assert x0 <= x < x1 or x == x1 == 40.0
            assert y0 <= y < y1 or y == y1 == 20.0
