"""Progress of long work, told to scikit-learn's callbacks."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
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

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

N_LATENTS = 3
TABLES = N_LATENTS  # a task a latent
PAIRS = N_LATENTS  # a task a latent, with all latents from it on
# Little work, so the least number of parts; 50 draws are too few for control variates.
DRAWS = 8
SEEDED = {"n_samples": 50, "random_state": 0}

METRICS = {
    "rmig": (RMIG(), TABLES),
    "jemmig": (JEMMIG(), TABLES),
    "informativeness": (Informativeness(), TABLES),
    "misjed": (MISJED(), TABLES + PAIRS),
    "sepin": (SEPIN(**SEEDED), DRAWS),
    "wsepin": (WSEPIN(**SEEDED), DRAWS),
    "indin": (INDIN(**SEEDED, normalize=True), DRAWS + TABLES),
    "windin": (WINDIN(**SEEDED), DRAWS),
    "quadrature": (
        Informativeness(method="quadrature"),
        None,  # as many parts as the integrals need
    ),
}
each_metric = pytest.mark.parametrize(
    ("metric", "n_tasks"), METRICS.values(), ids=METRICS
)


class Recorder:
    """A callback that keeps what it is told, tasks as their depth in the tree."""

    def __init__(self):
        self.told = []
        self.announced = None

    def setup(self, estimator, context):
        self.told.append("setup")
        self.announced = context.max_subtasks

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context):
        self.told.append(("end", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def count(self, what, name):
        return sum(one[:2] == (what, name) for one in self.told)


class Propagated(Recorder):
    """One that a pipeline hands on to its steps."""

    max_propagation_depth = None


@pytest.fixture
def callback():
    """Return Recorder where this scikit-learn has callbacks."""
    pytest.importorskip("sklearn.callback")
    return Recorder()


@pytest.fixture
def data(generic):
    return generic()


@pytest.fixture
def suite():
    return MetricSuite({name: metric for name, (metric, _) in METRICS.items()})


@each_metric
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_each_task_is_told_when_it_is_done(metric, n_tasks, n_jobs, data, callback):
    metric = clone(metric).set_params(n_jobs=n_jobs).set_callbacks(callback)
    metric.fit(*data)
    n_tasks = callback.announced if n_tasks is None else n_tasks
    assert callback.announced == n_tasks > 0
    parts = [
        (what, "part", task) for task in range(n_tasks) for what in ("begin", "end")
    ]
    assert callback.told == [
        "setup",
        ("begin", "fit", 0),
        *parts,
        ("end", "fit", 0),
        "teardown",
    ]


def test_a_suite_tells_of_each_shared_task_once(suite, data, callback):
    alone = Recorder()
    METRICS["quadrature"][0].set_callbacks(alone).fit(*data)
    METRICS["quadrature"][0].set_callbacks()
    suite.set_callbacks(callback).fit(*data)
    assert callback.announced == TABLES + PAIRS + DRAWS + alone.announced
    assert callback.count("end", "part") == callback.announced
    assert callback.count("end", "fit") == 1
    assert [callback.told[0], callback.told[-1]] == ["setup", "teardown"]


@each_metric
def test_callbacks_change_no_value(metric, n_tasks, data, callback):
    expected = clone(metric).fit(*data).value_
    assert clone(metric).set_callbacks(callback).fit(*data).value_ == expected


def test_score_tells_nothing(data, callback):
    metric = SEPIN(**SEEDED).set_callbacks(callback).fit(*data)
    callback.told.clear()
    metric.score()
    metric.score(data[0], data[1])
    assert callback.told == []


def test_a_failed_fit_is_torn_down(data, callback):
    mean, std, _ = data
    metric = MISJED().set_callbacks(callback)
    metric.fit(mean, std)
    callback.told.clear()
    with pytest.raises(ValueError, match="needs 2 latents"):
        metric.fit(mean[:, :1], std[:, :1])
    # Nothing had begun.
    assert callback.told == []

    rmig = RMIG().set_callbacks(callback)
    with pytest.raises(ValueError, match="one value"):
        rmig.fit(mean, std, np.zeros(len(mean), dtype=int))
    assert callback.told[-1] == "teardown"
    rmig.fit(*data)
    assert callback.told[-2:] == [("end", "fit", 0), "teardown"]


def test_a_failed_estimate_of_a_suite_is_torn_down(data, callback):
    class Interrupted(Recorder):
        def on_fit_task_end(self, estimator, context):
            super().on_fit_task_end(estimator, context)
            raise KeyboardInterrupt

    interrupted = Interrupted()
    suite = MetricSuite({"rmig": RMIG()}).set_callbacks(interrupted)
    with pytest.raises(KeyboardInterrupt):
        suite.fit(*data)
    assert interrupted.told[-1] == "teardown"
    suite.set_callbacks(callback).fit(*data)
    assert callback.count("end", "part") == TABLES


def test_a_pipeline_hands_its_callback_to_the_metric(data, callback):
    mean, std, y = data
    propagated = Propagated()
    pipeline = make_pipeline(FunctionTransformer(), SEPIN(**SEEDED))
    with warnings.catch_warnings():
        # FunctionTransformer takes no callbacks.
        warnings.filterwarnings("ignore", "The estimator FunctionTransformer")
        pipeline.set_callbacks(propagated).fit(GaussianPosterior(mean, std), y)
    assert propagated.count("end", "part") == DRAWS
    assert propagated.told[-1] == "teardown"


def test_nothing_is_printed_without_a_callback(suite, data, capfd):
    suite.fit(*data)
    for metric, _ in METRICS.values():
        clone(metric).set_params(n_jobs=2).fit(*data)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["sepin", "suite"])
def test_a_progress_bar_is_drawn(name, suite, data, capsys, callback):
    from sklearn.callback import ProgressBar

    watched = suite if name == "suite" else METRICS[name][0]
    watched = clone(watched).set_callbacks(ProgressBar())
    watched.fit(*data)
    drawn = capsys.readouterr().out
    assert f"{type(watched).__name__} - fit" in drawn
    assert "100%" in drawn
