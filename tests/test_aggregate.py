"""Draws and log-densities against sums written out from the definition."""

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal

from skdisent import SEPIN, WINDIN, WSEPIN, GaussianPosterior, _aggregate, _kernels
from skdisent._aggregate import draw, partition_entropies
from skdisent._densities import LatentSets
from skdisent._kernels import plain_log_sums
from skdisent._uncertainty import standard_error_of_pairs
from skdisent.exceptions import DisentanglementWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

N_ROWS, N_LATENTS = 40, 5
SETS = {
    "single": ((0,), (1,), (2,), (3,), (4,)),
    "groups": ((0, 3), (1, 2, 4)),
    "partial groups": ((4,), (1, 3)),
    "one group of all": ((0, 1, 2, 3, 4),),
}


def posterior_of(kind, covariances):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(N_ROWS, N_LATENTS))
    if kind == "diagonal":
        return GaussianPosterior(mean, rng.uniform(0.1, 1.0, mean.shape))
    full = covariances(N_ROWS, N_LATENTS)
    return GaussianPosterior(mean, covariance=full if kind == "per row" else full[0])


def others_log_density(posterior, log_weight, rows, z, sets):
    return plain_log_sums(posterior, log_weight, rows, z, sets, np.arange(len(sets)))


over_kinds = pytest.mark.parametrize("kind", ["diagonal", "shared", "per row"])


def covariance_of(posterior, row):
    if posterior.std is not None:
        return np.diag(posterior.std[row] ** 2)
    if posterior.covariance.ndim == 2:
        return posterior.covariance
    return posterior.covariance[row]


def log_densities(posterior, z, latents):
    """Return log q(z_A | x) from the definition, (n_draws, n_rows)."""
    result = np.zeros((len(z), len(posterior)))
    if len(latents) == 0:
        return result
    for row in range(len(posterior)):
        matrix = covariance_of(posterior, row)[np.ix_(latents, latents)]
        distance = z[:, latents] - posterior.mean[row, latents]
        square = (distance * np.linalg.solve(matrix, distance.T).T).sum(axis=1)
        log_det = np.linalg.slogdet(2 * np.pi * matrix)[1]
        result[:, row] = -(square + log_det) / 2
    return result


@over_kinds
@pytest.mark.parametrize("name", SETS)
def test_log_densities_from_the_definition(kind, name, covariances):
    posterior = posterior_of(kind, covariances)
    sets = LatentSets(SETS[name], N_LATENTS)
    weight = np.random.default_rng(1).dirichlet(np.ones(N_ROWS))
    rows, z = draw(posterior, weight, 70, random_state=0)

    own = posterior._densities(rows, sets).own(z)
    others = others_log_density(posterior, np.log(weight), rows, z, sets)

    groups = [list(group) for group in SETS[name]]
    rest = [[i for i in range(N_LATENTS) if i not in group] for group in groups]
    expected_sets = [list(range(N_LATENTS)), *groups, *rest]
    assert own.shape == others.shape == (len(expected_sets), 70)
    at = np.arange(70)
    for which, latents in enumerate(expected_sets):
        table = log_densities(posterior, z, latents)
        # Log-densities of up to 1e3, from matrices with condition numbers of up to 1e3.
        assert_allclose(own[which], table[at, rows], rtol=1e-11, atol=1e-11)
        terms = np.exp(table) * weight
        terms[at, rows] = 0
        assert_allclose(
            others[which], np.log(terms.sum(axis=1)), rtol=1e-11, atol=1e-11
        )


@over_kinds
def test_entropies_given_x_from_the_definition(kind, covariances):
    posterior = posterior_of(kind, covariances)
    groups = SETS["partial groups"]
    sets = LatentSets(groups, N_LATENTS)

    volumes = posterior._log_volumes(sets)

    for latents, found in zip([list(m) for m in sets.members], volumes, strict=True):
        for row in range(N_ROWS):
            matrix = covariance_of(posterior, row)[np.ix_(latents, latents)]
            assert_allclose(found[row], np.linalg.slogdet(matrix)[1] / 2, atol=1e-12)


@pytest.mark.parametrize("kind", ["diagonal", "per row"])
@pytest.mark.parametrize("draws", [1, 7, 1000])
@pytest.mark.parametrize("values", [1, 500, 1 << 22])
def test_blocks_do_not_change_a_value(kind, draws, values, covariances, monkeypatch):
    posterior = posterior_of(kind, covariances)
    sets = LatentSets(SETS["groups"], N_LATENTS)
    weight = np.full(N_ROWS, 1 / N_ROWS)
    rows, z = draw(posterior, weight, 70, random_state=0)
    expected = others_log_density(posterior, np.log(weight), rows, z, sets)

    monkeypatch.setattr(_kernels, "BLOCK_DRAWS", draws)
    monkeypatch.setattr(_kernels, "BLOCK_VALUES", values)
    found = others_log_density(posterior, np.log(weight), rows, z, sets)

    assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["diagonal", "per row"])
@pytest.mark.parametrize(
    ("backend", "jobs"),
    [("threading", [1, 2, 5]), ("loky", [2]), ("multiprocessing", [2])],
)
def test_jobs_and_backends_do_not_change_a_value(kind, backend, jobs, covariances):
    posterior = posterior_of(kind, covariances)

    def fitted(n_jobs):
        metric = WINDIN(n_samples=201, random_state=3, n_jobs=n_jobs)
        metric.fit(posterior)
        return np.concatenate(
            [
                [metric.value_, metric.std_error_, metric.information_],
                metric.latent_values_,
                metric.informativeness_,
                metric.mutual_info_rest_,
            ]
        )

    expected = fitted(None)
    with parallel_config(backend=backend):
        for n_jobs in jobs:
            assert_allclose(fitted(n_jobs), expected, rtol=0, atol=1e-12)


def test_draws_depend_on_the_seed_alone(covariances):
    posterior = posterior_of("diagonal", covariances)
    weight = np.full(N_ROWS, 1 / N_ROWS)

    first = draw(posterior, weight, 31, random_state=5)
    again = draw(posterior, weight, 31, random_state=np.random.RandomState(5))
    other = draw(posterior, weight, 31, random_state=6)

    for one, two in zip(first, again, strict=True):
        assert_array_equal(one, two)
    assert not np.array_equal(first[1], other[1])


@pytest.mark.parametrize("random_state", [None, 0, np.random.RandomState(0)])
def test_the_global_random_state_is_left_alone(random_state, generic):
    mean, std, _ = generic()
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.RandomState(7).uniform(size=5)

    SEPIN(n_samples=50, random_state=random_state).fit(mean, std)

    assert_array_equal(np.random.uniform(size=5), expected)  # noqa: NPY002


def test_unseeded_draws_differ(generic):
    mean, std, _ = generic()
    metric = SEPIN(n_samples=50)

    assert metric.fit(mean, std).value_ != metric.fit(mean, std).value_


def test_a_random_state_is_consumed(generic):
    mean, std, _ = generic()
    metric = SEPIN(n_samples=50, random_state=np.random.RandomState(0))

    assert metric.fit(mean, std).value_ != metric.fit(mean, std).value_


@pytest.mark.parametrize("n_draws", [2, 3, 1000, 1001])
def test_rows_are_drawn_in_proportion_to_their_weights(n_draws, covariances):
    posterior = posterior_of("diagonal", covariances)
    weight = np.random.default_rng(1).dirichlet(np.full(N_ROWS, 0.3))

    rows, z = draw(posterior, weight, n_draws, random_state=0)

    counts = np.bincount(rows, minlength=N_ROWS)
    # Shares of the total weight get 2 (the last one 3) draws each. A row gets all of
    # those inside its interval, and of the two at its ends from none to all.
    assert (abs(counts - n_draws * weight) < 2 + 3).all()
    assert z.shape == (n_draws, N_LATENTS)


def test_a_row_without_weight_is_not_drawn(covariances):
    posterior = posterior_of("diagonal", covariances)
    weight = np.zeros(N_ROWS)
    weight[[3, 20]] = 0.5

    rows, _ = draw(posterior, weight, 200, random_state=0)

    assert_array_equal(np.bincount(rows)[[3, 20]], [100, 100])


@over_kinds
def test_noise_has_the_mean_and_the_covariance_of_the_row(kind, covariances):
    posterior = posterior_of(kind, covariances)
    n = 40_000
    noise = np.random.default_rng(0).normal(size=(n, N_LATENTS))
    # Whitened noise: the sample covariance of the draws is that of the row.
    noise -= noise.mean(axis=0)
    noise = np.linalg.solve(np.linalg.cholesky(noise.T @ noise / n), noise.T).T

    z = posterior._draw(np.full(n, 7), noise)

    assert_allclose(z.mean(axis=0), posterior.mean[7], rtol=0, atol=1e-12)
    covariance = np.cov(z.T, bias=True)
    assert_allclose(covariance, covariance_of(posterior, 7), rtol=0, atol=1e-12)


def test_standard_errors_come_from_within_pairs():
    # Pairs (1, 3) and (10, 20, 30), the last of three: variances 2 and 100, so the
    # variance of the mean of all five is (2 * 2 + 3 * 100) / 5**2.
    values = np.array([1.0, 3, 10, 20, 30])

    assert standard_error_of_pairs(values) == pytest.approx(np.sqrt(304) / 5)


def test_600_latents_do_not_underflow():
    # Densities of e**-1700 and less; every row is its own neighbourhood.
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(20, 600)), np.full((20, 600), 0.1)

    metric = WSEPIN(groups=[[0], range(1, 600)], n_samples=100, random_state=0)
    metric.fit(mean, std)

    # Any two rows are about 35 = sqrt(2 * 600) / 0.1 / 10 widths apart in every set of
    # 599 latents: all of log 20 is known, also without latent 0.
    assert_allclose(metric.information_, np.log(20), atol=1e-9)
    assert_allclose(metric.latent_values_[0], 0, atol=1e-9)
    rest = np.log(20) - metric.informativeness_[0]
    assert_allclose(metric.latent_values_[1], rest, atol=1e-9)


@pytest.mark.parametrize("std", [1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shift", [0.0, 1.0, 1e4])
def test_scales_and_origins(std, shift, generic):
    mean, width, _ = generic(n=50)
    expected = SEPIN(n_samples=300, random_state=0).fit(mean, width)

    moved = SEPIN(n_samples=300, random_state=0)
    moved.fit(std * (mean + shift), std * width)

    # A mean near `shift` is rounded by eps * shift, in relation to a std of at least
    # 0.1 and times distances of at most 40 widths.
    allowed = 1e-11 + 40 * np.finfo(float).eps * shift / 0.1
    for name in ("latent_values_", "informativeness_", "information_"):
        assert np.isfinite(getattr(moved, name)).all()
        assert_allclose(
            getattr(moved, name), getattr(expected, name), rtol=0, atol=allowed
        )


def test_widths_of_all_sizes_in_one_mixture():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(30, 3)), 10.0 ** rng.uniform(-6, 3, (30, 3))
    posterior = GaussianPosterior(mean, std)
    weight = np.full(30, 1 / 30)
    sets = LatentSets(((0,), (1,), (2,)), 3)
    rows, z = draw(posterior, weight, 100, random_state=0)

    others = others_log_density(posterior, np.log(weight), rows, z, sets)

    for which, latents in enumerate([list(one) for one in sets.members]):
        table = log_densities(posterior, z, latents) - np.log(30)
        table[np.arange(100), rows] = -np.inf
        top = table.max(axis=1)
        expected = top + np.log(np.exp(table - top[:, None]).sum(axis=1))
        # The nearest of the other rows may be 1e6 widths away: 1e12 / 2, to rounding.
        assert_allclose(others[which], expected, rtol=1e-12, atol=1e-11)


def test_a_single_row_has_no_others(covariances):
    posterior = posterior_of("diagonal", covariances)[:1]
    sets = LatentSets(SETS["single"], N_LATENTS)
    rows, z = draw(posterior, np.ones(1), 4, random_state=0)

    assert (others_log_density(posterior, np.zeros(1), rows, z, sets) == -np.inf).all()


def test_partition_entropies_of_points():
    points = np.array([[0.0, 1], [0.0, 2], [-0.0, 1], [3.0, 1]])
    weight = np.array([0.25, 0.25, 0.25, 0.25])
    sets = LatentSets(((0,), (1,)), 2)

    # All, latent 0, latent 1, all but 0, all but 1.
    quarter = np.log(4) / 4
    of_all = np.log(2) / 2 + 2 * quarter
    of_0 = 0.75 * np.log(4 / 3) + quarter
    expected = [of_all, of_0, of_0, of_0, of_0]
    assert_allclose(partition_entropies(points, weight, sets), expected, rtol=1e-14)


@pytest.mark.parametrize("spacing", [5, 8, 11])
def test_controls_about_rare_events_are_left_out(spacing, monkeypatch):
    # Levels of the first latent overlap so rarely that no draw may see it: a control
    # that hardly varies then is off its known mean, by what it has not seen.
    rng = np.random.default_rng(0)
    rest = rng.normal(size=(25, 2))
    rest[:, 1] += rest[:, 0]
    mean = np.array(
        [[level, *row] for level in spacing * np.arange(4.0) for row in rest]
    )
    for seed in range(4):
        metric = SEPIN(n_samples=2000, random_state=seed).fit(mean, np.ones_like(mean))
        with monkeypatch.context() as patch:
            patch.setattr(_aggregate, "PAIRS_PER_CONTROL", 10_000)
            plain = SEPIN(n_samples=2000, random_state=seed)
            plain.fit(mean, np.ones_like(mean))
        # The same draws with and without controls differ by the noise taken out.
        assert abs(metric.value_ - plain.value_) < 5 * plain.std_error_
        assert abs(metric.information_ - plain.information_) < 0.1


@pytest.mark.parametrize("exact_values", [0, 1 << 62])
def test_a_row_that_is_alone_warns_on_both_ways(exact_values, monkeypatch):
    rng = np.random.default_rng(0)
    mean = 3 * rng.normal(size=(301, 12))
    mean[300] = 1e6
    weight = np.ones(301)
    weight[300] = 130
    monkeypatch.setattr(_aggregate, "EXACT_VALUES", exact_values)
    with pytest.warns(DisentanglementWarning, match="if no draw saw its own row"):
        SEPIN(n_samples=300, random_state=0).fit(
            mean, np.ones_like(mean), sample_weight=weight
        )
