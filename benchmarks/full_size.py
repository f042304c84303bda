"""A suite of all eight metrics at the size of dSprites, its time and peak of memory.

    python benchmarks/full_size.py [--model betavae_b4] [--n-jobs 2]

737,280 rows of a real model, repeated with jitter, 10 latents, 5 factors, 10,000 draws.
"""

import argparse
import resource
import time
import warnings

import models

from skdisent import MetricSuite
from skdisent.exceptions import DisentanglementWarning

N_ROWS = 737_280
N_DRAWS = 10_000


def peak_of_process():
    """Return the peak of resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name, n_jobs):
    """Return seconds of a fit, and MB that its peak lies above the input."""
    posterior, y = models.tiled(*models.load(name), N_ROWS)
    suite = MetricSuite(models.all_metrics(N_DRAWS, n_jobs))
    before = peak_of_process()
    start = time.perf_counter()
    suite.fit(posterior, y)
    return time.perf_counter() - start, peak_of_process() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="betavae_b4", choices=models.NAMES)
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DisentanglementWarning)
    seconds, memory = measure(options.model, options.n_jobs)
    print(
        f"{options.model}: {N_ROWS:,} rows, {N_DRAWS:,} draws, eight metrics: "
        f"{seconds:.0f} s, {memory:.0f} MB above the input"
    )


if __name__ == "__main__":
    main()
