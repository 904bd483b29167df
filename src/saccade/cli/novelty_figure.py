"""Scores of the known above the line and of the new below it, as SVG in the colours of the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from saccade.cli import console

Array = np.ndarray[Any, np.dtype[Any]]
WIDTH, SIDE, TOP, HALF, LABELS = 960, 24, 62, 120, 44  # pixels; HALF is the height of the tallest bar
BARS = 48
FAR = 2.5  # widths of the known that are drawn to the left of them; what is further goes into the first bar
TICKS = 7


def figure(
    known: Array | None,  # (n,); None: only the new are drawn
    new: Array,  # (m,)
    offset: float,  # novel is what is below
    what: str,  # the new in words
) -> str:
    """No bar has both novel and normal examples in it: bars start at the threshold, in both directions."""
    scale = _Scale(known if known is not None else new, new, offset)
    base = TOP + HALF
    parts = [] if known is None else _bars(scale, known, base, 1, "known")
    parts += _bars(scale, new, base, 1 if known is None else -1, what)
    bottom = base if known is None else base + HALF
    parts.append(f'<path d="M{SIDE} {base}H{WIDTH - SIDE}" stroke="var(--line)"/>')
    parts += _axis(scale, bottom)
    parts += _threshold(scale, bottom)
    if known is not None:
        text = f"above the line the known, each judged by the others; below it {len(new):,} new"
        parts.append(_text(SIDE, 16, text, "start"))
    body = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {WIDTH} {bottom + LABELS}" role="img" aria-label="Scores of known and new examples" '
        f'font-size="13" fill="var(--quiet)">\n{body}\n</svg>'
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


def _bars(scale: _Scale, scores: Array, base: int, up: int, what: str) -> list[str]:
    """A bar a step, as high as its share of the tallest."""
    places = np.clip(scale.bar(scores), scale.first, scale.last)
    places = np.where((scores < scale.offset) & (places >= 0), -1, places)  # rounding at the threshold
    numbers, counts = np.unique(places, return_counts=True)
    drawn = []
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        left, right = scale.x(scale.edge(number)), scale.x(scale.edge(number + 1))
        height = HALF * count / counts.max()
        colour = "quiet" if what == "known" else "c1" if number < 0 else "c3"
        title = (
            f"{console.count(count, 'example')} ({what}) from {scale.edge(number):.3g} to {scale.edge(number + 1):.3g}"
        )
        drawn.append(
            f'<rect x="{left + 0.5:.1f}" y="{base - height if up > 0 else base:.1f}" width="{right - left - 1:.1f}" '
            f'height="{height:.1f}" fill="var(--{colour})" opacity=".85"><title>{title}</title></rect>'
        )
    return drawn


def _threshold(scale: _Scale, bottom: int) -> list[str]:
    x = scale.x(scale.offset)
    lines = [f'<path d="M{x:.1f} {TOP - 8}V{bottom}" stroke="var(--ink)" stroke-dasharray="4 4"/>']
    lines.append(_text(x - 8, TOP - 14, "← novel", "end", "c1"))
    return [*lines, _text(x + 8, TOP - 14, "normal →", "start", "c3")]


def _axis(scale: _Scale, bottom: int) -> list[str]:
    low, high = scale.edge(scale.first), scale.edge(scale.last + 1)
    drawn = [_text(scale.x(tick), bottom + 18, minus(f"{tick:g}"), "middle") for tick in ticks(low, high)]
    if scale.beyond:
        drawn.append(_text(SIDE, bottom + 38, f"← of these {scale.beyond:,} lie further left", "start"))
    return [*drawn, _text(WIDTH / 2, bottom + 38, "score", "middle")]


def ticks(low: float, high: float) -> list[float]:
    """At most seven round numbers between two.

    >>> ticks(-3.79, 0.2), ticks(0.0, 0.012)
    ([-3.0, -2.0, -1.0, 0.0], [0.0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.012])
    """
    rough = (high - low) / TICKS
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    numbers = np.arange(np.ceil(low / step), np.floor(high / step + 1e-9) + 1)
    return [float(f"{number * step:.12g}") + 0.0 for number in numbers]


def minus(number: str) -> str:
    """With the sign that is as long as a plus."""
    return number.replace("-", "−")


def _text(x: float, y: float, text: str, anchor: str, colour: str = "quiet") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="var(--{colour})">{text}</text>'
