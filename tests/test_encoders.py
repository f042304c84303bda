import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdisent import GaussianPosterior
from skdisent.encoders import FactorAnalysisEncoder

X, _ = load_iris(return_X_y=True)
WINE = StandardScaler().fit_transform(load_wine().data)

_NOT_AN_ARRAY = "calls np.asarray on what transform returns, a GaussianPosterior"
EXPECTED_FAILED_CHECKS = {
    "check_estimators_pickle": _NOT_AN_ARRAY,
    "check_fit_idempotent": _NOT_AN_ARRAY,
    "check_methods_sample_order_invariance": _NOT_AN_ARRAY,
    "check_methods_subset_invariance": _NOT_AN_ARRAY,
    "check_pipeline_consistency": _NOT_AN_ARRAY,
    "check_transformer_data_not_an_array": _NOT_AN_ARRAY,
    "check_transformer_general": _NOT_AN_ARRAY,
}

_checks = parametrize_with_checks(
    [FactorAnalysisEncoder()],
    expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS,
)


# Before scikit-learn 1.9 the checks are a generator, which pytest 9 warns about.
@pytest.mark.parametrize(_checks.args[0], list(_checks.args[1]), **_checks.kwargs)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def encoder_of(components, noise_variance):
    """Return an encoder as if fitted, with mean 0."""
    encoder = FactorAnalysisEncoder()
    encoder.components_ = np.asarray(components, dtype=float)
    encoder.noise_variance_ = np.asarray(noise_variance, dtype=float)
    encoder.n_features_in_ = len(encoder.noise_variance_)
    encoder.mean_ = np.zeros(encoder.n_features_in_)
    return encoder


def assert_same_posterior(actual, expected, **tolerance):
    assert isinstance(actual, GaussianPosterior)
    assert_allclose(actual.mean, expected.mean, **tolerance)
    assert_allclose(actual.covariance, expected.covariance, **tolerance)


def test_a_posterior_worked_out_by_hand():
    # W Psi^-1 W' = [[4, 2], [2, 1 + 2]]; the inverse of [[5, 2], [2, 4]] is
    # [[4, -2], [-2, 5]] / 16; W Psi^-1 x = (2, 1 + 2) for x = (1, 1).
    encoder = encoder_of([[2, 0], [1, 1]], [1, 0.5])

    posterior = encoder.transform([[1, 1], [0, 0]])

    assert_allclose(posterior.covariance, [[0.25, -0.125], [-0.125, 0.3125]])
    assert_allclose(posterior.mean, [[2 / 16, 11 / 16], [0, 0]], atol=1e-15)
    assert posterior.std is None


@pytest.mark.parametrize("rotation", [None, "varimax", "quartimax"])
@pytest.mark.parametrize("n_components", [1, 3, None])
def test_the_posterior_is_the_joint_gaussian_conditioned_on_x(n_components, rotation):
    encoder = FactorAnalysisEncoder(n_components, rotation=rotation).fit(WINE)

    W = encoder.components_
    covariance_x = W.T @ W + np.diag(encoder.noise_variance_)
    gain = W @ np.linalg.inv(covariance_x)
    posterior = encoder.transform(WINE)

    assert posterior.covariance.shape == (len(W), len(W))
    # An inverse is off by its condition number times 2e-16; the rest allows for sums of
    # 13 products of numbers below 10.
    assert np.linalg.cond(covariance_x) < 50
    expected = np.eye(len(W)) - gain @ W.T
    assert_allclose(posterior.covariance, expected, rtol=0, atol=1e-12)
    assert_allclose(posterior.mean, WINE @ gain.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rotation", [None, "varimax"])
def test_the_means_are_those_of_factor_analysis(rotation):
    params = {"n_components": 3, "rotation": rotation}

    posterior = FactorAnalysisEncoder(**params).fit_transform(X)

    assert_array_equal(posterior.mean, FactorAnalysis(**params).fit_transform(X))


def test_a_rotation_turns_the_covariance():
    params = {"n_components": 2, "svd_method": "lapack"}
    plain = FactorAnalysisEncoder(**params).fit(WINE)
    rotated = FactorAnalysisEncoder(**params, rotation="varimax").fit(WINE)
    # rotated = turn @ plain, from two bases of one plane.
    turn = rotated.components_ @ np.linalg.pinv(plain.components_)

    before = plain.transform(WINE).covariance
    after = rotated.transform(WINE).covariance

    # Rounding alone: numbers below 1 from products of 2 by 13 matrices.
    assert_allclose(after, turn @ before @ turn.T, rtol=0, atol=1e-13)
    assert abs(before[0, 1]) < 1e-13
    assert abs(after[0, 1]) > 1e-3


def test_noise_near_zero_keeps_the_small_and_the_large_variance():
    turn = np.array([[np.sqrt(3), -1], [1, np.sqrt(3)]]) / 2
    encoder = encoder_of(turn @ np.diag([1, 1e-7]), [1e-12, 1e-12])

    covariance = encoder.transform(np.zeros((1, 2))).covariance

    # Of loadings of size 1 over a noise of 1e-6, floats keep the second singular value,
    # 0.1, within 2e-16 * 1e6; a direct inverse is off by 1e-4.
    variances = np.diag([1 / (1 + 1e12), 1 / (1 + 0.01)])
    assert_allclose(covariance, turn @ variances @ turn.T, rtol=0, atol=1e-9)
    assert_array_equal(covariance, covariance.T)
    assert np.all(np.linalg.eigvalsh(covariance) > 0)


def test_more_components_than_rows_or_features_give_what_the_fit_found():
    assert FactorAnalysisEncoder().fit_transform(X[:3]).shape == (3, 3)
    assert FactorAnalysisEncoder(10).fit_transform(X).shape == (150, 4)


def test_pandas_output_passes_by():
    pipeline = make_pipeline(StandardScaler(), FactorAnalysisEncoder(2))
    expected = pipeline.fit_transform(X)

    with config_context(transform_output="pandas"):
        globally = pipeline.fit_transform(X)
    assert_same_posterior(globally, expected, rtol=0)

    pipeline.set_output(transform="pandas")
    assert_same_posterior(pipeline.fit_transform(X), expected, rtol=0)
    assert FactorAnalysisEncoder().set_output(transform="polars").n_components is None


# What the checks that cannot read a posterior would have asked.


def test_a_pickled_encoder_encodes_alike():
    encoder = FactorAnalysisEncoder(2).fit(X)

    copy = pickle.loads(pickle.dumps(encoder))

    assert_same_posterior(copy.transform(X), encoder.transform(X), rtol=0)


def test_a_second_fit_changes_nothing():
    encoder = FactorAnalysisEncoder(2)
    first = encoder.fit_transform(X)

    assert_same_posterior(encoder.fit(X).transform(X), first, rtol=0)
    assert_same_posterior(encoder.fit_transform(X.tolist()), first, rtol=0)


def test_rows_are_encoded_one_by_one():
    encoder = FactorAnalysisEncoder(2).fit(X)
    rows = np.array([140, 3, 77])

    part = encoder.transform(X[rows])

    # Means of size 1 to 3 as sums of 4 products: the order of the sum may differ.
    assert_same_posterior(part, encoder.transform(X)[rows], rtol=0, atol=1e-14)


def test_an_unfitted_encoder_says_so():
    with pytest.raises(NotFittedError, match="FactorAnalysisEncoder instance is not"):
        FactorAnalysisEncoder().transform(X)


def test_features_have_names():
    names = FactorAnalysisEncoder(2).fit(X).get_feature_names_out()

    assert list(names) == ["factoranalysisencoder0", "factoranalysisencoder1"]
