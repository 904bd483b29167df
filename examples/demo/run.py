"""`make demo`: train, compare, draw, and leave a page to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from examples.demo.trials import Demo, FaceTrial, Say, Trial

PACKAGES = {"matplotlib": "matplotlib", "skimage": "scikit-image"}  # by the name in Python
SHORT = {  # heads that fit a narrow terminal
    "trained on": "n",
    "accuracy": "right",
    "mean confidence": "claimed",
    "calibration error": "ECE",
    "predict, µs each": "µs each",
}


def run_demo(out: Path) -> None:
    """Measure on digits and faces; write report.html, results.json, two figures and digits.saccade into `out`."""
    _check_packages()
    from rich.console import Console

    from examples.demo.figures import poster
    from examples.demo.report import page
    from examples.demo.search_figure import search_poster
    from examples.demo.trials import numbers, run_all
    from saccade._core.atomic import replacing
    from saccade.cli.reports import html_page

    console = Console(highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    console.print("Real pictures, nothing to download; this takes a minute or less on most machines.")
    with _steps(console) as say:
        demo = run_all(out, say)
        say("Drawing the report")
        poster(demo.digits, demo.data, out / "figure.png")
        search_poster(demo.finding.search, out / "find.png")
        html_page.write(out / "report.html", page(demo))
        with replacing(out / "results.json") as file:
            file.write((json.dumps(numbers(demo), indent=2, ensure_ascii=False) + "\n").encode())
    _show(console, demo)
    console.print(f"\nThe report: {out / 'report.html'}", soft_wrap=True, markup=False)


def _check_packages() -> None:
    """One sentence for all that is missing, and not one after each installation."""
    from importlib.util import find_spec

    from saccade._core.errors import InvalidInput

    missing = [name for package, name in PACKAGES.items() if find_spec(package) is None]
    if missing:
        raise InvalidInput(f"The demo needs {' and '.join(missing)}: `pip install 'saccade[demo]'`.")


@contextmanager
def _steps(console: Console) -> Iterator[Say]:
    """What is being done: on a terminal a line that changes, in a file a line for each step."""
    if not console.is_terminal:
        yield lambda step: console.print(f"  {step}", soft_wrap=True)
        return
    with console.status("Starting") as status:
        yield lambda step: status.update(step)


def _show(console: Console, demo: Demo) -> None:
    from examples.demo.report import finding_text
    from saccade.cli.console import duration, size
    from saccade.cli.reports.html_page import percent

    console.print(
        f"\n[bold]Digits[/]: {len(demo.data.y)} to learn from, {len(demo.data.y_test)} unseen ones to judge by\n"
    )
    console.print(_table(demo))
    for trial in demo.digits:
        if trial.note:
            console.print(f"  {trial.method}: {trial.note}.", style="dim")
    console.print(f"\n[bold]Faces or not[/]: share right, mean of {demo.faces.splits} splits\n")
    console.print(_face_table(demo))
    same = "the same answers, to the last bit" if demo.saving.identical else "[red]different answers[/]"
    console.print(f"[bold]Saved and loaded[/]: {size(demo.saving.bytes)}, {same}.")
    growing = demo.growing
    console.print(
        f"[bold]A new class added[/]: {growing.examples[-1]} nines shown to a model of 0 to 8; "
        f"{percent(growing.new_right[-1])} of unseen nines right, {percent(growing.old_right[-1])} of the rest."
    )
    console.print(f"[bold]A face in a photograph[/]: {finding_text(demo.finding)}")
    console.print(f"{duration(demo.seconds)} on {demo.machine}.", style="dim")


def _table(demo: Demo) -> Table:
    from examples.demo.report import COLUMNS, best_text

    table = _empty_table(*(SHORT.get(column.head, column.head) for column in COLUMNS))
    best = [best_text(demo.digits, column) for column in COLUMNS]
    for trial in demo.digits:
        texts = [column.show(column.value(trial)) for column in COLUMNS]
        cells = [f"[bold green]{t}[/]" if t == top else t for t, top in zip(texts, best, strict=True)]
        table.add_row(_name(trial), *cells)
    return table


def _face_table(demo: Demo) -> Table:
    """A row per method, a column per kind of features."""
    from saccade.cli.reports.html_page import percent

    cells: dict[str, list[str]] = {}
    for trial in demo.faces.trials:
        cells.setdefault(_name(trial), []).append(f"{percent(trial.accuracy)} ± {percent(trial.spread)}")
    table = _empty_table(*dict.fromkeys(trial.features for trial in demo.faces.trials))
    for name, texts in cells.items():
        table.add_row(name, *texts)
    return table


def _empty_table(*heads: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("method", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _name(trial: Trial | FaceTrial) -> str:
    return f"[bold]{trial.method}[/]" if trial.ours else trial.method
