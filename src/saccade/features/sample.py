"""A random sample of the descriptors of many pictures."""

from contextlib import closing

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.features.descriptor_arrays import same_width, values_of
from saccade.features.lazy import Items, stream


def sample_of(items: Items, most: int, seed: int, n_jobs: int | None) -> tuple[Array, Array]:
    """About `most` descriptors (m, d), equally many per picture, and the item (m,) of each; drawn at random."""
    each = max(limits.DESCRIPTORS_PER_PICTURE, -(-most // len(items)))

    def take(i: int) -> tuple[int, Array]:
        values = values_of(items[i])
        if len(values) > each:  # a generator per picture: the choice does not depend on which thread came first
            values = values[np.sort(np.random.default_rng([seed, i]).choice(len(values), each, replace=False))]
        return i, values

    chosen: list[Array] = []
    owners: list[Array] = []
    total = 0
    order = np.random.default_rng(seed).permutation(len(items)).tolist()
    with closing(stream(take, order, n_jobs)) as taken:
        for i, values in taken:
            if len(values):
                same_width(values, chosen[0].shape[1] if chosen else values.shape[1])
                chosen.append(values)
                owners.append(np.full(len(values), i))
                total += len(values)
            report("a sample of descriptors", total / most)
            if total >= most:
                break
    if not total:
        raise InvalidInput(
            f"The {len(items)} training pictures have no descriptors at all. Take larger pictures or a finer grid."
        )
    return np.concatenate(chosen)[:most], np.concatenate(owners)[:most]
