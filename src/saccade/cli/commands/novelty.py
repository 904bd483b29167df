"""`saccade novelty`: how unlike the known each new example is, as CSV and as a page of ranked pictures."""

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TextIO

import numpy as np
import typer

import saccade
from saccade._core import limits
from saccade._core.chunks import batches
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli import detector as d
from saccade.cli import options as o
from saccade.cli.reports.novelty import Verdicts, write_report
from saccade.cli.tables.columns import TableReading
from saccade.cli.tables.csv_out import cell, name_cell, writing
from saccade.cli.tables.read import Examples
from saccade.cli.targets import check_targets

NAMED = 3  # of the most novel
ESTIMATOR = ("measure", "inference", "approximation", "noise", "contamination")  # options that are its parameters
SAVEABLE = ("auto", "exact", "lowrank")  # approximations whose variance a file can hold


@dataclass(frozen=True)
class OutputOptions:
    """What is written."""

    out: o.Out = "-"
    report: Path | None = o.option(
        None, "Also write an .html page of the examples, the most novel first.", metavar="FILE"
    )
    save: Path | None = o.option(None, "Also write the model to this file. It can be used as FIT.", metavar="FILE")
    in_order: bool = o.option(False, "Keep the order of SCORE instead of sorting by novelty.", "--in-order")
    force: o.Force = False


@dataclass(frozen=True)
class DetectorOptions(o.KernelOptions):
    """What is learned; None where an option was not given."""

    contamination: float | None = o.option(
        None,
        "Share of FIT to count as novel, from 0 to 0.5. About the same share of new normal examples gives a false "
        "alarm. Default: 0.05.",
        metavar="SHARE",
    )
    measure: str | None = o.option(
        None, "Score to rank by. Default: probability.", metavar="probability|variance|mean|ratio"
    )
    inference: str | None = o.option(None, "Method of inference. Default: regression.", metavar="regression|laplace|ep")
    approximation: str | None = o.option(
        None,
        "Approximation of mean and variance; also optimized, optimized-signed, fitc, sor, dtc, sod, parzen. Default: "
        "exact for up to 2,048 examples, else lowrank, as in files.",
        metavar="exact|lowrank|diagonal|…",
    )

    def check(self, to_be_saved: bool) -> None:
        from saccade._core.checks import check_choice, check_noise, check_share
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


@o.grouped
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
    """Learn what is normal from FIT and judge SCORE: a score, how normal it is, and a verdict per example.

    `normal` is how often a normal example would score as low; `novel` is True below the threshold. Labels are not used.
    """
    targets = {"--out": output.out, "--report": output.report, "--save": output.save}
    check_targets(targets, output.force, (fit, score))
    with console.progress():
        options.check(output.save is not None)
        how = columns.reading()
        detector = _detector(fit, score, how, pictures, options, output.save)
        itself = detector.examples is not None and fit.samefile(score)
        examples = detector.examples if itself else d.read_new(detector, score, how, pictures)
        assert examples is not None
        judged = _judge_known(detector) if itself else _judge(detector, examples)
    with writing(output.out) as file:
        _write(file, examples, judged, output.in_order)
    _summarise(detector, examples, judged, output.out)
    if output.report is not None:
        with console.progress():
            write_report(output.report, fit, score, detector, examples, judged)
        console.note(f"Report in {output.report}.")
    if output.save is not None:
        console.note(f"Model in {output.save}, {console.size(output.save.stat().st_size)}.")


def _detector(
    fit: Path, score: Path, how: TableReading, seeing: o.FeatureOptions, options: DetectorOptions, save: Path | None
) -> d.Detector:
    """A detector learned from FIT, or read where FIT is a model file; --save writes it before SCORE is read."""
    kind, other = d.kind_of(fit), d.kind_of(score)
    if kind == "model":
        return _recalled(fit, seeing, options, save)
    if (kind == "pictures") != (other == "pictures"):
        names = {"pictures": "pictures", "table": "a table of features", "model": "no pictures"}
        raise InvalidInput(f"{fit} has {names[kind]} and {score} {names[other]}. Give two of the same kind.")
    if save is not None and options.approximation is None:  # as in the file, so that its scores are those of now
        options = replace(options, approximation="lowrank")
    given = {name: getattr(options, name) for name in ESTIMATOR if getattr(options, name) is not None}
    plain = (options.power, options.exponential) == (None, None)
    kernel = None if plain else options.hik()  # None: scaled where the columns of a table differ
    model = saccade.OneClassGP(kernel, levels=options.level_count, random_state=options.seed, **given)
    found = d.learn_pictures(model, fit, seeing, options) if kind == "pictures" else d.learn_table(model, fit, how)
    if save is not None:
        d.save(found, save)
    return found


def _recalled(model: Path, seeing: o.FeatureOptions, options: DetectorOptions, save: Path | None) -> d.Detector:
    learning = {name: value for name, value in vars(options).items() if name not in ("contamination", "seed")}
    learning |= {"features": seeing.features, "save": save}
    given = [name for name, value in learning.items() if value is not None]
    if given:
        raise InvalidInput(
            f"--{given[0]} is about learning, and {model} has learned already. Leave it out, or give the examples "
            "themselves as FIT."
        )
    return d.recall(model, seeing, options.contamination)


def _judge(detector: d.Detector, examples: Examples) -> Verdicts:
    from saccade.scores.novelty import p_values

    n, parts = examples.X.shape[0], []
    for rows in batches(n, getattr(examples.X, "block_rows", limits.ROWS_AT_ONCE)):
        parts.append(detector.model.score_samples(examples.X[rows]))
        report("judging", rows.stop / n)
    score = np.concatenate(parts)
    normal = p_values(score, detector.model.normal_scores_, detector.model.n_known_)
    return Verdicts(score, normal, score < detector.model.offset_)


def _judge_known(detector: d.Detector) -> Verdicts:
    """The training examples, each by all the others: as if it had not been there."""
    from saccade.scores.novelty import own_p_values

    score, model = detector.scores, detector.model
    return Verdicts(score, own_p_values(score, model.normal_scores_), score < model.offset_)


def _write(file: TextIO, examples: Examples, judged: Verdicts, in_order: bool) -> None:
    n = len(judged.score)
    order = np.arange(n) if in_order else np.argsort(judged.score, kind="stable")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([cell(examples.id_name), "score", "normal", "novel"])
    columns = (column[order].tolist() for column in judged)
    for i, score, normal, novel in zip(order.tolist(), *columns, strict=True):
        writer.writerow([name_cell(examples.name(i), examples.id_name), f"{score:.6g}", f"{normal:.6g}", novel])


def _summarise(detector: d.Detector, examples: Examples, judged: Verdicts, out: str) -> None:
    first = judged.score.argsort(kind="stable")[:NAMED]
    prefix = "row " if examples.ids is None else ""
    names = ", ".join(prefix + console.printable(examples.name(int(i))) for i in first)
    where = "" if out == "-" else f" All in {out}."
    console.note(detector.said)
    are = "is" if len(judged.novel) == 1 else "are"
    console.note(
        f"{int(judged.novel.sum()):,} of {console.count(len(judged.novel), examples.what)} {are} novel.{where}"
    )
    console.note(f"Most novel: {names}.")
