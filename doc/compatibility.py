"""Try each tool of scikit-learn with the metrics, and write the table of the guide.

    python doc/compatibility.py              tries all, prints the results as JSON
    python doc/compatibility.py PYTHON ...   does so with each interpreter, and writes
                                             doc/guide/compatibility.csv

An interpreter is that of an environment where skdisent is installed, one for each
version of scikit-learn; `make compat` makes them.
"""

import csv
import json
import pickle
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
    validation_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdisent import RMIG, WSEPIN, GaussianPosterior, MetricSuite
from skdisent.datasets import make_sprites
from skdisent.encoders import FactorAnalysisEncoder

TABLE = Path(__file__).parent / "guide" / "compatibility.csv"

METRIC = RMIG()
UNSUPERVISED = WSEPIN(n_samples=50, random_state=0)
SCORINGS = {
    "a metric": METRIC,
    "a dict": {"rmig": METRIC, "wsepin": UNSUPERVISED},
    "MetricSuite": MetricSuite({"rmig": METRIC, "wsepin": UNSUPERVISED}),
}
ENCODER = FactorAnalysisEncoder(2, svd_method="lapack")
GRID = {"n_components": [1, 2]}
CV = KFold(3)

X, y = make_sprites(90, image_size=4, n_levels=(3, 2, 1, 4, 4), random_state=0)
X = X + 0.02 * np.random.default_rng(0).normal(size=X.shape)
WEIGHT = np.arange(len(X)) % 3


def finite(values):
    """Raise an error unless all values are numbers."""
    assert np.isfinite(np.asarray(values, dtype=float)).all(), values


def by_rmig(scoring):
    """Return the arguments that choose one of several metrics."""
    return {} if scoring is METRIC else {"refit": "rmig"}


def searched(search, X=X, y=y, **params):
    """Fit a search, and look at its scores."""
    search.fit(X, y, **params)
    scores = [v for k, v in search.cv_results_.items() if k.startswith("mean_test")]
    assert scores
    finite(scores)


def grid_search(scoring):
    searched(GridSearchCV(ENCODER, GRID, scoring=scoring, cv=CV, **by_rmig(scoring)))


def grid_search_two_jobs(scoring):
    options = {"cv": CV, "n_jobs": 2, **by_rmig(scoring)}
    searched(GridSearchCV(ENCODER, GRID, scoring=scoring, **options))


def randomized_search(scoring):
    options = {"n_iter": 2, "cv": CV, "random_state": 0, **by_rmig(scoring)}
    searched(RandomizedSearchCV(ENCODER, GRID, scoring=scoring, **options))


def halving_search(scoring):
    options = {"min_resources": 45, "factor": 2, "cv": CV, "random_state": 0}
    searched(HalvingGridSearchCV(ENCODER, GRID, scoring=scoring, **options))


def validate(scoring):
    found = cross_validate(ENCODER, X, y, scoring=scoring, cv=CV)
    finite([v for k, v in found.items() if k.startswith("test_")])


def score(scoring):
    finite(cross_val_score(ENCODER, X, y, scoring=scoring, cv=CV))


def learn(scoring):
    finite(learning_curve(ENCODER, X, y, scoring=scoring, cv=CV)[2])


def validation(scoring):
    options = {"param_name": "n_components", "param_range": [1, 2], "cv": CV}
    finite(validation_curve(ENCODER, X, y, scoring=scoring, **options)[1])


def permute(scoring):
    options = {"cv": CV, "n_permutations": 2, "random_state": 0}
    finite(permutation_test_score(ENCODER, X, y, scoring=scoring, **options)[0])


def without_y(scoring):
    if scoring is METRIC:
        scoring = UNSUPERVISED
    elif isinstance(scoring, dict):
        scoring = {"wsepin": UNSUPERVISED}
    else:
        scoring = MetricSuite({"wsepin": UNSUPERVISED})
    options = {"scoring": scoring, "cv": CV, "refit": False}
    searched(GridSearchCV(ENCODER, GRID, **options), y=None)


def nested(scoring):
    search = GridSearchCV(ENCODER, GRID, scoring=scoring, cv=2, **by_rmig(scoring))
    found = cross_validate(search, X, y, scoring=scoring, cv=CV)
    finite([v for k, v in found.items() if k.startswith("test_")])


class Weighted(FactorAnalysisEncoder):
    """Factor analysis whose fit takes weights, which it leaves unused."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X)


def weights(scoring):
    options = {"scoring": scoring, "cv": CV, "refit": False}
    searched(GridSearchCV(Weighted(), GRID, **options), sample_weight=WEIGHT)


def routed_weights(scoring):
    with config_context(enable_metadata_routing=True):
        if isinstance(scoring, dict):
            scoring = {
                name: clone(one).set_score_request(sample_weight=True)
                for name, one in scoring.items()
            }
        else:
            scoring = clone(scoring).set_score_request(sample_weight=True)
        options = {"scoring": scoring, "cv": CV, "refit": False}
        searched(GridSearchCV(ENCODER, GRID, **options), sample_weight=WEIGHT)


BY_SCORING = {
    "GridSearchCV": grid_search,
    "GridSearchCV(n_jobs=2)": grid_search_two_jobs,
    "RandomizedSearchCV": randomized_search,
    "HalvingGridSearchCV": halving_search,
    "cross_validate": validate,
    "cross_val_score": score,
    "learning_curve": learn,
    "validation_curve": validation,
    "permutation_test_score": permute,
    "search with y=None": without_y,
    "nested cross-validation": nested,
    "sample_weight": weights,
    "sample_weight by metadata routing": routed_weights,
}


def encode(X):
    mean = np.asarray(X)[:, :3]
    return GaussianPosterior(mean, np.full_like(mean, 0.1))


def last_step():
    finite(make_pipeline(StandardScaler(), ENCODER, RMIG()).fit(X, y).score(X, y))


def function_step():
    encoder = FunctionTransformer(encode)
    finite(make_pipeline(StandardScaler(), encoder, RMIG()).fit(X, y).score(X, y))


def frozen_step():
    frozen = FrozenEstimator(clone(ENCODER).fit(X))
    finite(cross_val_score(make_pipeline(frozen), X, y, scoring=METRIC, cv=CV))


def encoder_search():
    pipeline = Pipeline([("encoder", ENCODER)])
    encoders = [ENCODER, FunctionTransformer(encode)]
    searched(GridSearchCV(pipeline, {"encoder": encoders}, scoring=METRIC, cv=CV))


def memory():
    with tempfile.TemporaryDirectory() as folder:
        pipeline = make_pipeline(ENCODER, RMIG(), memory=folder)
        first = pipeline.fit(X, y).score(X, y)
        assert pipeline.fit(X, y).score(X, y) == first


def global_pandas():
    with config_context(transform_output="pandas"):
        last_step()


def pipeline_pandas():
    pipeline = make_pipeline(StandardScaler(), ENCODER, RMIG())
    pipeline.set_output(transform="pandas")
    finite(pipeline.fit(X, y).score(X, y))


def posterior_as_X():
    posterior = clone(ENCODER).fit_transform(X)
    finite(cross_val_score(RMIG(), posterior, y, cv=CV))
    train, test, _, _ = train_test_split(posterior, y, random_state=0)
    assert len(train) + len(test) == len(X)


def copies():
    scorer = pickle.loads(pickle.dumps(clone(METRIC)))
    finite(scorer(clone(ENCODER).fit(X), X, y))


def callbacks():
    from sklearn.callback import FitCallback

    class Recorder:
        ends = 0

        def setup(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            self.ends += 1

        def teardown(self, estimator, context): ...

    recorder = Recorder()
    assert isinstance(recorder, FitCallback)
    SCORINGS["MetricSuite"].set_callbacks(recorder).fit(encode(X), y)
    SCORINGS["MetricSuite"].set_callbacks()
    assert recorder.ends > 1


ALONE = {
    "metric as last step of a pipeline": last_step,
    "FunctionTransformer as encoder": function_step,
    "FrozenEstimator as encoder": frozen_step,
    "search over the encoder step": encoder_search,
    "Pipeline(memory=...)": memory,
    "pandas output set globally": global_pandas,
    "pandas output set on the pipeline": pipeline_pandas,
    "GaussianPosterior in the place of X": posterior_as_X,
    "clone and pickle": copies,
    "set_callbacks": callbacks,
}


def outcome(attempt, *args):
    """Return "yes", or "no" with the class of the error."""
    try:
        attempt(*args)
    except Exception as error:
        return f"no ({type(error).__name__})"
    return "yes"


def try_all():
    """Return the outcome of each tool by each kind of scoring."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            tool: {name: outcome(attempt, one) for name, one in SCORINGS.items()}
            for tool, attempt in BY_SCORING.items()
        }
        found |= {tool: {"": outcome(attempt)} for tool, attempt in ALONE.items()}
    return found


def write_table(results):
    """Write the table of the outcomes by version."""
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["tool", "scoring", *results])
        for tool, rows in next(iter(results.values())).items():
            for scoring in rows:
                outcomes = (found[tool][scoring] for found in results.values())
                writer.writerow([tool, scoring, *outcomes])


def minor_version():
    """Return the version of scikit-learn without its patch."""
    return ".".join(sklearn.__version__.split(".")[:2])


if __name__ == "__main__":
    if not sys.argv[1:]:
        print(json.dumps({minor_version(): try_all()}, indent=1))
    else:
        results = {}
        for python in sys.argv[1:]:
            command = [python, __file__]
            results |= json.loads(subprocess.check_output(command, text=True))
        write_table(results)
