"""Files that other libraries read for us, and errors of these libraries as one sentence.

Arrays come from .npy and .npz files, never by unpickling.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.declared import check_sides, check_unpacked
from saccade._core.errors import InvalidInput, SaccadeError
from saccade.cli.tables.columns import TableReading, listed

X_NAMES = ("X", "x", "features", "data")
Y_NAMES = ("y", "Y", "labels", "label", "target")


@contextmanager
def refusing(sentence: Callable[[Exception], str]) -> Iterator[None]:
    """Within the block, whatever a library raises is the fault of the file it reads.

    NumPy, zipfile, pyarrow and the like raise anything for a damaged file, from TokenError to AttributeError. Errors of
    the disk, of memory and of a missing package are not the file's.
    """
    try:
        yield
    except (SaccadeError, OSError, MemoryError, ImportError):
        raise
    except Exception as error:
        raise InvalidInput(sentence(error)) from None


def load_parquet(path: Path) -> Any:
    import pandas as pd
    import pyarrow.parquet as pq

    damaged = f"{path} is damaged or not a parquet file. Write it again."
    try:
        with refusing(lambda _: damaged):
            size = pq.read_metadata(path)
            check_unpacked(path, 8 * size.num_rows * size.num_columns)
            return pd.read_parquet(path, engine="pyarrow")
    except OSError:  # pyarrow's word for damage
        raise InvalidInput(damaged) from None


def load_svmlight(path: Path, zero_based: bool, width: int | None) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    def sentence(error: Exception) -> str:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        if "index 0" in reason:
            return f"{path} numbers its features from 0. Add --zero-based."
        if "n_features" in reason:
            return f"{path} has features beyond the {width:,} that the model was trained on."
        return f"{path} is not a svmlight file ({reason})."

    with refusing(sentence):
        X, y = load_svmlight_file(str(path), n_features=width, zero_based=zero_based)
    check_sides(X.shape, path.stat().st_size, path)
    return X, y


def load_array(path: Path) -> Array:
    found = _load(path, path, mmap_mode="r")
    if not isinstance(found, np.ndarray):
        raise InvalidInput(f"{path} is not an .npy file. An archive of arrays must be called .npz.")
    return found


def load_archive(path: Path, how: TableReading) -> tuple[Any, Array | None]:
    """Features and labels of an .npz file, or a sparse matrix that SciPy saved there."""
    with path.open("rb") as file:
        archive = _load(path, file)
        if isinstance(archive, np.ndarray):
            raise InvalidInput(f"{path} is not an .npz file. A single array must be called .npy.")
        names = list(archive.files)
        check_unpacked(path, sum(member.file_size for member in archive.zip.infolist()))
        if {"format", "shape"} <= set(names) and how.x is None:
            return _load_sparse(path, archive), None
        x = _name(path, names, how.x, X_NAMES, "--x")
        if x is None:
            raise InvalidInput(f"{path} holds the arrays {listed(names)}: name the features with --x.")
        y = _name(path, names, how.y, Y_NAMES, "--y")
        return _member(path, archive, x), None if y is None else _member(path, archive, y)


def _name(path: Path, names: list[str], wish: str | None, usual: tuple[str, ...], option: str) -> str | None:
    if wish is None:
        return next((name for name in usual if name in names), None)
    if wish not in names:
        raise InvalidInput(f"{path} has no array {wish!r} for {option}; it holds {listed(names)}.")
    return wish


def _load(path: Path, file: Any, **options: Any) -> Any:
    with refusing(partial(_why, path)):
        return np.load(file, allow_pickle=False, **options)


def _member(path: Path, archive: Any, name: str) -> Array:
    with refusing(partial(_why, path)):
        _check_filled(archive, name)
        return np.asarray(archive[name])


def _check_filled(archive: Any, name: str) -> None:
    """A ValueError unless the array has as many bytes as its header declares: NumPy would ask for them all."""
    file = name if name in archive.zip.namelist() else f"{name}.npy"
    with archive.zip.open(file) as member:
        version = np.lib.format.read_magic(member)
        head = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = head(member)
        if not dtype.hasobject and member.tell() + prod(shape) * dtype.itemsize != archive.zip.getinfo(file).file_size:
            raise ValueError(f"{file} does not fill the shape {shape}")


def _why(path: Path, error: Exception) -> str:
    """Python objects are refused before anything of them is read: reading them can run any program."""
    if any(hint in str(error) for hint in ("allow_pickle", "Object arrays", "Python objects")):
        return (
            f"{path} holds Python objects or is not a NumPy file. Neither is read: save plain numbers with numpy.save."
        )
    return f"{path} is damaged or not a NumPy file. Save it again."


def _load_sparse(path: Path, archive: Any) -> Any:
    import scipy.sparse as sp

    from saccade._core.sparse import check_sparse

    with refusing(lambda _: f"{path} is not a whole sparse matrix. Save it again with scipy.sparse.save_npz."):
        for name in archive.files:
            _check_filled(archive, name)
        X = sp.load_npz(path)
        check_sides(X.shape, path.stat().st_size, path)
        check_sparse(X, f"The sparse matrix in {path}")
        return sp.csr_matrix(X)
