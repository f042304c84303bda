import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator

from skdisent import MISJED, Informativeness, UniformDiscretizer
from skdisent.exceptions import DisentanglementWarning

quiet = pytest.mark.filterwarnings("ignore::skdisent.exceptions.DisentanglementWarning")
LEVELS = np.array([-3.0, -1.0, 1.0, 3.0])


def fitted(mean, std=None, *, n_bins=100, **params):
    bins = UniformDiscretizer(n_bins, bin_range=(-4, 4))
    return MISJED(discretizer=bins, **params).fit(mean, std)


def entropy(p):
    p = np.asarray(p, dtype=float)
    p = p[p > 0]
    return -(p * np.log(p)).sum()


def test_three_latents_by_hand():
    # z_0 and z_1 independent, z_2 a copy of z_0, all sharp.
    a, b = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
    mean = LEVELS[np.column_stack([a, b, a])]

    metric = fitted(mean, np.full((16, 3), 1e-3), normalize=False)

    log4, nan = np.log(4), np.nan
    expected = [[nan, 0, log4], [0, nan, 0], [log4, 0, nan]]
    assert_allclose(metric.pairwise_values_, expected, rtol=0, atol=1e-12)
    assert_allclose(
        metric.mean_joint_entropy_,
        [[log4, 2 * log4, log4], [2 * log4, log4, 2 * log4], [log4, 2 * log4, log4]],
        rtol=1e-12,
    )
    assert_allclose(metric.latent_entropy_, np.full(3, log4), rtol=1e-12)
    assert metric.value_ == pytest.approx(log4 / 3, rel=1e-12)
    assert metric.score() == -metric.value_
    assert metric.greater_is_better is False


def test_noisy_latents_have_nearly_the_largest_value():
    # Means at 0.04, the centre of a bin: no entropy of the means, that of N(0.04, 1)
    # for each latent.
    mean = np.full((30, 2), 0.04)
    with pytest.warns(DisentanglementWarning, match="collapsed"):
        metric = fitted(mean, np.ones((30, 2)), normalize=False)

    # The quantized entropy is the differential one less log 0.08, and larger by
    # 0.08**2 / 24 = 2.7e-4; open end bins hold 6e-5 of the mass.
    expected = 2 * (0.5 * np.log(2 * np.pi * np.e) - np.log(0.08))
    assert metric.value_ == pytest.approx(expected, abs=2 * 2.7e-4 + 2 * 6e-5 * 10)
    assert metric.value_ < 2 * np.log(100)


@quiet
def test_the_normalizer_is_the_log_of_both_numbers_of_bins(generic):
    mean, std, _ = generic()
    grid = UniformDiscretizer(100, bin_range=(-4, 4)).fit(mean)
    grid.bin_edges_[1] = np.linspace(-4, 4, 8)

    raw = MISJED(discretizer=FrozenEstimator(grid), normalize=False).fit(mean, std)
    metric = MISJED(discretizer=FrozenEstimator(grid)).fit(mean, std)

    bins = np.log([100, 7, 100])
    expected = raw.pairwise_values_ / np.add.outer(bins, bins)
    assert_allclose(metric.pairwise_values_, expected, rtol=1e-12)
    assert metric.value_ == pytest.approx(np.nanmean(expected), rel=1e-12)


@quiet
def test_pairwise_values_from_the_definition(generic):
    mean, std, _ = generic()
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)

    bins = UniformDiscretizer(100, bin_range=(-4, 4))
    metric = MISJED(discretizer=bins, normalize=False)
    metric.fit(mean, std, sample_weight=weight)

    edges = np.linspace(-4, 4, 101)
    of_latents = Informativeness(discretizer=bins)
    of_latents.fit(mean, std, sample_weight=weight)
    for i in range(3):
        for j in range(3):
            table = np.histogram2d(
                mean[:, i], mean[:, j], bins=[edges, edges], weights=weight
            )[0]
            joint = entropy(table / weight.sum()) if i != j else None
            if i != j:
                expected = of_latents.latent_entropy_[[i, j]].sum() - joint
                found = metric.pairwise_values_[i, j]
                assert found == pytest.approx(expected, abs=1e-12)
    assert_array_equal(metric.pairwise_values_, metric.pairwise_values_.T)
    assert np.isnan(np.diag(metric.pairwise_values_)).all()


@quiet
def test_k_takes_the_pairs_of_the_most_informative(generic):
    mean, std, _ = generic()
    mean = np.column_stack([np.zeros(60), mean])
    std = np.column_stack([np.ones(60), std])

    every = fitted(mean, std)
    order = every.ranking_

    information = Informativeness(
        discretizer=UniformDiscretizer(100, bin_range=(-4, 4))
    ).fit(mean, std)
    assert_array_equal(order, np.argsort(-information.informativeness_))
    assert order[-1] == 0
    for k in (2, 3, 4):
        pairs = every.pairwise_values_[np.ix_(order[:k], order[:k])]
        expected = pairs[np.triu_indices(k, 1)].mean()
        assert fitted(mean, std, k=k).value_ == pytest.approx(expected, rel=1e-14)
    # Beyond the number of latents: all.
    assert fitted(mean, std, k=9).value_ == every.value_


@pytest.mark.parametrize("k", [0, 1, -3, 2.0])
def test_k_is_at_least_two(k, generic):
    mean, std, _ = generic()

    with pytest.raises(ValueError, match="'k'"):
        MISJED(k=k).fit(mean, std)


def test_one_latent_is_no_pair():
    with pytest.raises(ValueError, match=r"needs 2 latents, got 1 feature\(s\)"):
        MISJED().fit(np.zeros((5, 1)), np.ones((5, 1)))


@quiet
@pytest.mark.parametrize("seed", range(25))
def test_bounds(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 60)
    mean = rng.normal(size=(n, 3)) * rng.uniform(0.01, 6, 3)
    std = rng.uniform(0, 1, (n, 3)) ** 3 * rng.choice([1, 100])
    n_bins = int(rng.integers(2, 200))

    values = fitted(mean, std, n_bins=n_bins, normalize=False).pairwise_values_
    pairs = values[np.triu_indices(3, 1)]

    assert (pairs <= 2 * np.log(n_bins) + 1e-12).all()
    assert (pairs >= -min(np.log(n), 2 * np.log(n_bins)) - 1e-12).all()


@pytest.mark.parametrize("seed", range(5))
@quiet
def test_points_are_not_negative(seed):
    rng = np.random.default_rng(seed)
    metric = fitted(rng.normal(size=(40, 4)), normalize=False)

    # The mutual information of the means.
    assert np.nanmin(metric.pairwise_values_) >= -1e-12


@quiet
def test_negative_values_are_reported_as_they_are():
    # Very wide posteriors: all mass in the two end bins, H(z_i) = log 2, while the
    # means are 4 points: log 2 + log 2 - log 16 < 0.
    a, b = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
    mean = LEVELS[np.column_stack([a, b])]

    with pytest.warns(DisentanglementWarning, match="latents 0 and 1 is negative"):
        metric = fitted(mean, np.full((16, 2), 1e6), normalize=False)

    # Bins inside hold 8 / 1e6 of the mass.
    assert metric.value_ == pytest.approx(2 * np.log(2) - np.log(16), abs=1e-3)
    assert metric.value_ < 0


@quiet
def test_the_order_of_informative_and_noisy_pairs():
    # Two independent informative latents f, two noisy ones n with nearly constant
    # means, on the latents' own scale.
    rng = np.random.default_rng(0)
    n = 3000
    mean = np.column_stack([rng.normal(size=(n, 2)), 0.01 * rng.normal(size=(n, 2))])
    std = np.column_stack([np.full((n, 2), 0.1), np.ones((n, 2))])

    values = MISJED(discretizer=UniformDiscretizer(21)).fit(mean, std).pairwise_values_

    assert 0 <= values[0, 1] < values[0, 2] < values[2, 3]
    assert values[0, 1] < values[1, 3] < values[2, 3]


@quiet
def test_an_even_number_of_bins_halves_the_means_of_noisy_latents():
    rng = np.random.default_rng(0)
    mean = 0.001 * rng.normal(size=(2000, 2))
    std = np.ones((2000, 2))

    odd = fitted(mean, std, n_bins=101, normalize=False).value_
    even = fitted(mean, std, n_bins=100, normalize=False).value_

    # The means fill four cells instead of one; bins are a hundredth wider.
    assert odd - even == pytest.approx(2 * np.log(2) + 2 * np.log(101 / 100), abs=5e-3)


@quiet
def test_one_bin_has_no_normalizer():
    mean = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 3.0], [2.0, 2.0, 3.0]])
    bins = UniformDiscretizer(1)

    with pytest.warns(
        DisentanglementWarning, match="(?=.*latents? 0, 1, 2)(?=.*normalizer)"
    ):
        metric = MISJED(discretizer=bins).fit(mean, np.ones((3, 3)))

    assert metric.value_ == 0


@quiet
def test_a_constant_point_latent_counts_by_the_other_ones_bins():
    # Latent 1 has one bin: 0 of its entropy, log 1 in the normalizer.
    mean = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])

    metric = MISJED().fit(mean)

    assert metric.pairwise_values_[0, 1] == pytest.approx(0, abs=1e-12)


@quiet
def test_minus_zero_is_in_the_bin_of_zero():
    mean = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 1.0]])

    metric = fitted(mean, np.full((3, 2), 1e-3))

    expected = entropy([2 / 3, 1 / 3])
    assert_allclose(metric.mean_joint_entropy_[0, 1], expected, rtol=1e-12)


@quiet
def test_score_on_new_data(generic):
    mean, std, _ = generic()
    new_mean, new_std, _ = generic(seed=1)
    metric = MISJED().fit(mean, std)
    value, pairs = metric.value_, metric.pairwise_values_.copy()

    score = metric.score(2 * new_mean, new_std)

    fixed = MISJED(discretizer=FrozenEstimator(metric.discretizer_))
    assert score == -fixed.fit(2 * new_mean, new_std).value_
    assert score != -MISJED().fit(2 * new_mean, new_std).value_
    assert metric.value_ == value
    assert_array_equal(metric.pairwise_values_, pairs)


@quiet
def test_y_is_ignored(generic):
    mean, std, y = generic()

    assert MISJED().fit(mean, std, y).value_ == MISJED().fit(mean, std).value_
