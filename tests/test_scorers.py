"""Metrics as scorers of scikit-learn's model selection."""

import csv
import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.preprocessing import FunctionTransformer

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
from skdisent.datasets import make_sprites
from skdisent.encoders import FactorAnalysisEncoder

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

DRAWS = {"n_samples": 50, "random_state": 0}
UNSUPERVISED = {
    "misjed": MISJED(),
    "informativeness": Informativeness(k=2),
    "sepin": SEPIN(**DRAWS),
    "wsepin": WSEPIN(**DRAWS),
    "indin": INDIN(**DRAWS, normalize=True),
    "windin": WINDIN(**DRAWS),
}
METRICS = {"rmig": RMIG(), "jemmig": JEMMIG(normalize=False), **UNSUPERVISED}
CV = KFold(3)
GRID = {"n_components": [2, 3]}

each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
each_unsupervised = pytest.mark.parametrize(
    "metric", UNSUPERVISED.values(), ids=UNSUPERVISED
)
rmig_or_suite = pytest.mark.parametrize(
    "scoring",
    [RMIG(), {"rmig": RMIG(), "misjed": MISJED()}, MetricSuite(METRICS)],
    ids=["alone", "dict", "suite"],
)


class WeightedEncoder(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """Centres by the weighted mean; `scale` multiplies every mean."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, X, y=None, sample_weight=None):
        self.center_ = np.average(X, axis=0, weights=sample_weight)
        return self

    def transform(self, X):
        mean = (X - self.center_)[:, :3] * self.scale
        return GaussianPosterior(mean, np.full_like(mean, 0.1))


@pytest.fixture(scope="module")
def data():
    X, y = make_sprites(150, image_size=4, n_levels=(3, 2, 2, 4, 4), random_state=0)
    return X + 0.02 * np.random.default_rng(0).normal(size=X.shape), y


@pytest.fixture
def encoder():
    return FactorAnalysisEncoder(2, svd_method="lapack")


def by_hand(encoder, metric, X, y=None, weight=None):
    """Return the score of each fold, without scikit-learn's tools."""
    scores = []
    for train, test in CV.split(X):
        posterior = clone(encoder).fit(X[train]).transform(X[test])
        scores.append(
            clone(metric)
            .fit(
                posterior,
                y=None if y is None else y[test],
                sample_weight=None if weight is None else weight[test],
            )
            .score()
        )
    return scores


@each_metric
def test_cross_validation(metric, data, encoder):
    X, y = data
    expected = by_hand(encoder, metric, X, y)
    assert np.isfinite(expected).all()
    assert_array_equal(cross_val_score(encoder, X, y, scoring=metric, cv=CV), expected)
    found = cross_validate(
        encoder, X, y, scoring=metric, cv=CV, return_train_score=True, n_jobs=2
    )
    assert_array_equal(found["test_score"], expected)
    assert np.isfinite(found["train_score"]).all()


@each_metric
def test_searches(metric, data, encoder):
    X, y = data
    expected = [
        np.mean(by_hand(clone(encoder).set_params(n_components=n), metric, X, y))
        for n in GRID["n_components"]
    ]
    grid = GridSearchCV(encoder, GRID, scoring=metric, cv=CV, n_jobs=2).fit(X, y)
    assert_array_equal(grid.cv_results_["mean_test_score"], expected)
    assert grid.best_index_ == np.argmax(expected)

    drawn = RandomizedSearchCV(
        encoder, GRID, n_iter=2, scoring=metric, cv=CV, random_state=0
    ).fit(X, y)
    assert sorted(drawn.cv_results_["mean_test_score"]) == sorted(expected)

    halving = HalvingGridSearchCV(
        encoder, GRID, scoring=metric, cv=CV, min_resources=75, factor=2, random_state=0
    ).fit(X, y)
    # Both candidates on 75 rows, the better one on 150.
    assert halving.n_resources_ == [75, 150]
    results = halving.cv_results_
    assert results["iter"].tolist() == [0, 0, 1]
    winner = np.argmax(results["mean_test_score"][:2])
    assert results["params"][2] == results["params"][winner]
    assert np.isfinite(results["mean_test_score"]).all()


@each_metric
def test_curves(metric, data, encoder):
    X, y = data
    sizes, train, test = learning_curve(
        encoder, X, y, scoring=metric, cv=CV, train_sizes=[60, 100]
    )
    assert sizes.tolist() == [60, 100]
    # The largest size is the whole of each training fold.
    assert_array_equal(test[1], by_hand(encoder, metric, X, y))
    assert np.isfinite(train).all()

    train, test = validation_curve(
        encoder,
        X,
        y,
        param_name="n_components",
        param_range=GRID["n_components"],
        scoring=metric,
        cv=CV,
    )
    assert_array_equal(test[0], by_hand(encoder, metric, X, y))
    assert train.shape == test.shape == (2, 3)


@each_unsupervised
def test_without_y(metric, data, encoder):
    X, _ = data
    expected = by_hand(encoder, metric, X)
    assert_array_equal(cross_val_score(encoder, X, scoring=metric, cv=CV), expected)
    search = GridSearchCV(encoder, GRID, scoring=metric, cv=CV).fit(X)
    assert search.cv_results_["mean_test_score"][0] == np.mean(expected)
    # The curves have no default for y.
    _, _, test = learning_curve(
        encoder, X, None, scoring=metric, cv=CV, train_sizes=[1.0]
    )
    assert_array_equal(test[0], expected)


def test_a_suite_without_y(data, encoder):
    X, _ = data
    found = cross_validate(encoder, X, scoring=MetricSuite(UNSUPERVISED), cv=CV)
    for name, metric in UNSUPERVISED.items():
        # A suite may add in another order.
        assert_allclose(
            found[f"test_{name}"], by_hand(encoder, metric, X), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("make", [dict, MetricSuite], ids=["dict", "suite"])
def test_several_metrics_in_one_search(make, data, encoder):
    X, y = data
    searches = [
        GridSearchCV(
            encoder, GRID, scoring=make(METRICS), refit="jemmig", cv=CV, n_jobs=n_jobs
        ).fit(X, y)
        for n_jobs in (None, 2)
    ]
    for name, metric in METRICS.items():
        one, two = (s.cv_results_[f"mean_test_{name}"] for s in searches)
        assert_array_equal(one, two)
        assert one[0] == pytest.approx(
            np.mean(by_hand(encoder, metric, X, y)), abs=1e-12
        )
    best = np.argmax(searches[0].cv_results_["mean_test_jemmig"])
    assert searches[0].best_index_ == best
    # score() of the search is the metric of refit, or all of them.
    found = searches[0].score(X, y)
    found = found["jemmig"] if isinstance(found, dict) else found
    assert found == JEMMIG(normalize=False).fit(searches[0].transform(X), y=y).score()


def test_searches_compare_by_the_greatest_score(data):
    X, y = data
    search = GridSearchCV(
        WeightedEncoder(), {"scale": [0.01, 1.0]}, scoring=JEMMIG(), cv=CV
    ).fit(X, y)
    # Beside a std of 0.1 the small means are noise: the joint entropy is large.
    assert search.best_params_ == {"scale": 1.0}
    assert search.best_score_ < 0


# Weights


@pytest.fixture
def weight(data):
    return np.random.default_rng(1).integers(0, 3, len(data[0])).astype(float)


def scores_of(search, name):
    results = search.cv_results_
    return [results[f"split{k}_test_{name}"][0] for k in range(CV.n_splits)]


@rmig_or_suite
def test_weights_without_routing(scoring, data, weight):
    X, y = data
    search = GridSearchCV(
        WeightedEncoder(), {"scale": [1.0]}, scoring=scoring, cv=CV, refit=False
    ).fit(X, y, sample_weight=weight)
    expected = []
    for train, test in CV.split(X):
        encoder = WeightedEncoder().fit(X[train], sample_weight=weight[train])
        posterior = encoder.transform(X[test])
        expected.append(RMIG().fit(posterior, y[test], sample_weight=weight[test]))
    name = "score" if isinstance(scoring, RMIG) else "rmig"
    assert_allclose(
        scores_of(search, name), [m.score() for m in expected], rtol=0, atol=1e-12
    )


def requesting(scoring):
    if isinstance(scoring, dict):
        return {name: requesting(metric) for name, metric in scoring.items()}
    return clone(scoring).set_score_request(sample_weight=True)


@rmig_or_suite
def test_weights_by_routing(scoring, data, encoder, weight):
    X, y = data
    with config_context(enable_metadata_routing=True):
        asked = requesting(scoring)
        search = GridSearchCV(
            encoder, {"n_components": [2]}, scoring=asked, cv=CV, refit=False
        ).fit(X, y, sample_weight=weight)
        found = cross_validate(
            encoder, X, y, scoring=asked, cv=CV, params={"sample_weight": weight}
        )
    name = "score" if isinstance(scoring, RMIG) else "rmig"
    expected = by_hand(encoder, RMIG(), X, y, weight)
    unweighted = by_hand(encoder, RMIG(), X, y)
    assert not np.allclose(expected, unweighted, rtol=0, atol=1e-6)
    assert_allclose(scores_of(search, name), expected, rtol=0, atol=1e-12)
    assert_allclose(found[f"test_{name}"], expected, rtol=0, atol=1e-12)


@rmig_or_suite
def test_routing_asks_before_it_drops_weights(scoring, data, encoder, weight):
    X, y = data
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(encoder, GRID, scoring=scoring, cv=CV, refit=False)
        with pytest.raises(ValueError, match="sample_weight"):
            search.fit(X, y, sample_weight=weight)
        # Without weights there is nothing to ask for.
        search.fit(X, y)


@pytest.mark.parametrize("scorer", [RMIG(), MetricSuite({"rmig": RMIG()})], ids=repr)
def test_only_weights_can_be_requested(scorer):
    with config_context(enable_metadata_routing=True):
        scorer = clone(scorer).set_score_request(sample_weight="w")
        scorer = scorer.set_fit_request(sample_weight=True)
        requests = scorer.get_metadata_routing()
        assert requests.score.requests == {"sample_weight": "w"}
        assert requests.fit.requests == {"sample_weight": True}
        with pytest.raises(TypeError, match="Z_std"):
            scorer.set_score_request(Z_std=True)


# The scorer as an object


@pytest.mark.parametrize(
    "scorer", [*METRICS.values(), MetricSuite(METRICS)], ids=[*METRICS, "suite"]
)
def test_a_scorer_has_no_state(scorer, data, encoder):
    X, y = data
    encoder.fit(X)
    scorer = clone(scorer)
    before = scorer.get_params()
    first = scorer(encoder, X, y)
    assert vars(scorer).keys() == vars(clone(scorer)).keys()
    assert scorer.get_params() == before
    assert scorer(encoder, X[:100], y[:100]) != first
    assert scorer(encoder, X, y) == first


@pytest.mark.parametrize(
    "scorer", [*METRICS.values(), MetricSuite(METRICS)], ids=[*METRICS, "suite"]
)
def test_copies_score_alike(scorer, data, encoder):
    X, y = data
    expected = scorer(encoder.fit(X), X, y)
    assert clone(scorer)(encoder, X, y) == expected
    assert pickle.loads(pickle.dumps(scorer))(encoder, X, y) == expected

    fitted = clone(scorer).fit(encoder.transform(X), y)
    copy = pickle.loads(pickle.dumps(fitted))
    other = encoder.transform(X[:100])
    assert copy.score() == fitted.score() == expected
    assert copy.score(other, y[:100]) == fitted.score(other, y[:100])


def test_a_fitted_metric_scores_as_an_unfitted_one(data, encoder):
    X, y = data
    encoder.fit(X)
    fitted = RMIG().fit(encoder.transform(X[:80]), y[:80])
    value = fitted.value_
    assert fitted(encoder, X, y) == RMIG()(encoder, X, y)
    assert fitted.value_ == value


def test_global_random_state_is_left_alone(data, encoder):
    X, _ = data
    encoder.fit(X)
    np.random.seed(0)  # noqa: NPY002
    SEPIN(n_samples=50)(encoder, X)
    after = np.random.uniform()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    assert np.random.uniform() == after  # noqa: NPY002


def test_repr_shows_what_was_set():
    assert repr(RMIG()) == "RMIG()"
    assert repr(SEPIN(3, random_state=0)) == "SEPIN(k=3, random_state=0)"
    suite = MetricSuite({"rmig": RMIG(normalize=False)})
    assert repr(suite) == "MetricSuite(metrics={'rmig': RMIG(normalize=False)})"
    search = GridSearchCV(PCA(), GRID, scoring=RMIG())
    assert "scoring=RMIG()" in repr(search)
    assert search.get_params()["scoring__normalize"] is True


def test_html_repr_shows_names_and_parameters():
    html = SEPIN(3)._repr_html_()
    assert "SEPIN" in html
    assert "n_samples" in html
    html = MetricSuite({"gap": RMIG(), "sep": SEPIN(k=3)})._repr_html_()
    for shown in ("gap", "RMIG", "sep", "SEPIN", "n_samples"):
        assert shown in html
    # A suite that cannot be fitted can be looked at.
    for metrics in ({}, [RMIG()], None):
        assert "MetricSuite" in MetricSuite(metrics)._repr_html_()


# Encoders that are no encoders


def test_an_encoder_of_arrays_is_a_point_encoder(data):
    X, y = data
    found = cross_val_score(PCA(2, svd_solver="full"), X, y, scoring=RMIG(), cv=CV)
    assert_array_equal(found, by_hand(PCA(2, svd_solver="full"), RMIG(), X, y))


def test_posteriors_in_the_place_of_X(data, encoder):
    X, y = data
    posterior = encoder.fit_transform(X)
    found = cross_val_score(FunctionTransformer(), posterior, y, scoring=RMIG(), cv=CV)
    expected = [RMIG().fit(posterior[t], y[t]).score() for _, t in CV.split(X)]
    assert_array_equal(found, expected)

    # The metric as the estimator: fitted on one part, scored on the other.
    found = cross_val_score(RMIG(), posterior, y, cv=CV)
    expected = [
        RMIG().fit(posterior[train], y[train]).score(posterior[test], y[test])
        for train, test in CV.split(X)
    ]
    assert_array_equal(found, expected)


# The table in the guide


@pytest.fixture
def compatibility():
    """Return the script that tries each tool."""
    path = Path(__file__).parents[1] / "doc" / "compatibility.py"
    spec = importlib.util.spec_from_file_location("compatibility", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_compatibility_table_is_true(compatibility):
    with compatibility.TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    version = compatibility.minor_version()
    if version not in rows[0]:
        pytest.skip(f"the table has no scikit-learn {version}")
    found = {
        (tool, scoring): outcome
        for tool, by_scoring in compatibility.try_all().items()
        for scoring, outcome in by_scoring.items()
    }
    assert {(row["tool"], row["scoring"]): row[version] for row in rows} == found
