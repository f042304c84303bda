"""A suite of all eight metrics at the size of dSprites, its time and peak of memory.

    python benchmarks/full_size.py [--model betavae_b4] [--n-jobs 2]

737,280 rows of a real model, repeated with jitter, 10 latents, 5 factors, 10,000 draws.
"""

import argparse
import time
import warnings
from pathlib import Path

import models
from run import write

from skdisent import MetricSuite
from skdisent.exceptions import DisentanglementWarning

N_ROWS = 737_280
N_DRAWS = 10_000


def resident(key):
    """Return resident memory in MB: now, VmRSS, or at its peak, VmHWM."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024


def measure(name, n_jobs):
    """Return seconds of a fit, and MB that its peak lies above the input."""
    posterior, y = models.tiled(*models.load(name), N_ROWS)
    suite = MetricSuite(models.all_metrics(N_DRAWS, n_jobs))
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from now
    before = resident("VmRSS")
    start = time.perf_counter()
    suite.fit(posterior, y)
    return time.perf_counter() - start, resident("VmHWM") - before


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="betavae_b4", choices=models.NAMES)
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DisentanglementWarning)
    seconds, memory = measure(options.model, options.n_jobs)
    row = [options.model, f"{N_ROWS:,}", f"{N_DRAWS:,}"]
    title = ["model", "rows", "draws", "seconds", "peak above the input, MB"]
    write("speed_full.csv", title, [[*row, f"{seconds:.0f}", f"{memory:.0f}"]])


if __name__ == "__main__":
    main()
