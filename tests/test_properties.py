"""What is true of the metrics, each under exactly the condition that it needs.

The statements are those of the user guide on what holds and when. Where one needs a
condition, a second test shows that it fails without.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from skdisent import (
    INDIN,
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    WINDIN,
    WSEPIN,
    GaussianPosterior,
    Informativeness,
    UniformDiscretizer,
)
from skdisent.exceptions import DisentanglementWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)
some = settings(deadline=None, derandomize=True, max_examples=50)
few = settings(some, max_examples=15)

EPS = np.finfo(np.float64).eps
# An amount is a sum of at most 101 bins times 4 classes, each term below 1 nat and
# right to a few EPS.
ROUNDING = 4 * 101 * 4 * EPS
# Where the origin or the order of the rows changes, the edges of the bins move by some
# EPS, and with them the masses by EPS over the std (0.05 or more) of each of the bins.
MOVED_EDGES = 101 * 8 * EPS / 0.05 * np.log(101)
# Amounts by quadrature are right to 1e-9 nats each; a score combines up to three.
QUADRATURE = 3e-9

seeds = st.integers(0, 2**32 - 1)


@st.composite
def any_data(draw, n_latents=(1, 3)):
    """Draw (Z_mean, Z_std, y, sample_weight), with points, copies and empty rows."""
    n, latents = draw(st.integers(2, 8)), draw(st.integers(*n_latents))
    means = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1.0, -1.0, 100.0]))
    stds = st.one_of(st.floats(0, 3), st.sampled_from([0.0, 1e-9, 1.0, 50.0]))
    Z_mean = draw(arrays(float, (n, latents), elements=means))
    Z_std = draw(arrays(float, (n, latents), elements=stds))
    y = draw(arrays(int, n, elements=st.integers(0, 3)))
    weight = draw(arrays(float, n, elements=st.floats(0, 4)))
    assume(len(np.unique(y[weight > 1e-6 * weight.max()])) > 1)
    return Z_mean, Z_std, y, weight


def generic_data(seed, n=40):
    """Return (Z_mean, Z_std, y): no ties, nothing on an edge, std from 0.05 up."""
    rng = np.random.default_rng(seed)
    y = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 2, n)])
    y[:3] = [[0, 0], [1, 1], [2, 0]]
    Z_mean = rng.normal(size=(n, 3))
    Z_mean[:, :2] += y
    return Z_mean, rng.uniform(0.05, 1, size=(n, 3)), y


bins = st.builds(
    UniformDiscretizer,
    st.integers(1, 101),
    bin_range=st.one_of(st.none(), st.just((-4.0, 4.0)), st.just((0.0, 0.5))),
)


# -------------------------------------------------------------------------- bounds


@some
@given(any_data(), bins)
def test_information_about_a_factor_is_at_most_both_of_its_bounds(data, discretizer):
    Z_mean, Z_std, y, weight = data
    options = {"sample_weight": weight}
    rmig = RMIG(discretizer=discretizer).fit(Z_mean, Z_std, y, **options)
    about_x = Informativeness(discretizer=discretizer).fit(Z_mean, Z_std, **options)
    info = rmig.mutual_info_[:, 0]
    assert (info >= -ROUNDING).all()
    assert (info <= rmig.factor_entropy_[0] + ROUNDING).all()
    assert (info <= about_x.informativeness_ + ROUNDING).all()
    assert (about_x.informativeness_ <= rmig.latent_entropy_ + ROUNDING).all()


def test_information_about_a_factor_may_exceed_that_about_x_of_other_bins():
    Z_mean, y = np.array([[-1.0], [1.0]]), [0, 1]
    coarse = UniformDiscretizer(3, bin_range=(-9, 9))
    about_x = Informativeness(discretizer=coarse).fit(Z_mean).informativeness_
    assert RMIG(normalize=False).fit(Z_mean, y).value_ > about_x[0] + 0.5


@some
@given(any_data(), bins)
def test_rmig_and_jemmig_have_bounds(data, discretizer):
    Z_mean, Z_std, y, weight = data
    options = {"discretizer": discretizer, "normalize": False}
    rmig = RMIG(**options).fit(Z_mean, Z_std, y, sample_weight=weight)
    jemmig = JEMMIG(**options).fit(Z_mean, Z_std, y, sample_weight=weight)
    entropy, log_n_bins = rmig.factor_entropy_[0], np.log(jemmig.discretizer_.n_bins_)
    assert -ROUNDING <= rmig.value_ <= entropy + ROUNDING
    bound = entropy + log_n_bins[jemmig.best_latent_[0]]
    assert -ROUNDING <= jemmig.value_ <= bound + ROUNDING
    for metric in (rmig, jemmig):
        metric.set_params(normalize=True)
        metric.fit(Z_mean, Z_std, y, sample_weight=weight)
        assert -ROUNDING <= metric.value_ * entropy
        assert metric.value_ <= 1 + ROUNDING / entropy
    assert_array_equal(rmig.best_latent_, jemmig.best_latent_)
    assert_array_equal(rmig.second_latent_, jemmig.second_latent_)


@some
@given(any_data(n_latents=(2, 3)), bins)
def test_misjed_has_bounds(data, discretizer):
    Z_mean, Z_std, _, weight = data
    metric = MISJED(discretizer=discretizer, normalize=False)
    metric.fit(Z_mean, Z_std, sample_weight=weight)
    log_n_bins = np.log(metric.discretizer_.n_bins_)
    pairs = ~np.eye(len(log_n_bins), dtype=bool)
    high = np.add.outer(log_n_bins, log_n_bins)[pairs]
    low = -np.minimum(np.log((weight > 0).sum()), high)
    values = metric.pairwise_values_[pairs]
    assert (low - ROUNDING <= values).all()
    assert (values <= high + ROUNDING).all()


@some
@given(any_data(n_latents=(2, 3)), bins)
def test_misjed_of_point_encoders_is_not_negative(data, discretizer):
    Z_mean, _, _, weight = data
    metric = MISJED(discretizer=discretizer, normalize=False)
    metric.fit(Z_mean, sample_weight=weight)
    pairs = ~np.eye(Z_mean.shape[1], dtype=bool)
    assert (metric.pairwise_values_[pairs] >= -ROUNDING).all()


def test_misjed_of_wide_posteriors_is_negative_and_reported_as_it_is():
    levels = np.array([-0.5, 0.5, 1.5])
    Z_mean = np.column_stack([np.repeat(levels, 3), np.tile(levels, 3)])
    three = UniformDiscretizer(3, bin_range=(-1, 2))
    metric = MISJED(discretizer=three, normalize=False)
    with pytest.warns(DisentanglementWarning, match="is negative .*choose other bins"):
        metric.fit(Z_mean, np.full((9, 2), 1e6))
    # The end bins have half of a posterior each, the middle one 4e-7; the means fill
    # all nine cells.
    assert_allclose(metric.value_, 2 * np.log(2) - 2 * np.log(3), atol=4e-5)


@few
@given(seeds, st.integers(2, 30), st.booleans())
def test_information_is_at_most_the_entropy_of_the_distinct_posteriors(seed, n, quad):
    rng = np.random.default_rng(seed)
    distinct = rng.integers(0, n, size=n)
    mean, std = rng.normal(size=(n, 2)), 10.0 ** rng.uniform(-3, 1, size=(n, 2))
    weight = rng.uniform(size=n)
    share = np.bincount(distinct, weights=weight) / weight.sum()
    share = share[share > 0]
    entropy = -(share * np.log(share)).sum()
    metric = Informativeness(method="quadrature" if quad else "quantization")
    metric.fit(mean[distinct], std[distinct], sample_weight=weight)
    assert (metric.informativeness_ <= entropy + QUADRATURE).all()


@pytest.mark.parametrize("n", [2, 7, 30])
def test_far_apart_rows_have_the_information_of_their_index_and_no_sepin(n):
    Z_mean = (
        100.0
        * np.random.default_rng(0).permuted(np.tile(np.arange(n), (3, 1)), axis=1).T
    )
    with pytest.warns(DisentanglementWarning, match="far apart"):
        metric = INDIN(n_samples=200, random_state=0).fit(Z_mean, np.ones((n, 3)))
    # Another row is at least 100 std away: e**-5000 is 0.
    assert_allclose(metric.information_, np.log(n), rtol=1e-12)
    assert_allclose(metric.informativeness_, np.log(n), rtol=1e-12)
    assert_allclose(metric.latent_values_, 0, atol=1e-12)


def test_normalized_sepin_has_no_upper_bound():
    # The latent tells two rows apart, while the edge cuts off little of either.
    Z_mean, Z_std = np.array([[-0.1], [0.1]]), np.full((2, 1), 1e-3)
    edge_at_3_std = UniformDiscretizer(2, bin_range=(-1, 1.206))
    metric = SEPIN(normalize=True, discretizer=edge_at_3_std, n_samples=50)
    metric.fit(Z_mean, Z_std)
    beyond = norm.sf(3) / 2
    entropy = -beyond * np.log(beyond) - (1 - beyond) * np.log1p(-beyond)
    assert_allclose(metric.value_, np.log(2) / entropy, rtol=1e-9)
    assert metric.value_ > 100


# ---------------------------------------------------------------------- the order


def factor_like(seed, n_levels):
    """Return two independent, informative latents on a full grid, and two noisy."""
    rng = np.random.default_rng(seed)
    levels = np.linspace(-1.5, 1.5, n_levels)
    grid = np.array([(a, b) for a in levels for b in levels])
    noisy = rng.uniform(-1e-3, 1e-3, size=grid.shape)
    Z_mean = np.hstack([grid, noisy])
    Z_std = np.hstack([np.full(grid.shape, 0.02), np.ones(grid.shape)])
    return Z_mean, Z_std


@few
@given(seeds, st.integers(6, 20))
def test_misjed_orders_pairs_that_meet_its_conditions(seed, n_levels):
    values = MISJED().fit(*factor_like(seed, n_levels)).pairwise_values_
    assert 0 <= values[0, 1] < values[[0, 0, 1, 1], [2, 3, 2, 3]].min()
    assert values[[0, 0, 1, 1], [2, 3, 2, 3]].max() < values[2, 3]


def test_misjed_does_not_order_copies_of_a_latent():
    Z_mean, Z_std = factor_like(0, 60)
    grid = UniformDiscretizer(101, bin_range=(-2, 2))
    metric = MISJED(discretizer=grid, normalize=False)
    copies = [0, 0, 2]
    # H(f) + H(f) - H(f) of 60 levels, against H(f) + H(n) - H(f) of a narrow noise.
    metric.fit(Z_mean[:, copies], Z_std[:, copies] * [1, 1, 0.3])
    assert metric.pairwise_values_[0, 1] > metric.pairwise_values_[0, 2]


def test_misjed_does_not_order_on_a_grid_that_does_not_fit():
    Z_mean, Z_std = factor_like(0, 10)
    grid = UniformDiscretizer(100, bin_range=(-4, 4))
    values = MISJED(discretizer=grid).fit(100 * Z_mean, 100 * Z_std).pairwise_values_
    # All mass is in the end bins, and the means of noisy pairs fill four cells.
    assert not 0 <= values[0, 1] < values[0, 2] < values[2, 3]


@some
@given(seeds, st.integers(1, 50))
def test_an_even_number_of_bins_splits_the_means_of_collapsed_latents(seed, half):
    rng = np.random.default_rng(seed)
    Z_mean = rng.uniform(0.001, 0.01, size=(50, 2)) * rng.choice([-1, 1], size=(50, 2))
    Z_mean[:4] = [[-0.01, -0.01], [-0.01, 0.01], [0.01, -0.01], [0.01, 0.01]]
    Z_std = np.ones((50, 2))
    even, odd = (
        MISJED(discretizer=UniformDiscretizer(n, bin_range=(-4, 4)), normalize=False)
        for n in (2 * half, 2 * half + 1)
    )
    assert odd.fit(Z_mean, Z_std).mean_joint_entropy_[0, 1] == 0
    too_low = even.fit(Z_mean, Z_std).mean_joint_entropy_[0, 1]
    assert 0 < too_low <= 2 * np.log(2) + ROUNDING


@few
@given(seeds, st.floats(100, 1e6))
def test_one_outlier_row_flatters_jemmig_and_is_warned_of(seed, distance):
    rng = np.random.default_rng(seed)
    y = np.arange(400) % 4
    Z_mean = np.column_stack(
        [y + rng.normal(scale=0.3, size=400), rng.normal(size=400)]
    )
    Z_std = np.full((400, 2), 0.2)
    before = JEMMIG().fit(Z_mean, Z_std, y).value_
    Z_mean[17] += distance
    with pytest.warns(DisentanglementWarning, match="row 17 holds .* of the variance"):
        after = JEMMIG().fit(Z_mean, Z_std, y).value_
    assert after < before


# -------------------------------------------------------- differential entropies


@few
@given(seeds, st.floats(-6, 6), st.sampled_from([-1, 1]))
def test_differential_jemmig_moves_by_the_log_of_the_scale(seed, log_scale, sign):
    Z_mean, Z_std, y = generic_data(seed)
    scale = np.exp(log_scale)
    metric = JEMMIG(method="quadrature", normalize=False)
    before = metric.fit(Z_mean, Z_std, y).value_
    after = metric.fit(sign * scale * Z_mean, scale * Z_std, y).value_
    assert_allclose(after, before + log_scale, atol=QUADRATURE)


def test_differential_jemmig_has_no_normalizer():
    Z_mean, Z_std, y = generic_data(0)
    with pytest.raises(ValueError, match="no upper bound.*normalize=False"):
        JEMMIG(method="quadrature").fit(Z_mean, Z_std, y)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_quantized_jemmig_tends_to_the_differential_one(seed):
    Z_mean, Z_std, y = generic_data(seed)
    y, Z_mean, Z_std = y[:, 0], Z_mean[:, :1], Z_std[:, :1] + 0.3
    limit = JEMMIG(method="quadrature", normalize=False).fit(Z_mean, Z_std, y).value_
    errors = []
    for n_bins in (125, 250, 500, 1000):
        grid = UniformDiscretizer(n_bins, bin_range=(-12, 12))
        metric = JEMMIG(discretizer=grid, normalize=False).fit(Z_mean, Z_std, y)
        errors.append(abs(metric.value_ + np.log(24 / n_bins) - limit))
    # Bin averages of a smooth density: the error falls with the square of the width.
    assert errors[0] < 0.01
    ratios = np.divide(errors[:-1], errors[1:])
    assert_allclose(ratios, 4, rtol=0.05)


# --------------------------------------------------------------------- invariances


METRICS = [RMIG(), JEMMIG(), MISJED(), Informativeness()]
over_metrics = pytest.mark.parametrize("metric", METRICS, ids=lambda m: str(m)[:-2])


def per_latent(metric):
    """Return the amounts of a fitted metric whose first axis is the latents."""
    names = ("mutual_info_", "joint_entropy_", "latent_entropy_", "informativeness_")
    return [getattr(metric, name) for name in names if hasattr(metric, name)]


@over_metrics
@few
@given(seed=seeds)
def test_the_order_of_rows_latents_and_factors_does_not_matter(metric, seed):
    Z_mean, Z_std, y = generic_data(seed)
    rng = np.random.default_rng(seed)
    rows, latents = rng.permutation(len(y)), rng.permutation(3)
    before = metric.fit(Z_mean, Z_std, y).value_
    amounts = per_latent(metric)
    after = metric.fit(Z_mean[rows], Z_std[rows], y[rows]).value_
    assert_allclose(after, before, atol=MOVED_EDGES)
    after = metric.fit(Z_mean[:, latents], Z_std[:, latents], y).value_
    assert_allclose(after, before, atol=ROUNDING)
    for one, other in zip(amounts, per_latent(metric), strict=True):
        assert_allclose(other, one[latents], atol=ROUNDING)
    after = metric.fit(Z_mean, Z_std, y[:, ::-1]).value_
    assert_allclose(after, before, atol=ROUNDING)


@pytest.mark.parametrize("metric", [RMIG(), JEMMIG()], ids=["RMIG", "JEMMIG"])
@some
@given(seed=seeds)
def test_the_names_of_classes_do_not_matter(metric, seed):
    Z_mean, Z_std, y = generic_data(seed)
    before = metric.fit(Z_mean, Z_std, y).value_
    names = np.array(["oval", "heart", "square"])[y]
    assert_allclose(metric.fit(Z_mean, Z_std, names).value_, before, atol=ROUNDING)
    assert_allclose(metric.fit(Z_mean, Z_std, 7 - 3 * y).value_, before, atol=ROUNDING)


@over_metrics
@few
@given(seed=seeds, log_scale=st.floats(-5, 5), shift=st.floats(-10, 10))
def test_affine_maps_of_latents_do_not_matter_when_bins_follow_the_data(
    metric, seed, log_scale, shift
):
    Z_mean, Z_std, y = generic_data(seed)
    scale = np.exp([log_scale, -log_scale, 0.0])
    signs = np.array([1, -1, -1])
    before = metric.fit(Z_mean, Z_std, y).value_
    # The shift is rounded in units of the latent, up to 10 e**5 of them.
    mapped = signs * scale * Z_mean + shift
    after = metric.fit(mapped, scale * Z_std, y).value_
    tolerance = MOVED_EDGES * max(1, abs(shift) / scale.min())
    assert_allclose(after, before, atol=tolerance)


def test_affine_maps_matter_on_a_fixed_grid_and_a_sign_flip_on_an_edge():
    Z_mean, Z_std, y = generic_data(0)
    metric = JEMMIG(discretizer=UniformDiscretizer(100, bin_range=(-4, 4)))
    before = metric.fit(Z_mean, Z_std, y).value_
    assert abs(metric.fit(3 * Z_mean, 3 * Z_std, y).value_ - before) > 0.01
    # A bin contains its left edge: 0 is in the upper of two bins, whatever its sign.
    metric = RMIG(discretizer=UniformDiscretizer(2, bin_range=(-1, 1)))
    means = np.array([[0.0], [0.0], [0.5], [-0.5]])
    y = [0, 0, 0, 1]
    assert_allclose(metric.fit(means, y).value_, 1)
    assert metric.fit(-means, y).value_ < 0.5


@over_metrics
@few
@given(seed=seeds)
def test_a_weight_of_k_is_k_adjacent_copies(metric, seed):
    Z_mean, Z_std, y = generic_data(seed)
    copies = np.random.default_rng(seed).integers(0, 4, size=len(y))
    copies[:3] = 1
    rows = np.repeat(np.arange(len(y)), copies)
    expected = metric.fit(Z_mean[rows], Z_std[rows], y[rows]).value_
    weighted = metric.fit(Z_mean, Z_std, y, sample_weight=copies).value_
    assert_allclose(weighted, expected, atol=MOVED_EDGES)


@pytest.mark.parametrize("metric", [SEPIN, WSEPIN, INDIN, WINDIN])
def test_draws_see_a_weight_of_k_as_k_adjacent_copies(metric):
    Z_mean, Z_std, _ = generic_data(3)
    copies = np.random.default_rng(3).integers(0, 4, size=len(Z_mean))
    rows = np.repeat(np.arange(len(Z_mean)), copies)
    draws = metric(n_samples=500, random_state=0)
    expected = draws.fit(Z_mean[rows], Z_std[rows]).value_
    weighted = draws.fit(Z_mean, Z_std, sample_weight=copies).value_
    # The same draws from the same mixture, summed in another order.
    assert_allclose(weighted, expected, rtol=1e-9)


# ---------------------------------------------------------------------------- ties


@some
@given(seeds, st.permutations([0, 1, 2]))
def test_of_tied_latents_the_best_has_the_smallest_jemmig(seed, order):
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1, 2, 3], rng.integers(0, 4, size=20)])
    # Three latents know all of y: one narrow, one wide, one a copy of the wide one.
    wide = 10.0 * y + rng.uniform(-1, 1, size=len(y))
    Z_mean = np.column_stack([10.0 * y, wide, wide])
    Z_std = np.column_stack([np.full(len(y), 1e-3), *[np.full(len(y), 0.5)] * 2])
    for metric in (RMIG(), JEMMIG()):
        metric.fit(Z_mean[:, order], Z_std[:, order], y)
        assert metric.best_latent_[0] == order.index(0)
    assert_allclose(
        RMIG().fit(Z_mean[:, order], Z_std[:, order], y).value_, 0, atol=1e-9
    )


def test_copies_of_a_latent_are_told_apart_by_their_index():
    Z_mean, Z_std, y = generic_data(0)
    Z_mean[:, :2] += 2 * y
    copies = [2, 0, 1, 0, 1]
    metric = RMIG().fit(Z_mean[:, copies], Z_std[:, copies], y)
    assert_array_equal(metric.best_latent_, [1, 2])
    assert_array_equal(metric.second_latent_, [3, 4])
    assert_array_equal(metric.factor_values_, [0, 0])


# ------------------------------------------------------------ separate latents


@few
@given(seed=seeds)
def test_indin_is_sepin_for_a_diagonal_posterior(seed):
    Z_mean, Z_std, _ = generic_data(seed)
    options = {"n_samples": 60, "random_state": seed}
    sepin = SEPIN(**options).fit(Z_mean, Z_std)
    indin = INDIN(**options).fit(Z_mean, Z_std)
    # The entropies given x cancel, each a sum of 3 terms of a few nats.
    assert_allclose(indin.latent_values_, sepin.latent_values_, atol=100 * EPS)


@few
@given(seed=seeds)
def test_indin_lacks_what_latents_share_given_x(seed):
    Z_mean, _, _ = generic_data(seed)
    factor = np.random.default_rng(seed).normal(size=(len(Z_mean), 3, 3))
    covariance = factor @ np.swapaxes(factor, 1, 2) + 0.1 * np.eye(3)
    posterior = GaussianPosterior(Z_mean, covariance=covariance)
    options = {"n_samples": 60, "random_state": seed}
    sepin = SEPIN(**options).fit(posterior)
    indin = INDIN(**options).fit(posterior)
    for i in range(3):
        rest = np.delete(np.arange(3), i)
        det_rest = np.linalg.det(covariance[:, rest[:, None], rest])
        ratio = covariance[:, i, i] * det_rest / np.linalg.det(covariance)
        shared = 0.5 * np.log(ratio).mean()
        # Determinants of matrices with condition numbers up to some 1e4.
        assert_allclose(
            sepin.latent_values_[i] - indin.latent_values_[i], shared, rtol=1e-9
        )


@few
@given(seed=seeds)
def test_weights_are_shares_of_the_informativeness(seed):
    Z_mean, Z_std, _ = generic_data(seed)
    for metric in (WSEPIN, WINDIN):
        metric = metric(n_samples=60, random_state=seed).fit(Z_mean, Z_std)
        assert_allclose(metric.weights_.sum(), 1, rtol=4 * EPS)
        info = np.where(metric.informativeness_ > 0, metric.informativeness_, 0)
        assert_allclose(metric.weights_, info / info.sum(), rtol=1e-12)
        assert_allclose(metric.value_, metric.weights_ @ metric.latent_values_)
