"""`saccade novelty`: how unlike the known each new example is, as CSV and as a page of ranked pictures."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TextIO

import typer

from saccade._core import limits
from saccade.cli import console
from saccade.cli import options as o
from saccade.cli.option_groups import grouped
from saccade.cli.tables.csv_out import cell, name_cell, writing
from saccade.cli.targets import check_targets

if TYPE_CHECKING:
    from saccade._core.arrays import Array
    from saccade.cli.detector import Detector
    from saccade.cli.pictures import TrainingPictures
    from saccade.cli.tables.columns import Reading
    from saccade.cli.tables.read import Examples

NAMED = 3  # of the most novel
ESTIMATOR = ("measure", "inference", "approximation", "noise", "contamination")  # options that are its parameters
SAVEABLE = ("auto", "exact", "lowrank")  # approximations whose variance a file can hold


@dataclass(frozen=True)
class OutputOptions:
    """What is written."""

    out: o.Out = "-"
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also an .html page: the pictures, the most novel first."),
    ] = None
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Also write the model to this file; it can be used as FIT."),
    ] = None
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Keep the order of SCORE instead of sorting by novelty.")
    ] = False
    force: o.Force = False

    def check(self, *sources: Path) -> None:
        """Complain of files that must not or cannot be written."""
        wanted = {"--out": None if self.out == "-" else Path(self.out), "--report": self.report, "--save": self.save}
        check_targets({name: path for name, path in wanted.items() if path is not None}, self.force, sources)


@dataclass(frozen=True)
class DetectorOptions(o.KernelOptions):
    """What is learned; None where an option was not given."""

    contamination: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of FIT to count as novel, from 0 to 0.5; about as many normal examples raise a false alarm. "
            "Default: 0.05.",
        ),
    ] = None
    measure: Annotated[
        str | None,
        typer.Option(metavar="probability|variance|mean|ratio", help="Score to rank by. Default: probability."),
    ] = None
    inference: Annotated[str | None, typer.Option(metavar="regression|laplace|ep", help="Default: regression.")] = None
    approximation: Annotated[
        str | None,
        typer.Option(
            metavar="exact|lowrank|diagonal|…",
            help="Approximation of mean and variance; also optimized, optimized-signed, fitc, sor, dtc, sod, parzen. "
            "Default: exact for up to 2,048 examples, else lowrank, as in files.",
        ),
    ] = None

    def check(self, to_be_saved: bool) -> None:
        """Check the options before the work begins."""
        from saccade._core.checks import check_choice, check_noise, check_share
        from saccade._core.errors import InvalidParameter
        from saccade.inference.approximations.by_name import APPROXIMATIONS
        from saccade.inference.likelihoods.sites import METHODS
        from saccade.scores.novelty import MEASURES

        choices = {"measure": MEASURES, "inference": METHODS, "approximation": ("auto", *APPROXIMATIONS)}
        for name, allowed in choices.items():
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), allowed)
        if self.noise is not None:
            check_noise(self.noise)
        if self.contamination is not None:
            check_share("contamination", self.contamination, 0.5, "0 trusts every training example.")
        if to_be_saved and self.measure != "mean" and self.approximation not in (None, *SAVEABLE):
            raise InvalidParameter(
                f"--save cannot keep the variance of --approximation {self.approximation}, and another one would "
                "change verdicts. Leave --approximation out, or add --measure mean."
            )


@grouped
def novelty(
    fit: Annotated[
        Path,
        typer.Argument(
            metavar="FIT",
            help="Examples of what is known, without labels: a table as for `saccade fit`, a folder of pictures, or a "
            "model file that --save wrote.",
        ),
    ],
    score: Annotated[
        Path,
        typer.Argument(
            metavar="SCORE",
            help="Examples to judge, of the same kind. Pass FIT again to judge each example by all others.",
        ),
    ],
    output: OutputOptions,
    options: DetectorOptions,
    pictures: o.FeatureOptions,
    columns: o.ColumnOptions,
) -> None:
    """Learn what is normal from FIT and judge SCORE: for each example its score, how normal it is, and a verdict.

    `normal` is how often a normal example would score as low; `novel` is True below the threshold. Labels are not used.
    """
    output.check(fit, score)
    with console.progress():
        from saccade.cli import detector as k

        how, seeing = columns.reading(), options.pictures(pictures)
        options.check(output.save is not None)
        kind = _check_kinds(fit, score)
        if kind == "model":
            detector = _recalled(fit, seeing, options, output.save)
        else:
            detector = _learned(kind, fit, how, seeing, options, output.save)
        itself = detector.examples is not None and fit.samefile(score)
        examples = detector.examples if itself else k.read_new(detector, score, how, seeing)
        assert examples is not None
        judged = _judge_known(detector) if itself else _judge(detector, examples)
    with writing(output.out) as file:
        _write(file, examples, judged, output.in_order)
    _summarise(detector, examples, judged, output.out)
    if output.report is not None:
        from saccade.cli.reports.novelty import write_report

        with console.progress():
            write_report(output.report, fit, score, detector, examples, judged)
        console.note(f"Report in {output.report}.")
    if output.save is not None:
        console.note(f"Model in {output.save}, {console.size(output.save.stat().st_size)}.")


class Verdicts(NamedTuple):
    """One verdict per example."""

    score: Array  # (n,) higher is more normal
    normal: Array  # (n,) how often a normal example would score no higher
    novel: Array  # (n,) bool


def _check_kinds(fit: Path, score: Path) -> str:
    """The kind of FIT. SCORE must be of the same kind; a model file as FIT is compared with it later."""
    from saccade._core.errors import InvalidInput
    from saccade.cli.detector import kind_of

    kind, other = kind_of(fit), kind_of(score)
    if kind != "model" and (kind == "pictures") != (other == "pictures"):
        names = {"pictures": "pictures", "table": "a table of features", "model": "no pictures"}
        raise InvalidInput(f"{fit} has {names[kind]} and {score} {names[other]}. Give two of the same kind.")
    return kind


def _recalled(model: Path, seeing: TrainingPictures, options: DetectorOptions, save: Path | None) -> Detector:
    from saccade._core.errors import InvalidInput
    from saccade.cli.detector import recall

    learning = {name: value for name, value in vars(options).items() if name not in ("contamination", "seed")}
    learning |= {"features": seeing.asked, "save": save}
    given = [name for name, value in learning.items() if value is not None]
    if given:
        raise InvalidInput(
            f"--{given[0]} is about learning, and {model} has learned already. Leave it out, or give the examples "
            "themselves as FIT."
        )
    return recall(model, seeing, options.contamination)


def _learned(
    kind: str, fit: Path, how: Reading, seeing: TrainingPictures, options: DetectorOptions, save: Path | None
) -> Detector:
    """A detector learned from FIT; --save writes it before SCORE is read."""
    from saccade import OneClassGP
    from saccade.cli import detector as k

    if save is not None and options.approximation is None:  # as in the file, so that its scores are those of now
        options = replace(options, approximation="lowrank")
    given = {name: getattr(options, name) for name in ESTIMATOR if getattr(options, name) is not None}
    plain = (options.power, options.exponential) == (None, None)
    kernel = None if plain else options.hik()  # None: scaled where the columns of a table differ
    model = OneClassGP(kernel, levels=options.level_count, random_state=seeing.seed, **given)
    detector = k.learn_pictures(model, fit, seeing) if kind == "pictures" else k.learn_table(model, fit, how)
    if save is not None:
        k.save(detector, save)
    return detector


def _judge(detector: Detector, examples: Examples) -> Verdicts:
    import numpy as np

    from saccade._core.chunks import batches
    from saccade._core.progress import report
    from saccade.scores.novelty import p_values

    n, parts = examples.X.shape[0], []
    for rows in batches(n, getattr(examples.X, "block_rows", limits.ROWS_AT_ONCE)):
        parts.append(detector.model.score_samples(examples.X[rows]))
        report("judging", rows.stop / n)
    score = np.concatenate(parts)
    normal = p_values(score, detector.model.normal_scores_, detector.model.n_known_)
    return Verdicts(score, normal, score < detector.model.offset_)


def _judge_known(detector: Detector) -> Verdicts:
    """The training examples, each by all the others: as if it had not been there."""
    from saccade.scores.novelty import own_p_values

    score, model = detector.scores, detector.model
    return Verdicts(score, own_p_values(score, model.normal_scores_), score < model.offset_)


def _write(file: TextIO, examples: Examples, judged: Verdicts, in_order: bool) -> None:
    import numpy as np

    n = len(judged.score)
    order = np.arange(n) if in_order else np.argsort(judged.score, kind="stable")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([cell(examples.id_name), "score", "normal", "novel"])
    columns = (column[order].tolist() for column in judged)
    for i, score, normal, novel in zip(order.tolist(), *columns, strict=True):
        writer.writerow([name_cell(name_of(examples, i), examples.id_name), f"{score:.6g}", f"{normal:.6g}", novel])


def name_of(examples: Examples, i: int) -> str:
    return str(i + 1) if examples.ids is None else examples.ids[i]


def _summarise(detector: Detector, examples: Examples, judged: Verdicts, out: str) -> None:
    from saccade.cli.pictures import printable

    what = "picture" if examples.id_name == "file" else "example"
    first = judged.score.argsort(kind="stable")[:NAMED]
    prefix = "row " if examples.ids is None else ""
    names = ", ".join(prefix + printable(name_of(examples, int(i))) for i in first)
    where = "" if out == "-" else f" All in {out}."
    console.note(detector.said)
    are = "is" if len(judged.novel) == 1 else "are"
    console.note(f"{int(judged.novel.sum()):,} of {console.count(len(judged.novel), what)} {are} novel.{where}")
    console.note(f"Most novel: {names}.")
