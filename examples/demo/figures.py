"""The demo's drawings: a figure as a PNG file, or as SVG whose colours follow the page that holds it."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.image import imsave

from examples.demo.trials import Growing, Split, Trial
from saccade._core.arrays import Array
from saccade.cli.reports.html_page import percent

# In a PNG these are the colours; in SVG each becomes the variable of the page's style sheet.
COLOURS = {
    "ink": "#20242b",
    "quiet": "#7c8594",
    "line": "#d5d9e0",
    "c1": "#d9480f",
    "c2": "#ae3ec9",
    "c3": "#1971c2",
    "c4": "#2b8a3e",
}
INK, QUIET, LINE = COLOURS["ink"], COLOURS["quiet"], COLOURS["line"]
DRAWN = ("saccade HIK", "saccade exp-HIK", "GPC tuned", "SVC sigmoid")  # in the reliability diagram
MARKERS = ("o", "D", "s", "^")
BINS = 10
FEWEST = 20  # examples behind a point
STYLE: Any = {
    "font.size": 10,
    "font.family": ["DejaVu Sans"],
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "saccade",
}


def most_doubtful(
    probability: Array,  # (n, M)
    count: int,
) -> Array:  # (count,)
    """The pictures whose most probable class is the least probable."""
    return np.asarray(probability.max(axis=1).argsort(kind="stable")[:count])


def reliability_bins(
    probability: Array,  # (n, M)
    y: Array,  # (n,)
) -> tuple[Array, Array, Array]:
    """Mean confidence, accuracy and number of examples for each tenth of confidence; small tenths join the next."""
    confidence, right = probability.max(axis=1), probability.argmax(axis=1) == y
    order = confidence.argsort(kind="stable")
    ends = np.searchsorted(confidence[order], np.linspace(0.1, 1.0, BINS)[:-1])
    groups: list[Array] = [np.zeros(0, int)]
    for tenth in np.split(order, ends):
        if len(groups[-1]) >= FEWEST:
            groups.append(tenth)
        else:
            groups[-1] = np.concatenate([groups[-1], tenth])
    if len(groups) > 1 and len(groups[-1]) < FEWEST:
        groups[-2:] = [np.concatenate(groups[-2:])]
    mean, share = (np.array([values[g].mean() for g in groups]) for values in (confidence, right))
    return mean, share, np.array([len(g) for g in groups])


def reliability(trials: list[Trial], y: Array) -> Markup:
    """SVG: how often each method was right, against how sure it said it was."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 4.9), layout="constrained")
        _draw_reliability(figure.add_subplot(), trials, y)
        return _svg(figure, "Accuracy against confidence for four methods")


def _draw_reliability(ax: Any, trials: list[Trial], y: Array) -> None:
    ax.plot([0, 1], [0, 1], color=QUIET, linewidth=1, linestyle=(0, (4, 4)))
    ax.annotate("as sure as it is right", (0.24, 0.178), rotation=45, color=QUIET, fontsize=8.5, rotation_mode="anchor")
    by_name = {trial.method: trial for trial in trials}
    for place, name in enumerate(DRAWN):
        colour = COLOURS[f"c{place + 1}"]
        confidence, accuracy, number = reliability_bins(by_name[name].probability, y)
        ax.plot(confidence, accuracy, color=colour, linewidth=1.5, alpha=0.8)
        ax.scatter(
            confidence, accuracy, s=24 + 0.12 * number, color=colour, marker=MARKERS[place], linewidth=0, alpha=0.8
        )
        ax.plot([], [], color=colour, marker=MARKERS[place], label=name)  # the legend's marker has one size
    ax.set(xlim=(0, 1.03), ylim=(0, 1.03), xlabel="how sure it says it is", ylabel="how often it is right")
    ax.set_aspect("equal")
    ax.grid(color=LINE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    ax.legend(loc="lower right", fontsize=9)


def growth(growing: Growing) -> Markup:
    """SVG: a new class learned from a handful of examples."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.0), layout="constrained")
        ax = figure.add_subplot()
        x = np.arange(len(growing.examples))
        ax.plot(x, growing.old_right, color=COLOURS["c3"], marker="s", label="test digits 0 to 8")
        ax.plot(x, growing.new_right, color=COLOURS["c1"], marker="o", label="test nines")
        ax.set_xticks(x, [str(n) for n in growing.examples])
        ax.set(ylim=(-0.03, 1.05), xlabel="nines the model has been shown", ylabel="share right")
        ax.grid(axis="y", color=LINE, linewidth=0.6)
        ax.tick_params(length=0)
        ax.legend(loc="center right", fontsize=9)
        return _svg(figure, "Accuracy on old and new digits as nines are added")


def poster(trials: list[Trial], data: Split, path: Path) -> None:
    """PNG: the reliability diagram beside the digits our first method doubts most."""
    rows, columns = 3, 5
    with matplotlib.rc_context(STYLE):
        figure: Any = Figure(figsize=(10.5, 5.0), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1, 1.08))
        ax = left.add_subplot()
        _draw_reliability(ax, trials, data.y_test)
        ax.set_title(f"{len(data.y_test)} unseen digits: confidence and truth")
        ours = trials[0]
        right.suptitle(f"What {ours.method} doubts most", fontsize=11, x=0.02, ha="left", color=INK)
        axes = right.subplots(rows, columns).ravel()
        for cell, i in zip(axes, most_doubtful(ours.probability, rows * columns), strict=True):
            _draw_digit(cell, data.pictures[i], ours.probability[i], int(data.y_test[i]))
        figure.savefig(path, dpi=110, facecolor="white", metadata={"Software": None})


def _draw_digit(ax: Any, picture: Array, p: Array, truth: int) -> None:
    first, second = p.argsort()[::-1][:2]
    ax.imshow(picture, cmap="gray_r", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set(visible=True, color=LINE)
    ax.set_title(
        f"{first}: {percent(p[first])}\n{second}: {percent(p[second])}", fontsize=9, loc="center", linespacing=1.3
    )
    right = first == truth
    ax.set_xlabel(f"is {truth}", fontsize=9, color=QUIET if right else COLOURS["c1"])


def _svg(figure: Figure, title: str) -> Markup:
    """Only the drawing: no XML head, no metadata, fixed colours replaced by variables of the page."""
    out = io.StringIO()
    nothing: Any = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    text = out.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", text, count=1)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = re.sub(r'<style type="text/css">.*?</style>|(?<=<g) id="[^"]*"', "", text)  # only names that are used
    text = text.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
    for name, colour in COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    return Markup(re.sub(r" font-family: [^;\"]*;", "", text))


def data_uri(
    picture: Array,  # (h, w) from 0 to 1
    cmap: str,
) -> str:
    """A grey picture as a PNG inside a link, at its own size: the page enlarges it."""
    out = io.BytesIO()
    nothing: Any = {"Software": None}
    imsave(out, picture, cmap=cmap, vmin=0, vmax=1, format="png", metadata=nothing)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
