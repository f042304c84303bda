import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from skdisent import Informativeness, UniformDiscretizer
from skdisent.exceptions import DisentanglementWarning

quiet = pytest.mark.filterwarnings("ignore::skdisent.exceptions.DisentanglementWarning")
LEVELS = np.array([-3.0, -1.0, 1.0, 3.0])


@pytest.fixture
def levels():
    """Return sharp latents with 4, 1 and 2 values in 8 rows."""
    codes = np.arange(8)
    mean = LEVELS[np.column_stack([codes % 4, np.zeros(8, dtype=int), codes % 2])]
    return mean, np.full((8, 3), 1e-3)


def test_distinct_levels(levels, paper_bins):
    metric = Informativeness(discretizer=paper_bins).fit(*levels)

    expected = [np.log(4), 0, np.log(2)]
    assert_allclose(metric.informativeness_, expected, rtol=0, atol=1e-12)
    assert_allclose(metric.latent_entropy_, expected, rtol=0, atol=1e-12)
    assert_array_equal(metric.ranking_, [0, 2, 1])
    assert metric.value_ == pytest.approx(np.log(8) / 3, rel=1e-12)
    assert metric.score() == metric.value_
    assert metric.greater_is_better is True


@pytest.mark.parametrize(
    ("k", "total"),
    [(1, np.log(4)), (2, np.log(8)), (3, np.log(8)), (10, np.log(8))],
)
def test_k_largest_with_absent_ones_as_zero(k, total, levels, paper_bins):
    metric = Informativeness(k, discretizer=paper_bins).fit(*levels)

    assert metric.value_ == pytest.approx(total / k, rel=1e-12)


def test_normalized_is_the_share_of_the_entropy(generic, paper_bins):
    mean, std, _ = generic()

    raw = Informativeness(discretizer=paper_bins).fit(mean, std)
    metric = Informativeness(discretizer=paper_bins, normalize=True).fit(mean, std)

    share = raw.informativeness_ / raw.latent_entropy_
    assert_allclose(metric.informativeness_, share, rtol=1e-12)
    assert metric.value_ == pytest.approx(share.mean(), rel=1e-12)
    assert (share < 1).all()


def test_a_constant_point_has_no_normalizer():
    mean = np.array([[1.0, 5.0], [2.0, 5.0]])

    with pytest.warns(
        DisentanglementWarning, match="(?=.*latents? 1)(?=.*normalizer is 0)"
    ):
        metric = Informativeness(normalize=True).fit(mean)

    assert_allclose(metric.informativeness_, [1, 0], rtol=1e-12)


@pytest.mark.parametrize("method", ["quantization", "quadrature"])
def test_collapsed_latents_know_nothing(method):
    metric = Informativeness(method=method)

    with pytest.warns(DisentanglementWarning, match="every latent is collapsed"):
        metric.fit(np.zeros((20, 2)), np.tile([1.0, 0.5], (20, 1)))

    assert_allclose(metric.informativeness_, [0, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["quantization", "quadrature"])
@quiet
def test_copies_of_rows_change_nothing(method, generic):
    mean, std, _ = generic()
    metric = Informativeness(method=method)

    once = metric.fit(mean, std).informativeness_
    thrice = metric.fit(np.tile(mean, (3, 1)), np.tile(std, (3, 1))).informativeness_

    assert_allclose(once, thrice, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
@quiet
def test_bounds(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 50)
    mean, std = rng.normal(size=(n, 3)), rng.uniform(0, 1, (n, 3)) ** 4
    n_bins = int(rng.integers(1, 150))
    bins = UniformDiscretizer(n_bins, bin_range=(-3, 3))

    metric = Informativeness(discretizer=bins).fit(mean, std)

    assert (metric.informativeness_ >= -1e-12).all()
    assert (metric.informativeness_ <= metric.latent_entropy_ + 1e-12).all()
    assert (metric.informativeness_ <= np.log(n) + 1e-12).all()
    assert (metric.latent_entropy_ <= np.log(n_bins) + 1e-12).all()


def test_a_point_encoder_has_the_entropy_of_its_bins():
    points = np.array([[-3.0], [-3.0], [1.0], [3.0]])

    metric = Informativeness().fit(points)

    expected = np.log(2) / 2 + 2 * np.log(4) / 4
    assert_allclose(metric.informativeness_, [expected], rtol=1e-12)
    assert_array_equal(metric.informativeness_, metric.latent_entropy_)


@quiet
def test_score_on_new_data(generic):
    mean, std, _ = generic()
    new_mean, new_std, _ = generic(seed=1, n=20)
    metric = Informativeness(2).fit(mean, std)
    value = metric.value_

    score = metric.score(new_mean * 3, new_std)

    fixed = Informativeness(2, discretizer=FrozenEstimator(metric.discretizer_))
    assert score == fixed.fit(new_mean * 3, new_std).value_
    assert score != Informativeness(2).fit(new_mean * 3, new_std).value_
    assert metric.score() == metric.value_ == value


def test_score_before_fit_and_without_data(generic):
    from sklearn.exceptions import NotFittedError

    mean, std, _ = generic()

    with pytest.raises(NotFittedError):
        Informativeness().score(mean, std)
    with pytest.raises(ValueError, match="Z_mean is missing"):
        Informativeness().fit(mean, std).score(Z_std=std)
    with pytest.raises(ValueError, match="features|latents"):
        Informativeness().fit(mean, std).score(mean[:, :2], std[:, :2])


def test_a_method_that_changes_after_fit_is_asked_to_fit_again(generic):
    mean, std, _ = generic()
    metric = Informativeness(method="quadrature").fit(mean, std)
    metric.set_params(method="quantization")
    with pytest.raises(NotFittedError, match="fit"):
        metric.score(mean, std)


def test_a_refit_forgets_what_it_does_not_learn(generic):
    mean, std, _ = generic()
    metric = Informativeness().fit(mean, std)
    assert hasattr(metric, "discretizer_")
    metric.set_params(method="quadrature").fit(mean, std)
    assert not hasattr(metric, "discretizer_")
