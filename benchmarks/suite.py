"""What a suite of all eight metrics costs, beside the estimates that it needs.

    python benchmarks/suite.py            medians of 5 runs, a minute or two
    python benchmarks/suite.py --runs 9

The eight classes need three estimates: tables, pairs of means, and draws. A suite
computes each once, so it should cost what the dearest single metric of each estimate
costs. Writes processor seconds and ratios into the guide.

MISJED, the only user of the pairs, needs tables too, which counts them twice in the
suite's favour. The last column takes the cost of Informativeness off it.
"""

import argparse
import statistics
import time
import warnings

import models
from run import write

from skdisent import MetricSuite
from skdisent.exceptions import DisentanglementWarning

METRICS = models.all_metrics(2_000)
USERS = {
    "tables": ["informativeness", "rmig", "jemmig"],
    "mean pairs": ["misjed"],
    "draws": ["sepin", "wsepin", "indin", "windin"],
}


def seconds(estimator, posterior, y):
    start = time.process_time()
    estimator.fit(posterior, y=y)
    return time.process_time() - start


def measure(posterior, y, n_runs):
    """Return the median seconds of each metric and of the suite, runs interleaved."""
    tried = {**METRICS, "suite": MetricSuite(METRICS)}
    times = {name: [] for name in tried}
    for _ in range(n_runs):
        for name, estimator in tried.items():
            times[name].append(seconds(estimator, posterior, y))
    return {name: statistics.median(one) for name, one in times.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    n_runs = parser.parse_args().runs
    warnings.simplefilter("ignore", DisentanglementWarning)
    rows = []
    for model in models.NAMES:
        posterior, y = models.load(model)
        took = measure(posterior, y, n_runs)
        dearest = [max(took[name] for name in users) for users in USERS.values()]
        ratio = took["suite"] / sum(dearest)
        strict = took["suite"] / (sum(dearest) - took["informativeness"])
        seconds = (f"{one:.3f}" for one in [*dearest, took["suite"]])
        rows.append([model, *seconds, f"{ratio:.2f}", f"{strict:.2f}"])
    write("speed_suite.csv", ["model", *USERS, "suite", "ratio", "strict"], rows)


if __name__ == "__main__":
    main()
