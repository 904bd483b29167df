"""The page of `saccade novelty`: the scores in one figure, and the examples ranked, the most novel first."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli.detector import Detector
from saccade.cli.reports import html_page
from saccade.cli.reports.novelty_figure import figure, minus
from saccade.cli.tables.read import Examples

TYPICAL = 8  # known pictures shown of either kind
NEAREST_SIDE = 72  # pixels of a known picture beside a novel one


class Verdicts(NamedTuple):
    """One verdict per example."""

    score: Annotated[Array, "n"]  # higher is more normal
    normal: Annotated[Array, "n"]  # how often a normal example would score no higher
    novel: Annotated[Array, "n"]  # bool


def write_report(path: Path, fit: Path, score: Path, detector: Detector, examples: Examples, judged: Verdicts) -> None:
    itself = examples is detector.examples  # the known were judged, each by the others
    pictures = detector.pictures if itself else getattr(examples.X, "pictures", None)
    what, n = "example" if pictures is None else "picture", len(judged.novel)
    near = {} if pictures is None or detector.pictures is None else _nearest(detector, examples, judged, itself)
    share, least = detector.model.contamination, 1 / (detector.model.n_known_ + (not itself))
    html_page.write_page(
        path,
        "novelty.html",
        itself=itself,
        pictures=pictures is not None,
        fit=html_page.short(fit),
        score=html_page.short(score),
        novel=f"{int(judged.novel.sum()):,}",
        count=console.count(n, what),
        many=f"{what}s",
        are="is" if n == 1 else "are",
        figure=figure(None if itself else detector.scores, judged.score, detector.model.offset_, f"{what}s"),
        least=html_page.percent(least),
        share=html_page.percent(share if itself else max(share, least)),
        heads=("rank", examples.id_name, "score", "normal", "verdict"),
        sections=_sections(examples, judged, pictures, html_page.links(path, pictures or []), near),
        nearest=bool(near),
        known=[] if itself or detector.pictures is None else _comparison(detector),
        said=detector.said,
    )


def _nearest(detector: Detector, examples: Examples, judged: Verdicts, itself: bool) -> dict[int, list[dict[str, Any]]]:
    """For the most novel examples, the known pictures that are most like them by the kernel of the model."""
    assert detector.examples is not None
    known, kernel = detector.examples.X[: limits.NEAREST_AMONG], detector.model.kernel_
    own, found = np.sqrt(np.maximum(kernel.diag(known), np.finfo(float).tiny)), {}
    order = np.argsort(judged.score, kind="stable")
    for i in order[judged.novel[order]][: limits.NEAREST_FOR].tolist():
        x = examples.X[i : i + 1]
        likeness = kernel(x, known)[0] / (own * np.sqrt(max(float(kernel.diag(x)[0]), np.finfo(float).tiny)))
        if itself and i < likeness.size:
            likeness[i] = -np.inf
        best = np.argsort(-likeness, kind="stable")[: limits.NEAREST_SHOWN]
        found[i] = [
            {
                **html_page.card(detector.pictures, k, side=NEAREST_SIDE),
                "likeness": html_page.percent(float(np.clip(likeness[k], 0.0, 1.0))),
            }
            for k in best[np.isfinite(likeness[best])].tolist()
        ]
    return found


def _sections(
    examples: Examples, judged: Verdicts, pictures: Any, links: list[str], near: dict[int, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """The novel and the normal examples, the most novel first."""
    order = np.argsort(judged.score, kind="stable")
    rank = np.empty(len(order), int)
    rank[order] = np.arange(1, len(order) + 1)
    sections = []
    for novel, head in ((True, "Novel, the most novel first"), (False, "Normal, the least normal first")):
        chosen = order[judged.novel[order] == novel]
        if chosen.size:
            first, last = limits.REPORT_FIRST, limits.REPORT_LAST
            runs = [chosen] if chosen.size <= first + last else [chosen[:first], chosen[-last:]]
            hidden = chosen.size - sum(run.size for run in runs)
            rows = [
                [{**_row(examples, judged, pictures, i, rank, links), "near": near.get(i, [])} for i in run.tolist()]
                for run in runs
            ]
            sections.append({"head": head, "count": f"{chosen.size:,}", "hidden": f"{hidden:,}", "runs": rows})
    return sections


def _row(examples: Examples, judged: Verdicts, pictures: Any, i: int, rank: Array, links: list[str]) -> dict[str, Any]:
    score, normal, novel = (column[i] for column in judged)
    report("drawing", rank[i] / len(rank))
    return {
        **({} if pictures is None else html_page.card(pictures, i, links[i])),
        "rank": f"{rank[i]:,}",
        "name": examples.name(i),
        "score": minus(f"{score:.4g}" if pictures is None else f"{score:.3g}"),
        "normal": normal,
        "percent": html_page.percent(normal),
        "verdict": "novel" if novel else "normal",
    }


def _comparison(detector: Detector) -> list[tuple[str, list[dict[str, Any]]]]:
    """What the known look like: the most and the least typical of them."""
    order = np.argsort(detector.scores, kind="stable")
    few = min(TYPICAL, order.size // 2)
    parts = (("The most typical", order[::-1][:few]), ("The least typical", order[:few]))
    return [(head, [_known(detector, i) for i in chosen.tolist()]) for head, chosen in parts]


def _known(detector: Detector, i: int) -> dict[str, Any]:
    score = detector.scores[i]
    verdict = "novel" if score < detector.model.offset_ else "normal"
    return {**html_page.card(detector.pictures, i), "score": minus(f"{score:.3g}"), "verdict": verdict}
