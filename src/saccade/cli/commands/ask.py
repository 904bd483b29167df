"""`saccade ask`: which examples a person should label next, as a file to fill in with a spreadsheet."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

import saccade
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli import options as o
from saccade.cli import pictures as p
from saccade.cli.commands.fit import fit
from saccade.cli.reports.questions import check_replaceable, write_sheet
from saccade.cli.tables import named_labels as n
from saccade.cli.tables import questions as q
from saccade.cli.tables.columns import TableReading
from saccade.cli.tables.csv_out import writing
from saccade.cli.tables.questions import Question
from saccade.cli.tables.read import Examples, read
from saccade.cli.targets import check_targets

NAMED = 12  # classes in a message


@dataclass(frozen=True)
class QuestionOptions:
    """What is asked, and where the questions go."""

    batch: int = o.option(20, "Number of open questions.", metavar="N", min=1)
    strategy: str = o.option(
        "auto",
        "How to choose: auto, random, margin, variance, uncertainty, one-a-class, entropy, least-margin, typical, "
        "medoids, sigma, variance-reduction, information-gain, output-change or value. If the labels are 1 for normal "
        "examples: novel or doubtful.",
        metavar="NAME",
    )
    out: str = o.option(
        "questions.csv",
        "The .csv file of questions to fill in; - writes to the terminal.",
        *("--out", "-o"),
        metavar="FILE",
    )
    sheet: Path | None = o.option(
        None, "The .html page of the pictures to label. Default: named after --out.", metavar="FILE"
    )
    guess: bool = o.option(
        False, "Show the model's guess for each example. People tend to agree with what they see.", "--guess"
    )


@o.grouped
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
    """Choose the examples in DATA whose labels help most, and write them as questions to fill in.

    Write each answer into the column `label` of the file of questions: a class, or ? if you cannot tell. Then run the
    same command again: it adds new questions at the end. Give labels that you have already with --labels, which is
    only read. Labels in DATA itself are used only if DATA is given as --labels too. To train: saccade fit DATA MODEL
    --labels questions.csv
    """
    out, page = asked.out, _page(data, asked.out, asked.sheet)
    known_files = _check_files(data, out, page, tuple(labels or ()))
    with console.progress():
        clf, how = _model(asked, compared), columns.reading(known_files)
        examples, shown = _read(data, how, compared, pictures, clf)
        state = _state(data, examples, how, None if out == "-" else Path(out), asked.guess)
        questions = _ask(examples, state, clf, asked, compared.seed)
        _write(out, state, questions, asked.guess)
        if page is not None and shown is not None and state.open + questions:
            write_sheet(page, data, out, shown, state.open + questions, _classes(state))
    _summarise(state, questions, out, page if shown is not None else None)
    if out != "-" and len(_classes(state)) > 1:
        words = "To train with what is labelled:" if state.open or questions else "Next, train:"
        console.line(f"{words} {_to_train(context, data, (*known_files, out))}")


class State(NamedTuple):
    """What is known so far."""

    names: n.Names
    rows: Annotated[Array, "l"]  # of the examples with a label
    y: Annotated[Array, "l"]  # the labels
    passed: set[int]  # rows that nobody could label
    open: list[Question]  # in the file of questions, not answered yet
    first: int  # number of the next question


def _page(data: Path, out: str, sheet: Path | None) -> Path | None:
    if sheet is not None and data.exists() and not data.is_dir():
        raise InvalidInput(f"--sheet shows pictures, and {data} is a table. Leave it out.")
    if sheet is not None or out == "-" or not data.is_dir():
        return sheet
    return Path(out).with_suffix(".html")


def _check_files(data: Path, out: str, page: Path | None, labels: tuple[Path, ...]) -> tuple[Path, ...]:
    """The files of labels that are there and are not the file of questions, which is read anyhow."""
    check_targets({"--out": out, "--sheet": page}, True, (data,))
    if out != "-" and Path(out).suffix.lower() != ".csv":
        raise InvalidInput(f"--out {out} must be a .csv file, which spreadsheets open.")
    if page is not None:
        check_replaceable(page)
    for path in labels:
        if not path.exists():
            console.note(f"The file {path} does not exist yet.")
    there = [path for path in labels if path.exists()]
    return tuple(path for path in there if out == "-" or not Path(out).exists() or not path.samefile(out))


def _model(asked: QuestionOptions, compared: o.KernelOptions) -> Any:
    from saccade._core.checks import check_choice, check_noise
    from saccade.active.strategies import STRATEGIES

    check_choice("strategy", asked.strategy, tuple(STRATEGIES))
    one_class = STRATEGIES[asked.strategy].one_class
    if one_class and asked.guess:
        raise InvalidInput(
            f"--strategy {asked.strategy} knows one class only, so there is no guess. Leave --guess out."
        )
    kind = saccade.OneClassGP if one_class else saccade.GPClassifier
    model = kind(compared.hik(), levels=compared.level_count, random_state=compared.seed)
    return model if compared.noise is None else model.set_params(noise=check_noise(compared.noise))


def _read(
    data: Path, how: TableReading, compared: o.KernelOptions, seeing: o.FeatureOptions, clf: Any
) -> tuple[Examples, Any]:
    """The examples, and their pictures where they have any."""
    if not data.is_dir():
        return read(data, how, need_labels=False), None
    chain = seeing.chain(compared.seed)
    pictures = p.read(data, chain, seeing)
    X = seeing.vectors(chain, pictures)
    clf.set_params(**compared.for_pictures(X.shape[1]))
    return p.named(pictures, X), pictures


def _state(data: Path, examples: Examples, how: TableReading, questions: Path | None, guess: bool) -> State:
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
    from saccade.active import query

    count_all = examples.X.shape[0]
    taken = {*state.rows.tolist(), *state.passed, *(question.row for question in state.open)}
    candidates = np.setdiff1d(np.arange(count_all), np.fromiter(taken, np.int64, len(taken)))
    count = min(asked.batch - len(state.open), candidates.size)
    if count <= 0:
        return []
    report("choosing", 0.0)
    known = np.full(count_all, None, object)
    known[state.rows] = state.y
    options: dict[str, Any] = {"candidates": candidates, "strategy": asked.strategy, "random_state": seed}
    rows, scores = query(examples.X, known, clf, batch_size=count, return_utilities=True, **options)
    guesses = _guesses(clf, examples.X, state, rows) if asked.guess else [None] * len(rows)
    return [
        Question(row, examples.name(row), str(state.first + k), float(scores[k, row]), said)
        for k, (row, said) in enumerate(zip(rows.tolist(), guesses, strict=True))
    ]


def _guesses(clf: Any, X: Any, state: State, rows: Array) -> Sequence[tuple[Any, float] | None]:
    """The likeliest class of each row and its probability; None while there are no two classes."""
    if len(_classes(state)) < 2:
        return [None] * len(rows)
    model = clf.fit(X[state.rows], state.y)
    shares = model.predict_proba(X[rows])
    return list(zip(model.classes_[shares.argmax(axis=1)].tolist(), shares.max(axis=1).tolist(), strict=True))


def _classes(state: State) -> list[str]:
    return [str(c) for c in np.unique(state.y)]


def _write(out: str, state: State, questions: list[Question], guess: bool) -> None:
    if out != "-":
        if questions:
            q.append(Path(out), questions, state.names.column, guess)
        return
    columns = q.header(state.names.column, guess)
    with writing(out) as file:
        file.write(q.header_line(columns) + q.as_csv(questions, columns, state.names.column, ",", "\n"))
    sys.stdout.flush()


def _summarise(state: State, questions: list[Question], out: str, page: Path | None) -> None:
    what = "picture" if state.names.column == "file" else "example"
    every, classes = len(state.names.rows), _classes(state)
    of = f" of {console.count(len(classes), 'class', 'classes')}: {_counted(state.y)}" if classes else ""
    passed = f" {len(state.passed):,} answered with ?." if state.passed else ""
    console.note(f"{state.rows.size:,} of {console.count(every, what)} labelled{of}.{passed}")
    if len(classes) == 1:
        console.note("All labels so far are of one class. A classifier needs two.")
    if not state.open and not questions:
        console.note(f"All {every:,} examples of {state.names.source} were asked. There is nothing left to ask.")
        return
    waiting = f"{console.count(len(state.open), 'earlier question')} without an answer" if state.open else ""
    added = f"{console.count(len(questions), 'new question')} in {'the terminal' if out == '-' else out}"
    console.note(f"{waiting}{' and ' if waiting else ''}{added}.{f' Pictures in {page}.' if page else ''}")
    if out != "-":
        console.note(f"Next: fill in the column label of {out} (? if you cannot tell), and run the same command again.")


def _to_train(context: typer.Context, data: Path, labels: Iterable[Path | str]) -> str:
    """The command with all options of this run that `saccade fit` has too: with other features it would learn less."""
    files = [part for path in labels for part in ("--labels", str(path))]
    shared = o.given(context, set(signature(fit).parameters) - {"data", "labels"})
    return o.quoted(["saccade", "fit", str(data), "model.saccade", *shared, *files])


def _counted(y: Array) -> str:
    """How many labels each class has: a class with one is perhaps a typing error."""
    classes, counts = np.unique(y, return_counts=True)
    return console.few([f"{c} {k:,}" for c, k in zip(classes.tolist(), counts.tolist(), strict=True)], NAMED)
