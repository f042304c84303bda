"""Jobs change nothing but the time, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal, assert_equal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skdisent import (
    INDIN,
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    WINDIN,
    WSEPIN,
    Informativeness,
    MetricSuite,
)
from skdisent.datasets import make_sprites
from skdisent.encoders import FactorAnalysisEncoder

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

# Draws enough for control variates, so that their quadrature is a task too.
SEEDED = {"n_samples": 400, "random_state": 0}
METRICS = {
    "rmig": RMIG(),
    "rmig_quadrature": RMIG(method="quadrature"),
    "jemmig": JEMMIG(),
    "misjed": MISJED(),
    "informativeness": Informativeness(),
    "sepin": SEPIN(**SEEDED),
    "wsepin": WSEPIN(**SEEDED),
    "indin": INDIN(**SEEDED, normalize=True),
    "windin": WINDIN(**SEEDED),
}
BACKENDS = ["loky", "threading", "multiprocessing"]


@pytest.fixture
def data(generic):
    return generic()


@pytest.fixture(scope="module")
def sprites():
    X, y = make_sprites(150, image_size=4, n_levels=(3, 2, 2, 4, 4), random_state=0)
    return X + 0.02 * np.random.default_rng(0).normal(size=X.shape), y


@pytest.fixture(scope="module")
def search():
    """Return five encoders by seven metrics by 5 folds."""
    encoders = [
        PCA(3, svd_solver="full"),
        FactorAnalysisEncoder(2, svd_method="lapack"),
        FactorAnalysisEncoder(3, svd_method="lapack"),
        FactorAnalysisEncoder(3, svd_method="lapack", rotation="varimax"),
        FactorAnalysisEncoder(3, svd_method="lapack", rotation="quartimax"),
    ]
    seven = {
        name: clone(METRICS[name])
        for name in METRICS
        if name not in ("rmig_quadrature", "windin")
    }
    return GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("encoder", "passthrough")]),
        {"encoder": encoders},
        scoring=MetricSuite(seven),
        refit=False,
        cv=KFold(5),
    )


def attributes_of(metric):
    """Return the fitted attributes that are numbers."""
    return {
        name: value
        for name, value in vars(metric).items()
        if name.endswith("_") and isinstance(value, (float, int, np.ndarray))
    }


@pytest.fixture
def assert_same_fits(data):
    """Return a check of all metrics, alone and in a suite, under a parallel_config."""
    mean, std, y = data
    suite = MetricSuite(METRICS)
    expected = {name: clone(one).fit(*data) for name, one in METRICS.items()}
    expected_suite = clone(suite).fit(*data)

    def check(**config):
        with parallel_config(**config):
            for name, metric in METRICS.items():
                found = clone(metric).set_params(n_jobs=2).fit(*data)
                assert_equal(attributes_of(found), attributes_of(expected[name]))
                assert found.score(mean[:40], std[:40], y[:40]) == expected[name].score(
                    mean[:40], std[:40], y[:40]
                )
            found = clone(suite).set_params(rmig__n_jobs=2, sepin__n_jobs=2).fit(*data)
            assert found.scores_ == expected_suite.scores_

    return check


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_agree(backend, assert_same_fits):
    assert_same_fits(backend=backend, n_jobs=2)


def test_threads_without_a_config(data):
    for metric in METRICS.values():
        two = clone(metric).set_params(n_jobs=2).fit(*data)
        assert_equal(attributes_of(two), attributes_of(clone(metric).fit(*data)))


def results_of(search):
    return {
        key: value
        for key, value in search.cv_results_.items()
        if "test_" in key and "time" not in key
    }


def test_two_jobs_search_as_one(search, sprites):
    one = results_of(clone(search).set_params(n_jobs=1).fit(*sprites))
    two = results_of(clone(search).set_params(n_jobs=2).fit(*sprites))
    assert len(one) == 7 * (5 + 3)  # splits, mean, std and rank
    for key, values in one.items():
        assert np.isfinite(values).all(), key
        assert_array_equal(two[key], values, err_msg=key)


# Dask


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


def test_dask_agrees(cluster, assert_same_fits, search, sprites):
    assert_same_fits(backend="dask")
    expected = results_of(clone(search).fit(*sprites))
    with parallel_config(backend="dask"):
        found = results_of(clone(search).fit(*sprites))
    assert_equal(found, expected)


# An interrupt

LONG_FIT = """
import signal, sys
# A shell that runs the tests in the background has interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from joblib import parallel_config
from skdisent import SEPIN

rng = np.random.default_rng(0)
mean, std = rng.normal(size=(20_000, 4)), rng.uniform(0.1, 0.3, size=(20_000, 4))
try:
    with parallel_config(backend=sys.argv[1], n_jobs=2):
        print("started", flush=True)
        SEPIN(n_samples=200_000, n_jobs=2, random_state=0).fit(mean, std)
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()
"""


def processes():
    """Return (parent, command) of each process that is not dead, by its id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:  # it has ended meanwhile
            continue
        if stat[0] != "Z":
            found[int(folder.name)] = int(stat[1]), command
    return found


def descendants(pid):
    """Return the commands of all processes below one, by id."""
    alive = processes()
    below = {pid}
    for _ in alive:
        below |= {one for one, (parent, _) in alive.items() if parent in below}
    return {one: alive[one][1] for one in below - {pid} if one in alive}


def workers(pid):
    """Return the descendants that do work.

    The resource trackers of joblib and Python live as long as the process they serve.
    """
    return {
        one: command
        for one, command in descendants(pid).items()
        if "resource_tracker" not in command
    }


def wait_until(condition, seconds):
    """Return whether the condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def is_busy(process, backend):
    if backend == "threading":
        return len(os.listdir(f"/proc/{process.pid}/task")) > 2
    return len(workers(process.pid)) >= 2


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupt_leaves_no_process_behind(backend):
    with subprocess.Popen(
        [sys.executable, "-c", LONG_FIT, backend],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    ) as process:
        try:
            assert process.stdout.readline() == "started\n"
            assert wait_until(lambda: is_busy(process, backend), 60)
            time.sleep(0.5)
            started = {process.pid, *descendants(process.pid)}
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            # In a session that goes on, as a notebook does.
            assert wait_until(lambda: not workers(process.pid), 5)
            process.stdin.close()
            # And when it ends.
            process.wait(30)
            assert wait_until(lambda: not started & processes().keys(), 5)
        finally:
            process.kill()
