"""Files that other libraries read for us, and errors of these libraries as one sentence."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from saccade._core.declared import check_sides, check_unpacked
from saccade._core.errors import InvalidInput, SaccadeError


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
    """The data frame of a .parquet file."""
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
    """Features and labels of a svmlight file."""
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
