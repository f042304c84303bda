"""scikit-learn's conventions, over every public estimator."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_param_validation,
    parametrize_with_checks,
)

import skdisent
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
    MetricSuite,
    UniformDiscretizer,
    encoders,
)

METRICS = [
    Informativeness(),
    Informativeness(method="quantization", normalize=True, k=2),
    MISJED(),
    RMIG(),
    JEMMIG(),
    SEPIN(n_samples=50),
    INDIN(n_samples=50, normalize=True),
    WSEPIN(n_samples=50),
    WINDIN(n_samples=50),
]
SUITES = [
    MetricSuite({"informativeness": Informativeness()}),
    MetricSuite({"rmig": RMIG(), "sepin": SEPIN(n_samples=50)}),
]
ESTIMATORS = [*METRICS, *SUITES, UniformDiscretizer()]

# The encoders return posteriors, of which tests/test_encoders.py tells what fails.
CHECKED_ELSEWHERE = {encoders.FactorAnalysisEncoder}

SECOND_IS_STD = (
    "asks that the second parameter is named y, where it is Z_std; a y in its place is "
    "understood"
)
SCORES_ARE_A_DICT = "subtracts what score returns, a dict with a score for each metric"


def expected_failures(estimator):
    if isinstance(estimator, UniformDiscretizer):
        return {}
    failures = {"check_fit_score_takes_y": SECOND_IS_STD}
    if isinstance(estimator, MetricSuite):
        failures["check_pipeline_consistency"] = SCORES_ARE_A_DICT
    return failures


_checks = parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)


# Before scikit-learn 1.9 the checks are a generator, which pytest 9 warns about.
@pytest.mark.filterwarnings("ignore::skdisent.exceptions.DisentanglementWarning")
@pytest.mark.parametrize(_checks.args[0], list(_checks.args[1]), **_checks.kwargs)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
each_metric = pytest.mark.parametrize("metric", [*METRICS, *SUITES], ids=repr)


@each_estimator
def test_param_validation(estimator):
    check_param_validation(type(estimator).__name__, estimator)


def test_every_public_estimator_is_checked():
    public = {
        thing
        for module in (skdisent, encoders)
        for thing in map(vars(module).get, module.__all__)
        if inspect.isclass(thing) and issubclass(thing, BaseEstimator)
    }
    assert {type(one) for one in ESTIMATORS} | CHECKED_ELSEWHERE == public


@each_metric
@pytest.mark.filterwarnings("ignore::skdisent.exceptions.DisentanglementWarning")
def test_a_pipeline_scores_as_its_metric(metric, generic):
    # What check_pipeline_consistency asks, for scores of any kind.
    mean, std, y = generic()
    posterior = GaussianPosterior(mean, std)
    seeded = {name: 0 for name in metric.get_params() if name.endswith("random_state")}
    metric.set_params(**seeded)
    pipeline = make_pipeline(metric).fit(posterior, y)
    metric.fit(posterior, y)
    assert pipeline.score(posterior, y) == metric.score(posterior, y)


# Tags


@each_metric
@pytest.mark.filterwarnings("ignore::skdisent.exceptions.DisentanglementWarning")
def test_tags_say_who_needs_y(metric, generic):
    mean, std, y = generic()
    tags = get_tags(metric)
    assert tags.estimator_type is None
    if tags.target_tags.required:
        assert tags.target_tags.multi_output
        with pytest.raises(ValueError, match="requires y to be passed"):
            metric.fit(mean)
    else:
        metric.fit(mean, std)


def test_tags_of_a_suite_are_those_of_its_metrics():
    def required(suite):
        return get_tags(suite).target_tags.required

    assert not required(SUITES[0])
    assert required(SUITES[1])
    assert not required(MetricSuite([RMIG()]))


# Data frames


@pytest.fixture
def frames(generic):
    pd = pytest.importorskip("pandas")
    mean, std, y = generic()
    columns = ["size", "hue", "noise"]
    return (
        pd.DataFrame(mean, columns=columns),
        pd.DataFrame(std, columns=columns),
        pd.DataFrame(y, columns=["shape", "colour"]),
    )


@each_metric
@pytest.mark.filterwarnings("ignore::skdisent.exceptions.DisentanglementWarning")
def test_names_of_latents_are_kept_and_compared(metric, frames):
    mean, std, y = frames
    metric.fit(mean, std, y)
    assert metric.feature_names_in_.tolist() == ["size", "hue", "noise"]
    assert metric.n_features_in_ == 3
    moved = ["hue", "size", "noise"]
    with pytest.raises(ValueError, match="feature names should match"):
        metric.score(mean[moved], std[moved], y)
    with pytest.raises(ValueError, match="feature names should match"):
        metric.score(mean[["size", "hue"]], std[["size", "hue"]], y)
    with pytest.raises(ValueError, match="Z_std has its columns in another order"):
        metric.fit(mean, std[moved], y)
    # Names of an earlier fit are forgotten.
    metric.fit(mean.to_numpy(), std.to_numpy(), y)
    assert not hasattr(metric, "feature_names_in_")
    with pytest.raises(ValueError, match="has 2 features, but .* 3 features"):
        metric.score(mean.to_numpy()[:, :2], std.to_numpy()[:, :2], y)


@pytest.mark.parametrize("metric", [RMIG(), JEMMIG()], ids=repr)
def test_names_of_factors_are_kept_and_compared(metric, frames):
    mean, std, y = frames
    metric.fit(mean, std, y)
    assert metric.factor_names_in_.tolist() == ["shape", "colour"]
    with pytest.raises(ValueError, match="colour"):
        metric.score(mean, std, y[["colour", "shape"]])
    metric.fit(mean, std, y.to_numpy())
    assert not hasattr(metric, "factor_names_in_")


def test_frames_and_arrays_agree(frames):
    mean, std, y = frames
    of_frames = RMIG().fit(mean, std, y)
    of_arrays = RMIG().fit(*(np.asarray(one) for one in frames))
    assert of_frames.value_ == of_arrays.value_
    assert of_frames.score(mean[:40], std[:40], y[:40]) == of_arrays.score(
        mean.to_numpy()[:40], std.to_numpy()[:40], y.to_numpy()[:40]
    )
