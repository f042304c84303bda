"""The fast way to sums of densities against the plain one, in float64."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from skdisent import SEPIN, GaussianPosterior, _aggregate
from skdisent._aggregate import draw
from skdisent._densities import LatentSets
from skdisent._expansions import DiagonalRows, FullRows
from skdisent._kernels import (
    COMPACT_DRAWS,
    CUT,
    PRECISIONS,
    compact_blocks,
    fast_log_sums,
    plain_log_sums,
)
from skdisent._steady import STEADY_ERROR, SteadyLatents

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)


def clustered(rng, n, n_latents):
    centers = 3 * rng.normal(size=(5, n_latents))
    mean = centers[rng.integers(5, size=n)] + 0.1 * rng.normal(size=(n, n_latents))
    return mean, rng.uniform(0.05, 1.0, size=(n, n_latents))


MODELS = {
    "near the prior": lambda rng: (
        rng.normal(size=(500, 4)) * [1, 1, 0.01, 0],
        np.where([1, 1, 0, 0], rng.uniform(0.1, 0.4, (500, 4)), 1.0),
    ),
    "clusters": lambda rng: clustered(rng, 500, 6),
    "far from the origin": lambda rng: (
        1e5 + rng.normal(size=(300, 3)),
        rng.uniform(0.1, 0.5, (300, 3)),
    ),
    "sharp": lambda rng: (
        rng.normal(size=(300, 3)),
        10 ** rng.uniform(-4, -2, (300, 3)),
    ),
    "widths of all sizes": lambda rng: (
        rng.normal(size=(200, 3)),
        10 ** rng.uniform(-6, 3, (200, 3)),
    ),
    "one width for all rows": lambda rng: (
        rng.normal(size=(400, 8)),
        np.tile(rng.uniform(0.1, 1, 8), (400, 1)),
    ),
    "many latents": lambda rng: (
        rng.normal(size=(100, 150)),
        rng.uniform(0.5, 2, (100, 150)),
    ),
    "beyond float32": lambda rng: (
        1e-25 * rng.normal(size=(50, 2)),
        1e-26 * rng.uniform(1, 2, size=(50, 2)),
    ),
    "a few rows far off": lambda rng: (
        np.where(np.arange(300)[:, None] % 50, rng.normal(size=(300, 3)), 1e40),
        rng.uniform(0.3, 1, (300, 3)),
    ),
    "two rows": lambda rng: (rng.normal(size=(2, 3)), np.full((2, 3), 0.5)),
    "copies": lambda rng: (
        np.repeat(rng.normal(size=(20, 3)), 10, axis=0),
        np.full((200, 3), 0.1),
    ),
}


def both_ways(mean, std, groups, weight=None, n_draws=300, covariance=None):
    posterior = GaussianPosterior(mean, std, covariance=covariance)
    n, n_latents = mean.shape
    weight = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    rows, z = draw(posterior, weight, n_draws, random_state=0)
    sets = LatentSets(groups, n_latents)
    own = posterior._densities(rows, sets).own(z) + np.log(weight)[rows]
    wanted = np.arange(len(sets))
    arguments = (posterior, np.log(weight), rows, z)
    plain = plain_log_sums(*arguments, sets, wanted)
    fast = fast_log_sums(*arguments, own, sets, wanted)
    return np.logaddexp(plain, own), np.logaddexp(fast, own)


def singles(n_latents):
    return tuple((latent,) for latent in range(n_latents))


@pytest.mark.parametrize("name", MODELS)
def test_mixture_is_that_of_the_definition(name):
    mean, std = MODELS[name](np.random.default_rng(0))
    plain, fast = both_ways(mean, std, singles(mean.shape[1]))
    # Each exponent may be off by the rounding that the narrowest precision allows.
    assert_allclose(fast, plain, rtol=0, atol=PRECISIONS[0].rounding)
    # Over 300 draws errors of either sign average out to a 17th, and none is larger
    # than an eighth of the bound, which has all roundings at their worst.
    assert_allclose(fast.mean(axis=1), plain.mean(axis=1), rtol=0, atol=1e-5)


def test_groups_that_leave_latents_out_and_weights():
    rng = np.random.default_rng(0)
    mean, std = clustered(rng, 400, 6)
    plain, fast = both_ways(mean, std, ((0, 2), (5,)), rng.exponential(size=400) ** 3)
    assert_allclose(fast, plain, rtol=0, atol=PRECISIONS[0].rounding)


def test_wide_precision_is_used_where_narrow_cannot_hold(monkeypatch):
    mean, std = MODELS["sharp"](np.random.default_rng(0))
    plain, fast = both_ways(mean, std, singles(3))
    monkeypatch.setattr("skdisent._kernels.PRECISIONS", PRECISIONS[:1])
    monkeypatch.setattr("skdisent._kernels.Precision.holds", lambda *a: True)
    narrow_only = both_ways(mean, std, singles(3))[1]
    assert abs(narrow_only - plain).max() > 100 * abs(fast - plain).max()


def test_rows_that_are_left_out_change_nothing(monkeypatch):
    mean, std = MODELS["clusters"](np.random.default_rng(0))
    pruned = both_ways(mean, std, singles(6))[1]
    monkeypatch.setattr("skdisent._kernels.CUT", np.inf)
    complete = both_ways(mean, std, singles(6))[1]
    # Each of 500 rows left out is below e**-CUT of the sum; products of other sizes
    # round in another order.
    assert 500 * np.exp(-CUT) < 1e-16
    assert_allclose(pruned, complete, rtol=0, atol=1e-5)


def test_a_bound_leaves_rows_out(monkeypatch):
    seen = []
    original = np.flatnonzero
    monkeypatch.setattr(
        "skdisent._kernels.np.flatnonzero",
        lambda a: seen.append((len(a), np.sum(a))) or original(a),
    )
    mean, std = clustered(np.random.default_rng(0), 500, 6)
    both_ways(mean, 0.2 * std, singles(6)[:1])
    kept = [count for length, count in seen if length == 500]
    assert min(kept) < 250


def test_blocks_hold_neighbours_and_every_draw_once():
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(size=(300, 2)), 50 + rng.normal(size=(300, 2))])
    blocks = compact_blocks(z, np.ones((1, 2)))
    assert sorted(np.concatenate(blocks)) == list(range(600))
    assert all(len(block) <= COMPACT_DRAWS for block in blocks)
    across = [block for block in blocks if np.ptp(z[block, 0]) > 30]
    assert len(across) <= 1


@pytest.mark.parametrize("model", ["betavae_b4", "betavae_b16", "pca_10", "fa_8"])
def test_amounts_on_real_posteriors(model, load_reference, monkeypatch):
    data = load_reference(model)
    rows = slice(None, None, 4)
    found = []
    for exact_values in (0, 1 << 62):
        monkeypatch.setattr(_aggregate, "EXACT_VALUES", exact_values)
        metric = SEPIN(n_samples=700, random_state=0)
        found.append(metric.fit(data.mean[rows], data.std[rows]))
    for name in ("latent_values_", "informativeness_", "information_", "std_error_"):
        fast, plain = (getattr(one, name) for one in found)
        assert_allclose(fast, plain, rtol=0, atol=1e-5)


def test_sets_whose_densities_are_far_apart():
    # All 40 latents have a density of e**240 where the empty rest of the one group has
    # 1: what is small beside the one is not beside the other.
    rng = np.random.default_rng(0)
    mean = 1e-3 * rng.normal(size=(400, 40))
    plain, fast = both_ways(mean, np.full_like(mean, 1e-3), (tuple(range(40)),))
    assert plain[0].mean() > 150
    assert_allclose(fast, plain, rtol=0, atol=PRECISIONS[0].rounding)
    assert_allclose(fast[2], 0, atol=PRECISIONS[0].rounding)


def correlated(rng, n, n_latents, correlation):
    """Return covariances whose latents share some of their noise."""
    loadings = rng.normal(size=(n, n_latents, 2))
    shared = loadings @ np.swapaxes(loadings, 1, 2)
    own = np.eye(n_latents) * (1 / correlation - 1)
    scale = rng.uniform(0.1, 0.5, size=(n, n_latents))
    return scale[:, :, None] * (shared + own) * scale[:, None, :]


@pytest.mark.parametrize("groups", [singles(4), ((0, 3),), ((1, 2), (0,))])
@pytest.mark.parametrize("n_covariances", [1, 300])
@pytest.mark.parametrize("correlation", [0.1, 0.9, 1 - 1e-4])
@pytest.mark.parametrize("origin", [0.0, 1e4])
def test_full_covariances(groups, n_covariances, correlation, origin):
    rng = np.random.default_rng(0)
    mean = origin + rng.normal(size=(300, 4))
    covariance = correlated(rng, n_covariances, 4, correlation)
    covariance = covariance[0] if n_covariances == 1 else covariance
    weight = rng.exponential(size=300)
    plain, fast = both_ways(mean, None, groups, weight, covariance=covariance)
    assert_allclose(fast, plain, rtol=0, atol=PRECISIONS[0].rounding)
    assert_allclose(fast.mean(axis=1), plain.mean(axis=1), rtol=0, atol=1e-5)


def test_a_latent_that_nearly_follows_from_others_is_left_to_the_plain_way():
    rng = np.random.default_rng(0)
    mean, loadings = rng.normal(size=(200, 3)), rng.normal(size=(3, 2))
    covariance = 0.1 * (loadings @ loadings.T + 1e-9 * np.eye(3))
    rows = FullRows(
        GaussianPosterior(mean, covariance=covariance), np.zeros(200), np.ones((1, 3))
    )
    assert not rows.held
    plain, fast = both_ways(mean, None, singles(3), covariance=covariance)
    assert_allclose(fast, plain, rtol=0, atol=1e-12)


STEADY = {
    "collapsed": (0.02, 0.03),
    "one posterior for all rows": (0.0, 0.0),
    "barely steady": (0.05, 0.04),
    "not steady": (0.5, 0.3),
}


@pytest.mark.parametrize("name", STEADY)
@pytest.mark.parametrize("origin", [0.0, -1e3])
def test_steady_latents_are_divided_out_to_the_last_digit(name, origin):
    spread, log_spread = STEADY[name]
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(400, 4)) * [1, 1, spread, spread] + origin
    std = np.exp(log_spread * rng.normal(size=(400, 4))) * [0.2, 0.1, 1.0, 30.0]
    mean[:, 3] *= 30
    posterior = GaussianPosterior(mean, std)
    rows, z = draw(posterior, np.full(400, 1 / 400), 300, random_state=0)
    members = LatentSets(singles(4), 4).membership[[0, 5, 6, 7, 8]]
    expanded = DiagonalRows(posterior, np.full(400, -np.log(400)), members)
    steady = SteadyLatents(expanded, z.min(axis=0), z.max(axis=0))
    assert list(steady.sets) == ([] if name == "not steady" else [3, 4])
    # 1 / q(z_i | x) of every row at every draw, from few nodes.
    factors = steady.factors(np.float64)[:, 1:].reshape(400, -1, steady.n_nodes)
    found = np.einsum("nlk,lkd->lnd", factors, steady.weights(z))
    latents = steady.latents
    exact = norm.pdf(
        z.T[latents, None], mean.T[latents, :, None], std.T[latents, :, None]
    )
    assert_allclose(found * exact, 1, rtol=0, atol=2 * STEADY_ERROR)


def test_weighted_sums_over_a_steady_latent():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(500, 3)) * [1, 0.01, 0.02]
    std = np.exp(0.02 * rng.normal(size=(500, 3))) * [0.1, 1.0, 1e-3]
    weight = rng.exponential(size=500) ** 2
    plain, fast = both_ways(mean * [1, 1, 1e-3], std, singles(3), weight)
    assert_allclose(fast, plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("distance", [5.0, 13.0, 15.0, 30.0])
def test_rows_far_from_all_draws_in_a_steady_latent(distance):
    # Seen from draws that lie close together, each row's density hardly bends, however
    # small it is: dividing by it must not blow up what was clipped.
    rng = np.random.default_rng(0)
    n = 300
    far = np.arange(n) % 2 == 1
    mean = np.column_stack([distance * far, rng.normal(size=n)])
    posterior = GaussianPosterior(mean, np.full((n, 2), [1.0, 0.5]))
    rows = np.flatnonzero(~far)[:128]
    z = 0.1 + np.column_stack([rng.uniform(0, 1e-3, 128), rng.normal(size=128)])
    sets = LatentSets(singles(2), 2)
    log_weight = np.full(n, -np.log(n))
    own = posterior._densities(rows, sets).own(z) + log_weight[rows]
    wanted = np.array([0, 3, 4])
    arguments = posterior, log_weight, rows, z
    plain = plain_log_sums(*arguments, sets, wanted)
    fast = fast_log_sums(*arguments, own, sets, wanted)
    assert_allclose(fast, plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("n_latents", [1, 2, 12, 40])
@pytest.mark.parametrize("shared", [True, False])
def test_full_covariances_of_many_latents_and_far_rows(n_latents, shared):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(150, n_latents))
    mean[::50] = 1e200
    covariance = correlated(rng, 1 if shared else 150, n_latents, 0.5)
    covariance = covariance[0] if shared else covariance
    plain, fast = both_ways(mean, None, singles(n_latents), covariance=covariance)
    assert_allclose(fast, plain, rtol=0, atol=PRECISIONS[0].rounding)


def test_covariances_too_wide_for_the_floats():
    mean = np.array([[1e200, 0.0], [0.0, 1e200], [0.0, 0.0]])
    covariance = 1e-220 * np.eye(2)
    plain, fast = both_ways(mean, None, singles(2), covariance=covariance)
    assert_allclose(fast, plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-90, 1e-20, 1e10, 1e19, 1e140])
@pytest.mark.parametrize("full", [False, True])
def test_latents_of_sizes_at_the_ends_of_the_floats(scale, full):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(200, 2)) * [scale, 1.0]
    std = np.full((200, 2), [0.5 * scale, 0.3])
    covariance = np.diag([0.25 * scale**2, 0.09]) if full else None
    plain, fast = both_ways(
        mean, None if full else std, singles(2), covariance=covariance
    )
    assert_allclose(fast, plain, rtol=0, atol=PRECISIONS[0].rounding)


@pytest.mark.parametrize(("distance", "steady"), [(0.3, [1]), (0.8, [])])
def test_a_latent_that_bends_is_not_steady(distance, steady):
    # Seen from draws within 4 of 0, log-densities change by 4 times the distance; the
    # polynomial would hold either, but not the rounding of its nodes beyond 2.
    mean = np.array([[distance, 0.0], [-distance, 0.0]])
    posterior = GaussianPosterior(mean, np.array([[1.0, 0.1], [1.0, 0.2]]))
    expanded = DiagonalRows(posterior, np.zeros(2), np.array([[1, 1], [0, 1], [1, 0]]))
    found = SteadyLatents(expanded, np.array([-4.0, -2.0]), np.array([4.0, 2.0]))
    assert list(found.sets) == steady


def test_no_draw_lies_beyond_the_nodes_where_their_center_is_rounded():
    low = np.array([1e15, 1.0])
    high = np.array([np.nextafter(1e15, np.inf), np.nextafter(1.0, np.inf)])
    posterior = GaussianPosterior(np.tile(low, (3, 1)), np.full((3, 2), 0.5))
    expanded = DiagonalRows(posterior, np.zeros(3), np.array([[1, 1], [0, 1], [1, 0]]))
    steady = SteadyLatents(expanded, low, high)
    for end in (low, high):
        assert (abs(end - steady.center) <= steady.half).all()


def test_draws_that_are_rounded_more_than_they_differ():
    rng = np.random.default_rng(0)
    mean = np.full((3, 3), 1e15) + rng.integers(-1, 2, size=(3, 3)) / 8
    plain, fast = both_ways(mean, rng.uniform(0.1, 0.3, (3, 3)), singles(3))
    assert_allclose(fast, plain, rtol=0, atol=PRECISIONS[0].rounding)


@pytest.mark.parametrize("variance", [1e-320, 1e-300, 1e300])
def test_variances_at_the_ends_of_the_floats(variance):
    mean = np.sqrt(variance) * np.random.default_rng(0).normal(size=(50, 1))
    covariance = np.array([[variance]])
    plain, fast = both_ways(mean, None, singles(1), covariance=covariance)
    assert_allclose(fast, plain, rtol=0, atol=PRECISIONS[0].rounding)
