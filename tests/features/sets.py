"""Data that tests of codebooks and pyramids share: descriptors of real pictures, and awkward random sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from skimage.data import astronaut, brick, camera, chelsea, coffee, grass, gravel

from saccade.features.descriptors import DenseSIFT
from saccade.features.lazy import Descriptors, Items, digest_of

EMPTY = Descriptors(np.empty((0, 128), np.float32), np.empty((0, 2)))


def described() -> tuple[list[Descriptors], list[str]]:
    """Twelve corners of real pictures, 49 descriptors each, of textures and of other things."""
    textures, things = (brick(), grass(), gravel()), (camera(), coffee()[..., 1], chelsea()[..., 1])
    corners = [p[y : y + 64, y + 80 : y + 144] for p in (*textures, *things) for y in (0, 100)]
    return list(DenseSIFT(scales=(16,)).fit_transform(corners)), ["texture"] * 6 + ["thing"] * 6


def portrait() -> Descriptors:
    """A picture that is in no training set."""
    made: Descriptors = DenseSIFT(scales=(16,)).fit_transform([astronaut()[100:180, 180:270]])[0]
    return made


@st.composite
def point_sets(draw: st.DrawFn, most: int = 5) -> list[Descriptors]:
    """Sets of different sizes, on a coarse lattice so that many points are equal, some sets empty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dims, lattice = draw(st.integers(1, 4)), draw(st.sampled_from([2, 5, 1000]))
    sizes = [1, *draw(st.lists(st.integers(0, 12), min_size=1, max_size=most))]
    lattices = [rng.integers(-lattice, lattice, (k, dims)) / 4 for k in sizes]
    # Bent, so that equal points stay equal but none is as far from one centre as from another but for rounding.
    bent = [X + 0.05 * np.sin(37 * X + 1 + np.arange(dims)) for X in lattices]
    return [Descriptors(X, rng.integers(0, 33, (len(X), 2)) / 32) for X in bent]


class Counted(Items):
    """Items that count how often one was asked for."""

    def __init__(self, things: Sequence[Any]) -> None:
        self.things, self.asked = things, 0

    def __len__(self) -> int:
        return len(self.things)

    def __getitem__(self, i: Any) -> Any:
        self.asked += 1
        return self.things[i]

    def digest(self, i: int) -> str:
        return digest_of(self.things[i].values, self.things[i].positions)
