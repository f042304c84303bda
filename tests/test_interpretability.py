import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator

from skdisent import (
    JEMMIG,
    RMIG,
    FactorPosterior,
    GaussianPosterior,
    Informativeness,
    UniformDiscretizer,
)
from skdisent._interpretability import latents_of_factors
from skdisent.exceptions import DisentanglementWarning

both = pytest.mark.parametrize("metric_class", [RMIG, JEMMIG])
quiet = pytest.mark.filterwarnings("ignore::skdisent.exceptions.DisentanglementWarning")


def fitted(metric_class, mean, std, y, **params):
    params = {"discretizer": UniformDiscretizer(100, bin_range=(-4, 4)), **params}
    return metric_class(**params).fit(mean, std, y)


# Small tables, by hand. Levels are centres of bins, 2,000 widths apart.

LEVELS = np.array([-3.0, -1.0, 1.0, 3.0])


def on_levels(*codes):
    """Return sharp posteriors, one latent a list of codes."""
    mean = LEVELS[np.column_stack(codes)]
    return mean, np.full(mean.shape, 1e-3)


def test_amounts_of_a_table_by_hand():
    # z_0 tells y but for one row of eight; z_1 is the first bit of a mirrored y.
    y = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    z_0 = np.array([0, 0, 1, 1, 2, 2, 3, 2])
    z_1 = np.array([1, 1, 1, 1, 0, 0, 0, 0])

    rmig = fitted(RMIG, *on_levels(z_0, z_1), y, normalize=False)
    jemmig = fitted(JEMMIG, *on_levels(z_0, z_1), y, normalize=False)

    log2 = np.log(2)
    # z_0: shares 2, 2, 3, 1 of 8; (z_0, y): 2, 2, 2, 1, 1 of 8.
    h_z0 = 2 * (log2 / 2) + 3 / 8 * np.log(8 / 3) + 3 * log2 / 8
    h_z0_y = 3 * (log2 / 2) + 2 * (3 * log2 / 8)
    i_0, i_1 = h_z0 + 2 * log2 - h_z0_y, log2
    assert_allclose(rmig.latent_entropy_, [h_z0, log2], rtol=1e-12)
    assert_allclose(rmig.joint_entropy_, [[h_z0_y], [2 * log2]], rtol=1e-12)
    assert_allclose(rmig.factor_entropy_, [2 * log2], rtol=1e-12)
    assert_allclose(rmig.mutual_info_, [[i_0], [i_1]], rtol=1e-12)
    assert_array_equal([rmig.best_latent_, rmig.second_latent_], [[0], [1]])
    assert_array_equal(rmig.n_rows_, [8])
    assert rmig.value_ == pytest.approx(i_0 - i_1, rel=1e-12)
    assert jemmig.value_ == pytest.approx(h_z0_y - i_0 + i_1, rel=1e-12)

    normal = fitted(RMIG, *on_levels(z_0, z_1), y)
    assert normal.value_ == pytest.approx((i_0 - i_1) / (2 * log2), rel=1e-12)
    normal = fitted(JEMMIG, *on_levels(z_0, z_1), y)
    expected = (h_z0_y - i_0 + i_1) / (2 * log2 + np.log(100))
    assert normal.value_ == pytest.approx(expected, rel=1e-12)


@quiet
@both
@pytest.mark.parametrize("normalize", [True, False])
def test_the_value_is_the_mean_over_factors(metric_class, normalize, generic):
    mean, std, y = generic()

    metric = fitted(metric_class, mean, std, y, normalize=normalize)
    alone = [
        fitted(metric_class, mean, std, y[:, k], normalize=normalize).value_
        for k in range(2)
    ]

    assert_allclose(metric.factor_values_, alone, rtol=0, atol=1e-12)
    assert metric.value_ == pytest.approx(np.mean(alone), abs=1e-12)


# Bounds.


@quiet
@pytest.mark.parametrize("seed", range(25))
def test_bounds(seed):
    rng = np.random.default_rng(seed)
    n, n_latents = rng.integers(5, 80), rng.integers(1, 5)
    mean = rng.normal(size=(n, n_latents)) * rng.uniform(0.01, 3, n_latents)
    std = rng.uniform(0, 1, (n, n_latents)) ** 3
    y = FactorPosterior(
        [
            np.append([0, 1], rng.integers(0, 3, n - 2)),
            rng.dirichlet(rng.uniform(0.05, 2, 4), size=n),
        ]
    )
    bins = UniformDiscretizer(int(rng.integers(2, 60)), bin_range=(-3, 3))

    rmig = fitted(RMIG, mean, std, y, discretizer=bins, normalize=False)
    jemmig = fitted(JEMMIG, mean, std, y, discretizer=bins, normalize=False)
    of_rows = fitted(Informativeness, mean, std, None, discretizer=bins)

    h_y, info = rmig.factor_entropy_, rmig.mutual_info_
    rounding = 1e-12  # entropies of tables of up to 60 * 4 cells
    assert (info >= -rounding).all()
    assert (info <= h_y + rounding).all()
    assert (info <= of_rows.informativeness_[:, None] + rounding).all()
    assert (rmig.factor_values_ >= 0).all()
    assert (rmig.factor_values_ <= h_y + rounding).all()
    assert (jemmig.factor_values_ >= -rounding).all()
    assert (jemmig.factor_values_ <= h_y + np.log(bins.n_bins) + rounding).all()
    assert (rmig.latent_entropy_ <= np.log(bins.n_bins) + rounding).all()
    for metric_class in (RMIG, JEMMIG):
        normal = fitted(metric_class, mean, std, y, discretizer=bins)
        assert (normal.factor_values_ >= -rounding).all()
        assert (normal.factor_values_ <= 1 + rounding).all()


# Ties.


def test_of_tied_latents_the_one_with_the_smallest_jemmig_is_best():
    # Both know y; z_0 has four values, z_1 the two that it needs.
    y = np.tile([0, 1], 8)
    fine = y + 2 * np.repeat([0, 1], 8)
    for order in (1, -1):
        codes = (fine, y)[::order]
        best = {1: 1, -1: 0}[order]

        rmig = fitted(RMIG, *on_levels(*codes), y)
        jemmig = fitted(JEMMIG, *on_levels(*codes), y, normalize=False)

        assert_array_equal([rmig.best_latent_, jemmig.best_latent_], [[best]] * 2)
        assert_array_equal(rmig.second_latent_, [1 - best])
        assert rmig.value_ == pytest.approx(0, abs=1e-12)
        # H(z_1, y) - I + I = log 2.
        assert jemmig.value_ == pytest.approx(np.log(2), rel=1e-12)


def test_ties_look_at_jemmig_after_normalization():
    # Both know y. z_0: four values in 100 bins, log 4 / (log 2 + log 100) in relation;
    # z_1: two values in 2 bins, log 2 / (log 2 + log 2), smaller but not normalized.
    y = np.tile([0, 1], 8)
    mean, std = on_levels(y + 2 * np.repeat([0, 1], 8), 1 + y)
    grid = UniformDiscretizer(100, bin_range=(-4, 4)).fit(mean)
    grid.bin_edges_[1] = np.array([-4.0, 0.0, 4.0])

    jemmig = fitted(JEMMIG, mean, std, y, discretizer=FrozenEstimator(grid))

    assert_array_equal(jemmig.best_latent_, [0])
    # H(z_0, y) - I + I over the bound: (log 4) / (log 2 + log 100).
    expected = np.log(4) / (np.log(2) + np.log(100))
    assert jemmig.value_ == pytest.approx(expected, rel=1e-12)


def test_full_ties_go_to_the_lowest_index():
    y = np.tile([0, 1], 8)

    rmig = fitted(RMIG, *on_levels(y, 1 - y, y), y)

    assert_array_equal(rmig.best_latent_, [0])
    assert_array_equal(rmig.second_latent_, [1])


class Amounts:
    """What the choice of latents reads, of one factor with H(y) = log 2."""

    def __init__(self, mutual_info, joint_entropy, log_n_bins=None):
        self.mutual_info = np.array(mutual_info)[:, None]
        self.joint_entropy = np.array(joint_entropy)[:, None]
        self.factor_entropy = np.array([np.log(2)])
        self.log_n_bins = log_n_bins


@pytest.mark.parametrize(
    ("difference", "best"),
    [(0.0, 1), (1e-15, 1), (0.9e-9 * np.log(2), 1), (1.1e-9 * np.log(2), 0)],
)
def test_latents_within_a_billionth_are_tied(difference, best):
    # Latent 0 knows a little more, latent 1 has the smaller joint entropy.
    amounts = Amounts([0.5 + difference, 0.5, 0.1], [2.0, 1.0, 0.7])

    found, second, gap = latents_of_factors(amounts)

    assert found == [best]
    assert second == [1 - best]
    # Whichever is chosen, RMIG is the difference of the two largest.
    assert_allclose(gap, [difference], rtol=0, atol=1e-16)


@pytest.mark.parametrize("seed", range(50))
def test_the_choice_of_latents_on_random_tables(seed):
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(12, 0.3), size=4).reshape(4, 4, 3)  # latent, bin, y
    joint = joint / joint.sum(axis=1, keepdims=True) / 3
    if seed % 2:  # an exact copy ties
        joint[2] = joint[int(rng.integers(0, 2))]

    def entropy(p):
        p = p[p > 0]
        return -(p * np.log(p)).sum()

    h_zy = np.array([entropy(one.ravel()) for one in joint])
    h_z = np.array([entropy(one.sum(axis=1)) for one in joint])
    info = h_z + np.log(3) - h_zy
    amounts = Amounts(info, h_zy, np.full(4, np.log(4)))
    amounts.factor_entropy = np.array([np.log(3)])

    (best,), (second,), (gap,) = latents_of_factors(amounts)

    top = np.flatnonzero(info >= info.max() - 1e-9 * np.log(3))
    rest = [np.delete(info, i).max() for i in top]
    jemmig = h_zy[top] - info[top] + rest
    assert best == top[np.flatnonzero(jemmig <= jemmig.min() + 1e-12)[0]]
    assert second != best
    assert gap == pytest.approx(np.sort(info)[-1] - np.sort(info)[-2], abs=1e-15)
    assert gap >= 0
    assert 0 <= h_zy[best] - gap <= np.log(3) + np.log(4)


# Degenerate input.


@both
def test_one_latent(metric_class):
    y = np.tile([0, 1], 8)

    metric = fitted(metric_class, *on_levels(y), y, normalize=False)

    assert_array_equal(metric.second_latent_, [-1])
    expected = {RMIG: np.log(2), JEMMIG: 0.0}[metric_class]
    assert metric.value_ == pytest.approx(expected, abs=1e-12)


@both
@pytest.mark.parametrize("method", ["quantization", "quadrature"])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_factor_with_one_value_is_left_out(metric_class, method, normalize):
    if metric_class is JEMMIG and method == "quadrature" and normalize:
        pytest.skip("there is no such value")
    y = np.tile([0, 1], 8)
    posterior = on_levels(y, 1 - y, np.zeros(16, dtype=int))
    params = {"method": method, "normalize": normalize}

    alone = fitted(metric_class, *posterior, y, **params)
    with pytest.warns(DisentanglementWarning, match="(?=.*factor 1)(?=.*one value)"):
        metric = fitted(
            metric_class, *posterior, np.column_stack([y, np.full(16, 7)]), **params
        )

    # Factors side by side change the order of sums, not what is summed.
    assert metric.value_ == pytest.approx(alone.value_, rel=1e-14)
    assert_array_equal(metric.mutual_info_[:, 1], np.zeros(3))
    assert metric.factor_entropy_[1] == 0
    if normalize:
        assert np.isnan(metric.factor_values_[1])
    elif metric_class is RMIG:
        assert metric.factor_values_[1] == 0


@both
@pytest.mark.filterwarnings("ignore:.*collapsed")
def test_factors_with_one_value_each_are_refused(metric_class, generic):
    mean, std, _ = generic()

    with pytest.raises(ValueError, match="one value"):
        metric_class().fit(mean, std, np.full(60, 3))
    with pytest.raises(ValueError, match="1 sample"):
        metric_class().fit(mean[:1], std[:1], [3])


@both
def test_every_latent_collapsed(metric_class):
    with pytest.warns(DisentanglementWarning, match="every latent is collapsed"):
        metric = fitted(
            metric_class, np.zeros((40, 2)), np.ones((40, 2)), np.tile([0, 1], 20)
        )

    assert_allclose(metric.mutual_info_, 0, atol=1e-14)
    if metric_class is RMIG:
        assert metric.value_ == pytest.approx(0, abs=1e-14)


@both
def test_points_are_point_masses(metric_class, generic):
    _, _, y = generic()
    points = LEVELS[np.column_stack([y[:, 0], y[:, 1]])]

    metric = fitted(metric_class, points, None, y)
    zeros = fitted(metric_class, points, np.zeros((60, 2)), y)
    sharp = fitted(metric_class, points, np.full((60, 2), 1e-3), y)

    assert metric.value_ == zeros.value_
    assert metric.value_ == pytest.approx(sharp.value_, abs=1e-12)


def test_points_beside_gaussians_are_fine_in_tables(generic):
    mean, std, y = generic()
    points = std.copy()
    points[::2] = 0
    narrow = np.where(points == 0, 1e-12, points)

    with pytest.warns(DisentanglementWarning):
        values = [fitted(RMIG, mean, one, y).value_ for one in (points, narrow)]

    assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_a_bias_of_a_fifth_of_the_gap_is_told():
    # Labels without any relation to 200 rows. Sharp latent 0 fills 20 bins, so its bias
    # is about (60 - 20 - 3 + 1) / 400 nats; wide latent 1 has none: the gap is bias.
    rng = np.random.default_rng(0)
    mean = np.column_stack([np.tile(np.linspace(-3.8, 3.8, 20), 10), np.zeros(200)])
    std = np.tile([0.01, 1.0], (200, 1))
    bins = UniformDiscretizer(20, bin_range=(-4, 4))

    with pytest.warns(DisentanglementWarning, match="(?=.*factor 0)(?=.*bias)"):
        fitted(RMIG, mean, std, rng.integers(0, 3, 200), discretizer=bins)


def test_many_rows_for_few_cells_do_not_warn():
    y = np.tile([0, 1], 500)
    mean = np.column_stack([2.0 * y - 1, np.zeros(1000)])

    fitted(RMIG, mean, np.ones((1000, 2)), y)
    fitted(JEMMIG, mean, np.ones((1000, 2)), y)


@quiet
def test_a_continuous_factor_is_cut_with_a_warning(generic):
    mean, std, _ = generic()
    y = mean[:, 0] ** 3

    with pytest.warns(DisentanglementWarning, match="(?=.*factor 0)(?=.*continuous)"):
        metric = fitted(RMIG, mean, std, y)

    assert_allclose(metric.factor_entropy_, [np.log(10)], rtol=1e-12)
    tenths = np.argsort(np.argsort(y)) // 6
    labels = fitted(RMIG, mean, std, tenths)
    assert metric.value_ == pytest.approx(labels.value_, rel=1e-12)


# The score.


@quiet
@pytest.mark.parametrize(
    ("metric", "sign"),
    [
        (RMIG(), 1),
        (RMIG(normalize=False), 1),
        (JEMMIG(), -1),
        (JEMMIG(method="quadrature", normalize=False), -1),
    ],
    ids=str,
)
def test_the_score_is_greater_where_the_encoder_is_better(metric, sign, generic):
    mean, std, y = generic()

    metric.fit(mean, std, y)
    score = metric.score()
    sharper = metric.score(mean, std / 4, y)
    other = metric.score(mean[::-1], std, y)

    assert type(score) is float
    assert score == sign * metric.value_
    assert metric.greater_is_better == (sign == 1)
    # Sharper posteriors know more; those of other rows know less.
    assert sharper > score > other


@quiet
@both
def test_score_on_new_data_uses_the_fitted_bins(metric_class, generic):
    mean, std, y = generic()
    new_mean, new_std, new_y = generic(seed=1, n=30)
    new_mean = 2 * new_mean + 1
    metric = metric_class().fit(mean, std, y)
    before = {
        name: np.array(value, dtype=object).copy()
        for name, value in vars(metric).items()
    }
    weight = np.linspace(1, 2, 30)

    score = metric.score(new_mean, new_std, new_y, sample_weight=weight)

    fixed = metric_class(discretizer=FrozenEstimator(metric.discretizer_))
    fixed.fit(new_mean, new_std, new_y, sample_weight=weight)
    assert score == fixed.score()
    assert score != metric_class().fit(new_mean, new_std, new_y).score()
    assert vars(metric).keys() == before.keys()
    assert metric.score() == (
        metric.value_ if metric.greater_is_better else -metric.value_
    )
    for name in ("mutual_info_", "factor_values_", "value_", "best_latent_"):
        assert_array_equal(getattr(metric, name), before[name].astype(float))


@quiet
def test_score_uses_the_fitted_bins_of_factors(generic):
    mean, std, _ = generic()
    y = mean[:, 0] + 10.0
    metric = RMIG().fit(mean, std, y)

    # Ten classes of 6 rows were cut; now all rows lie in the lowest one or two.
    with pytest.raises(ValueError, match="one value"):
        metric.score(mean, std, y - 10)


@quiet
def test_second_argument_is_y_of_a_posterior(generic):
    mean, std, y = generic()
    posterior = GaussianPosterior(mean, std)

    value = RMIG().fit(mean, std, y).value_

    assert RMIG().fit(posterior, y).value_ == value
    assert RMIG().fit(posterior, y=y).score(posterior, y) == value
