"""MetricSuite: what metrics give alone, computed together."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

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
)
from skdisent._tables import TablePlan
from skdisent.exceptions import DisentanglementWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)


class Encoder(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """Takes the first columns as means, the others as std; `scale` may break it."""

    n_calls = 0

    def __init__(self, scale=1.0, fail=False):
        self.scale = scale
        self.fail = fail

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        type(self).n_calls += 1
        if self.fail:
            raise RuntimeError("the encoder broke")
        half = X.shape[1] // 2
        return GaussianPosterior(X[:, :half] * self.scale, X[:, half:])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=(200, 2))
    mean = np.column_stack([y[:, 0] - 1.0, y[:, 1] - 1.0, np.zeros(200)])
    mean += 0.1 * rng.normal(size=mean.shape)
    std = rng.uniform(0.1, 0.3, size=mean.shape)
    return mean, std, y


def all_metrics():
    draws = {"n_samples": 400, "random_state": 0}
    return {
        "rmig": RMIG(),
        "jemmig": JEMMIG(),
        "misjed": MISJED(),
        "informativeness": Informativeness(),
        "sepin": SEPIN(**draws, k=2),
        "wsepin": WSEPIN(**draws),
        "indin": INDIN(**draws, normalize=True),
        "windin": WINDIN(**draws),
    }


def test_values_are_those_of_single_metrics(data):
    suite = MetricSuite(all_metrics()).fit(*data)
    for name, metric in all_metrics().items():
        alone = metric.fit(*data)
        together = suite.metrics_[name]
        # One estimate is read by both, so nothing but the order of sums may differ.
        assert suite.scores_[name] == pytest.approx(alone.score(), abs=1e-12)
        assert vars(together).keys() == vars(alone).keys()


def test_one_estimate_a_plan(data, monkeypatch):
    prepared = []
    original = TablePlan.prepare
    monkeypatch.setattr(
        TablePlan, "prepare", lambda *a: prepared.append(a) or original(*a)
    )
    MetricSuite(all_metrics()).fit(*data)
    assert len(prepared) == 1
    other_bins = {**all_metrics(), "coarse": RMIG(discretizer=UniformDiscretizer(11))}
    MetricSuite(other_bins).fit(*data)
    assert len(prepared) == 3


def test_factor_metrics_that_read_y_differently_do_not_share(data):
    mean, std, y = data
    y = y.astype(float)
    y[0, 0] = np.nan
    suite = MetricSuite({"drop": RMIG(missing="drop"), "info": Informativeness()})
    assert suite.fit(mean, std, y).metrics_["drop"].n_rows_.tolist() == [199, 200]
    with pytest.raises(ValueError, match="missing values") as error:
        MetricSuite({"drop": RMIG(missing="drop"), "strict": RMIG()}).fit(mean, std, y)
    assert "'strict'" in error.value.__notes__[0]


def test_scorer_encodes_once_a_fold(data):
    mean, std, y = data
    X = np.hstack([mean, std])
    Encoder.n_calls = 0
    results = cross_validate(
        Encoder(), X, y, cv=KFold(4), scoring=MetricSuite(all_metrics())
    )
    assert Encoder.n_calls == 4
    for name, metric in all_metrics().items():
        alone = cross_validate(Encoder(), X, y, cv=KFold(4), scoring=metric)
        np.testing.assert_allclose(
            results[f"test_{name}"], alone["test_score"], atol=1e-12
        )


def test_search_with_two_jobs_equals_one(data):
    mean, std, y = data
    X = np.hstack([mean, std])
    found = [
        GridSearchCV(
            Encoder(),
            {"scale": [0.1, 1.0, 5.0]},
            scoring=MetricSuite(all_metrics()),
            refit="rmig",
            cv=KFold(3),
            n_jobs=n_jobs,
        ).fit(X, y)
        for n_jobs in (1, 2)
    ]
    for name in all_metrics():
        key = f"mean_test_{name}"
        np.testing.assert_array_equal(*(one.cv_results_[key] for one in found))


def test_a_metric_that_fails_is_nan_and_the_others_are_not(data):
    mean, std, _ = data
    suite = MetricSuite({"rmig": RMIG(), "info": Informativeness()})
    with pytest.warns(DisentanglementWarning, match="'rmig' of the suite could not"):
        scores = suite(Encoder(), np.hstack([mean, std]), np.zeros(200, dtype=int))
    assert np.isnan(scores["rmig"])
    assert scores["info"] == Informativeness().fit(mean, std).score()


def test_an_estimate_that_fails_is_nan_for_all_that_need_it(data):
    mean, std, _ = data
    std = std.copy()
    std[0, 0] = 0.0
    suite = MetricSuite({"s": SEPIN(n_samples=10), "info": Informativeness()})
    with pytest.warns(DisentanglementWarning, match="'s' of the suite.*Z_std is 0"):
        scores = suite(Encoder(), np.hstack([mean, std]))
    assert np.isnan(scores["s"])
    assert np.isfinite(scores["info"])


def test_an_encoder_that_fails_is_nan_for_all(data):
    mean, std, y = data
    with pytest.warns(DisentanglementWarning, match="the encoder broke"):
        scores = MetricSuite({"a": RMIG(), "b": MISJED()})(
            Encoder(fail=True), np.hstack([mean, std]), y
        )
    assert np.isnan([scores["a"], scores["b"]]).all()


def test_parameters_by_name():
    suite = MetricSuite({"rmig": RMIG(), "info": Informativeness()})
    assert suite.get_params()["rmig__n_jobs"] is None
    suite.set_params(rmig__n_jobs=2, info=Informativeness(k=3))
    assert suite.metrics["rmig"].n_jobs == 2
    assert suite.get_params()["info__k"] == 3
    copy = clone(suite)
    assert copy.metrics["rmig"] is not suite.metrics["rmig"]
    assert copy.get_params()["rmig__n_jobs"] == 2
    with pytest.raises(ValueError, match="Invalid parameter"):
        suite.set_params(misjed=MISJED())


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({}, ValueError, "non-empty dict"),
        ({"": RMIG()}, ValueError, "non-empty string"),
        ({"a__b": RMIG()}, ValueError, "without '__'"),
        ({"metrics": RMIG()}, ValueError, "cannot|no metric"),
        ({"a": "accuracy"}, TypeError, "must be a metric of skdisent"),
        ({"a": RMIG}, TypeError, "must be a metric of skdisent"),
    ],
)
def test_names_and_metrics_are_checked(data, metrics, error, message):
    with pytest.raises(error, match=message):
        MetricSuite(metrics).fit(*data)


def test_weights_count_as_copies(data):
    mean, std, y = data
    weight = np.arange(200) % 3
    suite = MetricSuite({"rmig": RMIG(), "misjed": MISJED()})
    weighted = suite.fit(mean, std, y, sample_weight=weight).scores_
    rows = np.repeat(np.arange(200), weight)
    copied = suite.fit(mean[rows], std[rows], y[rows]).scores_
    assert weighted == pytest.approx(copied, abs=1e-12)


def test_score_of_other_data_uses_the_fitted_bins(data):
    mean, std, y = data
    suite = MetricSuite({"rmig": RMIG(), "info": Informativeness()})
    suite.fit(mean, std, y)
    assert suite.score() == suite.scores_
    other = suite.score(mean[:100], std[:100], y[:100])
    alone = suite.metrics_["rmig"].score(mean[:100], std[:100], y[:100])
    assert other["rmig"] == alone


def test_report_shows_each_factor_and_latent(data):
    report = MetricSuite(all_metrics()).fit(*data).report(digits=2)
    lines = report.splitlines()
    assert lines[0].split() == ["model", "value", "better", "is"]
    assert lines[2].split()[0] == "jemmig"
    assert lines[2].split()[2] == "lower"
    titles = [line.split() for line in lines if line.startswith(("factor", "latent"))]
    assert titles[0] == ["factor", "rmig", "jemmig"]
    assert titles[1][:2] == ["latent", "informativeness"]


def test_frame_is_tidy(data):
    pd = pytest.importorskip("pandas")
    mean, std, y = data
    y = pd.DataFrame(y, columns=["shape", "hue"])
    frame = MetricSuite({"rmig": RMIG(), "sepin": SEPIN(n_samples=50)})
    frame = frame.fit(mean, std, y).to_frame()
    assert list(frame.columns) == ["metric", "of", "name", "value"]
    factors = frame[frame["of"] == "factor"]
    assert factors["name"].tolist() == ["shape", "hue"]
    assert len(frame[frame["of"] == "latent"]) == 3


def test_nothing_is_printed(data, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisentanglementWarning)
        MetricSuite(all_metrics()).fit(*data)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_score_of_other_data_shares_estimates(data, monkeypatch):
    mean, std, y = data
    suite = MetricSuite(all_metrics()).fit(mean, std, y)
    alone = {
        name: metric.score(mean[::2], std[::2], y[::2])
        for name, metric in suite.metrics_.items()
    }
    prepared = []
    original = TablePlan.prepare
    monkeypatch.setattr(
        TablePlan, "prepare", lambda *a: prepared.append(a) or original(*a)
    )
    before = {name: dict(vars(metric)) for name, metric in suite.metrics_.items()}
    together = suite.score(mean[::2], std[::2], y[::2])
    assert len(prepared) == 1
    assert together == pytest.approx(alone, abs=1e-12)
    for name, metric in suite.metrics_.items():
        assert vars(metric).keys() == before[name].keys()
        assert all(value is before[name][key] for key, value in vars(metric).items())


def test_warnings_point_at_the_line_that_led_to_them(data):
    mean, std, _ = data
    with pytest.warns(DisentanglementWarning) as caught:
        SEPIN(n_samples=10).fit(mean)
    assert {one.filename for one in caught} == {__file__}
