"""One suite for every kernel matrix: what it does must be what dense algebra does with the matrix written out."""

import pickle
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade._core import limits
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF, GeneralizedRBF, Linear, Power
from saccade.kernels.dense_gram import DenseGram
from saccade.kernels.gram import Gram, TabledGram
from tests.kernels.disk_engine import DiskEngine
from tests.operators.histograms import columns, histograms
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]


def many_values(X: Array) -> Array:
    return np.asarray(X + np.arange(300.0 * X.shape[1]).reshape(300, -1)[: len(X)])


FOLDER = tempfile.TemporaryDirectory()  # until the tests end
DISK = DiskEngine(Path(FOLDER.name))
MAKERS: dict[str, Callable[[Any], Gram]] = {
    "dense": lambda X: RBF(0.7).gram(X),
    "dense, settled on the data": lambda X: GeneralizedRBF(HIK(), "auto").gram(X),
    "dense, negative values": lambda X: Linear().gram(X - 0.5),
    "dense, sparse rows": lambda X: RBF(0.7).gram(sp.csr_matrix(X)),
    "streamed": lambda X: RBF(0.7).gram(X, held=False),
    "intersection": lambda X: HIK().gram(X),
    "intersection, many values": lambda X: HIK(Power(0.5)).gram(many_values(X)),
    "intersection, signed": lambda X: HIK(scale=2.0).gram(sp.csr_matrix(X - 0.5)),
    "intersection, four levels": lambda X: HIK().gram(X, levels=4),
    "intersection, sum": lambda X: (HIK() + 2.0 * HIK(Power(2.0))).gram(X),
    "on disk, dense": lambda X: RBF(0.7).gram(X, engine=DISK),
    "on disk, intersection": lambda X: HIK().gram(sp.csr_matrix(X - 0.5), engine=DISK),
    "on disk, many values": lambda X: HIK(Power(0.5)).gram(many_values(X), engine=DISK),
    "on disk, four levels": lambda X: HIK().gram(X, levels=4, engine=DISK),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
few = settings(max_examples=15, deadline=None)


def matrix(gram: Gram) -> Array:
    return gram.kernel(gram.all_rows())


@every
@few
@given(X=histograms(dims=3))
def test_products_and_parts(make: Callable[[Any], Gram], X: Array) -> None:
    gram = make(X)
    K, n, V = matrix(gram), len(X), columns(len(X), 3)
    assert gram.shape == K.shape
    assert gram.work >= 0
    for _ in range(2):  # once more after the matrix was given away
        assert_close(gram.diag(), K.diagonal())
        assert_close(gram.matmul(V), K @ V)
        assert gram.matmul(V.astype(np.float32)).dtype == np.float32
        some = np.array([n - 1, 0, n // 2])[: max(1, n - 1)]
        assert_close(gram.columns(some), K[:, some])
        assert_close(gram.block(some), K[np.ix_(some, some)])
        assert_close(gram.between(some, some[::-1]), K[np.ix_(some, some[::-1])])
        assert_close(gram.matmul_rows(some, V[: some.size]), K[:, some] @ V[: some.size])
        assert gram.matmul_rows(some, V[: some.size].astype(np.float32)).dtype == np.float32
        for rows in (some[::-1], some[:0]):  # also of no row, which is zero
            assert_close(gram.matmul_rows(rows, V[: rows.size]), K[:, rows] @ V[: rows.size])
            assert_close(gram.matmul_rows(rows, V[: rows.size], some), K[np.ix_(some, rows)] @ V[: rows.size])
            assert_close(gram.matmul_rows(some, V[: some.size], rows), K[np.ix_(rows, some)] @ V[: some.size])
        sums, smallest = gram.row_sums()
        assert_close(sums, K.sum(axis=1))
        assert_close(smallest, min(K.min(), 0.0))
        written = gram.to_dense()
        assert_close(written, K)
        written[:] = np.nan  # it is the caller's


@every
@few
@given(data=st.data())
def test_rows_in_any_order_and_more_than_once(make: Callable[[Any], Gram], data: st.DataObject) -> None:
    X = data.draw(histograms(dims=3))
    gram, numbers = make(X), st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=6)
    K = matrix(gram)
    a, b = (np.array(data.draw(numbers), np.int64) for _ in range(2))
    assert_close(gram.between(a, b), K[np.ix_(a, b)])
    assert_close(gram.between(a, a), K[np.ix_(a, a)])
    assert_close(gram.block(a), K[np.ix_(a, a)])
    assert_close(gram.columns(a), K[:, a])


@every
@few
@given(data=st.data())
def test_new_rows(make: Callable[[Any], Gram], data: st.DataObject) -> None:
    X, new = data.draw(histograms(dims=3)), data.draw(histograms(dims=3, top=1.5))
    gram = make(X)
    wanted = gram.kernel(gram.all_rows(), new)
    some = np.array(data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=6)), np.int64)
    for rows in (some, some[::-1], np.unique(some)):  # before features of all rows are there, and then after
        for _ in range(2):
            assert_close(gram.cross(new, rows), wanted[rows])
    assert_close(gram.cross(new), wanted)
    assert_close(gram.cross(new, some), wanted[some])
    K, own = gram.cross_and_own(new, some)
    assert_close(K, wanted[some])
    assert_close(own, gram.kernel.diag(new))
    if isinstance(gram, TabledGram):
        V = columns(len(X), 3)
        assert gram.kernel.has_tables
        assert_close(gram.tables(V).walk(gram.features(new)), gram.cross(new).T @ V)


class Counting(RBF):
    """Remembers how many values it was asked for."""

    asked: ClassVar[list[int]] = []

    def __call__(self, X: Any, Z: Any = None) -> Array:
        self.asked.append(X.shape[0] * (X if Z is None else Z).shape[0])
        return super().__call__(X, Z)


@pytest.mark.parametrize("held", [True, False])
def test_a_part_of_the_rows_takes_no_value_of_the_others(held: bool) -> None:
    X = np.random.default_rng(0).random((200, 3))
    gram = Counting(1.0).gram(X, held=held)
    Counting.asked.clear()
    gram.cross(X[:10], np.array([150, 3]))
    assert sum(Counting.asked) == 20


def test_a_part_of_the_rows_takes_no_features_of_the_others() -> None:
    gram = HIK().gram(sp.random(4000, 50, 0.2, "csr", random_state=np.random.default_rng(0)))
    rows, new = np.arange(0, 4000, 100), gram.rows(np.arange(5))
    HIK().gram(new).cross(new)  # compiled
    tracemalloc.start()
    gram.cross(new, rows)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 4000 * 8  # features of all rows are 40,000 numbers


@pytest.mark.filterwarnings("ignore:Distances by")  # rightly: further rows may be 10³⁷ times as large
@every
@few
@given(data=st.data())
def test_rows_appended_are_rows_from_the_start(make: Callable[[Any], Gram], data: st.DataObject) -> None:
    X, more = data.draw(histograms(dims=3)), data.draw(histograms(dims=3))
    gram = make(X)
    longer = gram.append(more, None)
    n = len(X)
    assert longer.shape[0] == n + len(more)
    assert longer.kernel is gram.kernel
    assert gram.extends_to(longer)
    assert_close(longer.block(np.arange(n)), matrix(gram))
    assert_close(longer.matmul(np.eye(n + len(more))), matrix(longer))
    if longer.given is None:
        assert_close(longer.block(np.arange(n, n + len(more))), gram.kernel(more))
    resolved = longer.with_kernel(gram.kernel)
    assert_close(resolved.diag(), longer.diag())
    assert gram.shape[0] == n  # the old one is as it was


@every
def test_rows_as_they_came(make: Callable[[Any], Gram]) -> None:
    X = np.random.default_rng(0).random((40, 3))
    gram = make(X)
    some = np.array([1, 7, 30])
    given = gram.as_given(some)
    given = given.toarray() if sp.issparse(given) else given
    if gram.given is None:
        rows = gram.rows(some)
        assert_close(given, rows.toarray() if sp.issparse(rows) else rows)
    else:
        np.testing.assert_array_equal(gram.given, np.arange(40))
        np.testing.assert_array_equal(given, X[some])  # not rounded to levels


def test_another_kernel_on_the_same_rows() -> None:
    X = np.random.default_rng(0).random((30, 4))
    for one, other in ((RBF(), RBF(0.1)), (HIK(), HIK(Power(0.3)))):
        gram, fresh = one.gram(X).with_kernel(other), other.gram(X)
        assert_close(gram.matmul(np.eye(30)), fresh.matmul(np.eye(30)))
        assert not one.gram(X).extends_to(gram)
    for one, other in ((RBF(), HIK()), (HIK(), RBF())):
        with pytest.raises(InvalidParameter, match="one kind"):
            one.gram(X).with_kernel(other)


def test_weights_settle_the_kernel_as_copies_do() -> None:
    X, weight = np.random.default_rng(0).random((12, 3)), np.arange(12) % 3 + 1.0
    copied = np.repeat(X, weight.astype(int), axis=0)
    for kernel in (HIK(), GeneralizedRBF(HIK(), "auto")):
        found, wanted = kernel.gram(X, weight=weight).kernel, kernel.gram(copied).kernel
        np.testing.assert_allclose(found(X), wanted(X), rtol=1e-12)


def test_a_matrix_that_cannot_be_held_is_refused_and_streamed() -> None:
    X = np.random.default_rng(0).random((5, 2))
    with pytest.raises(InvalidInput, match="5 × 5 kernel matrix, too large beyond 4"):
        DenseGram(RBF(), X, limit=4)
    assert RBF().gram(X, held=False).shape == (5, 5)


def test_a_pickle_does_not_hold_what_can_be_made_again() -> None:
    X = np.random.default_rng(0).random((200, 3))
    gram = RBF(1.0).gram(X)
    product = gram.matmul(np.ones((len(X), 1)))
    copy = pickle.loads(pickle.dumps(gram))
    assert len(pickle.dumps(gram)) < 2 * X.nbytes + 2000
    np.testing.assert_array_equal(copy.matmul(np.ones((len(X), 1))), product)


def test_rows_are_copied_unless_nobody_can_change_them() -> None:
    X = np.random.default_rng(0).random((6, 2))
    view, frozen = X[:], X.copy()
    view.flags.writeable = frozen.flags.writeable = False
    for rows in (X, view, X.astype(np.float32), sp.csr_matrix(X)):
        gram = RBF(1.0).gram(rows)
        wanted = gram.cross(frozen)
        (rows.data if sp.issparse(rows) else X if rows is view else rows)[:] = 7.0
        assert_close(gram.cross(frozen), wanted)
        X[:] = frozen
    assert np.shares_memory(RBF(1.0).gram(frozen).all_rows(), frozen)


def test_all_rows_are_the_blocks_of_rows() -> None:
    X = sp.random(limits.ROWS_AT_ONCE + 10, 3, 0.4, "csr", random_state=np.random.default_rng(0))
    for gram in (HIK().gram(X), RBF(1.0).gram(X, held=False)):
        blocks = list(gram.row_blocks())
        assert [some.start for some, _ in blocks[1:]] == [some.stop for some, _ in blocks[:-1]]
        assert blocks[-1][0].stop == X.shape[0]
        for some, block in blocks:
            np.testing.assert_array_equal(block.toarray(), X[some].toarray())
        np.testing.assert_array_equal(gram.all_rows().toarray(), X.toarray())
