import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize.sources.base import open_picture
from saccade.localize.tiles.grid import Tiles, first_tiles, outliers, overview, standardised, statistics


@given(
    st.integers(1, 500), st.integers(1, 500), st.integers(20, 200), st.sampled_from([0.0, 0.1, 0.5]), st.integers(-9, 9)
)
def test_tiles_cover_the_picture_and_nothing_else(width: int, height: int, tile: int, overlap: float, x0: int) -> None:
    tiles = Tiles.of((x0, 5, x0 + width, 5 + height), tile, overlap)
    covered = np.zeros((height, width), int)
    for left, top, right, bottom in (tiles.boxes - [x0, 5, x0, 5]).astype(int):
        assert (right - left, bottom - top) == (min(tile, width), min(tile, height))
        covered[top:bottom, left:right] += 1
    assert covered.min() >= 1
    assert len(tiles.boxes) == tiles.shape[0] * tiles.shape[1]
    np.testing.assert_array_equal(tiles.numbers(tiles.boxes), np.arange(len(tiles.boxes)))


def test_neighbours_share_the_overlap() -> None:
    tiles = Tiles.of((1000, 100), 100, 0.2)
    assert tiles.boxes[1, 0] == 80
    assert tiles.boxes[-1, 2] == 1000


def test_bad_tiles_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="`tile`"):
        Tiles.of((100, 100), 0)
    with pytest.raises(InvalidParameter, match="`overlap`"):
        Tiles.of((100, 100), 10, 1.0)
    with pytest.raises(InvalidParameter, match="larger tiles"):
        Tiles.of((1e6, 1e6), 10)
    with pytest.raises(InvalidInput, match="not a tile of this search"):
        Tiles.of((100, 100), 10).numbers([[0, 0, 10, 11]])


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 200), st.integers(0, 5))
def test_the_start_has_one_tile_in_each_cell(rows: int, columns: int, count: int, seed: int) -> None:
    numbers, cell = first_tiles((rows, columns), count, np.random.default_rng(seed))
    assert np.unique(numbers).size == numbers.size
    assert numbers.max() < rows * columns
    assert numbers.size * cell >= rows * columns  # the cells cover the grid
    assert numbers.size <= 2 * count + 2


def test_every_tile_of_a_cell_is_as_likely() -> None:
    seen = np.zeros(36)
    for seed in range(900):
        seen[first_tiles((6, 6), 4, np.random.default_rng(seed))[0]] += 1
    assert np.abs(seen / 900 - 1 / 9).max() < 0.05  # 4.8 standard deviations


def test_the_overview_is_that_of_the_tiles_read_one_by_one() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (330, 260, 3)).astype(np.uint8)
    source, tiles = open_picture(picture), Tiles.of((260, 330), 64)
    alone = [statistics(source.read(box, 0.25)) for box in tiles.boxes]
    together = overview(source, tiles, pixels=16)
    assert np.abs(together - alone).max() < 0.02  # rounding of the averaged pixels


def test_an_odd_tile_stands_out_in_the_overview() -> None:
    picture = np.full((320, 320, 3), 100, np.uint8)
    picture[64:80, 128:150] = (200, 50, 50)
    features = overview(open_picture(picture), Tiles.of((320, 320), 64))
    away = np.abs(features - np.median(features, axis=0)).sum(axis=1)
    assert away.argmax() == 1 * 5 + 2
    assert np.sort(away)[-2] < 1e-9


def test_outliers_are_those_farthest_by_mahalanobis() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((300, 4)) @ rng.standard_normal((4, 4)) + 5.0
    apart = features - features.mean(axis=0)
    distance = np.einsum("ij,jk,ik->i", apart, np.linalg.inv(np.cov(features.T)), apart)
    order = outliers(standardised(features))
    assert np.diff(np.sqrt(distance[order])).max() < 0.05  # but for the ridge
    constant = standardised(np.column_stack([features, np.ones(300)]))
    assert np.isin(outliers(constant)[:30], order[:31]).all()
    np.testing.assert_array_equal(outliers(np.zeros((5, 2))), np.arange(5))
