"""Mistakes that are easy to make: each error says what to do instead."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

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
)
from skdisent.encoders import FactorAnalysisEncoder

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

SUPERVISED = [RMIG(), JEMMIG(), MetricSuite({"rmig": RMIG(), "misjed": MISJED()})]
UNSUPERVISED = [
    Informativeness(),
    MISJED(),
    SEPIN(n_samples=20, random_state=0),
    WSEPIN(n_samples=20, random_state=0),
    INDIN(n_samples=20, random_state=0),
    WINDIN(n_samples=20, random_state=0),
    MetricSuite({"misjed": MISJED(), "informativeness": Informativeness()}),
]
each_supervised = pytest.mark.parametrize("metric", SUPERVISED, ids=repr)
each_unsupervised = pytest.mark.parametrize("metric", UNSUPERVISED, ids=repr)
each_metric = pytest.mark.parametrize("metric", SUPERVISED + UNSUPERVISED, ids=repr)


@pytest.fixture
def data(generic):
    return generic()


@pytest.fixture
def X(data):
    mean, std, _ = data
    return np.hstack([mean, std])


# The std on its way to the metric


@each_metric
def test_a_scaler_behind_the_encoder(metric, X, data):
    pipeline = make_pipeline(FactorAnalysisEncoder(2), StandardScaler(), metric)
    with pytest.raises(TypeError, match="no array step may stand between the encoder"):
        pipeline.fit(X, data[2])


def test_a_scaler_behind_the_encoder_in_a_search(X, data):
    pipeline = make_pipeline(FactorAnalysisEncoder(2), StandardScaler())
    with pytest.raises(TypeError, match=r"would lose the std: use \.mean"):
        cross_val_score(pipeline, X, data[2], scoring=RMIG(), error_score="raise")


@each_metric
def test_std_given_twice(metric, data):
    mean, std, y = data
    posterior = GaussianPosterior(mean, std)
    with pytest.raises(ValueError, match="std given twice.*Drop Z_std"):
        metric.fit(posterior, std, y)
    metric.fit(posterior, y)
    with pytest.raises(ValueError, match="std given twice.*Drop Z_std"):
        metric.score(posterior, std, y)


@each_supervised
def test_std_in_the_place_of_y(metric, data):
    mean, std, y = data
    with pytest.raises(ValueError, match="Is this Z_std.*Pass y as well"):
        metric.fit(mean, std)
    metric.fit(mean, std, y)
    with pytest.raises(ValueError, match="Is this Z_std.*Pass y as well"):
        metric.score(mean, std)


@each_unsupervised
def test_an_integer_std_is_a_std(metric, data):
    mean, std, y = data
    whole = np.rint(std * 4).astype(int) + 1
    expected = metric.fit(mean, whole.astype(float)).score()
    assert metric.fit(mean, whole).score() == expected
    assert metric.fit(mean, whole.tolist()).score() == expected
    assert metric.fit(mean, whole, y).score() == expected
    assert metric.fit(GaussianPosterior(mean, whole)).score() == expected
    assert metric.fit(mean).score() != expected


@each_supervised
def test_an_integer_std_beside_y_is_a_std(metric, data):
    mean, std, y = data
    whole = np.rint(std * 4).astype(int) + 1
    expected = metric.fit(mean, whole.astype(float), y).score()
    assert metric.fit(mean, whole, y).score() == expected
    assert metric.fit(mean, None, y).score() != expected


@each_unsupervised
@pytest.mark.parametrize(
    "reshape",
    [
        lambda std: std[:, :2],
        lambda std: std[:40],
        lambda std: std.T,
        lambda std: std[:, 0].mean(),
        lambda std: std[:, :, None],
        lambda std: std[0],
        lambda std: std[:, :2].astype(int),
    ],
    ids=["columns", "rows", "transposed", "number", "3-D", "one row", "integers"],
)
def test_a_std_of_a_wrong_shape_is_not_dropped(metric, data, reshape):
    mean, std, _ = data
    with pytest.raises(ValueError, match="neither Z_std nor y: pass it by name"):
        metric.fit(mean, reshape(std))
    with pytest.raises(ValueError, match=r"Z_std must have the shape of Z_mean, \(60"):
        metric.fit(mean, Z_std=reshape(std), y=np.zeros(60))


@each_supervised
def test_a_std_of_a_wrong_shape_beside_y(metric, data):
    mean, std, y = data
    for wrong in (std[:, :2], std[:40], std[:, 0], 0.5):
        with pytest.raises(ValueError, match="Z_std must have the shape of Z_mean"):
            metric.fit(mean, wrong, y)


@each_unsupervised
def test_log_variances_in_the_place_of_std(metric, data):
    mean, std, y = data
    logvar = 2 * np.log(std)
    with pytest.raises(ValueError, match=r"exp\(0\.5 \* logvar\)"):
        metric.fit(mean, logvar)
    with pytest.raises(ValueError, match=r"exp\(0\.5 \* logvar\)"):
        metric.fit(mean, logvar, y)


# The metric on its way to scikit-learn


@pytest.mark.parametrize(
    "tool",
    [
        lambda X, y: cross_validate(PCA(2), X, y, scoring=[RMIG(), JEMMIG()]),
        lambda X, y: GridSearchCV(
            PCA(), {"n_components": [2]}, scoring=[RMIG(), JEMMIG()], refit=False
        ).fit(X, y),
    ],
    ids=["cross_validate", "GridSearchCV"],
)
def test_a_list_of_metrics_as_scoring(tool, X, data):
    with pytest.raises(ValueError, match="Use a dict of score name mapped to the sco"):
        tool(X, data[2])


def test_a_list_of_metrics_as_suite(X, data):
    mean, std, y = data
    suite = MetricSuite([RMIG(), JEMMIG()])
    with pytest.raises(ValueError, match="'metrics' .* must be an instance of 'dict'"):
        suite.fit(mean, std, y)
    with pytest.raises(ValueError, match="non-empty dict of names to metrics"):
        cross_validate(PCA(2), X, y, scoring=suite, error_score="raise")


def test_a_suite_where_one_number_is_wanted(X, data):
    suite = MetricSuite({"rmig": RMIG()})
    with pytest.raises(ValueError, match="scoring must return a number, got {'rmig'"):
        cross_val_score(PCA(2), X, data[2], scoring=suite, error_score="raise")


def test_a_suite_without_a_metric_to_refit_by(X, data):
    suite = MetricSuite({"rmig": RMIG()})
    search = GridSearchCV(PCA(), {"n_components": [2]}, scoring=suite)
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        search.fit(X, data[2])


def test_an_estimator_that_is_no_encoder(X, data):
    y = data[2][:, 0]
    classifier = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match=r"no transform.*FunctionTransformer"):
        RMIG()(classifier, X, y)
    as_tuple = FunctionTransformer(lambda X: (X, X))
    with pytest.raises(TypeError, match=r"return GaussianPosterior\(mean, std\)"):
        RMIG()(as_tuple, X, y)


def test_a_metric_in_the_middle_of_a_pipeline(X, data):
    pipeline = make_pipeline(RMIG(), StandardScaler())
    with pytest.raises(TypeError, match="should be transformers"):
        pipeline.fit(X, data[2])


def test_a_fold_without_a_class(data):
    mean, std, _ = data
    posterior = GaussianPosterior(mean, std)
    labels = np.repeat([0, 1], 30)
    folds = {"scoring": RMIG(), "cv": KFold(2)}
    # Each half of the sorted rows has one class, of which there is nothing to know.
    with pytest.warns(UserWarning, match="pass rows in which a factor varies"):
        scores = cross_val_score(FunctionTransformer(), posterior, labels, **folds)
    assert np.isnan(scores).all()
    folds["cv"] = KFold(2, shuffle=True, random_state=0)
    scores = cross_val_score(FunctionTransformer(), posterior, labels, **folds)
    assert np.isfinite(scores).all()
