"""How time grows with each size, and what memory a fit needs beside its input.

    python benchmarks/scaling.py [--repeats 3] [--n-jobs 2]

Writes the tables of the guide's page on speed: slopes of log time over log size, at
sizes of 1, 2 and 4 times the least, and peaks of allocated memory.
"""

import argparse
import tracemalloc
import warnings

import models
import numpy as np
from run import medians, write

from skdisent import (
    MISJED,
    RMIG,
    SEPIN,
    GaussianPosterior,
    Informativeness,
    UniformDiscretizer,
)
from skdisent.exceptions import DisentanglementWarning

SCALES = (1, 2, 4)


def sized(n_rows, n_latents):
    """Return the posterior and the factors of real models side by side."""
    parts = [
        models.tiled(*models.load(name), n_rows) for name in ("betavae_b4", "pca_10")
    ]
    order = np.arange(20).reshape(2, 10).T.ravel()[:n_latents]
    mean, std = (
        np.hstack([getattr(posterior, what) for posterior, _ in parts])[:, order]
        for what in ("mean", "std")
    )
    return GaussianPosterior(mean, std), parts[0][1]


def sepin(n_rows, n_draws, n_latents):
    posterior, _ = sized(n_rows, n_latents)
    metric = SEPIN(n_samples=n_draws, random_state=0)
    return lambda: metric.fit(posterior)


def rmig(n_rows, n_latents, n_factors, n_bins):
    posterior, y = sized(n_rows, n_latents)
    metric = RMIG(discretizer=UniformDiscretizer(n_bins))
    y = np.tile(y, (1, 4))[:, :n_factors]
    return lambda: metric.fit(posterior, y)


def misjed(n_rows, n_latents):
    posterior, _ = sized(n_rows, n_latents)
    return lambda: MISJED().fit(posterior)


SIZES = {
    "SEPIN": (sepin, {"n_rows": 6000, "n_draws": 2000, "n_latents": 5}),
    "RMIG": (
        rmig,
        {"n_rows": 20_000, "n_latents": 5, "n_factors": 5, "n_bins": 50},
    ),
    "MISJED": (misjed, {"n_rows": 50_000, "n_latents": 5}),
}


def slopes(repeats):
    rows = []
    for name, (make, sizes) in SIZES.items():
        for size, least in sizes.items():
            works = [make(**{**sizes, size: least * scale}) for scale in SCALES]
            seconds = medians(repeats, works)
            slope = np.polyfit(np.log(SCALES), np.log(seconds), 1)[0]
            took = (f"{one:.2f}" for one in seconds)
            rows.append([name, size, f"{least:,}", *took, f"{slope:.2f}"])
    title = ["metric", "size", "least", "1 x", "2 x", "4 x", "slope"]
    write("speed_slopes.csv", title, rows)


def wide(n_rows, n_latents):
    """Return real latents again and again, each time with its rows in another order."""
    posterior, y = models.load("betavae_b4")
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(posterior)) for _ in range(n_latents // 10)]
    mean = np.hstack([posterior.mean[order] for order in orders])
    std = np.hstack([posterior.std[order] for order in orders])
    return GaussianPosterior(mean[:n_rows], std[:n_rows]), y[:n_rows]


def memory(n_jobs):
    large, y = models.tiled(*models.load("betavae_b4"), models.FULL_GRID)
    many, _ = wide(6000, 200)
    classes = np.random.default_rng(0).integers(10_000, size=len(large))
    jobs = {"n_jobs": n_jobs}
    few, often = ({"n_samples": s, "random_state": 0, **jobs} for s in (500, 10_000))
    works = {
        "Informativeness, 92,160 rows": lambda: Informativeness(**jobs).fit(large),
        "RMIG, 92,160 rows": lambda: RMIG(**jobs).fit(large, y),
        "RMIG, 10,000 classes": lambda: RMIG(**jobs).fit(large, classes),
        "MISJED, 92,160 rows": lambda: MISJED(**jobs).fit(large),
        "SEPIN, 92,160 rows, 500 draws": lambda: SEPIN(**few).fit(large),
        "SEPIN, 6,000 rows, 10,000 draws": lambda: SEPIN(**often).fit(large[:6000]),
        "SEPIN, 200 latents, 500 draws": lambda: SEPIN(**few).fit(many),
        "Informativeness, 200 latents": lambda: Informativeness(**jobs).fit(many),
        "MISJED, 200 latents": lambda: MISJED(**jobs).fit(many),
    }
    rows = []
    for name, work in works.items():
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append([name, f"{peak / 1e6:.0f}"])
    write("speed_memory.csv", ["work", "peak above the input, MB"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DisentanglementWarning)
    slopes(options.repeats)
    memory(options.n_jobs)


if __name__ == "__main__":
    main()
