"""Some rows of a kernel matrix against dense algebra, in every layout, and sorted columns made of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.kernels import HIK, RBF, Exponential, GeneralizedRBF, Monotone, Power, Weights
from saccade.kernels.gram import Gram, TabledGram
from saccade.kernels.intersection_space import IntersectionSpace
from saccade.kernels.slope import MatrixSlope, VectorSlope
from saccade.operators import codes
from saccade.operators.codes import CodeBlocks, SortedColumns
from saccade.operators.decode import decode
from saccade.operators.subset import sorted_columns, subset
from tests.operators.histograms import LAYOUTS, Array, columns, encoded, histograms, intersections, sparse_rows
from tests.operators.test_codes import assert_well_formed
from tests.tolerances import assert_close

few = settings(max_examples=25, deadline=None)
by_layout = pytest.mark.parametrize("layout", LAYOUTS)
KERNELS = {
    "dense": (RBF(0.7), {}),
    "dense, settled on the data": (GeneralizedRBF(HIK(), "auto"), {}),
    "streamed": (RBF(0.7), {"held": False}),
    "intersection": (HIK(), {}),
    "four levels": (HIK(Power(0.5)), {"levels": 4}),
    "four even levels": (HIK(), {"levels": 4, "binning": "width"}),
    "sum": (HIK() + 2.0 * HIK(Power(2.0)), {}),
}
every = pytest.mark.parametrize(("kernel", "options"), KERNELS.values(), ids=KERNELS)
signs = pytest.mark.parametrize("sign", [1.0, -1.0], ids=["positive", "with negative values"])


def some_rows(draw: Any, n: int) -> Array:
    """Row numbers, ascending; perhaps all, perhaps one."""
    wanted = draw(st.sets(st.integers(0, n - 1), min_size=1))
    return np.array(sorted(wanted))


def plain(c: codes.Codes) -> Any:
    return HIK(scale=1.0).operator(c)


@by_layout
@few
@given(data=st.data(), block_rows=st.sampled_from([3, 16_384]))
def test_codes_of_some_rows(layout: str, data: st.DataObject, block_rows: int) -> None:
    X = data.draw(histograms())
    whole, rows = encoded(X, layout), some_rows(data.draw, len(X))
    part, bases = subset(whole, rows, block_rows), codes.block_bases(rows.size, codes.even_rows(rows.size, block_rows))
    assert_well_formed(part)
    assert type(part) is type(whole)
    np.testing.assert_array_equal(decode(part).toarray(), X[rows])
    if isinstance(whole, CodeBlocks):
        assert isinstance(part, CodeBlocks)
        assert (part.rows is None) == (whole.rows is None)
        assert part.values is whole.values  # nothing is coded again
        np.testing.assert_array_equal(part.bases, bases)  # as if coded alone, however far apart the rows were
    K, V = plain(part), columns(rows.size, 3)
    assert_close(K.matmul(V), intersections(X[rows]) @ V)
    assert_close(K.diag(), X[rows].sum(axis=1))


@by_layout
@few
@given(data=st.data())
def test_blocks_as_sorted_columns(layout: str, data: st.DataObject) -> None:
    X, levels = data.draw(histograms()), data.draw(st.sampled_from([None, 3]))
    before = encoded(X, layout, levels)
    found, Y = sorted_columns(before), decode(before).toarray()
    assert isinstance(found, SortedColumns)
    assert_well_formed(found)
    assert found.starts.dtype == np.int64
    assert (found.values > 0).all()
    np.testing.assert_array_equal(decode(found).toarray(), Y)
    V = columns(len(X), 3)
    assert_close(plain(found).matmul(V), intersections(Y) @ V)


def test_rows_of_more_than_two_bytes() -> None:
    """Row numbers grow wider where a byte pair is too short, and narrower again."""
    X = np.zeros((70_000, 2))
    X[:, 0] = np.arange(70_000.0)
    whole = codes.encode(X)
    assert whole.rows.dtype == np.uint32
    rows = np.array([5, 66_000, 69_999])
    assert subset(whole, rows).rows.dtype == np.uint16
    np.testing.assert_array_equal(decode(subset(whole, rows)).toarray(), X[rows])
    many = subset(whole, np.arange(1, 70_000))
    np.testing.assert_array_equal(decode(many, np.array([69_998])).toarray(), X[[69_999]])
    blocks = sorted_columns(codes.encode(np.minimum(X, 9.0)))
    np.testing.assert_array_equal(decode(blocks, np.array([4, 69_999])).toarray(), [[4.0, 0.0], [9.0, 0.0]])


@every
@signs
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix], ids=["dense rows", "sparse rows"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_matrix_of_some_rows(kernel: Any, options: Any, sign: float, container: Any, data: st.DataObject) -> None:
    X = data.draw(histograms(dims=3))
    X[:, 1] *= sign
    whole: Gram = kernel.gram(container(X), **options)
    rows = some_rows(data.draw, len(X))
    K, part, V = whole.kernel(whole.all_rows()), whole.subset(rows), columns(rows.size, 3)
    assert type(part) is type(whole)
    assert part.kernel is whole.kernel
    assert part.shape == (rows.size, rows.size)
    assert_close(part.matmul(V), K[np.ix_(rows, rows)] @ V)
    assert_close(part.diag(), K.diagonal()[rows])
    assert_close(part.columns(np.array([0])), K[np.ix_(rows, rows[:1])])
    new = np.abs(X[:3]) + 0.25
    assert_close(part.cross(new), whole.cross(new)[rows])
    if isinstance(part, TabledGram):
        assert_close(part.tables(V).walk(part.features(new)), whole.cross(new)[rows].T @ V)
        np.testing.assert_array_equal(part.tops, whole.tops)
    given = part.as_given(np.arange(rows.size) if part.given is None else part.given)
    np.testing.assert_array_equal(given.toarray() if sp.issparse(given) else given, whole_rows(whole, X)[rows])
    longer = part.append(container(X), None)
    assert_close(longer.block(np.arange(rows.size)), K[np.ix_(rows, rows)])
    assert_close(longer.columns(np.arange(rows.size))[rows.size :], K[:, rows])
    assert whole.shape[0] == len(X)  # the old one is as it was


def whole_rows(whole: Gram, X: Array) -> Array:
    """The training rows as they came; the negative parts of signed features stand apart where K has codes alone."""
    if whole.given is not None or not isinstance(whole, TabledGram):
        return X
    return codes.split_signs(X)


def test_only_raw_rows_that_are_among_them_are_kept() -> None:
    X = np.random.default_rng(0).random((5000, 2))  # of which 2,048 are kept as they came
    whole = HIK().gram(X, levels=8)
    rows = np.arange(0, 5000, 7)
    part = whole.subset(rows)
    assert whole.given is not None
    assert part.given is not None
    np.testing.assert_array_equal(rows[part.given], np.intersect1d(whole.given, rows))
    np.testing.assert_array_equal(part.as_given(part.given[3:9]), X[rows[part.given[3:9]]])


@pytest.mark.parametrize("kernel", [HIK(Monotone(pieces=3)), HIK(Exponential(1.0)), HIK([Power(0.5), Weights()])])
@pytest.mark.parametrize("levels", [None, 6])
def test_the_space_of_some_rows_is_that_of_the_rows_alone(kernel: HIK, levels: int | None) -> None:
    """Knots and bounds come from the levels that these rows have, not from those of the others."""
    X = sparse_rows(60, 5).round(1)
    rows = np.flatnonzero(X[:, 0] < 0.6)
    whole = kernel.gram(X, levels=levels)
    part = whole.subset(rows)
    few = part.space(kernel)
    blocks, alone = (IntersectionSpace(kernel, gram) for gram in (part, kernel.gram(whole.rows(rows))))
    theta = alone.coordinates.table[:, 0] + 0.1
    A = columns(rows.size, rows.size)
    slopes = (MatrixSlope(A + A.T), VectorSlope(A[:, :3], A[:, 3:6], A[:, 6:8]))
    for space in (few, blocks):
        assert space.coordinates.names == alone.coordinates.names
        assert_close(space.coordinates.table, alone.coordinates.table)
        K = space.gram(theta)
        assert_close(K.matmul(np.eye(rows.size)), alone.kernel(theta)(part.all_rows()))
        np.testing.assert_array_equal(K._operator.levels, K.kernel.levels(K.codes))
        moved = part.with_kernel(space.kernel(theta + 0.1))
        assert_close(space.gram(theta + 0.1).diag(), moved.diag())  # not those of the place before
        assert space.parameters(theta).keys() == alone.parameters(theta).keys()
        for slope in slopes:
            assert_close(space.pull(theta, K, slope), alone.pull(theta, alone.gram(theta), slope))
