"""Times the library against NumPy, against other packages, and against the limit.

    python benchmarks/run.py [--repeats 5] [--n-jobs 2]

Medians of wall-clock seconds, all ways to one number in turns in one run. Writes the
tables of the guide's page on speed. The limit is what `limits.py` measures.
"""

import argparse
import csv
import datetime
import platform
import statistics
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import limits
import models
import numpy as np
import plain
from joblib import cpu_count
from sklearn.metrics import mutual_info_score
from sklearn.model_selection import cross_validate

from skdisent import RMIG, SEPIN, GaussianPosterior, MetricSuite
from skdisent._sklearn import one_blas_thread
from skdisent._tables import MeanPairPlan
from skdisent.exceptions import DisentanglementWarning

GUIDE = Path(__file__).parents[1] / "doc" / "guide"
N_DRAWS = 2_000
TABLES = ("informativeness", "rmig", "jemmig")

# Aims for the ratio to the limit, by the kind of work.
ASKED = {"draws": 2.0, "tables": 0.7, "pairs": 4.0}


def medians(repeats, functions):
    """Return the median seconds of each function, run in turns."""
    times = [[] for _ in functions]
    for _ in range(repeats):
        for taken, function in zip(times, functions, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def write(name, title, rows):
    """Write a table of the guide, and print it."""
    with open(GUIDE / name, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([title, *rows])
    for row in [title, *rows]:
        print("  ".join(f"{one:>22}" for one in row), flush=True)
    print()


def works(n_jobs):
    """Yield what is done, its kind, and functions: NumPy, the limit, the library."""
    for name in models.NAMES:
        posterior, _ = models.load(name)
        yield _draws(f"draws, {name}", posterior, plain.draws, N_DRAWS, n_jobs)
    posterior, _ = models.load("betavae_b4")
    yield _draws("10,000 draws, betavae_b4", posterior, plain.draws, 10_000, n_jobs)
    for what in ("one covariance", "a covariance a row"):
        full = rotated(posterior, shared=what == "one covariance")
        yield _draws(f"draws, {what}", full, plain.full_draws, N_DRAWS, n_jobs)
    for name in models.NAMES:
        large, y = models.tiled(*models.load(name), models.FULL_GRID)
        suite = {
            one: metric
            for one, metric in models.all_metrics(N_DRAWS, n_jobs).items()
            if one in TABLES
        }
        limit = limits.of_tables(large, models.inner_edges(large))
        yield (
            f"tables, {name}",
            "tables",
            lambda large=large, y=y: plain.tables(large, y),
            lambda limit=limit: limit.run(n_jobs),
            lambda large=large, y=y, suite=suite: MetricSuite(suite).fit(large, y),
        )
    large, _ = models.tiled(*models.load("betavae_b4"), models.FULL_GRID)
    edges = models.inner_edges(large)
    cells = models.cells(large, edges)
    limit = limits.of_pairs(cells)
    sample = models.sample_of(large)
    plan = MeanPairPlan(tuple(map(tuple, edges)))
    yield (
        "pairs of means",
        "pairs",
        lambda: plain.pairs(cells),
        lambda: limit.run(n_jobs),
        lambda: plan.estimate(sample, n_jobs),
    )


def _draws(what, posterior, by_numpy, n_draws, n_jobs):
    n_rows, n_latents = posterior.shape
    limit = limits.of_draws(n_rows, n_draws, n_latents)
    metric = SEPIN(n_samples=n_draws, random_state=0, n_jobs=n_jobs)
    return (
        what,
        "draws",
        lambda: by_numpy(posterior, n_draws),
        lambda: limit.run(n_jobs),
        lambda: metric.fit(posterior),
    )


def rotated(posterior, shared):
    """Return the posterior with noise that latents share, one or many covariances."""
    n_latents = posterior.shape[1]
    rng = np.random.default_rng(0)
    mix = np.eye(n_latents) + 0.3 * rng.standard_normal((n_latents, n_latents))
    std = np.median(posterior.std, axis=0) if shared else posterior.std
    covariance = std[..., :, None] * (mix @ mix.T) * std[..., None, :]
    return GaussianPosterior(posterior.mean, covariance=covariance)


def against_limits(repeats, n_jobs):
    rows = []
    for what, kind, *functions in works(n_jobs):
        by_numpy, limit, own = medians(repeats, functions)
        rows.append(
            [
                what,
                *(f"{one:.3f}" for one in (by_numpy, limit, own)),
                f"{by_numpy / own:.1f}",
                f"{own / limit:.1f}",
                f"{ASKED[kind]:.1f}",
            ]
        )
    title = ["work", "NumPy", "limit", "skdisent", "NumPy / skdisent"]
    write("speed_works.csv", [*title, "skdisent / limit", "asked"], rows)


def others(means, bins, y):
    """Return the mutual informations of 50 pairs by other packages, as functions."""
    pairs = [(i, k) for i in range(len(bins)) for k in range(y.shape[1])]

    def each(function, columns):
        return lambda: np.array([function(columns[i], y[:, k]) for i, k in pairs])

    found = {"scikit-learn": each(lambda a, b: mutual_info_score(b, a), bins)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own syntax
            from pyitlib.discrete_random_variable import information_mutual

        found["pyitlib"] = each(lambda a, b: information_mutual(a, b, base=np.e), bins)
    except ImportError:
        print("pyitlib is not installed: pip install 'skdisent[bench]'")
    try:
        from ennemi import estimate_mi

        found["ennemi"] = each(
            lambda a, b: estimate_mi(b, a, discrete_y=True).item(), means.T
        )
    except ImportError:
        print("ennemi is not installed: pip install 'skdisent[bench]'")
    return found


def against_others(repeats, n_jobs):
    """Compare with packages that give I(zbar_i, y_k), as of a point encoder."""
    posterior, y = models.load("betavae_b4")
    metric = RMIG(n_jobs=n_jobs).fit(posterior.mean, y=y)
    edges = [one[1:-1] for one in metric.discretizer_.bin_edges_]
    bins = models.cells(posterior, edges)
    names, functions = zip(*others(posterior.mean, bins, y).items(), strict=True)
    own, *seconds = medians(
        repeats, [lambda: metric.fit(posterior.mean, y=y), *functions]
    )
    rows = [["skdisent", f"{own:.3f}", "1.0", "0"]]
    for name, function, taken in zip(names, functions, seconds, strict=True):
        apart = abs(function().reshape(metric.mutual_info_.shape) - metric.mutual_info_)
        rows.append([name, f"{taken:.3f}", f"{taken / own:.1f}", f"{apart.max():.1g}"])
    write(
        "speed_others.csv", ["package", "seconds", "ratio", "largest difference"], rows
    )


def of_threads(repeats):
    """Compare what two threads gain the library and the bare operations."""
    posterior, y = models.load("betavae_b4")
    large, y = models.tiled(posterior, y, models.FULL_GRID)
    edges = models.inner_edges(large)
    operations = {
        "float32 exp": limits.of_draws(6000, 10_000, 10),
        "ndtr": limits.of_tables(large, edges),
    }
    metrics = {
        "SEPIN, 10,000 draws": lambda n: SEPIN(
            n_samples=10_000, random_state=0, n_jobs=n
        ).fit(posterior),
        "RMIG, 92,160 rows": lambda n: RMIG(n_jobs=n).fit(large, y),
    }
    works = {name: limit.run for name, limit in operations.items()} | metrics
    rows = []
    for name, work in works.items():
        one, two = medians(repeats, [lambda w=work: w(1), lambda w=work: w(2)])
        rows.append([name, f"{one:.3f}", f"{two:.3f}", f"{one / two:.2f}"])
    write("speed_threads.csv", ["work", "1 thread", "2 threads", "gain"], rows)


def in_searches(repeats):
    """Compare metrics with and without `n_jobs` in the workers of a search."""
    posterior, y = models.load("betavae_b4")
    rows = []
    for name in ("sepin", "rmig"):

        def search(n_jobs, name=name):
            metric = models.all_metrics(N_DRAWS, n_jobs)[name]
            cross_validate(metric, posterior, y, cv=4, n_jobs=2, error_score="raise")

        alone, nested = medians(
            repeats, [lambda s=search: s(None), lambda s=search: s(2)]
        )
        rows.append([name, f"{alone:.3f}", f"{nested:.3f}", f"{nested / alone:.2f}"])
    write("speed_search.csv", ["metric", "default", "n_jobs=2", "ratio"], rows)


def machine():
    """Write what was measured on."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":")[1].strip()
            break
    found = [
        ["measured on", datetime.date.today().isoformat()],
        ["processor", f"{model}, {cpu_count()} cores"],
        ["Python", platform.python_version()],
    ]
    for name in ("numpy", "scipy", "scikit-learn", "joblib", "pyitlib", "ennemi"):
        try:
            found.append([name, version(name)])
        except PackageNotFoundError:
            continue
    write("speed_machine.csv", ["what", "which"], found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DisentanglementWarning)
    machine()
    with one_blas_thread():
        against_limits(options.repeats, options.n_jobs)
        against_others(options.repeats, options.n_jobs)
        of_threads(options.repeats)
        in_searches(options.repeats)


if __name__ == "__main__":
    main()
