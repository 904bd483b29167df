"""`saccade ask`: which examples a person should label next, as a file to fill in with a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from saccade.cli import console
from saccade.cli import options as o
from saccade.cli.option_groups import grouped
from saccade.cli.targets import check_targets

if TYPE_CHECKING:
    from saccade._core.arrays import Array
    from saccade.cli.pictures import TrainingPictures
    from saccade.cli.tables.columns import Reading
    from saccade.cli.tables.named_labels import Names
    from saccade.cli.tables.questions import Question
    from saccade.cli.tables.read import Examples
    from saccade.features import Pictures

NAMED = 12  # classes in a message


@dataclass(frozen=True)
class QuestionOptions:
    """What is asked, and where the questions go."""

    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Number of questions to have open.")] = 20
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to choose: auto, random, margin, variance, uncertainty, one-a-class, entropy, least-margin, "
            "typical, sigma, variance-reduction, information-gain or output-change; for labels that are 1 where an "
            "example is normal, novel or doubtful.",
        ),
    ] = "auto"
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FILE", help="The .csv file of questions to fill in; - is the terminal."),
    ] = "questions.csv"
    sheet: Annotated[
        Path | None,
        typer.Option(
            "--sheet", metavar="FILE", help="The .html page of the pictures asked for. Default: named after --out."
        ),
    ] = None
    guess: Annotated[
        bool,
        typer.Option(
            "--guess", help="Show the model's guess for each example. People tend to agree with what they are shown."
        ),
    ] = False


@grouped
def ask(
    context: typer.Context,
    data: o.Data,
    labels: o.Labels = None,
    *,
    asked: QuestionOptions,
    compared: o.KernelOptions,
    pictures: o.FeatureOptions,
    columns: o.ColumnOptions,
) -> None:
    """Ask for the labels in DATA that are worth most: write questions, fill them in, and run the same command again.

    Answers go into the column `label` of the file of questions: a class, or ? if you cannot tell. New questions are
    added at its end. Labels that you have already come from --labels, which is only read; those in DATA itself are not
    used unless it is given as --labels too. To train: saccade fit DATA MODEL --labels questions.csv
    """
    out, page = asked.out, _page(data, asked.out, asked.sheet)
    known_files = _check_files(data, out, page, tuple(labels or ()))
    with console.progress():
        clf, how = _model(asked, compared), columns.reading(known_files)
        examples, shown = _read(data, how, compared.pictures(pictures), clf)
        state = _state(data, examples, how, None if out == "-" else Path(out), asked.guess)
        questions = _ask(examples, state, clf, asked, compared.seed)
        _write(out, state, questions, asked.guess)
        if page is not None and shown is not None and state.open + questions:
            from saccade.cli.reports.questions import write_sheet

            write_sheet(page, data, out, shown, state.open + questions, _classes(state))
    _summarise(state, questions, out, page if shown is not None else None)
    if out != "-" and len(_classes(state)) > 1:
        words = "To train with what is labelled:" if state.open or questions else "Next, train:"
        console.line(f"{words} {_to_train(context, data, (*known_files, out))}")


class State(NamedTuple):
    """What is known so far."""

    names: Names
    rows: Array  # (l,) of the examples with a label
    y: Array  # (l,) the labels
    passed: set[int]  # rows that nobody could label
    open: list[Question]  # in the file of questions, not answered yet
    first: int  # number of the next question


def _page(data: Path, out: str, sheet: Path | None) -> Path | None:
    from saccade._core.errors import InvalidInput

    if sheet is not None and data.exists() and not data.is_dir():
        raise InvalidInput(f"--sheet shows pictures, and {data} is a table. Leave it out.")
    if sheet is not None or out == "-" or not data.is_dir():
        return sheet
    return Path(out).with_suffix(".html")


def _check_files(data: Path, out: str, page: Path | None, labels: tuple[Path, ...]) -> tuple[Path, ...]:
    """The files of labels that are there and are not the file of questions, which is read anyhow."""
    from saccade._core.errors import InvalidInput
    from saccade.cli.reports.questions import check_replaceable

    targets = ({} if out == "-" else {"--out": Path(out)}) | ({} if page is None else {"--sheet": page})
    check_targets(targets, True, (data,))
    if out != "-" and Path(out).suffix.lower() != ".csv":
        raise InvalidInput(f"--out {out} must be a .csv file, which spreadsheets open.")
    if page is not None:
        check_replaceable(page)
    for path in labels:
        if not path.exists():
            console.note(f"There is no file {path} yet.")
    there = [path for path in labels if path.exists()]
    return tuple(path for path in there if out == "-" or not Path(out).exists() or not path.samefile(out))


def _model(asked: QuestionOptions, compared: o.KernelOptions) -> Any:
    from saccade import GPClassifier, OneClassGP
    from saccade._core.checks import check_choice, check_noise
    from saccade._core.errors import InvalidInput
    from saccade.active.strategies import WAYS

    check_choice("strategy", asked.strategy, tuple(WAYS))
    one_class = WAYS[asked.strategy].one_class
    if one_class and asked.guess:
        raise InvalidInput(f"--strategy {asked.strategy} knows one class and guesses none. Leave --guess out.")
    kind = OneClassGP if one_class else GPClassifier
    model = kind(compared.hik(), levels=compared.level_count, random_state=compared.seed)
    return model if compared.noise is None else model.set_params(noise=check_noise(compared.noise))


def _read(data: Path, how: Reading, seeing: TrainingPictures, clf: Any) -> tuple[Examples, Pictures | None]:
    from saccade.cli.tables.read import read

    if not data.is_dir():
        return read(data, how, need_labels=False), None
    from saccade.cli import pictures as p
    from saccade.features import recommended_settings

    chain = seeing.chain()
    pictures = p.read(data, chain, seeing.cache, seeing.max_pixels, by_class=False)
    p.note_skipped(pictures)
    X = seeing.vectors(chain, pictures)
    clf.set_params(**recommended_settings(X.shape[1], seeing.levels))
    return p.named(pictures, X), pictures


def _state(data: Path, examples: Examples, how: Reading, questions: Path | None, guess: bool) -> State:
    from saccade.cli.tables import named_labels as n
    from saccade.cli.tables import questions as q

    names = n.names_of(data, examples)
    lines = [line for path in how.labels for line in n.read_lines(path, how, names)]
    asked = []
    if questions is not None and questions.exists():
        q.check_layout(questions, names, guess)
        asked = n.read_lines(questions, how, names)
    labels = n.merged([*lines, *asked], names)
    rows, y = n.labelled(labels, ", ".join(map(str, [*how.labels, questions])))
    passed = {row for row, text in labels.items() if text == n.CANNOT_TELL}
    return State(names, rows, y, passed, q.open_questions(asked, labels), q.next_number(asked))


def _ask(examples: Examples, state: State, clf: Any, asked: QuestionOptions, seed: int) -> list[Question]:
    """New questions, as many as are missing to the batch."""
    import numpy as np

    from saccade._core.progress import report
    from saccade.active import query
    from saccade.cli.commands.novelty import name_of
    from saccade.cli.tables.questions import Question

    n = examples.X.shape[0]
    taken = {*state.rows.tolist(), *state.passed, *(question.row for question in state.open)}
    candidates = np.setdiff1d(np.arange(n), np.fromiter(taken, np.int64, len(taken)))
    count = min(asked.batch - len(state.open), candidates.size)
    if count <= 0:
        return []
    report("choosing", 0.0)
    known = np.full(n, None, object)
    known[state.rows] = state.y
    options: dict[str, Any] = {"candidates": candidates, "strategy": asked.strategy, "random_state": seed}
    rows, scores = query(examples.X, known, clf, batch_size=count, return_utilities=True, **options)
    guesses = _guesses(clf, examples.X, state, rows) if asked.guess else [None] * len(rows)
    return [
        Question(row, name_of(examples, row), str(state.first + k), float(scores[k, row]), said)
        for k, (row, said) in enumerate(zip(rows.tolist(), guesses, strict=True))
    ]


def _guesses(clf: Any, X: Any, state: State, rows: Array) -> Sequence[tuple[Any, float] | None]:
    """The likeliest class of each row and its probability; None while there are no two classes."""
    if len(_classes(state)) < 2:
        return [None] * len(rows)
    model = clf.fit(X[state.rows], state.y)
    p = model.predict_proba(X[rows])
    return list(zip(model.classes_[p.argmax(axis=1)].tolist(), p.max(axis=1).tolist(), strict=True))


def _classes(state: State) -> list[str]:
    import numpy as np

    return [str(c) for c in np.unique(state.y)]


def _write(out: str, state: State, questions: list[Question], guess: bool) -> None:
    import sys

    from saccade.cli.tables import questions as q

    if out != "-":
        if questions:
            q.append(Path(out), questions, state.names.column, guess)
        return
    from saccade.cli.tables.csv_out import writing

    columns = q.header(state.names.column, guess)
    with writing(out) as file:
        file.write(q.header_line(columns) + q.as_csv(questions, columns, state.names.column, ",", "\n"))
    sys.stdout.flush()


def _summarise(state: State, questions: list[Question], out: str, page: Path | None) -> None:
    what = "picture" if state.names.column == "file" else "example"
    n, classes = len(state.names.rows), _classes(state)
    of = f" of {console.count(len(classes), 'class', 'classes')}: {_counted(state.y)}" if classes else ""
    passed = f" ? stands for {len(state.passed):,}." if state.passed else ""
    console.note(f"{state.rows.size:,} of {console.count(n, what)} labelled{of}.{passed}")
    if len(classes) == 1:
        console.note("All labels are of one class so far, and a classifier needs two.")
    if not state.open and not questions:
        console.note(f"All {n:,} examples of {state.names.source} were asked: there is nothing left to ask.")
        return
    waiting = f"{console.count(len(state.open), 'earlier question')} without an answer" if state.open else ""
    added = f"{console.count(len(questions), 'new question')} in {'the terminal' if out == '-' else out}"
    console.note(f"{waiting}{' and ' if waiting else ''}{added}.{f' Pictures in {page}.' if page else ''}")
    if out != "-":
        console.note(f"Next: fill in the column label of {out} (? if you cannot tell), and run the same command again.")


def _to_train(context: typer.Context, data: Path, labels: Iterable[Path | str]) -> str:
    """The command with all options of this run that `saccade fit` has too: with other features it would learn less."""
    from inspect import signature

    from saccade.cli.commands.fit import fit

    files = [part for path in labels for part in ("--labels", str(path))]
    shared = o.given(context, set(signature(fit).parameters) - {"data", "labels"})
    return o.quoted(["saccade", "fit", str(data), "model.saccade", *shared, *files])


def _counted(y: Array) -> str:
    """How many labels each class has: a class with one is perhaps a slip of the pen."""
    import numpy as np

    classes, counts = np.unique(y, return_counts=True)
    shown = [f"{name} {count:,}" for name, count in zip(classes.tolist(), counts.tolist(), strict=True)]
    more = f" and {len(shown) - NAMED:,} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + more
