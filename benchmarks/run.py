"""Times the library against the formulas written straight in NumPy, in one run.

    python benchmarks/run.py [--repeats 3] [--n-jobs 2]

Prints medians of wall-clock seconds, ratios, and the peak of memory above the input.
"""

import argparse
import statistics
import time
import tracemalloc
import warnings

import models
import numpy as np
from scipy.special import entr, ndtr

from skdisent import (
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    GaussianPosterior,
    Informativeness,
)
from skdisent.exceptions import DisentanglementWarning

FULL_GRID = 92_160


def tiled(posterior, y, n_rows):
    """Return n_rows rows of a real model, repeated with jitter."""
    rng = np.random.default_rng(0)
    rows = np.arange(n_rows) % len(posterior)
    jitter = 0.1 * rng.standard_normal((n_rows, posterior.shape[1]))
    mean = posterior.mean[rows] + jitter * posterior.std[rows]
    return GaussianPosterior(mean, posterior.std[rows]), y[rows]


def plain_tables(posterior, y):
    """Return I(x, z_i) and I(z_i, y_k) as a careful user would write them."""
    informativeness, shared = [], []
    one_hot = [np.eye(column.max() + 1)[column] for column in y.T]
    for mean, std in zip(posterior.mean.T, posterior.std.T, strict=True):
        reach = 4 * np.sqrt(np.var(mean) + np.mean(std**2))
        edges = np.linspace(mean.mean() - reach, mean.mean() + reach, 102)
        edges[[0, -1]] = -np.inf, np.inf
        masses = np.diff(ndtr((edges - mean[:, None]) / std[:, None]), axis=1)
        marginal = masses.mean(axis=0)
        informativeness.append(entr(marginal).sum() - entr(masses).sum(axis=1).mean())
        for classes in one_hot:
            joint = classes.T @ masses / len(mean)
            entropies = entr(marginal).sum() + entr(joint.sum(axis=1)).sum()
            shared.append(entropies - entr(joint).sum())
    return np.array(informativeness), np.array(shared)


def plain_draws(posterior, n_draws):
    """Return SEPIN of each latent by the formula, in float64, in blocks of draws."""
    rng = np.random.default_rng(0)
    mean, std = posterior.mean, posterior.std
    rows = rng.integers(len(mean), size=n_draws)
    z = mean[rows] + std[rows] * rng.standard_normal((n_draws, mean.shape[1]))
    constant = np.log(std) + 0.5 * np.log(2 * np.pi)
    total = np.zeros(mean.shape[1])
    for block in np.array_split(np.arange(n_draws), n_draws // 20):
        terms = -0.5 * ((z[block, None] - mean) / std) ** 2 - constant
        everyone = terms.sum(axis=2)
        at = np.arange(len(block))
        own = terms[at, rows[block]]
        for latent in range(mean.shape[1]):
            rest = everyone - terms[:, :, latent]
            total[latent] += np.sum(
                own[:, latent] - log_mean_exp(everyone) + log_mean_exp(rest)
            )
    return total / n_draws


def log_mean_exp(values):
    largest = values.max(axis=1, keepdims=True)
    return np.log(np.exp(values - largest).mean(axis=1)) + largest[:, 0]


def medians(repeats, *functions):
    """Return the median seconds of each function, run in turns."""
    times = [[] for _ in functions]
    for _ in range(repeats):
        for taken, function in zip(times, functions, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def peak_memory(function):
    """Return the peak of allocated memory above what stands before, in MB."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def tables(n_jobs, repeats):
    posterior, y = tiled(*models.load("betavae_b4"), FULL_GRID)
    metrics = [
        Informativeness(n_jobs=n_jobs),
        MISJED(n_jobs=n_jobs),
        RMIG(n_jobs=n_jobs),
        JEMMIG(n_jobs=n_jobs),
    ]
    print(f"tables: {FULL_GRID} rows, {posterior.shape[1]} latents, 5 factors")
    seconds = medians(
        repeats,
        lambda: plain_tables(posterior, y),
        *(lambda metric=metric: metric.fit(posterior, y) for metric in metrics),
    )
    print(f"  NumPy, informativeness and I(z, y)   {seconds[0]:8.2f} s")
    for metric, own in zip(metrics, seconds[1:], strict=True):
        memory = peak_memory(lambda metric=metric: metric.fit(posterior, y))
        name = type(metric).__name__
        print(
            f"  {name:36} {own:8.2f} s   NumPy / it {seconds[0] / own:5.2f}   "
            f"peak {memory:4.0f} MB"
        )


def draws(n_jobs, repeats):
    for name in models.NAMES:
        posterior, _ = models.load(name)
        metric = SEPIN(n_samples=2000, random_state=0, n_jobs=n_jobs)
        seconds = medians(
            repeats,
            lambda posterior=posterior: plain_draws(posterior, 2000),
            lambda posterior=posterior, metric=metric: metric.fit(posterior),
        )
        print(
            f"  {name:12} NumPy {seconds[0]:6.2f} s, 1 thread   SEPIN "
            f"{seconds[1]:6.2f} s   ratio {seconds[0] / seconds[1]:5.2f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DisentanglementWarning)
    tables(options.n_jobs, options.repeats)
    print("draws: 6000 rows, 2000 draws, 8 or 10 latents")
    draws(options.n_jobs, options.repeats)


if __name__ == "__main__":
    main()
