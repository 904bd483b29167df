"""The page of `saccade novelty`: the scores in one figure, and the examples ranked, the most novel first."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saccade._core.progress import report
from saccade.cli import console, html_page
from saccade.cli.detector import Detector
from saccade.cli.html_page import safe
from saccade.cli.novelty import Judged, name_of
from saccade.cli.novelty_figure import figure, minus
from saccade.cli.read import Examples

Array = np.ndarray[Any, np.dtype[Any]]
MOST, LAST = 300, 100  # of each verdict: shown from its novel end, and from its normal end where there are more
TYPICAL = 8  # known pictures shown of either kind


def write_report(path: Path, fit: Path, score: Path, detector: Detector, examples: Examples, judged: Judged) -> None:
    """One page that needs nothing else."""
    page = _Page(detector, examples, judged)
    values = {
        "head": f"What is {'odd' if page.itself else 'new'} in {_short(score)}",
        "lead": _lead(page, fit, score),
        "figure": figure(None if page.itself else detector.scores, judged.score, detector.model.offset_, page.many),
        "reading": _reading(page),
        "sections": "\n".join([page.section(True), page.section(False)]),
        "known": "" if page.itself or detector.pictures is None else _comparison(detector),
        "said": safe(detector.said),
    }
    html_page.write(path, html_page.render("novelty.html", values))


def _lead(page: _Page, fit: Path, score: Path) -> str:
    novel, n = int(page.judged.novel.sum()), len(page.judged.novel)
    count, are = f"<b>{novel:,}</b> of {console.count(n, page.one)}", "is" if n == 1 else "are"
    if page.itself:
        return f"{count} {are} unlike the others. Each was judged by all the others, as if it were new."
    return f"{count} in <i>{_short(score)}</i> {are} unlike what is known from <i>{_short(fit)}</i>."


def _short(path: Path) -> str:
    return safe(path.resolve().name or str(path))


def _reading(page: _Page) -> str:
    share, least = page.detector.model.contamination, 1 / (page.detector.model.n_known_ + (not page.itself))
    text = (
        f"Bars left of the dashed line are novel {page.many}, right of it normal ones. The percentages say how often a "
        f"normal one would score as low; less than {_percent(least)} cannot be told from what is known here. "
    )
    if page.itself:
        return text + f"The threshold leaves at most {_percent(share)} below it (--contamination)."
    return text + f"About {_percent(max(share, least))} of normal {page.many} are taken for novel by chance."


class _Page(NamedTuple):
    detector: Detector
    examples: Examples
    judged: Judged

    @property
    def itself(self) -> bool:
        """Whether the known were judged, each by the others."""
        return self.examples is self.detector.examples

    @property
    def pictures(self) -> Any:
        return self.detector.pictures if self.itself else getattr(self.examples.X, "pictures", None)

    @property
    def one(self) -> str:
        return "example" if self.pictures is None else "picture"

    @property
    def many(self) -> str:
        return f"{self.one}s"

    def section(self, novel: bool) -> str:
        """The examples of one verdict, the most novel first."""
        order = np.argsort(self.judged.score, kind="stable")
        rank = np.empty(len(order), int)
        rank[order] = np.arange(1, len(order) + 1)
        chosen = order[self.judged.novel[order] == novel]
        if not chosen.size:
            return ""
        head = "Novel, the most novel first" if novel else "Normal, the least normal first"
        runs = [chosen] if chosen.size <= MOST + LAST else [chosen[:MOST], chosen[-LAST:]]
        gap = chosen.size - sum(run.size for run in runs)
        between = f'\n<p class="quiet">{gap:,} between them are not shown.</p>\n'
        draw = self._table if self.pictures is None else self._sheet
        return f"<h2>{head}: {chosen.size:,}</h2>\n" + between.join(draw(run, rank) for run in runs)

    def _sheet(self, chosen: Array, rank: Array) -> str:
        cards = []
        for i in chosen.tolist():
            cards.append(self._card(i, rank[i]))
            report("drawing", rank[i] / len(rank))
        return '<div class="sheet">\n' + "\n".join(cards) + "\n</div>"

    def _card(self, i: int, rank: int) -> str:
        score, normal, novel = (column[i] for column in self.judged)
        name = safe(name_of(self.examples, i))
        bar = html_page.bar(normal, _percent(normal))
        caption = f'<span class="rank">{rank:,}</span>score {minus(f"{score:.3g}")}{bar}<small>{name}</small>'
        return html_page.card(html_page.thumbnail(self.pictures[i]), name, caption, "novel" if novel else "normal")

    def _table(self, chosen: Array, rank: Array) -> str:
        lines = []
        for i in chosen.tolist():
            score, normal, novel = (column[i] for column in self.judged)
            verdict = "novel" if novel else "normal"
            name = safe(name_of(self.examples, i))
            numbers = f"<td>{minus(f'{score:.4g}')}</td><td>{_percent(normal)}</td>"
            lines.append(
                f'<tr><th scope="row">{rank[i]:,}</th><td>{name}</td>{numbers}<td class="{verdict}">{verdict}</td></tr>'
            )
        heads = ("rank", self.examples.id_name, "score", "normal", "verdict")
        head = "".join(f'<th scope="col">{safe(name)}</th>' for name in heads)
        body = "\n".join(lines)
        return f'<div class="table"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def _comparison(detector: Detector) -> str:
    """What the known look like: the most and the least typical of them."""
    order = np.argsort(detector.scores, kind="stable")
    few = min(TYPICAL, order.size // 2)
    parts = (("the most typical", order[::-1][:few]), ("the least typical", order[:few]))
    page = "<h2>The known, for comparison</h2>"
    for head, chosen in parts:
        cards = "".join(_known_card(detector, i) for i in chosen.tolist())
        page += f'\n<h3>{head.capitalize()}</h3>\n<div class="gallery">{cards}</div>'
    return page


def _known_card(detector: Detector, i: int) -> str:
    name, score = safe(detector.pictures.names[i]), detector.scores[i]
    kind = "novel" if score < detector.model.offset_ else "normal"
    return html_page.card(
        html_page.thumbnail(detector.pictures[i]), name, f"score {minus(f'{score:.3g}')}<br>{name}", kind
    )


def _percent(share: float) -> str:
    """
    >>> _percent(0.016), _percent(0.5), _percent(0.0009)
    ('1.6 %', '50 %', '0.09 %')
    """
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"
