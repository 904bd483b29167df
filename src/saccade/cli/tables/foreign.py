"""Files that other libraries read for us."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
