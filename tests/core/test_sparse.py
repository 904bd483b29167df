"""Malformed sparse matrices of every format are refused before compiled code follows their indices."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saccade import SVDD, GPClassifier, GPRegressor, OneClassGP
from saccade._core.checks import canonical
from saccade._core.errors import InvalidInput
from saccade._core.sparse import check_sparse, rises_in_rows
from saccade.kernels import RBF, Chi2, Laplacian, Linear
from tests.tolerances import assert_close

DENSE = np.arange(1.0, 49.0).reshape(12, 4) % 7
LABELS = np.arange(12) % 2
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def made(format: str, kind: str = "matrix") -> Any:
    return getattr(sp, f"{format}_{kind}")(DENSE)


def replaced(format: str, **arrays: Any) -> Callable[[], Any]:
    """A matrix some of whose arrays are others."""

    def make() -> Any:
        X = made(format)
        for name, value in arrays.items():
            setattr(X, name, value)
        return X

    return make


def changed(format: str, name: str, at: Any, value: Any) -> Callable[[], Any]:
    def make() -> Any:
        X = made(format)
        getattr(X, name)[at] = value
        return X

    return make


def wrong_key(key: Any) -> Callable[[], Any]:
    def make() -> Any:
        X = made("dok")
        dict.__setitem__(getattr(X, "_dict", X), key, 1.0)  # once it was a dict itself
        return X

    return make


def cut(format: str, name: str) -> Callable[[], Any]:
    return replaced(format, **{name: getattr(made(format), name)[:-1]})


HOSTILE: dict[str, Callable[[], Any]] = {
    "csr: the last pointer is 0": changed("csr", "indptr", -1, 0),
    "csr: a pointer beyond the end": changed("csr", "indptr", 5, 10**9),
    "csr: the last pointer beyond the end": changed("csr", "indptr", -1, 10**9),
    "csr: a negative pointer": changed("csr", "indptr", 0, -(10**9)),
    "csr: too few pointers": cut("csr", "indptr"),
    "csr: fewer values than indices": cut("csr", "data"),
    "csr: a column beyond the width": changed("csr", "indices", 5, 10**9),
    "csr: a negative column": changed("csr", "indices", 5, -(10**9)),
    "csr: pointers that are no whole numbers": replaced("csr", indptr=made("csr").indptr.astype(float)),
    "csr: pointers in a list": replaced("csr", indptr=made("csr").indptr.tolist()),
    "csc: a row beyond the length": changed("csc", "indices", 5, 10**9),
    "csc: the last pointer is 0": changed("csc", "indptr", -1, 0),
    "csc: too few pointers": cut("csc", "indptr"),
    "bsr: a block beyond the width": changed("bsr", "indices", 0, 10**9),
    "bsr: the last pointer is 0": changed("bsr", "indptr", -1, 0),
    "bsr: blocks that do not fit": replaced("bsr", data=np.ones((made("bsr").data.shape[0], 5, 3))),
    "coo: a row beyond the length": changed("coo", "row", 3, 10**9),
    "coo: a negative column": changed("coo", "col", 3, -(10**9)),
    "coo: fewer values than rows": cut("coo", "data"),
    "dia: fewer offsets than diagonals": cut("dia", "offsets"),
    "dia: a diagonal outside": changed("dia", "offsets", 0, -(10**6)),
    "dia: a diagonal twice": changed("dia", "offsets", 0, 1),
    "lil: a column beyond the width": changed("lil", "rows", 2, [0, 1, 10**9]),
    "lil: more columns than values": changed("lil", "rows", 2, [0, 1, 2, 3, 3, 3]),
    "lil: more values than columns": changed("lil", "data", 2, [1.0] * 1000),
    "lil: no list": changed("lil", "rows", 2, None),
    "dok: a row beyond the length": wrong_key((10**9, 0)),
    "dok: a negative column": wrong_key((0, -(10**9))),
    "dok: a key that is no pair": wrong_key((0, 0, 0)),
}


def uses() -> dict[str, Callable[[Any], Any]]:
    """Whatever takes rows of features."""
    gp, detector, ball = GPClassifier().fit(DENSE, LABELS), OneClassGP().fit(DENSE), SVDD().fit(DENSE)
    return {
        "fit": lambda X: GPClassifier().fit(X, LABELS),
        "fit of a dense kernel": lambda X: GPClassifier(RBF()).fit(X, LABELS),
        "partial_fit": lambda X: GPClassifier().fit(DENSE, LABELS).partial_fit(X, LABELS),
        "predict": gp.predict,
        "novelty": gp.novelty,
        "regression": lambda X: GPRegressor().fit(X, LABELS),
        "targets": lambda X: GPRegressor().fit(DENSE, X),
        "one class": OneClassGP().fit,
        "score of one class": detector.score_samples,
        "SVDD": SVDD().fit,
        "score of SVDD": ball.score_samples,
        **{repr(kernel): kernel for kernel in (Linear(), RBF(), Laplacian(), Chi2())},
        "HIK": lambda X: gp.kernel_(X),
        "diagonal of HIK": lambda X: gp.kernel_.diag(X),
    }


def try_all() -> None:
    """Print each pair before it is tried: a crash ends the process, and its last line says where."""
    for use, take in uses().items():
        for case, make in HOSTILE.items():
            print(f"{use} / {case}", flush=True)
            with pytest.raises(InvalidInput, match="not sound"):
                take(make())


def test_nothing_hostile_reaches_compiled_code() -> None:
    command = [sys.executable, "-c", "from tests.core.test_sparse import try_all; try_all()"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    assert done.returncode == 0, f"status {done.returncode} at {last!r}: {done.stderr[-2000:]}"
    assert len(done.stdout.splitlines()) == len(HOSTILE) * len(uses())


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("format", FORMATS)
def test_sound_matrices_of_every_format_are_taken(format: str, kind: str) -> None:
    X = made(format, kind)
    check_sparse(X)
    model = GPClassifier().fit(X, LABELS)
    assert_close(model.decision_function(X), GPClassifier().fit(DENSE, LABELS).decision_function(DENSE))


def test_room_behind_the_entries_counts_for_nothing() -> None:
    """A matrix may have longer arrays than entries; what lies there may be anything."""
    sound = made("csr")
    X = made("csr")
    X.data, X.indices = np.append(X.data, [-1e300, np.inf]), np.append(X.indices, [10**6, -5])
    assert_close(GPClassifier().fit(X, LABELS).predict_proba(X), GPClassifier().fit(sound, LABELS).predict_proba(sound))
    assert X.data.size == sound.data.size + 2  # the caller's matrix stays as it is


ROWS = {
    "sorted, with empty rows": ([0, 0, 2, 2, 3, 3], [1, 3, 0]),
    "falls within a row": ([0, 3], [0, 3, 1]),
    "falls within the last row": ([0, 1, 3], [2, 3, 1]),
    "twice in a row": ([0, 0, 2, 3], [2, 2, 3]),
    "the same in two rows": ([0, 1, 1, 2], [2, 2]),
    "one entry": ([0, 1], [3]),
    "no entry": ([0, 0, 0], []),
    "no row": ([0], []),
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", ROWS)
def test_whether_indices_rise_in_rows_is_what_scipy_says(name: str, dtype: type) -> None:
    pointers, indices = (np.array(part, dtype) for part in ROWS[name])
    X = sp.csr_matrix((np.ones(indices.size), indices, pointers), shape=(pointers.size - 1, 4))
    assert rises_in_rows(pointers, indices) == X.has_canonical_format
    assert canonical(X).has_canonical_format
    assert_close(canonical(X).toarray(), X.toarray())


@pytest.mark.parametrize("dtype", ["<i4", ">i4", "<i8", "<u4", "i1"])
def test_indices_out_of_range_of_any_type(dtype: str) -> None:
    for index, sound in ((3, True), (4, False), (-1, False)):
        X = sp.coo_matrix((np.ones(1), ([0], [0])), shape=(1, 4))
        X.col = np.array([index & 0xFFFFFFFF if "u" in dtype else index]).astype(dtype)
        if sound:
            check_sparse(X)
            continue
        with pytest.raises(InvalidInput, match="from 0 to 3"):
            check_sparse(X)
