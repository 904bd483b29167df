"""Principal components of descriptors, against the singular vectors of all of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.data import brick, camera, coffee, grass
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.features.descriptors import DenseSIFT
from saccade.features.lazy import Descriptors
from saccade.features.projection import DescriptorPCA

PICTURES = [coffee()[:90, 140:260], camera()[100:180, 200:300], brick()[:80, :90], grass()[:70, :90]]
SETS = list(DenseSIFT(scales=(16,)).fit_transform(PICTURES))


def random_sets(rng: np.random.Generator, dims: int, sizes: list[int]) -> list[Descriptors]:
    mix = rng.normal(size=(dims, dims)) * np.geomspace(1.0, 0.01, dims)
    return [Descriptors(rng.normal(size=(k, dims)) @ mix.T + 3.0, rng.random((k, 2))) for k in sizes]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.lists(st.integers(5, 30), min_size=1, max_size=4), st.data())
def test_the_projection_is_that_of_the_singular_vectors(seed: int, dims: int, sizes: list[int], data: Any) -> None:
    sets = random_sets(np.random.default_rng(seed), dims, sizes)
    count = data.draw(st.integers(1, min(dims, sum(sizes))))
    pca = DescriptorPCA(count, n_jobs=1).fit(sets)
    everything = np.concatenate([s.values for s in sets]).astype(np.float32).astype(float)
    centred = everything - everything.mean(axis=0)
    singular = np.linalg.svd(centred, compute_uv=False)
    low = np.concatenate([made.values for made in pca.transform(sets)])
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(count), atol=1e-5)
    np.testing.assert_allclose((low**2).sum(axis=0), singular[:count] ** 2, rtol=1e-3, atol=1e-3 * singular[0] ** 2)
    # What is left out is as little as any projection leaves out.
    left = ((centred - low @ pca.components_) ** 2).sum()
    np.testing.assert_allclose(left, (singular[count:] ** 2).sum(), rtol=1e-3, atol=1e-4 * singular[0] ** 2)


def test_ten_dimensions_of_sift_and_positions() -> None:
    plain, placed = (DescriptorPCA(positions=p).fit_transform(SETS) for p in (False, True))
    for given_set, a, b in zip(SETS, plain, placed, strict=True):
        assert a.values.shape == (len(given_set.values), 10)
        assert b.values.dtype == np.float32
        np.testing.assert_array_equal(b.values[:, :10], a.values)
        np.testing.assert_array_equal(b.values[:, 10:], given_set.positions)
        np.testing.assert_array_equal(b.positions, given_set.positions)


def test_arrays_stay_arrays_and_have_no_positions() -> None:
    arrays = [s.values for s in SETS]
    made = DescriptorPCA(4).fit_transform(arrays)[0]
    np.testing.assert_array_equal(made, DescriptorPCA(4).fit_transform(SETS)[0].values)
    with pytest.raises(InvalidInput, match="Positions are needed"):
        DescriptorPCA(4, positions=True).fit_transform(arrays)[0]


def test_a_set_without_descriptors_stays_one() -> None:
    pca = DescriptorPCA(4, positions=True).fit(SETS)
    assert pca.transform([Descriptors(np.empty((0, 128)), np.empty((0, 2)))])[0].values.shape == (0, 6)


def test_the_sample_is_bounded_and_repeatable() -> None:
    some = [DescriptorPCA(5, sample=150, random_state=s, n_jobs=j).fit(SETS) for s, j in ((1, 1), (1, 3), (2, 1))]
    np.testing.assert_array_equal(some[0].components_, some[1].components_)
    assert np.abs(some[0].components_ - some[2].components_).max() > 1e-3


def test_descriptors_that_are_all_the_same() -> None:
    same = [Descriptors(np.ones((9, 4)), np.full((9, 2), 0.5))]
    made = DescriptorPCA(2).fit_transform(same)[0].values
    np.testing.assert_allclose(made, 0.0, atol=1e-6)


def test_a_second_fit_is_read_from_the_cache(tmp_path: Path) -> None:
    first = DescriptorPCA(5, cache=tmp_path).fit(SETS)
    assert list(tmp_path.iterdir())
    again = clone(first).fit(SETS)
    np.testing.assert_array_equal(first.components_, again.components_)
    other = DescriptorPCA(5, cache=tmp_path).fit(SETS[1:])
    assert np.abs(first.components_ - other.components_).max() > 1e-3


def test_the_state_restores_it() -> None:
    pca = DescriptorPCA(5, positions=True).fit(SETS)
    again = clone(pca).restore(pca.state())
    assert again.recipe() == pca.recipe() != clone(pca).recipe()
    np.testing.assert_array_equal(again.transform(SETS)[0].values, pca.transform(SETS)[0].values)
    mean, components = pca.state()["mean"], pca.state()["components"]
    broken: list[dict[str, Array]] = [
        {},
        {"mean": mean},
        {"mean": mean[1:], "components": components},
        {"mean": mean, "components": components[1:]},
        {"mean": mean * np.nan, "components": components},
    ]
    for state in broken:
        with pytest.raises(ValueError, match=r"mean|components"):
            clone(pca).restore(state)


def test_scikit_learn_conventions() -> None:
    pca = DescriptorPCA(3, positions=True, sample=500, random_state=4)
    assert clone(pca).get_params() == pca.get_params()
    with pytest.raises(NotFittedError):
        pca.transform(SETS)
    assert make_pipeline(DenseSIFT(), pca).fit_transform(PICTURES)[0].values.shape[1] == 5


@pytest.mark.parametrize(
    ("name", "value"), [("n_components", 0), ("n_components", 129), ("n_components", 2.0), ("sample", 1)]
)
def test_bad_parameters_are_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameter, match=f"`{name}` must"):
        DescriptorPCA(**{name: value}).fit(SETS)


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidInput, match="at least one picture"):
        DescriptorPCA().fit([])
    with pytest.raises(InvalidInput, match="must have 128 dimensions"):
        DescriptorPCA().fit(SETS).transform([np.ones((3, 7))])[0]
