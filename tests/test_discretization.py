from statistics import NormalDist

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import KBinsDiscretizer

from skdisent import (
    JEMMIG,
    RMIG,
    GaussianPosterior,
    Informativeness,
    UniformDiscretizer,
)
from skdisent._discretization import (
    bin_indices,
    bin_masses,
    fit_discretizer,
    guessed_bin_indices,
    inner_edges,
)
from skdisent.exceptions import DisentanglementWarning

EPS = np.finfo(np.float64).eps


def one_mass(low, high):
    """Return the mass of a standard normal between two points, without cancellation.

    The density is integrated on pieces no wider than 0.25, on which 20 nodes are exact
    to rounding. What lies beyond 38 is below the smallest float.
    """
    low, high = max(low, -38.0), min(high, 38.0)
    if low >= high:
        return 0.0
    ends = np.linspace(low, high, 2 + int((high - low) / 0.25))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(ends)[:, None] / 2
    points = ends[:-1, None] + half * (nodes + 1)
    return (half * weights * np.exp(-(points**2) / 2)).sum() / np.sqrt(2 * np.pi)


def masses_by_integration(mean, std, inner):
    ends = (np.concatenate([[-np.inf], inner, [np.inf]]) - mean) / std
    return np.array([one_mass(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)])


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        (0.0, 1.0),
        (0.013, 0.08),
        (-3.7, 1e-2),
        (3.99, 0.5),
        (30.0, 1.0),  # 26 to 34 of its own widths away from every edge
        (-30.0, 1.0),
        (0.5, 1e-3),
        (2.0, 40.0),
    ],
)
def test_bin_masses_against_integrals_of_the_density(mean, std):
    inner = np.linspace(-4, 4, 101)[1:-1]

    masses = bin_masses(np.array([mean]), np.array([std]), inner)[0]

    expected = masses_by_integration(mean, std, inner)
    # A mass is the difference of two tails Q(a) > Q(b). Rounding a by a few eps changes
    # Q(a) by a**2 of these in relation to Q(a), and the function itself is right to a
    # few eps. The bin with the mean takes 1 minus the two tails.
    distance = abs((np.concatenate([[-np.inf], inner, [np.inf]]) - mean) / std)
    nearer = np.minimum(distance[:-1], distance[1:])
    has_mean = bin_indices(np.array([mean]), inner)[0]
    nearer[has_mean] = 0.0
    tail = np.array([one_mass(a, np.inf) for a in nearer])
    tail[has_mean] = 1.0
    allowed = 8 * EPS * (4 + nearer**2) * tail
    assert (abs(masses - expected) <= allowed + 1e-300).all()
    assert (masses >= 0).all()
    assert_allclose(masses.sum(), 1, rtol=0, atol=len(masses) * EPS)


@pytest.mark.parametrize(("mean", "side"), [(-30.0, -1), (30.0, 1)])
def test_far_tails_keep_their_digits(mean, side):
    # One edge at 0, 30 widths away: the far bin has Q(30) = 4.906713927148187e-198.
    masses = bin_masses(np.array([mean]), np.array([1.0]), np.array([0.0]))[0]

    far, near = masses[::side]
    assert_allclose(far, 4.906713927148187e-198, rtol=900 * 8 * EPS)
    assert near == 1.0


def test_a_mean_on_an_edge_has_one_half_on_either_side():
    inner = np.array([-1.0, 0.0, 2.0])

    masses = bin_masses(np.array([0.0, 2.0]), np.array([0.01, 0.01]), inner)

    assert_allclose(masses, [[0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]], rtol=0, atol=EPS)


def test_a_point_lies_in_the_bin_whose_left_edge_it_is():
    inner = np.array([-1.0, 0.0, 2.0])
    points = np.array([-5.0, -1.0, -0.5, 0.0, -0.0, 2.0, np.nextafter(2, 0)])

    masses = bin_masses(points, np.zeros(7), inner)

    expected = np.eye(4)[[0, 1, 1, 2, 2, 3, 2]]
    assert_array_equal(masses, expected)
    assert_array_equal(bin_indices(points, inner), masses.argmax(axis=1))


def test_a_vanishing_std_tends_to_the_point_mass():
    inner = np.array([-1.0, 0.0, 2.0])
    points = np.array([-1.5, -0.5, 1.0, 7.0])

    masses = bin_masses(points, np.full(4, 1e-300), inner)

    assert_array_equal(masses, bin_masses(points, np.zeros(4), inner))


def test_minus_zero_is_zero():
    inner = inner_edges(
        FrozenEstimator(UniformDiscretizer(2, bin_range=(-1, 1)).fit([[0.0]])), 1
    )[0]
    inner_of_minus_zero = inner_edges(_Edges([np.array([-1.0, -0.0, 1.0])]), 1)[0]
    both = np.array([0.0, -0.0])

    for edges in (inner, inner_of_minus_zero):
        for std in (0.0, 0.1):
            masses = bin_masses(both, np.full(2, std), edges)
            assert_array_equal(masses[0], masses[1])
            assert_array_equal(masses[0], [0, 1] if std == 0 else [0.5, 0.5])


class _Edges:
    def __init__(self, bin_edges):
        self.bin_edges_ = bin_edges


def test_repeated_edges_enclose_an_empty_bin():
    masses = bin_masses(
        np.array([0.0, 1.0]), np.array([0.0, 0.5]), np.array([0.0, 1.0, 1.0])
    )

    assert_array_equal(masses[0], [0, 1, 0, 0])
    assert masses[1, 2] == 0
    assert_allclose(masses[1], [0.02275013194817921, 0.4772498680518208, 0, 0.5])


def test_one_bin_takes_everything():
    masses = bin_masses(np.array([0.0, 9.0]), np.array([0.0, 2.0]), np.array([]))

    assert_array_equal(masses, [[1.0], [1.0]])


def test_uniform_edges_of_a_given_range():
    bins = UniformDiscretizer(4, bin_range=(-1, 3)).fit(np.zeros((2, 2)))

    for edges in bins.bin_edges_:
        assert_array_equal(edges, [-1, 0, 1, 2, 3])
    assert_array_equal(bins.n_bins_, [4, 4])
    assert bins.n_features_in_ == 2


def test_default_range_is_four_deviations_of_the_aggregate_posterior():
    # Means 1 and 3 with weights 3 and 1: mean 1.5, variance 0.75; mean of the variances
    # (3 * 0.25 + 1 * 2.0) / 4 = 0.6875.
    posterior = GaussianPosterior([[1.0], [3.0]], [[0.5], [np.sqrt(2.0)]])

    bins = UniformDiscretizer(5).fit(posterior, sample_weight=[3, 1])

    deviation = np.sqrt(0.75 + 0.6875)
    low, high = 1.5 - 4 * deviation, 1.5 + 4 * deviation
    assert_allclose(bins.bin_edges_[0], np.linspace(low, high, 6), rtol=1e-15)


def test_default_number_of_bins_is_odd_and_has_the_mean_inside_a_bin():
    bins = UniformDiscretizer().fit(
        GaussianPosterior(np.zeros((9, 1)), np.ones((9, 1)))
    )

    inner = bins.bin_edges_[0][1:-1]
    assert bins.n_bins_[0] == 101
    assert abs(inner).min() == pytest.approx(8 / 101 / 2)


def test_a_covariance_gives_the_range_of_its_diagonal():
    covariance = np.array([[4.0, 1.0], [1.0, 0.25]])
    mean = np.array([[0.0, 1.0], [2.0, 1.0]])
    full = UniformDiscretizer().fit(GaussianPosterior(mean, covariance=covariance))
    diagonal = UniformDiscretizer().fit(GaussianPosterior(mean, [[2.0, 0.5]] * 2))

    for one, other in zip(full.bin_edges_, diagonal.bin_edges_, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("shift", [0.0, 0.1, 1e6])
def test_no_variance_is_one_bin(shift):
    bins = UniformDiscretizer().fit(np.full((7, 1), shift))

    assert_array_equal(bins.n_bins_, [1])
    assert inner_edges(bins, 1)[0].size == 0


def test_default_range_follows_affine_maps(generic):
    mean, std, _ = generic()
    bins = UniformDiscretizer().fit(GaussianPosterior(mean, std))

    # Powers of two scale without rounding; the shift rounds once.
    moved = UniformDiscretizer().fit(GaussianPosterior(4 * mean + 8, 4 * std))

    for one, other in zip(bins.bin_edges_, moved.bin_edges_, strict=True):
        assert_allclose(other, 4 * one + 8, rtol=0, atol=100 * EPS)


@pytest.mark.parametrize(
    "params",
    [
        {"n_bins": 0},
        {"n_bins": 2.5},
        {"bin_range": (1, 1)},
        {"bin_range": (2, -2)},
        {"bin_range": (0, np.inf)},
        {"bin_range": (np.nan, 1)},
        {"bin_range": (0, 1, 2)},
        {"bin_range": ("a", "b")},
        {"bin_range": 4},
    ],
)
def test_wrong_parameters_are_named(params):
    with pytest.raises((ValueError, TypeError), match=next(iter(params))):
        UniformDiscretizer(**params).fit(np.zeros((3, 1)))


def test_other_discretizers_see_the_aggregate_posterior():
    # One row N(0, 1): of its nine equally likely quantiles Phi^-1((j + 0.5) / 9) the
    # third, fifth and seventh are the quartiles.
    bins = KBinsDiscretizer(
        4, strategy="quantile", quantile_method="averaged_inverted_cdf", subsample=None
    )
    fitted = fit_discretizer(bins, GaussianPosterior([[0.0]], [[1.0]]))

    assert fitted is not bins
    quartile = NormalDist().inv_cdf(6.5 / 9)
    inner = inner_edges(fitted, 1)[0]
    assert_allclose(inner, [-quartile, 0, quartile], rtol=0, atol=1e-14)


def test_other_discretizers_see_the_means_of_a_point_encoder():
    bins = KBinsDiscretizer(2, strategy="uniform")
    fitted = fit_discretizer(bins, GaussianPosterior([[1.0], [2.0], [5.0]]))

    assert_allclose(fitted.bin_edges_[0], [1, 3, 5])


def test_weights_of_other_discretizers_are_copies(generic):
    mean, std, _ = generic(n=40)
    weight = np.random.default_rng(0).integers(1, 4, size=40)
    bins = KBinsDiscretizer(
        5, strategy="quantile", quantile_method="averaged_inverted_cdf", subsample=None
    )

    weighted = fit_discretizer(bins, GaussianPosterior(mean, std), weight)
    copied = fit_discretizer(
        bins,
        GaussianPosterior(np.repeat(mean, weight, axis=0), np.repeat(std, weight, 0)),
    )

    for one, other in zip(weighted.bin_edges_, copied.bin_edges_, strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-12)


def test_only_inner_edges_count(generic):
    mean, std, y = generic()
    inner = np.linspace(-1, 1, 9)

    def information(low, high):
        edges = np.concatenate([[low], inner, [high]])
        return RMIG(discretizer=_OwnEdges(edges)).fit(mean, std, y).mutual_info_

    assert_array_equal(information(-1.5, 1.5), information(-np.inf, 100.0))


class _OwnEdges(BaseEstimator):
    """A discretizer of a user's own: fit and bin_edges_, no more."""

    def __init__(self, edges):
        self.edges = edges

    def fit(self, X, y=None):
        self.bin_edges_ = [self.edges] * X.shape[1]
        return self


def test_fixed_bins_are_frozen(generic, paper_bins):
    mean, std, y = generic()
    fixed = FrozenEstimator(paper_bins.fit(mean))

    one = RMIG(discretizer=fixed).fit(mean, std, y)
    other = RMIG(discretizer=UniformDiscretizer(100, bin_range=(-4, 4)))
    other.fit(mean, std, y)

    assert one.value_ == other.value_


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[-1.0, 0.0, 1.0]], "1 columns"),
        ([[-1.0, 0.5, 0.0, 1.0], [-1.0, 0.0, 1.0]], "column 0.*ascending"),
        ([[-1.0, 0.0, 1.0], [-1.0, np.nan, 1.0]], "column 1.*finite"),
    ],
)
def test_unusable_edges_are_refused(edges, message):
    with pytest.raises(ValueError, match=message):
        inner_edges(_Edges(edges), 2)


def test_mass_beyond_the_range_names_latent_and_share():
    # Latent 1 has half of its rows at 5, beyond the range.
    mean = np.column_stack([np.tile([-1.0, 1.0], 10), np.tile([0.0, 5.0], 10)])
    metric = Informativeness(discretizer=UniformDiscretizer(11, bin_range=(-2, 2)))

    with pytest.warns(DisentanglementWarning, match=r"(?=.*50\.0 ?%)(?=.*latent 1)"):
        metric.fit(mean, np.full((20, 2), 0.01))


def test_a_hundredth_of_the_mass_may_lie_beyond():
    # Both tails beyond 2 of N(0, s): 1 % at s = 2 / 2.5758.
    mean = np.zeros((50, 1)) + np.tile([-1e-3, 1e-3], 25)[:, None]
    metric = Informativeness(discretizer=UniformDiscretizer(11, bin_range=(-2, 2)))

    metric.fit(mean, np.full((50, 1), 2 / 2.58))
    with pytest.warns(DisentanglementWarning, match="latent 0"):
        metric.fit(mean, np.full((50, 1), 2 / 2.57))


@pytest.mark.filterwarnings("ignore:.*bias:skdisent.exceptions.DisentanglementWarning")
def test_one_row_that_stretches_the_bins_is_named(generic):
    mean, std, y = generic(n=200)
    clean = JEMMIG().fit(mean, std, y[:, 0])
    mean[17, 0] = 100.0

    with pytest.warns(DisentanglementWarning, match="(?=.*row 17)(?=.*latent 0)"):
        stretched = JEMMIG().fit(mean, std, y[:, 0])

    # What the warning is about: fewer bins are occupied, which looks better.
    assert stretched.value_ < clean.value_


@pytest.mark.filterwarnings("ignore:.*bias:skdisent.exceptions.DisentanglementWarning")
def test_few_rows_or_a_given_range_do_not_warn_of_a_row(generic):
    # Its square of 16 is more than a tenth of the second moments of 100 rows near 1.
    def with_one_far_row(n):
        mean, std, y = generic(n=n)
        mean[17, 0] = 4.0
        return mean, std, y[:, 0]

    RMIG().fit(*with_one_far_row(99))
    fixed = UniformDiscretizer(101, bin_range=(-5, 5))
    RMIG(discretizer=fixed).fit(*with_one_far_row(100))
    with pytest.warns(DisentanglementWarning, match="(?=.*row 17)(?=.*latent 0)"):
        RMIG().fit(*with_one_far_row(100))


@pytest.mark.parametrize("origin", [0.0, 1e8])
@pytest.mark.parametrize(
    "inner",
    [
        [],
        [0.5],
        [-1, 1],
        np.linspace(-2, 2, 100),
        np.sort(np.random.default_rng(0).normal(size=100)),
        [0.0, 0.0, 0.0],
        [0.0, 1e-310],
        [-1e300, 0.0, 1e300],
        [-1.7e308, 1.7e308],
    ],
)
def test_guessed_bins_are_those_looked_up(inner, origin):
    inner = np.asarray(inner, dtype=float) + origin
    values = origin + np.random.default_rng(1).normal(size=1000)
    beside = [np.nextafter(inner, -np.inf), np.nextafter(inner, np.inf)]
    values = np.concatenate([values, inner, *beside, [1e300, -1e300]])
    assert_array_equal(guessed_bin_indices(values, inner), bin_indices(values, inner))
