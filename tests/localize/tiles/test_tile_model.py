"""The posterior over tiles against quadrature, its sums against draws, and the policy against a plain calculation."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from saccade.localize.tiles.grid import first_tiles
from saccade.localize.tiles.left import all_tiles_at_most, interval
from saccade.localize.tiles.model import (
    RATE,
    Setting,
    TileSpace,
    believe,
    comparison,
    learn,
    likely_settings,
    settings,
)
from saccade.localize.tiles.policy import LIKELY, OPEN, _candidates, _Plan, choose_tiles

SETTING = Setting(2.0, 4.0, 0.0)


def grid(rows: int, columns: int, prior: float = 0.1, features: bool = False) -> TileSpace:
    places = np.column_stack(np.unravel_index(np.arange(rows * columns), (rows, columns))).astype(float)
    extra = np.random.default_rng(1).standard_normal((rows * columns, 3)) if features else None
    return TileSpace(places, extra, np.full(rows * columns, prior))


def test_before_any_look_the_probability_is_the_prior() -> None:
    for setting in settings(features=True):
        space = grid(4, 5, 0.07, features=True)
        nothing = np.zeros(0, np.int64)
        pool = learn(space, setting, nothing, np.zeros(0, bool)).pool()
        np.testing.assert_allclose(pool.probability, 0.07, rtol=1e-9)


@pytest.mark.parametrize("hits", [(False,), (True,), (True, False), (False, False), (True, True)])
def test_evidence_and_probabilities_are_those_of_the_normal_integral(hits: tuple[bool, ...]) -> None:
    """p(y) = P(y·(f + noise) > 0) of a multivariate normal. For one look the evidence is exact; the rest is close."""
    space, rows = grid(3, 3), np.array([0, 4])[: len(hits)]
    found = learn(space, SETTING, rows, np.array(hits))

    def chance(tiles: list[int], labels: list[bool]) -> float:
        y = np.where(labels, 1.0, -1.0)
        numbers = np.array(tiles)
        C = y[:, None] * y * (space.kernel(SETTING, numbers) + np.eye(len(y)))
        return float(multivariate_normal(-y * space.offset(SETTING)[numbers], C).cdf(np.zeros(len(y))))

    close = 1e-6 if len(hits) == 1 else 0.02
    assert found.log_evidence == pytest.approx(np.log(chance(rows.tolist(), list(hits))), abs=close)
    p = found.pool().probability
    for tile in (1, 8):
        truth = chance([*rows.tolist(), tile], [*hits, True]) / chance(rows.tolist(), list(hits))
        assert p[tile] == pytest.approx(truth, rel=0.15)  # three times the truth with Laplace


def test_variance_and_covariance_agree_with_dense_algebra() -> None:
    space, rng = grid(6, 6, features=True), np.random.default_rng(0)
    setting, rows = Setting(2.0, 4.0, 0.5), rng.permutation(36)[:12]
    found = learn(space, setting, rows, rng.random(12) < 0.4)
    pool, every = found.pool(), np.arange(36)
    full = space.kernel(setting, every)
    inverse = np.linalg.inv(found.given.factor.L @ found.given.factor.L.T)
    dense = full - full[:, rows] @ inverse @ full[rows]
    np.testing.assert_allclose(pool.covariance(every, every), dense, atol=1e-9)
    np.testing.assert_allclose(pool.variance, dense.diagonal(), atol=1e-9)
    np.testing.assert_allclose(full.diagonal(), RATE + 4.0)


def test_evidence_prefers_clusters_where_there_are_some() -> None:
    space, rng = grid(16, 16, features=True), np.random.default_rng(0)
    rows = rng.permutation(256)[:120]
    near = np.square(space.places[rows] - 8).sum(axis=1) < 20
    assert likely_settings(space, rows, near)[0].share == 0.0
    assert space.features is not None
    by_look = space.features[rows, 0] > 0.8
    assert likely_settings(space, rows, by_look)[0].share > 0.0


def test_left_out_probabilities_are_those_without_the_look() -> None:
    """In closed form from one fit; against a fit without each look."""
    space, rng = grid(6, 6), np.random.default_rng(0)
    rows = rng.permutation(36)[:12]
    hits = np.square(space.places[rows] - 2).sum(axis=1) < 6
    belief = believe(space, [SETTING], rows, hits)
    for k in range(12):
        others = np.arange(12) != k
        alone = learn(space, SETTING, rows[others], hits[others]).pool().probability[rows[k]]
        assert belief.left_out[k] == pytest.approx(alone, rel=0.05, abs=0.002)


def test_examples_say_what_hits_look_like_and_nothing_else() -> None:
    """Tiles that look like an example are likelier; places and the overall rate are as before."""
    plain = grid(6, 6, features=True)
    assert plain.features is not None
    features = np.vstack([plain.features, plain.features[[20, 20]]])
    space = TileSpace(np.vstack([plain.places, np.zeros((2, 2))]), features, plain.prior)
    before = learn(plain, Setting(2.0, 4.0, 0.5), np.zeros(0, np.int64), np.zeros(0, bool)).pool().probability
    for share in (0.0, 0.5):
        setting = Setting(2.0, 4.0, share)
        K = space.kernel(setting, np.arange(38))
        np.testing.assert_allclose(K[:36, :36], plain.kernel(setting, np.arange(36)), rtol=1e-12)
        np.testing.assert_allclose(K.diagonal(), RATE + 4.0)
        np.testing.assert_allclose(K[36, :36], K[37, :36])
        after = learn(space, setting, space.examples, np.ones(2, bool)).pool().probability
        assert after.shape == (36,)
        far = np.square(plain.features - plain.features[20]).sum(axis=1) > 6.0
        np.testing.assert_allclose(after[far], before[far], rtol=1e-3)
        assert (after[20] > 3.0 * before[20]) == (share > 0.0)
    found = believe(space, [SETTING], np.append(space.examples, [3, 9]), np.array([True, True, False, True]))
    assert found.left_out.shape == (2,)  # of looks only


def test_the_interval_holds_its_share_of_a_negative_binomial() -> None:
    low, high = interval(20.0, 90.0, 1000)
    draws = np.random.default_rng(0).negative_binomial(400 / 70, 20 / 90, 100_000)
    assert 0.95 <= ((draws >= low) & (draws <= high)).mean() < 0.97
    assert interval(0.0, 0.0, 5) == (0, 0)
    assert interval(3.0, 2.0, 1000)[1] == interval(3.0, 3.0, 1000)[1]
    assert interval(300.0, 9000.0, 40) == (40, 40)


@pytest.mark.parametrize("layout", ["one block", "one in each cell", "anywhere"])
@pytest.mark.parametrize("part", [36, 13])
def test_the_bound_without_a_model_holds_in_95_of_100_searches(layout: str, part: int) -> None:
    """One-sided 95 % for hits in one place, as even as can be, or at random: 1,000 starts each, whole and in part."""
    hit = np.zeros((24, 24), bool)
    if layout == "one block":
        hit[:6, :5] = True
    elif layout == "one in each cell":
        hit[::4, ::4] = True
    else:
        hit.flat[np.random.default_rng(0).permutation(576)[:40]] = True
    held = 0
    for seed in range(1000):
        first, cell = first_tiles((24, 24), 36, np.random.default_rng(seed))
        taken = first[:part]
        held += all_tiles_at_most(int(hit.flat[taken].sum()), taken.size, cell, 576) >= hit.sum()
    assert held >= 930  # 950 less three standard deviations


def test_the_policy_is_the_plain_calculation() -> None:
    """One choice by conditioning the Gaussian on each answer with dense algebra, tile by tile."""
    space, rng = grid(6, 6), np.random.default_rng(2)
    rows = rng.permutation(36)[:10]
    belief = believe(space, [SETTING], rows, np.square(space.places[rows] - 2).sum(axis=1) < 5)
    free, pool = np.setdiff1d(np.arange(36), rows), belief.pools[0]
    C, budget = pool.covariance(free, free), 5
    values = []
    for i in range(free.size):
        total = pool.probability[free[i]]
        for y in (1.0, -1.0):
            grid_f = np.linspace(-8, 8, 4001) * np.sqrt(C[i, i]) + pool.mean[free[i]]
            weight = np.exp(-0.5 * np.square(grid_f - pool.mean[free[i]]) / C[i, i]) * ndtr(y * grid_f)
            chance = weight.sum() * (grid_f[1] - grid_f[0]) / np.sqrt(2 * np.pi * C[i, i])
            mean_i = weight @ grid_f / weight.sum()
            var_i = weight @ np.square(grid_f - mean_i) / weight.sum()
            mean = pool.mean[free] + C[:, i] / C[i, i] * (mean_i - pool.mean[free[i]])
            variance = C.diagonal() - C[:, i] ** 2 / C[i, i] * (1.0 - var_i / C[i, i])
            later = np.delete(ndtr(mean / np.sqrt(1.0 + variance)), i)
            total += chance * np.sort(later)[-(budget - 1) :].sum()
        values.append(total)
    best = int(choose_tiles(belief, free, 1, budget)[0])
    assert values[int(np.searchsorted(free, best))] == pytest.approx(max(values), abs=1e-6)


def test_what_is_chosen_does_not_count_as_a_later_hit() -> None:
    pool = believe(grid(4, 4), [SETTING], np.array([0]), np.array([True])).pools[0]
    free = np.arange(1, 16)
    plan = _Plan(pool, free, free)
    plan.observe(3)
    later = plan.outcomes(np.array([5]))[1]
    assert (later[:, 0, [3, 5]] == 0.0).all()
    assert (np.delete(later, [3, 5], axis=2) > 0.0).all()


def test_a_batch_spreads_more_than_the_likeliest_tiles() -> None:
    space = grid(8, 8)
    belief = believe(space, [SETTING], np.array([0]), np.array([False]))
    free = np.arange(1, 64)
    chosen = choose_tiles(belief, free, 5, 30)
    assert np.unique(chosen).size == 5
    greedy = free[np.argsort(-belief.probability[free], kind="stable")[:5]]
    apart = [np.abs(space.places[some][:, None] - space.places[some]).sum() for some in (chosen, greedy)]
    assert apart[0] > apart[1]
    np.testing.assert_array_equal(np.sort(choose_tiles(belief, free, 100, 1)), free)


def test_candidates_are_the_likeliest_tiles_and_those_that_could_be() -> None:
    rng = np.random.default_rng(0)
    belief = believe(grid(16, 16, 0.3), [SETTING], rng.permutation(256)[:30], rng.random(30) < 0.5)
    free = np.setdiff1d(np.arange(256), rng.permutation(256)[:30])
    found, pool = _candidates(belief, free, 3), belief.pools[0]
    assert (np.diff(found) > 0).all()
    assert found.size <= 6 + LIKELY + OPEN
    for value, count in ((pool.probability, LIKELY), (ndtr(pool.mean + np.sqrt(pool.variance)), OPEN)):
        last = np.sort(value[free])[-(3 + count)]
        assert np.isin(free[value[free] > last + 1e-9], found).all()
        assert value[free].min() < last - 0.1


def test_random_looks_that_all_hit_or_none_at_all_exclude_nothing() -> None:
    assert all_tiles_at_most(0, 0, 4, 100) == all_tiles_at_most(5, 5, 4, 100) == 100
    assert all_tiles_at_most(0, 1, 4, 100) == 3  # of the four tiles of its cell, 95 % sure
    assert all_tiles_at_most(0, 20, 5, 100) < all_tiles_at_most(4, 20, 5, 100) < 100


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_kernel_is_the_formula(share: float) -> None:
    """Matérn of 3/2 over places, RBF over features, and 1 for the overall rate."""
    space, a, b = grid(4, 5, features=True), np.arange(20), np.array([0, 7, 18])
    assert space.features is not None
    r = np.sqrt(3.0) * np.linalg.norm(space.places[a][:, None] - space.places[b], axis=2) / 2.0
    far = np.square(space.features[a][:, None] - space.features[b]).sum(axis=2) / 0.5**2
    expected = 1.0 + 4.0 * ((1.0 - share) * (1.0 + r) * np.exp(-r) + share * np.exp(-0.5 * far))
    np.testing.assert_allclose(space.kernel(Setting(2.0, 4.0, share), a, b), expected, rtol=1e-9)


def test_settings_are_compared_at_8_13_21_34_looks() -> None:
    assert [comparison(looks) for looks in (0, 5, 8, 12, 13, 20, 21, 33, 34)] == [0, 5, 8, 8, 13, 13, 21, 21, 34]


def test_settings_are_those_of_the_record() -> None:
    """docs/decisions/028: length 2 or 5 tiles, amplitude 1 or 4, share of the features 0, ½ or 1; at most three."""
    assert {tuple(setting) for setting in settings(features=False)} == {(n, a, 0.0) for n in (2, 5) for a in (1, 4)}
    places = {(n, a, s) for n in (2, 5) for a in (1, 4) for s in (0.0, 0.5)}
    assert {tuple(setting) for setting in settings(features=True)} == places | {(2, 1, 1.0), (2, 4, 1.0)}
    nothing = np.zeros(0, np.int64)
    assert len(likely_settings(grid(4, 4), nothing, np.zeros(0, bool))) == 3  # all are as likely


def test_a_plan_knows_both_answers_and_their_average() -> None:
    """Each candidate's Gaussian, cut by an answer on a fine grid, against the closed forms."""
    belief = believe(grid(5, 5, 0.3), [SETTING], np.array([0, 12, 20]), np.array([True, False, True]))
    free = np.setdiff1d(np.arange(25), [0, 12, 20])
    pool, i = belief.pools[0], 4
    C, plan = pool.covariance(free, free), _Plan(pool, free, free)
    chances, later = plan.outcomes(np.array([i]))
    f = np.linspace(-9.0, 9.0, 8001) * np.sqrt(C[i, i]) + pool.mean[free[i]]
    falls = 0.0
    for place, y in enumerate((1.0, -1.0)):
        weight = np.exp(-0.5 * np.square(f - pool.mean[free[i]]) / C[i, i]) * ndtr(y * f)
        chance = weight.sum() * (f[1] - f[0]) / np.sqrt(2.0 * np.pi * C[i, i])
        mean_i = weight @ f / weight.sum()
        fall = (1.0 - weight @ np.square(f - mean_i) / weight.sum() / C[i, i]) / C[i, i]
        mean = pool.mean[free] + C[:, i] / C[i, i] * (mean_i - pool.mean[free[i]])
        p = ndtr(mean / np.sqrt(1.0 + C.diagonal() - C[:, i] ** 2 * fall))
        assert chances[place, 0] == pytest.approx(chance, rel=1e-5)
        np.testing.assert_allclose(np.delete(later[place, 0], i), np.delete(p, i), rtol=1e-5)
        falls += chance * fall
    plan.observe(i)
    np.testing.assert_allclose(plan.variance, C.diagonal() - C[:, i] ** 2 * falls, rtol=1e-5)
    np.testing.assert_allclose(plan.c, C - np.outer(C[i], C[i]) * falls, rtol=1e-5, atol=1e-7)
