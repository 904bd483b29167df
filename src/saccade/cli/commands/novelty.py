"""`saccade novelty`: how unlike the known each new example is, as CSV and as a page of ranked pictures."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from saccade._core import limits
from saccade.cli import console
from saccade.cli import options as o
from saccade.cli.tables.csv_out import cell, name_cell, writing

if TYPE_CHECKING:
    from saccade._core.arrays import Array
    from saccade.cli.detector import Detector
    from saccade.cli.tables.read import Examples

NAMED = 3  # of the most novel
ESTIMATOR = ("measure", "inference", "approximation", "noise", "contamination")  # options that are its parameters
SAVEABLE = ("auto", "exact", "lowrank")  # approximations whose variance a file can hold


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
        typer.Argument(metavar="SCORE", help="Examples to judge, of the same kind. FIT again: each by the others."),
    ],
    out: o.Out = "-",
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also an .html page: the pictures, the most novel first."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep what was learned, to use it as FIT.")
    ] = None,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Rows as in SCORE, instead of the most novel first.")
    ] = False,
    contamination: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of FIT to count as novel, from 0 to 0.5; about as many normal examples raise a false alarm. "
            "Default: 0.05.",
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(metavar="probability|variance|mean|ratio", help="What the score is. Default: probability."),
    ] = None,
    inference: Annotated[str | None, typer.Option(metavar="regression|laplace|ep", help="Default: regression.")] = None,
    approximation: Annotated[
        str | None,
        typer.Option(
            metavar="exact|lowrank|diagonal|…",
            help="Of mean and variance; also optimized, optimized-signed, fitc, sor, dtc, sod, parzen. "
            "Default: exact for up to 2,048 examples, else lowrank, as in files.",
        ),
    ] = None,
    noise: o.Noise = None,
    power: o.Eta = None,
    exponential: o.Bend = None,
    levels: o.Levels = None,
    seed: o.Seed = 0,
    features: o.Features = None,
    cache: o.Cache = None,
    max_pixels: o.MaxPixels = limits.PICTURE_PIXELS,
    force: o.Force = False,
    label: o.Label = None,
    x: o.XName = None,
    id_: o.Id = None,
    drop: o.Drop = None,
    header: o.Header = None,
    zero_based: o.ZeroBased = False,
) -> None:
    """Learn what is normal from FIT and judge SCORE: for each example its score, how normal it is, and a verdict.

    `normal` is how often a normal example would score as low; `novel` is True below the threshold. Labels are not used.
    """
    wanted = {"--out": None if out == "-" else Path(out), "--report": report, "--save": save}
    o.check_targets({name: path for name, path in wanted.items() if path is not None}, force, (fit, score))
    with console.progress():
        from saccade.cli import detector as k
        from saccade.cli.pictures import TrainingPictures
        from saccade.cli.tables.columns import Reading

        how = Reading(label, (), x, None, id_, tuple(drop or ()), header, zero_based)
        seeing = TrainingPictures(features, cache, max_pixels, seed, o.picture_levels(levels))
        options = {"measure": measure, "inference": inference, "approximation": approximation, "noise": noise}
        options["contamination"] = contamination
        _check(options, save is not None)
        kind = _check_kinds(fit, score)
        shape = {"power": power, "exponential": exponential, "levels": levels, "features": features, "save": save}
        if kind == "model":
            detector = _recalled(fit, seeing, options | shape)
        else:
            detector = _learned(kind, fit, how, seeing, options | shape)
        itself = detector.examples is not None and fit.samefile(score)
        examples = detector.examples if itself else k.read_new(detector, score, how, seeing)
        assert examples is not None
        judged = _judge_known(detector) if itself else _judge(detector, examples)
    with writing(out) as file:
        _write(file, examples, judged, in_order)
    _summarise(detector, examples, judged, out)
    if report is not None:
        from saccade.cli.reports.novelty import write_report

        with console.progress():
            write_report(report, fit, score, detector, examples, judged)
        console.note(f"Report in {report}.")
    if save is not None:
        console.note(f"Model in {save}, {console.size(save.stat().st_size)}.")


class Verdicts(NamedTuple):
    """One verdict per example."""

    score: Array  # (n,) higher is more normal
    normal: Array  # (n,) how often a normal example would score no higher
    novel: Array  # (n,) bool


def _check(options: dict[str, Any], to_be_saved: bool) -> None:
    """Check the options before the work begins; None is an option that was not given."""
    from saccade._core.checks import check_choice, check_noise, check_share
    from saccade._core.errors import InvalidParameter
    from saccade.inference.approximations.by_name import APPROXIMATIONS
    from saccade.inference.likelihoods.sites import METHODS
    from saccade.scores.novelty import MEASURES

    choices = {"measure": MEASURES, "inference": METHODS, "approximation": ("auto", *APPROXIMATIONS)}
    for name, allowed in choices.items():
        if options[name] is not None:
            check_choice(name, options[name], allowed)
    if options["noise"] is not None:
        check_noise(options["noise"])
    if options["contamination"] is not None:
        check_share("contamination", options["contamination"], 0.5, "0 trusts every training example.")
    if to_be_saved and options["measure"] != "mean" and options["approximation"] not in (None, *SAVEABLE):
        raise InvalidParameter(
            f"--save cannot keep the variance of --approximation {options['approximation']}, and another one would "
            "change verdicts. Leave --approximation out, or add --measure mean."
        )


def _check_kinds(fit: Path, score: Path) -> str:
    """The kind of FIT. SCORE must be of the same kind; a model file as FIT is compared with it later."""
    from saccade._core.errors import InvalidInput
    from saccade.cli.detector import kind_of

    kind, other = kind_of(fit), kind_of(score)
    if kind != "model" and (kind == "pictures") != (other == "pictures"):
        names = {"pictures": "pictures", "table": "a table of features", "model": "no pictures"}
        raise InvalidInput(f"{fit} has {names[kind]} and {score} {names[other]}. Give two of the same kind.")
    return kind


def _recalled(model: Path, seeing: Any, options: dict[str, Any]) -> Detector:
    from saccade._core.errors import InvalidInput
    from saccade.cli.detector import recall

    contamination = options.pop("contamination")
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InvalidInput(
            f"--{given[0]} is about learning, and {model} has learned already. Leave it out, or give the examples "
            "themselves as FIT."
        )
    return recall(model, seeing, contamination)


def _learned(kind: str, fit: Path, how: Any, seeing: Any, options: dict[str, Any]) -> Detector:
    """A detector learned from FIT; --save writes it before SCORE is read."""
    from saccade import OneClassGP
    from saccade.cli import detector as k

    save = options["save"]
    if save is not None and options["approximation"] is None:
        options["approximation"] = (
            "lowrank"  # as the file keeps it, so that the scores now and from the file are the same
        )
    given = {name: options[name] for name in ESTIMATOR if options[name] is not None}
    levels, bent = o.level_count(options["levels"]), (options["power"], options["exponential"])
    kernel = None if bent == (None, None) else o.kernel(*bent)  # None: scaled where the columns of a table differ
    model = OneClassGP(kernel, levels=levels, random_state=seeing.seed, **given)
    detector = k.learn_pictures(model, fit, seeing) if kind == "pictures" else k.learn_table(model, fit, how)
    if save is not None:
        k.save(detector, save)
    return detector


def _judge(detector: Detector, examples: Examples) -> Verdicts:
    import numpy as np
    from sklearn.utils import gen_batches

    from saccade._core.progress import report
    from saccade.scores.novelty import p_values

    n, parts = examples.X.shape[0], []
    for rows in gen_batches(n, getattr(examples.X, "block_rows", limits.ROWS_AT_ONCE)):
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
