"""Encoders and metrics in scikit-learn's pipelines."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdisent import (
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    WSEPIN,
    GaussianPosterior,
    Informativeness,
    MetricSuite,
    UniformDiscretizer,
)
from skdisent.datasets import make_sprites
from skdisent.encoders import FactorAnalysisEncoder

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

CV = KFold(3)
DRAWS = {"n_samples": 50, "random_state": 0}
METRICS = [RMIG(), JEMMIG(), MISJED(), Informativeness(), SEPIN(**DRAWS)]
each_metric = pytest.mark.parametrize("metric", METRICS, ids=repr)


class CountingEncoder(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """Counts, over all instances, how often it was fitted."""

    n_fits = 0

    def fit(self, X, y=None):
        type(self).n_fits += 1
        self.center_ = X.mean(axis=0)
        return self

    def transform(self, X):
        mean = (X - self.center_)[:, :2]
        return GaussianPosterior(mean, np.full_like(mean, 0.1))


@pytest.fixture(scope="module")
def data():
    X, y = make_sprites(150, image_size=4, n_levels=(3, 2, 2, 4, 4), random_state=0)
    return X + 0.02 * np.random.default_rng(0).normal(size=X.shape), y


@pytest.fixture(scope="module")
def pretrained(data):
    """Return what a trained network would be: a function to a posterior."""
    weights = np.random.default_rng(2).normal(size=(data[0].shape[1], 3))

    def encode(X):
        mean = np.asarray(X) @ weights
        return GaussianPosterior(mean, 0.1 + 0.05 * abs(np.tanh(mean)))

    return encode


@pytest.fixture
def encoder():
    return FactorAnalysisEncoder(2, svd_method="lapack")


# The metric as the last step


@each_metric
def test_a_metric_is_a_last_step(metric, data, encoder):
    X_train, X_test, y_train, y_test = train_test_split(*data, random_state=0)
    pipeline = make_pipeline(StandardScaler(), encoder, metric).fit(X_train, y_train)
    scaler = StandardScaler().fit(X_train)
    fitted = clone(encoder).fit(scaler.transform(X_train))
    train = fitted.transform(scaler.transform(X_train))
    test = fitted.transform(scaler.transform(X_test))
    expected = clone(metric).fit(train, y_train)
    assert pipeline[-1].value_ == expected.value_
    # The bins are those of the training data.
    assert pipeline.score(X_test, y_test) == expected.score(test, y_test)
    assert pipeline.score(X_train, y_train) == expected.score()


def test_a_suite_is_a_last_step(data, encoder):
    X, y = data
    suite = MetricSuite({"rmig": RMIG(), "sepin": SEPIN(**DRAWS)})
    pipeline = make_pipeline(encoder, suite).fit(X, y)
    assert pipeline.score(X, y) == pipeline[-1].scores_
    expected = RMIG().fit(pipeline[0].transform(X), y).score()
    assert pipeline[-1].scores_["rmig"] == pytest.approx(expected, abs=1e-12)


def test_weights_of_a_last_step(data, encoder):
    X, y = data
    weight = np.arange(len(X)) % 3
    expected = RMIG().fit(encoder.fit_transform(X), y=y, sample_weight=weight).value_
    pipeline = make_pipeline(encoder, RMIG()).fit(X, y, rmig__sample_weight=weight)
    assert pipeline[-1].value_ == expected
    with config_context(enable_metadata_routing=True):
        metric = RMIG().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(encoder, metric).fit(X, y, sample_weight=weight)
    assert pipeline[-1].value_ == expected


def test_a_pipeline_that_ends_in_a_metric_can_be_searched(data, encoder):
    X, y = data
    pipeline = Pipeline([("encoder", encoder), ("metric", WSEPIN(**DRAWS))])
    grid = {"encoder__n_components": [2, 3], "metric__n_samples": [50]}
    search = GridSearchCV(pipeline, grid, cv=CV).fit(X)
    expected = []
    for train, test in CV.split(X):
        fitted = clone(encoder).fit(X[train])
        metric = WSEPIN(**DRAWS).fit(fitted.transform(X[train]))
        expected.append(metric.score(fitted.transform(X[test])))
    assert search.cv_results_["mean_test_score"][0] == np.mean(expected)


# Encoders within pipelines


@each_metric
def test_an_encoder_is_a_step(metric, data, encoder):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), encoder)
    found = cross_val_score(pipeline, X, y, scoring=metric, cv=CV)
    expected = []
    for train, test in CV.split(X):
        scaler = StandardScaler().fit(X[train])
        fitted = clone(encoder).fit(scaler.transform(X[train]))
        posterior = fitted.transform(scaler.transform(X[test]))
        expected.append(clone(metric).fit(posterior, y[test]).score())
    assert_array_equal(found, expected)


@each_metric
def test_a_function_is_an_encoder(metric, data, pretrained):
    X, y = data
    found = cross_val_score(
        FunctionTransformer(pretrained), X, y, scoring=metric, cv=CV
    )
    expected = [
        clone(metric).fit(pretrained(X[test]), y[test]).score()
        for _, test in CV.split(X)
    ]
    assert_array_equal(found, expected)


@each_metric
def test_a_frozen_encoder_is_not_fitted_again(metric, data, encoder):
    X, y = data
    encoder.fit(X[:100])
    frozen = FrozenEstimator(encoder)
    found = cross_val_score(frozen, X, y, scoring=metric, cv=CV, n_jobs=2)
    expected = [
        clone(metric).fit(encoder.transform(X[test]), y[test]).score()
        for _, test in CV.split(X)
    ]
    assert_array_equal(found, expected)


def test_a_frozen_discretizer_keeps_its_bins(data, encoder):
    X, y = data
    posterior = encoder.fit_transform(X)
    bins = UniformDiscretizer(21).fit(posterior.mean)
    frozen = RMIG(discretizer=FrozenEstimator(bins))
    found = cross_val_score(encoder, X, y, scoring=frozen, cv=CV)
    fixed = UniformDiscretizer(21).fit(posterior.mean)
    for score, (train, test) in zip(found, CV.split(X), strict=True):
        part = clone(encoder).fit(X[train]).transform(X[test])
        metric = RMIG(discretizer=FrozenEstimator(fixed)).fit(part, y[test])
        assert score == metric.score()
        assert_array_equal(metric.discretizer_.bin_edges_[0], bins.bin_edges_[0])


def test_a_search_over_the_encoder_step(data, pretrained, encoder):
    X, y = data
    encoders = [
        encoder,
        FactorAnalysisEncoder(3, rotation="varimax", svd_method="lapack"),
        FunctionTransformer(pretrained),
        FrozenEstimator(clone(encoder).fit(X)),
    ]
    pipeline = Pipeline([("scale", "passthrough"), ("encoder", encoder)])
    suite = MetricSuite({"rmig": RMIG(), "informativeness": Informativeness()})
    search = GridSearchCV(
        pipeline, {"encoder": encoders}, scoring=suite, refit="rmig", cv=CV
    ).fit(X, y)
    for name, metric in suite.metrics.items():
        expected = [
            cross_val_score(one, X, y, scoring=metric, cv=CV).mean() for one in encoders
        ]
        # The suite may add in another order.
        assert search.cv_results_[f"mean_test_{name}"] == pytest.approx(
            expected, abs=1e-12
        )
    best = np.argmax(search.cv_results_["mean_test_rmig"])
    assert repr(search.best_params_["encoder"]) == repr(encoders[best])
    assert isinstance(search.transform(X), GaussianPosterior)


def test_nested_cross_validation(data, encoder):
    X, y = data
    inner = GridSearchCV(
        encoder, {"n_components": [1, 2]}, scoring=Informativeness(k=2), cv=KFold(2)
    )
    found = cross_validate(inner, X, y, scoring=RMIG(), cv=CV, return_estimator=True)
    for score, search, (_, test) in zip(
        found["test_score"], found["estimator"], CV.split(X), strict=True
    ):
        best = search.best_estimator_
        assert score == RMIG().fit(best.transform(X[test]), y[test]).score()

    suite = MetricSuite({"rmig": RMIG(), "sepin": SEPIN(**DRAWS)})
    inner = GridSearchCV(
        encoder, {"n_components": [1, 2]}, scoring=suite, refit="sepin", cv=KFold(2)
    )
    found = cross_validate(inner, X, y, scoring=suite, cv=CV)
    assert np.isfinite(found["test_rmig"]).all()
    assert np.isfinite(found["test_sepin"]).all()


def test_a_cached_encoder_is_fitted_once(data, tmp_path):
    X, y = data
    pipeline = make_pipeline(CountingEncoder(), RMIG(), memory=str(tmp_path))
    CountingEncoder.n_fits = 0
    first = pipeline.fit(X, y)[-1].value_
    second = pipeline.fit(X, y)[-1].value_
    assert CountingEncoder.n_fits == 1
    plain = make_pipeline(CountingEncoder(), RMIG()).fit(X, y)[-1].value_
    assert first == second == plain
    # Other parameters of the metric read the same encoding.
    raw = pipeline.set_params(rmig__normalize=False).fit(X, y)[-1].value_
    assert CountingEncoder.n_fits == 2  # the one without memory
    assert raw != first


# Pandas output


@pytest.fixture
def frame(data):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(data[0], columns=[f"pixel{k}" for k in range(16)])


def posteriors_of(pipeline, frame, y):
    found = pipeline.fit(frame, y)[:-1].transform(frame)
    assert isinstance(found, GaussianPosterior)
    return pipeline[-1].value_


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_output_set_globally(container, data, frame, encoder):
    pytest.importorskip(container)
    pipeline = make_pipeline(StandardScaler(), encoder, RMIG())
    expected = posteriors_of(pipeline, frame, data[1])
    with config_context(transform_output=container):
        value = posteriors_of(pipeline, frame, data[1])
        found = cross_val_score(pipeline[:-1], frame, data[1], scoring=RMIG(), cv=CV)
    # Data frames have another memory layout, so sums of 16 numbers may differ.
    assert value == pytest.approx(expected, abs=1e-9)
    plain = cross_val_score(pipeline[:-1], frame, data[1], scoring=RMIG(), cv=CV)
    assert found == pytest.approx(plain, abs=1e-9)


def test_output_set_on_the_pipeline(data, frame, encoder):
    expected = posteriors_of(
        make_pipeline(StandardScaler(), encoder, RMIG()), frame, data[1]
    )
    pipeline = make_pipeline(StandardScaler(), encoder, RMIG())
    pipeline[:-1].set_output(transform="pandas")
    assert posteriors_of(pipeline, frame, data[1]) == pytest.approx(expected, abs=1e-9)
    whole = make_pipeline(StandardScaler(), encoder, RMIG())
    whole.set_output(transform="pandas")
    assert posteriors_of(whole, frame, data[1]) == pytest.approx(expected, abs=1e-9)


def test_a_frozen_encoder_and_pandas_output(data, frame, encoder):
    frozen = FrozenEstimator(encoder.fit(frame))
    expected = RMIG().fit(encoder.transform(frame), data[1]).value_
    with config_context(transform_output="pandas"):
        assert make_pipeline(frozen, RMIG()).fit(frame, data[1])[-1].value_ == expected
    pipeline = make_pipeline(frozen, RMIG())
    pipeline.set_output(transform="pandas")
    assert pipeline.fit(frame, data[1])[-1].value_ == expected
