"""Transforms one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saccade.kernels.base import Array
from saccade.kernels.transforms import Transform


class Chain(Transform):
    """g(x) = g_p(… g_2(g_1(x))): `HIK` makes one of the list of transforms that it is given."""

    learned = "steps"

    def __init__(self, steps: Sequence[Transform]) -> None:
        self.steps = steps

    @property
    def width(self) -> int:
        return max((step.width for step in self.steps), default=0)

    @property
    def by_dimension(self) -> bool:
        return any(step.by_dimension for step in self.steps)

    @property
    def short(self) -> Any:
        """As `HIK` takes it: None for no step, the step itself for one, else a list."""
        return self.steps[0] if len(self.steps) == 1 else list(self.steps) or None

    def places(self, dims: Array) -> Array:
        """The dimensions that transforms tell apart; negative parts share their dimension's."""
        return np.asarray(dims % self.width) if self.width else np.zeros(0, np.int64)

    def check_width(self, width: int) -> None:
        for step in self.steps:
            step.check_width(width)

    def __call__(self, x: Array, dims: Array) -> Array:
        y = np.asarray(x, np.float64)
        for step in self.steps:
            y = step(y, dims)
        return y

    def resolved(self, x: Array, dims: Array, width: int) -> Chain:
        steps, y = [], x
        for step in self.steps:
            steps.append(step.resolved(y, dims, width))
            y = steps[-1](y, dims)
        return Chain(steps)

    def coordinates(self, x: Array, dims: Array) -> Array:
        tables, y = [np.zeros((0, 4))], x
        for step in self.steps:
            tables.append(step.coordinates(y, dims))
            y = step(y, dims)
        return np.concatenate(tables)

    def names(self) -> list[str]:
        return [name for step in self.steps for name in step.names()]

    def parameters(self) -> dict[str, Any]:
        """What is learned of each step, by the names that `Tune(fixed=...)` takes."""
        return {type(step).__name__.lower(): getattr(step, step.learned) for step in self.steps}

    def moved(self, theta: Array) -> Chain:
        """A step whose coordinates stay is kept as it is: its parameters may lie beyond the bounds of learning."""
        steps = []
        for step, own in zip(self.steps, self._split(theta), strict=True):
            start = step.coordinates(np.zeros(1), np.zeros(1, np.int64))[:, 0]
            steps.append(step if np.array_equal(start, own) else step.moved(own))
        return Chain(steps)

    def pull(self, x: Array, dims: Array, upstream: Array) -> tuple[Array, Array]:
        seen, y = [], np.asarray(x, np.float64)
        for step in self.steps:
            seen.append(y)
            y = step(y, dims)
        parts, up = [], upstream
        for step, before in zip(self.steps[::-1], seen[::-1], strict=True):
            part, up = step.pull(before, dims, up)
            parts.append(part)
        return np.concatenate([np.zeros(0), *parts[::-1]]), up

    def gradients(self, x: Array, dims: Array, upstream: Array, share: Array) -> tuple[list[dict[str, Array]], Array]:
        """What `gradient` returns for each step, and the derivative with respect to x."""
        seen = [np.asarray(x, np.float64)]
        for step in self.steps[:-1]:
            ready = step.scaled(lambda inner, y=seen[-1]: float(share @ Chain(inner)(y, dims)))  # type: ignore[misc]
            seen.append(ready(seen[-1], dims))
        found, up = list[dict[str, Array]](), upstream
        for step, y in zip(self.steps[::-1], seen[::-1][: len(self.steps)], strict=True):
            own, up = step.gradient(y, dims, up, share)
            found.append(own)
        return found[::-1], up

    def by_coordinates(self, x: Array, dims: Array, upstream: Array) -> Array:
        """Without the derivative with respect to x, which only an earlier step needs."""
        if not self.steps:
            return np.zeros(0)
        first, rest = self.steps[0], Chain(self.steps[1:])
        if not rest.steps:
            return first.by_coordinates(x, dims, upstream)
        others, up = rest.pull(first(np.asarray(x, np.float64), dims), dims, upstream)
        return np.concatenate([first.by_coordinates(x, dims, up), others])

    def penalty(self, theta: Array) -> tuple[float, Array]:
        found = [step.penalty(own) for step, own in zip(self.steps, self._split(theta), strict=True)]
        return sum(value for value, _ in found), np.concatenate([np.zeros(0), *[slope for _, slope in found]])

    def _split(self, theta: Array) -> list[Array]:
        """The coordinates of each step."""
        sizes = [len(step.names()) for step in self.steps]
        return np.split(theta, np.cumsum(sizes))[: len(sizes)]
