"""A search as one picture: the photograph with the looks, the expected score, and how uncertain it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from examples.demo.figures import COLOURS, STYLE
from saccade.cli.find_search import ObjectSearch


def search_poster(search: ObjectSearch, path: Path) -> None:
    """PNG: what is known after the last look."""
    height, width = search.picture.shape[:2]
    last, extent = search.steps[-1], (0, width, height, 0)
    deviation = np.sqrt(np.maximum(last.maps.variance, 0.0))
    with matplotlib.rc_context(STYLE):
        figure: Any = Figure(figsize=(10.5, 3.9), layout="constrained")
        seen, mean, doubt = figure.subplots(1, 3)
        seen.imshow(search.picture.read((0, 0, width, height)), extent=extent)
        _looks(seen, search)
        seen.set_title(f"{last.looks} looks, and the box found")
        for ax, values, title in ((mean, last.maps.mean, "expected score"), (doubt, deviation, "± its uncertainty")):
            shown = ax.imshow(values, extent=extent, cmap="viridis", interpolation="bilinear")
            figure.colorbar(shown, ax=ax, shrink=0.62, ticks=[values.min(), values.max()], format="%.2f")
            ax.set_title(title)
        for ax in (seen, mean, doubt):
            ax.add_patch(_box(last.found.box, COLOURS["c1"], 3.0))
            ax.set(xticks=[], yticks=[], xlim=(0, width), ylim=(height, 0))
        figure.savefig(path, dpi=90, facecolor="white", metadata={"Software": None})


def _looks(ax: Any, search: ObjectSearch) -> None:
    """The boxes that were looked at, those with a high score bright."""
    low, high = search.localizer.scores
    share = np.clip((search.localizer.told - low) / (high - low), 0.0, 1.0)
    for k in np.argsort(share, kind="stable"):
        ax.add_patch(_box(search.localizer.boxes[k], matplotlib.colormaps["viridis"](0.3 + 0.7 * share[k]), 0.8))


def _box(box: Any, colour: Any, line: float) -> Rectangle:
    x0, y0, x1, y1 = box
    return Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=colour, linewidth=line)
