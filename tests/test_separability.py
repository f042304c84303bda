import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skdisent import (
    INDIN,
    SEPIN,
    WINDIN,
    WSEPIN,
    GaussianPosterior,
    Informativeness,
    UniformDiscretizer,
)
from skdisent.exceptions import DisentanglementWarning

FAMILY = [SEPIN, WSEPIN, INDIN, WINDIN]
over_family = pytest.mark.parametrize("metric_class", FAMILY)
quiet = pytest.mark.filterwarnings("ignore::skdisent.exceptions.DisentanglementWarning")


def log_det(matrix, latents):
    return np.linalg.slogdet(matrix[np.ix_(latents, latents)])[1]


def rest_of(group, n_latents):
    return [latent for latent in range(n_latents) if latent not in group]


class ClosedForm:
    """The amounts of Gaussian means with covariance S and posteriors with C."""

    def __init__(self, means, posterior):
        self.posterior, self.aggregate = posterior, means + posterior

    def information(self, latents):
        if not latents:
            return 0.0
        both = log_det(self.aggregate, latents) - log_det(self.posterior, latents)
        return both / 2

    def separability(self, group):
        everyone = list(range(len(self.posterior)))
        rest = rest_of(group, len(everyone))
        return self.information(everyone) - self.information(rest)

    def shared(self, group, of="aggregate"):
        """Return I(z_G, z_-G), of the posterior: I(z_G, z_-G | x)."""
        matrix = getattr(self, of)
        rest = rest_of(group, len(matrix))
        joint = log_det(matrix, list(range(len(matrix))))
        return (log_det(matrix, list(group)) + log_det(matrix, rest) - joint) / 2


MEANS = np.array([[1.0, 0.5, 0.0], [0.5, 0.8, -0.3], [0.0, -0.3, 0.6]])
POSTERIORS = {
    "diagonal": np.diag([0.5, 0.8, 1.1]),
    "full": np.array([[0.6, 0.3, 0.1], [0.3, 0.9, -0.4], [0.1, -0.4, 1.0]]),
}
N_ROWS, N_DRAWS = 3000, 1200
# The mixture of N rows is not quite the Gaussian: to second order I(x, z) is lower by
# (E[q(z | x) / q(z)] - 1) / 2N, which for Gaussians is (exp(2 I(x, z)) - 1) / 2N.
# Smaller sets of latents are nearer.


@pytest.fixture(scope="module")
def fitted_on_gaussians(whitened):
    """Return metrics fitted on whitened Gaussian means."""
    cache = {}

    def fitted(kind, metric_class, groups=None):
        key = kind, metric_class, str(groups)
        if key not in cache:
            matrix = POSTERIORS[kind]
            mean = whitened(N_ROWS, MEANS)
            posterior = (
                GaussianPosterior(mean, np.tile(np.sqrt(np.diag(matrix)), (N_ROWS, 1)))
                if kind == "diagonal"
                else GaussianPosterior(mean, covariance=matrix)
            )
            metric = metric_class(n_samples=N_DRAWS, groups=groups, random_state=0)
            cache[key] = metric.fit(posterior)
        return cache[key]

    return fitted


@pytest.mark.parametrize("kind", POSTERIORS)
@pytest.mark.parametrize("groups", [None, [[0, 2], [1]], [[2]]])
def test_closed_forms_of_gaussians(kind, groups, fitted_on_gaussians):
    exact = ClosedForm(MEANS, POSTERIORS[kind])
    sets = [[0], [1], [2]] if groups is None else groups
    finite_rows = (np.exp(2 * exact.information([0, 1, 2])) - 1) / (2 * N_ROWS)

    sepin = fitted_on_gaussians(kind, WSEPIN, groups)
    indin = fitted_on_gaussians(kind, WINDIN, groups)

    errors = 4 * sepin.latent_std_errors_ + finite_rows
    separability = np.array([exact.separability(one) for one in sets])
    assert (abs(sepin.latent_values_ - separability) < errors).all()
    independence = np.array(
        [exact.information(one) - exact.shared(one) for one in sets]
    )
    assert (abs(indin.latent_values_ - independence) < errors).all()
    # A log-density of d latents is a constant less half a chi-square, with a variance
    # of d / 2; the difference of two has a standard deviation of at most sqrt(2 d).
    error = 4 * np.sqrt(2 * 3 / N_DRAWS) + finite_rows
    assert abs(sepin.information_ - exact.information([0, 1, 2])) < error
    for name, expected in [
        ("informativeness_", [exact.information(one) for one in sets]),
        ("mutual_info_rest_", [exact.shared(one) for one in sets]),
    ]:
        assert (abs(getattr(sepin, name) - expected) < error).all()
    # The errors are small enough to tell SEPIN from INDIN where they differ.
    if kind == "full" and groups is None:
        assert (abs(separability - independence) > errors).all()


@pytest.mark.parametrize("kind", POSTERIORS)
def test_weighted_closed_forms(kind, fitted_on_gaussians):
    exact = ClosedForm(MEANS, POSTERIORS[kind])
    information = np.array([exact.information([i]) for i in range(3)])
    weights = information / information.sum()
    finite_rows = (np.exp(2 * exact.information([0, 1, 2])) - 1) / (2 * N_ROWS)

    wsepin = fitted_on_gaussians(kind, WSEPIN)
    windin = fitted_on_gaussians(kind, WINDIN)

    separability = [exact.separability([i]) for i in range(3)]
    independence = information - [exact.shared([i]) for i in range(3)]
    error = 4 * wsepin.std_error_ + finite_rows
    assert abs(wsepin.value_ - weights @ separability) < error
    assert abs(windin.value_ - weights @ independence) < 4 * windin.std_error_ + (
        finite_rows
    )


@pytest.mark.parametrize("groups", [None, [[0, 2], [1, 3]], [[3], [0, 1]]])
@pytest.mark.parametrize("shared", [False, True])
@quiet
def test_sepin_less_indin_is_what_latents_share_given_the_data(
    groups, shared, covariances
):
    mean = np.random.default_rng(0).normal(size=(60, 4))
    covariance = covariances(60, 4)[0] if shared else covariances(60, 4)
    posterior = GaussianPosterior(mean, covariance=covariance)
    weight = np.random.default_rng(1).uniform(0.5, 2, 60)
    params = {"groups": groups, "n_samples": 400, "random_state": 0}

    sepin = SEPIN(**params).fit(posterior, sample_weight=weight)
    indin = INDIN(**params).fit(posterior, sample_weight=weight)

    sets = groups or [[0], [1], [2], [3]]
    matrices = [covariance] * 60 if shared else covariance
    per_row = np.array(
        [
            [ClosedForm(0, one).shared(group, "posterior") for group in sets]
            for one in matrices
        ]
    )
    expected = weight @ per_row / weight.sum()
    difference = sepin.latent_values_ - indin.latent_values_
    assert_allclose(difference, expected, rtol=0, atol=1e-9)
    # The identities of equations 8 and 9.
    assert_allclose(
        indin.latent_values_,
        indin.informativeness_ - indin.mutual_info_rest_,
        rtol=0,
        atol=1e-12,
    )
    assert_allclose(sepin.mutual_info_rest_, indin.mutual_info_rest_, atol=1e-12)


@pytest.mark.parametrize("groups", [None, [[0, 2], [1]], [[1]]])
@quiet
def test_sepin_is_indin_for_a_diagonal_posterior(groups, generic):
    mean, std, _ = generic()
    params = {"groups": groups, "n_samples": 400, "random_state": 0}

    sepin, indin = SEPIN(**params).fit(mean, std), INDIN(**params).fit(mean, std)
    wsepin, windin = WSEPIN(**params).fit(mean, std), WINDIN(**params).fit(mean, std)

    assert_allclose(sepin.latent_values_, indin.latent_values_, rtol=0, atol=1e-12)
    assert_allclose(sepin.value_, indin.value_, rtol=0, atol=1e-12)
    assert_allclose(wsepin.value_, windin.value_, rtol=0, atol=1e-12)


@over_family
@quiet
def test_spellings_of_one_posterior_agree(metric_class, generic):
    mean, std, _ = generic()
    std = np.tile(std[0], (60, 1))
    matrix = np.diag(std[0] ** 2)
    metric = metric_class(n_samples=300, random_state=0)

    values = [
        metric.fit(*posterior).value_
        for posterior in [
            (mean, std),
            (GaussianPosterior(mean, std),),
            (GaussianPosterior.from_logvar(mean, 2 * np.log(std)),),
            (GaussianPosterior(mean, covariance=matrix),),
            (GaussianPosterior(mean, covariance=np.tile(matrix, (60, 1, 1))),),
            (GaussianPosterior.from_cholesky(mean, np.sqrt(matrix)),),
        ]
    ]

    # Square roots, logarithms and inverses of std, squared distances of up to 1e3.
    assert_allclose(values, values[0], rtol=0, atol=1e-10)


@over_family
@quiet
def test_weights_are_adjacent_copies(metric_class, generic):
    # The same random numbers choose the same rows.
    mean, std, _ = generic()
    weight = np.random.default_rng(0).integers(0, 4, 60)
    copies = np.repeat(np.arange(60), weight)
    metric = metric_class(n_samples=301, random_state=0)

    weighted = metric.fit(mean, std, sample_weight=weight)
    found = weighted.value_, weighted.std_error_, weighted.information_
    copied = metric.fit(mean[copies], std[copies])

    expected = copied.value_, copied.std_error_, copied.information_
    assert_allclose(found, expected, rtol=0, atol=1e-12)


@over_family
@quiet
def test_a_weight_of_zero_is_no_row(metric_class, generic):
    mean, std, _ = generic()
    weight = np.ones(60)
    weight[::3] = 0
    mean[::3] = 1e8
    metric = metric_class(n_samples=301, random_state=0)

    weighted = metric.fit(mean, std, sample_weight=weight).value_

    some = weight > 0
    assert weighted == metric.fit(mean[some], std[some]).value_


@over_family
@quiet
def test_order_of_latents(metric_class, generic):
    # With draws of their own: within 4 errors of both.
    mean, std, _ = generic()
    one = metric_class(n_samples=2000, random_state=0).fit(mean, std)
    two = metric_class(n_samples=2000, random_state=0).fit(
        mean[:, [2, 0, 1]], std[:, [2, 0, 1]]
    )

    error = 4 * np.hypot(one.latent_std_errors_[[2, 0, 1]], two.latent_std_errors_)
    assert (abs(one.latent_values_[[2, 0, 1]] - two.latent_values_) < error).all()
    assert_array_equal(two.ranking_, np.array([1, 2, 0])[one.ranking_])


@quiet
def test_values_are_means_of_the_latents(generic):
    mean, std, _ = generic()
    params = {"n_samples": 300, "random_state": 0}

    for metric_class in (SEPIN, INDIN):
        every = metric_class(**params).fit(mean, std)
        ordered = np.sort(every.latent_values_)[::-1]
        assert_array_equal(every.latent_values_[every.ranking_], ordered)
        assert every.value_ == pytest.approx(ordered.mean(), rel=1e-14)
        for k in (1, 2, 3, 7):  # beyond the latents: dead ones
            top = metric_class(k, **params).fit(mean, std)
            assert top.value_ == pytest.approx(ordered[:k].sum() / k, rel=1e-14)
        best = metric_class(1, **params).fit(mean, std)
        expected = best.latent_std_errors_[best.ranking_[0]]
        assert best.std_error_ == pytest.approx(expected, rel=1e-12)
    for metric_class in (WSEPIN, WINDIN):
        weighted = metric_class(**params).fit(mean, std)
        shares = weighted.informativeness_ / weighted.informativeness_.sum()
        assert_allclose(weighted.weights_, shares, rtol=1e-12)
        expected = shares @ weighted.latent_values_
        assert weighted.value_ == pytest.approx(expected, rel=1e-12)


@quiet
def test_a_group_of_all_latents_knows_everything(generic):
    mean, std, _ = generic()

    metric = SEPIN(groups=[[0, 1, 2]], n_samples=300, random_state=0).fit(mean, std)

    assert_allclose(metric.latent_values_, metric.information_, rtol=1e-12)
    assert_allclose(metric.mutual_info_rest_, 0, atol=1e-12)


@quiet
def test_order_inside_and_of_groups(generic):
    mean, std, _ = generic()
    params = {"n_samples": 300, "random_state": 0}

    one = SEPIN(groups=[[0, 2], [1]], **params).fit(mean, std)
    two = SEPIN(groups=[[1], np.array([2, 0])], **params).fit(mean, std)
    three = SEPIN(groups=((1,), range(0, 3, 2)), **params).fit(mean, std)

    expected = one.latent_values_[::-1]
    assert_allclose(two.latent_values_, expected, rtol=0, atol=1e-12)
    assert_allclose(three.latent_values_, expected, rtol=0, atol=1e-12)


@quiet
def test_latents_in_no_group_are_part_of_the_rest(generic):
    mean, std, _ = generic()
    params = {"n_samples": 300, "random_state": 0}

    every = SEPIN(**params).fit(mean, std)
    some = SEPIN(groups=[[1]], **params).fit(mean, std)

    # The same draws, fewer control variates: within 4 errors of both.
    error = 4 * np.hypot(every.latent_std_errors_[1], some.latent_std_errors_[0])
    assert abs(every.latent_values_[1] - some.latent_values_[0]) < error


@over_family
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "groups is empty"),
        ([[]], "non-empty"),
        ([[0], [3]], "0 to 2"),
        ([[-1]], "0 to 2"),
        ([[0, 1], [1]], "share"),
        ([[0, 0]], "share"),
        ([0, 1], "lists of latents"),
        ([[0.0]], "integers"),
        ([[True, False, True]], "integers"),
        ([["0"]], "integers"),
    ],
)
def test_wrong_groups_are_refused(metric_class, groups, message, generic):
    mean, std, _ = generic()

    with pytest.raises(ValueError, match=message):
        metric_class(groups=groups).fit(mean, std)


@over_family
@pytest.mark.parametrize("groups", [None, [[2], [0]]])
@quiet
def test_normalized_by_the_quantized_entropy(metric_class, groups, generic):
    mean, std, _ = generic()
    bins = UniformDiscretizer(50, bin_range=(-4, 4))
    params = {"groups": groups, "n_samples": 300, "random_state": 0}
    entropy = Informativeness(discretizer=bins).fit(mean, std).latent_entropy_
    latents = [0, 1, 2] if groups is None else [2, 0]

    raw = metric_class(**params).fit(mean, std)
    metric = metric_class(normalize=True, discretizer=bins, **params).fit(mean, std)

    for name in ("latent_values_", "latent_std_errors_"):
        expected = getattr(raw, name) / entropy[latents]
        assert_allclose(getattr(metric, name), expected, rtol=1e-12)
    assert_array_equal(metric.informativeness_, raw.informativeness_)
    assert not hasattr(raw, "discretizer_")


@over_family
def test_groups_of_several_latents_have_no_normalizer(metric_class, generic):
    mean, std, _ = generic()

    with pytest.raises(ValueError, match=r"normalize=True .*n_bins \*\* len\(G\)"):
        metric_class(normalize=True, groups=[[0, 1]]).fit(mean, std)


@quiet
def test_normalized_sepin_may_exceed_one():
    # Sharp posteriors: the numerator is log N, the denominator of few bins is not.
    mean = np.linspace(-1, 1, 30)[:, None]
    bins = UniformDiscretizer(3, bin_range=(-1, 1))

    metric = SEPIN(normalize=True, discretizer=bins, n_samples=200, random_state=0)
    value = metric.fit(mean, np.full((30, 1), 1e-4)).value_

    assert_allclose(value, np.log(30) / np.log(3), rtol=1e-9)


def test_no_bins_no_normalizer():
    # One bin: 0 / 0 is 0.
    mean = np.array([[0.0, 0.0], [3.0, 0.5], [6.0, 0.3]])
    metric = SEPIN(
        normalize=True,
        discretizer=UniformDiscretizer(1),
        n_samples=50,
        random_state=0,
    )

    with pytest.warns(
        DisentanglementWarning, match="(?=.*latents? 0, 1)(?=.*normalizer is 0)"
    ):
        metric.fit(mean, np.ones((3, 2)))
    assert_array_equal(metric.latent_values_, [0, 0])


# Degenerate input.


@over_family
def test_every_latent_collapsed(metric_class):
    metric = metric_class(n_samples=100, random_state=0)

    with pytest.warns(DisentanglementWarning, match="every latent is collapsed"):
        metric.fit(np.zeros((30, 3)), np.ones((30, 3)))

    assert_allclose(metric.latent_values_, 0, atol=1e-12)
    assert_allclose(metric.value_, 0, atol=1e-12)
    if metric_class in (WSEPIN, WINDIN):
        assert metric.value_ == 0
        assert_array_equal(metric.weights_, np.zeros(3))


def test_a_collapsed_latent_has_no_share(whitened):
    mean = np.column_stack([whitened(500, np.eye(1)), np.zeros(500)])
    metric = WSEPIN(n_samples=200, random_state=0).fit(mean, np.ones((500, 2)))

    assert_array_equal(metric.weights_, [1, 0])
    assert_allclose(metric.latent_values_[1], 0, atol=1e-12)


@over_family
def test_points_are_partitions(metric_class):
    # Three values of z_0 and, within the last, two of z_1; weights 1, 1, 2.
    mean = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [2.0, 6.0]])
    weight = np.array([1.0, 1.0, 1.0, 1.0])

    with pytest.warns(DisentanglementWarning, match="point encoder"):
        metric = metric_class(random_state=0).fit(mean, sample_weight=weight)

    quarter = np.log(4) / 4
    of_all, of_0 = np.log(4), 2 * quarter + np.log(2) / 2
    of_1 = 0.75 * np.log(4 / 3) + quarter
    values = np.array([of_all - of_1, of_all - of_0])
    assert_allclose(metric.latent_values_, values, rtol=0, atol=1e-12)
    assert_allclose(metric.informativeness_, [of_0, of_1], rtol=0, atol=1e-12)
    assert_allclose(metric.information_, of_all, rtol=0, atol=1e-12)
    assert_allclose(metric.mutual_info_rest_, of_0 + of_1 - of_all, atol=1e-12)
    assert metric.std_error_ == 0
    assert_array_equal(metric.latent_std_errors_, [0, 0])
    weighted = np.array([of_0, of_1]) @ values / (of_0 + of_1)
    expected = weighted if metric_class in (WSEPIN, WINDIN) else values.mean()
    assert_allclose(metric.value_, expected, rtol=0, atol=1e-12)


@over_family
def test_points_are_the_limit_of_vanishing_noise(metric_class):
    rng = np.random.default_rng(0)
    mean = rng.integers(0, 3, size=(40, 3)).astype(float)
    metric = metric_class(n_samples=2000, random_state=0)

    with pytest.warns(DisentanglementWarning, match="point encoder"):
        limit = clone(metric).fit(mean, np.zeros((40, 3)))
    with pytest.warns(DisentanglementWarning, match="saw its own row"):
        noisy = clone(metric).fit(mean, np.full((40, 3), 1e-4))

    assert limit.value_ == pytest.approx(noisy.value_, abs=4 * noisy.std_error_ + 1e-9)
    errors = 4 * noisy.latent_std_errors_ + 1e-9
    assert (abs(limit.latent_values_ - noisy.latent_values_) < errors).all()


@over_family
def test_points_beside_gaussians_are_refused(metric_class, generic):
    mean, std, _ = generic()
    std[7, 1] = 0

    with pytest.raises(ValueError, match="Z_std is 0 for latent 1 in row 7"):
        metric_class().fit(mean, std)
    # The row is that of the input, also where rows have no weight.
    weight = np.ones(60)
    weight[:5] = 0
    with pytest.raises(ValueError, match="latent 1 in row 7"):
        metric_class().fit(mean, std, sample_weight=weight)


@over_family
def test_a_singular_covariance_names_its_row(metric_class, generic, covariances):
    mean, _, _ = generic()
    covariance = covariances(60, 3)
    covariance[11] = np.outer([1.0, 2, 3], [1.0, 2, 3])

    with pytest.raises(ValueError, match="row 11 .*singular"):
        metric_class().fit(GaussianPosterior(mean, covariance=covariance))
    with pytest.raises(ValueError, match="covariance.* singular"):
        metric_class().fit(GaussianPosterior(mean, covariance=covariance[11]))


@over_family
def test_a_singular_covariance_names_the_row_of_the_input(
    metric_class, generic, covariances
):
    mean, _, _ = generic()
    covariance = covariances(60, 3)
    covariance[11] = np.outer([1.0, 2, 3], [1.0, 2, 3])
    weight = np.ones(60)
    weight[:5] = 0

    with pytest.raises(ValueError, match="row 11 "):
        metric_class().fit(
            GaussianPosterior(mean, covariance=covariance), sample_weight=weight
        )


@over_family
def test_an_indefinite_covariance_names_its_row(metric_class, generic, covariances):
    mean, _, _ = generic()
    covariance = covariances(60, 3)
    covariance[4, 0, 1] = covariance[4, 1, 0] = 50.0

    with pytest.raises(ValueError, match="row 4 "):
        metric_class().fit(GaussianPosterior(mean, covariance=covariance))


@over_family
def test_an_asymmetric_covariance_names_its_row(metric_class, generic, covariances):
    mean, _, _ = generic()
    covariance = covariances(60, 3)
    covariance[9, 0, 2] += 0.01

    with pytest.raises(ValueError, match="symmetric.* row 9|row 9 .*symmetric"):
        metric_class().fit(GaussianPosterior(mean, covariance=covariance))


@quiet
def test_a_covariance_may_be_asymmetric_by_float32_rounding(generic, covariances):
    mean, _, _ = generic()
    covariance = covariances(60, 3)
    rounded = covariance * (1 + 1e-7 * np.random.default_rng(0).normal(size=(3, 3)))
    metric = SEPIN(n_samples=300, random_state=0)

    expected = metric.fit(GaussianPosterior(mean, covariance=covariance)).value_
    found = metric.fit(GaussianPosterior(mean, covariance=rounded)).value_

    # 1e-7 times condition numbers below 1e3.
    assert_allclose(found, expected, rtol=0, atol=1e-3)


@over_family
def test_rows_that_identify_each_other_ask_for_more_rows(metric_class):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(50, 6))

    with pytest.warns(DisentanglementWarning, match="Pass more rows"):
        metric = metric_class(n_samples=200, random_state=0)
        metric.fit(mean, np.full((50, 6), 0.01))

    # At the cap the other latents already tell the row.
    assert_allclose(metric.information_, np.log(50), atol=1e-6)
    assert abs(metric.value_) < 0.01


@over_family
def test_enough_rows_do_not_warn(metric_class, whitened):
    mean = whitened(1000, np.eye(2))

    metric_class(n_samples=500, random_state=0).fit(mean, np.full((1000, 2), 0.5))


@quiet
def test_information_is_at_most_the_log_of_the_rows(generic):
    mean, _, _ = generic(n=30)
    for std in (1e-3, 1e-1, 0.5):
        metric = SEPIN(n_samples=400, random_state=0).fit(mean, np.full((30, 3), std))
        # log q(z | x) - log q(z) is at most log 30 at every draw; control variates
        # leave the mean as uncertain as its error.
        assert metric.information_ <= np.log(30) + 1e-9 + 4 * metric.std_error_


@over_family
@quiet
def test_one_latent(metric_class, generic):
    mean, std, _ = generic()

    metric = metric_class(n_samples=300, random_state=0).fit(mean[:, :1], std[:, :1])

    exact = Informativeness(method="quadrature").fit(mean[:, :1], std[:, :1]).value_
    assert_allclose(metric.latent_values_, metric.informativeness_, rtol=1e-12)
    assert_allclose(metric.mutual_info_rest_, 0, atol=1e-12)
    assert abs(metric.value_ - exact) < 4 * metric.std_error_ + 1e-9


@quiet
def test_dead_latents_change_nothing_but_the_mean_over_all(generic):
    mean, std, _ = generic()
    dead = (
        np.column_stack([mean, np.zeros((60, 3))]),
        np.column_stack([std, np.ones((60, 3))]),
    )
    params = {"n_samples": 1000, "random_state": 0}

    for metric in (SEPIN(2, **params), WSEPIN(**params), INDIN(3, **params)):
        alone = clone(metric).fit(mean, std)
        beside = clone(metric).fit(*dead)
        error = 4 * np.hypot(alone.std_error_, beside.std_error_)
        assert abs(alone.value_ - beside.value_) < error
        assert (abs(beside.latent_values_[3:]) < 1e-9).all()
    every = SEPIN(**params).fit(*dead)
    padded = SEPIN(6, **params).fit(mean, std)
    error = 4 * np.hypot(every.std_error_, padded.std_error_)
    assert abs(every.value_ - padded.value_) < error


# Standard errors.


def exact_of_two_latents(mean, std):
    """Return I(x, z_i | z_-i) of both latents by the trapezoid rule in the plane."""
    grid = [
        np.arange(m.min() - 9 * s.max(), m.max() + 9 * s.max(), s.min() / 6)
        for m, s in zip(mean.T, std.T, strict=True)
    ]
    density = [
        np.exp(-(((g - m[:, None]) / s[:, None]) ** 2) / 2)
        / (s[:, None] * np.sqrt(2 * np.pi))
        for g, m, s in zip(grid, mean.T, std.T, strict=True)
    ]

    def entropy(q, step):
        return -(q * np.log(np.where(q > 0, q, 1))).sum() * step

    steps = [g[1] - g[0] for g in grid]
    joint = entropy(density[0].T @ density[1] / len(mean), steps[0] * steps[1])
    alone = [entropy(d.mean(axis=0), h) for d, h in zip(density, steps, strict=True)]
    given_x = 0.5 * np.log(2 * np.pi * np.e) + np.log(std).mean(axis=0)
    information = joint - given_x.sum()
    return information - (np.array(alone) - given_x)[::-1]


N_RUNS = 200


@pytest.mark.parametrize(
    ("metric_class", "n_samples"),
    [(SEPIN, 60), (WSEPIN, 60), (WSEPIN, 160)],  # the last with control variates
)
@quiet
def test_standard_errors_are_honest(metric_class, n_samples):
    rng = np.random.default_rng(0)
    # Latent 0 knows much more, so that the errors of WSEPIN's shares count.
    mean, std = rng.normal(size=(25, 2)), rng.uniform([0.2, 0.9], [0.4, 1.5], (25, 2))
    exact = exact_of_two_latents(mean, std)
    information = Informativeness(method="quadrature").fit(mean, std).informativeness_
    shares = np.ones(2) if metric_class is SEPIN else information

    runs = [
        metric_class(n_samples=n_samples, random_state=seed).fit(mean, std)
        for seed in range(N_RUNS)
    ]

    values = np.array([[run.value_, *run.latent_values_] for run in runs])
    errors = np.array([[run.std_error_, *run.latent_std_errors_] for run in runs])
    # A variance estimated from 200 runs is off by a share of sqrt(2 / 199) = 0.1, and
    # the mean of 200 estimated ones, each of 30 degrees of freedom or more, by
    # sqrt(2 / 30 / 200) = 0.02. Seven fitted coefficients for 80 pairs may change it by
    # a share of 7 / 80.
    ratio = (errors**2).mean(axis=0) / values.var(axis=0, ddof=1)
    band = 1 + 4 * np.hypot(0.1, 0.02) + (7 / 80 if n_samples > 60 else 0)
    assert (ratio > 1 / band).all()
    assert (ratio < band).all()
    # No bias beyond the noise of 200 runs, but for the curvature of shares and fitted
    # coefficients: below one variance.
    truth = np.array([shares @ exact / shares.sum(), *exact])
    noise = 4 * values.std(axis=0) / np.sqrt(N_RUNS)
    assert (abs(values.mean(axis=0) - truth) < noise + values.var(axis=0)).all()


@quiet
def test_standard_errors_are_honest_for_a_full_covariance(covariances):
    rng = np.random.default_rng(0)
    posterior = GaussianPosterior(
        rng.normal(size=(20, 3)), covariance=covariances(20, 3, scale=0.8)
    )

    runs = [
        WINDIN(n_samples=60, groups=[[0], [1, 2]], random_state=seed).fit(posterior)
        for seed in range(N_RUNS)
    ]

    for values, errors in [
        ([run.value_ for run in runs], [run.std_error_ for run in runs]),
        (
            [run.latent_values_[1] for run in runs],
            [run.latent_std_errors_[1] for run in runs],
        ),
    ]:
        ratio = np.mean(np.square(errors)) / np.var(values, ddof=1)
        # As above, with 30 pairs.
        assert 1 / (1 + 4 * 0.102) < ratio < 1 + 4 * 0.102


@quiet
def test_more_draws_smaller_errors(generic):
    mean, std, _ = generic()

    few = WSEPIN(n_samples=1000, random_state=0).fit(mean, std).std_error_
    many = WSEPIN(n_samples=16_000, random_state=0).fit(mean, std).std_error_

    # A quarter, each known to 1 / sqrt(2 * 500) = 3 %.
    assert many / few == pytest.approx(1 / 4, rel=4 * 0.035)


# The score.


@over_family
@quiet
def test_score(metric_class, generic):
    mean, std, _ = generic()
    other = generic(seed=1)
    metric = metric_class(n_samples=300, random_state=0).fit(mean, std)
    before = {name: np.copy(value) for name, value in vars(metric).items()}

    assert metric.score() == metric.value_
    again = clone(metric).fit(*other[:2]).value_
    assert metric.score(*other[:2]) == again
    for name, value in vars(metric).items():
        assert_array_equal(value, before[name])


@quiet
def test_normalized_score_uses_the_fitted_bins(generic):
    mean, std, _ = generic()
    params = {"n_samples": 300, "random_state": 0}
    metric = SEPIN(normalize=True, **params).fit(mean, std)
    edges = [np.copy(one) for one in metric.discretizer_.bin_edges_]
    wide_mean, wide_std, _ = generic(seed=1)
    wide_mean, wide_std = 3 * wide_mean, 3 * wide_std

    score = metric.score(wide_mean, wide_std)

    raw = SEPIN(**params).fit(wide_mean, wide_std).latent_values_
    entropy = Informativeness().fit(mean, std)
    entropy.score(wide_mean, wide_std)
    from sklearn.frozen import FrozenEstimator

    fixed = FrozenEstimator(metric.discretizer_)
    entropies = Informativeness(discretizer=fixed).fit(wide_mean, wide_std)
    expected = (raw / entropies.latent_entropy_).mean()
    assert score == pytest.approx(expected, rel=1e-12)
    for one, two in zip(edges, metric.discretizer_.bin_edges_, strict=True):
        assert_array_equal(one, two)
