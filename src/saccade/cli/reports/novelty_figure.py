"""Scores of the known above the line and of the new below it, as SVG in the colours of the page."""

from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade.cli import console
from saccade.cli.reports.html_page import render

WIDTH, SIDE, TOP, HALF = 960, 24, 62, 120  # pixels; HALF is the height of the tallest bar
BARS = 48
FAR = 2.5  # times the range of the known scores that is drawn to the left of it; lower scores go into the first bar
TICKS = 7


def figure(
    known: Annotated[Array, "n"] | None,  # None: only the new are drawn
    new: Annotated[Array, "m"],
    offset: float,  # novel is what is below
    what: str,  # the new in words
) -> Any:  # Markup
    """No bar has both novel and normal examples in it: bars start at the threshold, in both directions."""
    scale = _Scale(known if known is not None else new, new, offset)
    base = TOP + HALF
    bars = [] if known is None else _bars(scale, known, base, 1, "known")
    bars += _bars(scale, new, base, 1 if known is None else -1, what)
    low, high = scale.edge(scale.first), scale.edge(scale.last + 1)
    return render(
        "scores.svg",
        bars=bars,
        ticks=[(scale.x(tick), minus(f"{tick:g}")) for tick in ticks(low, high)],
        threshold=scale.x(offset),
        beyond=f"{scale.beyond:,}" if scale.beyond else "",
        new="" if known is None else f"{len(new):,}",
        **{"width": WIDTH, "left": SIDE, "right": WIDTH - SIDE, "top": TOP, "base": base},
        bottom=base if known is None else base + HALF,
    )


class _Scale:
    """Scores to pixels and to bars."""

    def __init__(self, known: Array, new: Array, offset: float) -> None:
        self.offset = offset
        high = max(known.max(), new.max(), offset)
        low = min(known.min(), offset)
        width = float(high - low) or max(abs(float(high)), 1.0)
        self.low = max(min(low, float(new.min())), low - FAR * width)
        self.high = float(high)
        self.beyond = int((new < self.low).sum())
        self.step = (self.high - self.low or width) / BARS
        self.first, self.last = self.bar(self.low), self.bar(self.high)

    def bar(self, score: Any) -> Any:
        """Numbers below 0 are novel."""
        return np.floor((score - self.offset) / self.step).astype(int)

    def x(self, score: float) -> float:
        share = (score - self.edge(self.first)) / (self.edge(self.last + 1) - self.edge(self.first))
        return float(SIDE + share * (WIDTH - 2 * SIDE))

    def edge(self, bar: int) -> float:
        return float(self.offset + bar * self.step)


def _bars(scale: _Scale, scores: Array, base: int, up: int, what: str) -> list[dict[str, Any]]:
    """A bar for each step, as high as its share of the tallest."""
    places = np.clip(scale.bar(scores), scale.first, scale.last)
    places = np.where((scores < scale.offset) & (places >= 0), -1, places)  # rounding at the threshold
    numbers, counts = np.unique(places, return_counts=True)
    drawn = []
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        low, high = scale.edge(number), scale.edge(number + 1)
        left, right = scale.x(low), scale.x(high)
        height = HALF * count / counts.max()
        drawn.append(
            {
                **{"x": left + 0.5, "y": base - height if up > 0 else base},
                **{"width": right - left - 1, "height": height},
                "colour": "quiet" if what == "known" else "c1" if number < 0 else "c3",
                "title": f"{console.count(count, 'example')} ({what}) from {low:.3g} to {high:.3g}",
            }
        )
    return drawn


def ticks(low: float, high: float) -> list[float]:
    """At most seven round numbers in a range.

    >>> ticks(-3.79, 0.2), ticks(0.0, 0.012)
    ([-3.0, -2.0, -1.0, 0.0], [0.0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.012])
    """
    rough = (high - low) / TICKS
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    numbers = np.arange(np.ceil(low / step), np.floor(high / step + 1e-9) + 1)
    return [float(f"{number * step:.12g}") + 0.0 for number in numbers]


def minus(number: str) -> str:
    """With a typographic minus sign, which is as long as a plus."""
    return number.replace("-", "−")
