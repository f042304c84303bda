"""One-dimensional mixtures, right to 1e-9 nats as the module promises."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdisent import (
    JEMMIG,
    RMIG,
    FactorPosterior,
    Informativeness,
    UniformDiscretizer,
    _quadrature,
)
from skdisent._tables import design_matrix
from skdisent.exceptions import DisentanglementWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

PROMISED = 1e-9
GAUSSIAN = 0.5 * np.log(2 * np.pi * np.e)


def informativeness(mean, std, weight=None):
    """Return the fitted metric of one latent."""
    metric = Informativeness(method="quadrature")
    return metric.fit(mean[:, None], std[:, None], sample_weight=weight)


def densities(points, mean, std):
    z = (points - mean[:, None]) / std[:, None]
    return np.exp(-(z**2) / 2) / (std[:, None] * np.sqrt(2 * np.pi))


def xlogx(density):
    return density * np.log(np.where(density > 0, density, 1.0))


def trapezoid(function, low, high, step):
    """Integrate what vanishes at both ends together with its derivatives.

    The rule then converges exponentially in 1 / step.
    """
    points = np.linspace(low, high, int((high - low) / step) + 1)
    return np.trapezoid(function(points), points)


def composite(function, breaks):
    """Integrate by 20 Gauss-Legendre nodes between any two neighbouring breaks."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    breaks = np.unique(breaks)
    half = np.diff(breaks)[:, None] / 2
    points = breaks[:-1, None] + half * (1 + nodes)
    values = function(points.ravel())
    return values @ (half * weights).ravel()


@pytest.mark.parametrize("std", [1e-6, 1e-3, 1.0, 17.0, 1e3])
@pytest.mark.parametrize("mean", [0.0, -5.3, 40.0])
def test_one_gaussian(mean, std):
    metric = informativeness(np.full(5, mean), np.full(5, std))

    assert_allclose(metric.latent_entropy_, GAUSSIAN + np.log(std), atol=PROMISED)
    assert_allclose(metric.informativeness_, 0, atol=PROMISED)


@pytest.mark.parametrize("std", [1e-6, 1e-3, 1.0, 1e3])
def test_far_apart_rows_reach_the_cap(std):
    # 40 widths apart, they share less than e**-200 of their mass.
    metric = informativeness(40 * std * np.arange(50.0), np.full(50, std))

    assert_allclose(metric.informativeness_, np.log(50), atol=PROMISED)


def test_far_apart_rows_of_unequal_weight_and_width():
    weight = np.array([1.0, 2.0, 5.0])
    mean, std = np.array([0.0, 1.0, 1e4]), np.array([1e-6, 1e-3, 1e3])
    mean[2] = 5e4

    metric = informativeness(mean, std, weight)

    share = weight / 8
    expected = -(share * np.log(share)).sum()
    assert_allclose(metric.informativeness_, expected, atol=PROMISED)
    assert_allclose(
        metric.latent_entropy_,
        expected + GAUSSIAN + share @ np.log(std),
        atol=PROMISED,
    )


def channel(snr):
    """Return the capacity of the binary-input Gaussian channel in nats."""
    a = np.sqrt(snr)

    def integrand(z):
        noise = np.exp(-((z - a) ** 2) / 2) / np.sqrt(2 * np.pi)
        return noise * np.log1p(np.exp(-2 * a * z))

    return np.log(2) - trapezoid(integrand, -12, 12 + a, 1e-3)


@pytest.mark.parametrize("snr", [0.01, 0.25, 1.0, 4.0, 25.0])
@pytest.mark.parametrize("std", [1e-6, 1.0, 1e3])
def test_binary_input_gaussian_channel(snr, std):
    label = np.tile([0, 1], 4)
    mean = std * np.sqrt(snr) * (2.0 * label - 1)

    rmig = RMIG(method="quadrature", normalize=False)
    rmig.fit(mean[:, None], np.full((8, 1), std), label)

    assert_allclose(rmig.value_, channel(snr), rtol=0, atol=PROMISED)
    if snr == 1:  # a published value
        assert_allclose(rmig.value_, 0.33683082028, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3])
def test_entropy_by_the_trapezoid_rule(scale):
    rng = np.random.default_rng(0)
    mean, std = scale * rng.normal(size=40), scale * rng.uniform(0.05, 1.0, 40)
    weight = rng.dirichlet(np.ones(40))

    metric = informativeness(mean, std, weight)

    # 13 stds hold all but 1e-38. A mixture's zeros are at least about
    # pi * std**2 / distance > std / 10 off the line where its parts of width `std` are
    # not over 30 stds apart, so that steps of std / 40 leave e**(-2 pi * 4).
    expected = -trapezoid(
        lambda z: xlogx(weight @ densities(z, mean, std)),
        (mean - 13 * std).min(),
        (mean + 13 * std).max(),
        std.min() / 40,
    )
    assert_allclose(metric.latent_entropy_, expected, rtol=0, atol=PROMISED)
    given_x = GAUSSIAN + weight @ np.log(std)
    assert_allclose(metric.informativeness_, expected - given_x, rtol=0, atol=PROMISED)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_widths_of_all_sizes_in_one_mixture(seed):
    rng = np.random.default_rng(seed)
    n = 30
    mean, std = rng.normal(size=n), 10.0 ** rng.uniform(-6, 3, n)
    y = rng.integers(0, 3, n)
    joint_weight = np.eye(3)[y].T / n

    metric = JEMMIG(method="quadrature", normalize=False)
    metric.fit(mean[:, None], std[:, None], y)
    information = informativeness(mean, std)

    # Every Gaussian has breaks at each half of its own widths out to 13 of them.
    breaks = mean[:, None] + std[:, None] * np.arange(-13, 13.5, 0.5)

    def of_classes(z):
        return joint_weight @ densities(z, mean, std)

    h_z = -composite(lambda z: xlogx(of_classes(z).sum(axis=0)), breaks)
    h_zy = -composite(lambda z: xlogx(of_classes(z)).sum(axis=0), breaks)
    share = joint_weight.sum(axis=1)
    h_y = -(share * np.log(share)).sum()
    assert_allclose(metric.latent_entropy_, h_z, rtol=0, atol=PROMISED)
    assert_allclose(metric.joint_entropy_, h_zy, rtol=0, atol=PROMISED)
    assert_allclose(metric.mutual_info_, h_z + h_y - h_zy, rtol=0, atol=PROMISED)
    given_x = GAUSSIAN + np.log(std).mean()
    assert_allclose(information.informativeness_, h_z - given_x, atol=PROMISED)


def test_soft_labels_and_missing_labels_by_the_trapezoid_rule():
    rng = np.random.default_rng(0)
    n = 30
    mean, std = rng.normal(size=n), rng.uniform(0.1, 0.5, n)
    soft = rng.dirichlet([1.0, 2.0, 0.5], size=n)
    labels = rng.integers(0, 2, n).astype(float)
    labels[:7] = np.nan

    metric = RMIG(method="quadrature", normalize=False, missing="drop")
    metric.fit(mean[:, None], std[:, None], FactorPosterior([soft, labels]))

    for k, (rows, table) in enumerate(
        [(slice(None), soft), (slice(7, None), np.eye(2)[labels[7:].astype(int)])]
    ):
        joint_weight = table.T / len(table)

        def of_classes(z, rows=rows, joint_weight=joint_weight):
            return joint_weight @ densities(z, mean[rows], std[rows])

        h_z, h_zy = (
            -trapezoid(function, -9, 9, 1e-3)
            for function in (
                lambda z, f=of_classes: xlogx(f(z).sum(axis=0)),
                lambda z, f=of_classes: xlogx(f(z)).sum(axis=0),
            )
        )
        share = joint_weight.sum(axis=1)
        h_y = -(share * np.log(share)).sum()
        assert_allclose(metric.factor_entropy_[k], h_y, rtol=1e-12)
        assert_allclose(metric.joint_entropy_[0, k], h_zy, rtol=0, atol=PROMISED)
        expected = h_z + h_y - h_zy
        assert_allclose(metric.mutual_info_[0, k], expected, rtol=0, atol=PROMISED)


def test_blocks_do_not_change_a_value(generic, monkeypatch):
    mean, std, y = generic(n=200)
    metric = JEMMIG(method="quadrature", normalize=False)
    whole = metric.fit(mean, std, y)
    values = whole.mutual_info_, whole.joint_entropy_, whole.latent_entropy_

    monkeypatch.setattr(_quadrature, "BLOCK_VALUES", 1000)
    monkeypatch.setattr(_quadrature, "BLOCK_ROWS", 7)
    cut = metric.fit(mean, std, y)

    found = cut.mutual_info_, cut.joint_entropy_, cut.latent_entropy_
    for one, other in zip(found, values, strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-12)


DENSE = {
    "one width": lambda rng: (rng.normal(size=5000), np.full(5000, 0.3)),
    "a power of two": lambda rng: (rng.normal(size=5000), np.full(5000, 0.25)),
    "collapsed": lambda rng: (
        0.02 * rng.normal(size=5000),
        np.exp(0.03 * rng.normal(size=5000)),
    ),
    "widths of many octaves": lambda rng: (
        rng.normal(size=5000),
        10 ** rng.uniform(-3, 1, 5000),
    ),
    "copies": lambda rng: (
        np.repeat(rng.normal(size=5), 1000),
        np.repeat(rng.uniform(0.1, 1, 5), 1000),
    ),
    "far from 0": lambda rng: (2.0**30 + rng.normal(size=5000), np.full(5000, 0.3)),
}


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("n_classes", [0, 3])
def test_series_of_many_gaussians_are_their_sums(name, n_classes, monkeypatch):
    rng = np.random.default_rng(0)
    mean, std = DENSE[name](rng)
    weight = rng.exponential(size=len(mean))
    weight /= weight.sum()
    classes = rng.integers(max(n_classes, 1), size=len(mean))
    hot = sparse.csr_array((np.ones(len(mean)), (np.arange(len(mean)), classes)))
    design = design_matrix(weight, hot if n_classes else None)
    used = []
    original = _quadrature.CellSeries.sums
    monkeypatch.setattr(
        _quadrature.CellSeries, "sums", lambda *a: used.append(1) or original(*a)
    )
    mixture = _quadrature.Mixture(mean - mean[0], std, design)
    series = [leaf[2] for leaf in mixture.leaves()]
    assert used
    monkeypatch.setattr(_quadrature, "ROWS_PER_CELL", np.inf)
    plain = [leaf[2] for leaf in mixture.leaves()]
    # Twenty Chebyshev points on an interval and an octave leave less than 1e-12 of a
    # Gaussian's peak: the terms fall by the factor of 7 to 10 from one to the next.
    largest = max(other.max() for other in plain)
    for one, other in zip(series, plain, strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-12 * largest)


def test_shifted_origin(generic):
    mean, std, y = generic()
    mean = np.round(mean * 2**20) / 2**20  # so that the shift is exact
    metric = RMIG(method="quadrature")

    value = metric.fit(mean, std, y).value_
    shifted = metric.fit(mean + 2.0**30, std, y).value_

    # Nodes near 2**30 are rounded to 1e-7 without the care that the rule takes.
    assert_allclose(shifted, value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_bins", [160, 320])
def test_quantized_amounts_tend_to_the_differential_ones(n_bins, generic):
    mean, std, y = generic()
    bins = UniformDiscretizer(n_bins, bin_range=(-8, 8))
    width = 16 / n_bins

    quantized, exact = (
        JEMMIG(discretizer=bins, method=method, normalize=False).fit(mean, std, y)
        for method in ("quantization", "quadrature")
    )
    of_rows, exact_of_rows = (
        Informativeness(discretizer=bins, method=method).fit(mean, std)
        for method in ("quantization", "quadrature")
    )

    # Averages over bins of a density f have an entropy that is larger by
    # width**2 / 24 times its Fisher information, up to higher orders. This is at most
    # the mean of 1 / std**2 for any mixture of the rows. Here (width / std)**2 < 1.
    most = width**2 / 24 * (1 / std**2).mean(axis=0)[:, None]
    least_share = np.bincount(y[:, 0]).min() / 60  # rows of one class weigh more
    excess = quantized.joint_entropy_ + np.log(width) - exact.joint_entropy_
    assert (excess > 0).all()
    assert (excess < most).all()
    excess = quantized.latent_entropy_ + np.log(width) - exact.latent_entropy_
    assert (excess > 0).all()
    assert (excess < most[:, 0]).all()
    # Quantized values know less: data processing.
    lost = exact.mutual_info_ - quantized.mutual_info_
    assert (lost > -PROMISED).all()
    assert (lost < most / least_share).all()
    lost = exact_of_rows.informativeness_ - of_rows.informativeness_
    assert (lost > 0).all()
    assert (lost < most[:, 0]).all()
    change = quantized.factor_values_ + np.log(width) - exact.factor_values_
    assert (abs(change) < most.max() * (1 + 2 / least_share)).all()


def test_the_error_of_bins_falls_with_the_square_of_their_width(generic):
    mean, std, _ = generic()

    def lost(n_bins):
        bins = UniformDiscretizer(n_bins, bin_range=(-8, 8))
        quantized = Informativeness(discretizer=bins).fit(mean, std)
        exact = Informativeness(method="quadrature").fit(mean, std)
        return exact.value_ - quantized.value_

    # The next term is (width / std)**2 / 10 of it: with std >= 0.1 and widths of 0.025
    # and 0.05 below 3 %.
    assert lost(320) / lost(640) == pytest.approx(4, rel=0.03)


def test_a_quantized_differential_and_sampled_informativeness_agree(generic):
    # The same number by three roads.
    from skdisent import SEPIN

    mean, std, _ = generic(n=60)
    exact = Informativeness(method="quadrature").fit(mean, std).informativeness_
    drawn = SEPIN(n_samples=4000, groups=[[0], [1], [2]], random_state=0)
    drawn.fit(mean, std)

    # An informativeness has a standard deviation below 1 nat here.
    assert_allclose(drawn.informativeness_, exact, rtol=0, atol=4 / np.sqrt(4000))


@pytest.mark.parametrize("metric", [JEMMIG, Informativeness])
def test_no_normalizer(metric, generic):
    mean, std, y = generic()

    with pytest.raises(ValueError, match="no upper bound .* normalize=False"):
        metric(method="quadrature", normalize=True).fit(mean, std, y)


def test_a_point_has_no_density(generic):
    mean, std, y = generic()
    std[3, 1] = 0

    with pytest.raises(ValueError, match=r"Z_std is 0 for latent 1.*quantization"):
        RMIG(method="quadrature").fit(mean, std, y)
    with pytest.raises(ValueError, match="Z_std is 0 for latent 0"):
        RMIG(method="quadrature").fit(mean, None, y)


def test_what_floats_cannot_resolve_is_refused():
    mean = np.array([[0.0], [1e10]])

    with pytest.raises(ValueError, match="latent 0 .*too small"):
        Informativeness(method="quadrature").fit(mean, np.full((2, 1), 1e-9))


@pytest.mark.filterwarnings("default::skdisent.exceptions.DisentanglementWarning")
def test_no_bins_no_warnings_of_bins(generic, recwarn):
    mean, std, y = generic(n=200)
    mean[0, 0] = 500.0

    metric = RMIG(method="quadrature").fit(mean, std, y)

    assert not [one for one in recwarn if one.category is DisentanglementWarning]
    assert not hasattr(metric, "discretizer_")


def test_rmig_is_the_gap_of_integrals(generic):
    mean, std, y = generic()

    metric = RMIG(method="quadrature", normalize=False).fit(mean, std, y)

    info = np.sort(metric.mutual_info_, axis=0)
    assert_array_equal(metric.factor_values_, info[-1] - info[-2])
