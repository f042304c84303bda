"""The machine's limit for each kind of work: its elementary operation alone.

    python benchmarks/limits.py [--threads 2]

prints how many operations each work needs, and how long they alone take. `run.py`
measures the same in turns with the library.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter

import models
import numpy as np
from scipy.special import ndtr

from skdisent._sklearn import one_blas_thread

# Values at a time: they stay in a core's cache.
CACHED = 1 << 16


def in_threads(n_threads, function, blocks, n_calls):
    """Call a function n_calls times, each thread with blocks of its own, in turns."""

    def work(thread):
        own = blocks[thread]
        for call in range(thread, n_calls, n_threads):
            function(*own[call % len(own)])

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, range(n_threads)))


class Limit:
    """One ufunc over arguments in cache, as often as a work needs.

    Parameters
    ----------
    name : str
        What is counted.
    n_operations : int
        How many a work needs.
    function : ufunc
        The operation.
    arguments : list of ndarray
        Blocks of arguments that fit into cache, spread as in the work.
    """

    def __init__(self, name, n_operations, function, arguments):
        self.name, self.n_operations, self.function = name, n_operations, function
        self.arguments = arguments
        size = np.mean([one.size for one in arguments])
        self.n_calls = max(1, round(n_operations / size))

    def run(self, n_threads):
        """Do all operations."""
        blocks = [
            [(one, np.empty_like(one)) for one in self.arguments]
            for _ in range(n_threads)
        ]
        in_threads(n_threads, self.function, blocks, self.n_calls)

    def report(self, n_threads, repeats=5):
        """Print the count, and the median of some runs."""
        seconds = []
        for _ in range(repeats):
            start = perf_counter()
            self.run(n_threads)
            seconds.append(perf_counter() - start)
        each = median(seconds) * n_threads / self.n_operations
        print(
            f"{self.name:44} {self.n_operations:>15,} operations   "
            f"{median(seconds):.3f} s on {n_threads} threads   {1e9 * each:.2f} ns each"
        )


def of_draws(n_rows, n_draws, n_latents):
    """Return S x N x (L + 1) exponentials in float32."""
    exponents = np.random.default_rng(0).uniform(-40, 0, CACHED).astype(np.float32)
    n_operations = n_draws * n_rows * (n_latents + 1)
    name = f"draws, N = {n_rows:,}, S = {n_draws:,}: float32 exp"
    return Limit(name, n_operations, np.exp, [exponents])


def of_tables(posterior, edges):
    """Return N x L x (B - 1) normal distribution functions, spread as in the data."""
    rows = slice(0, None, max(1, len(posterior) // 500))
    mean, std = posterior.mean[rows], posterior.std[rows]
    arguments = [
        (inner - mean[:, [latent]]) / std[:, [latent]]
        for latent, inner in enumerate(edges)
    ]
    n_operations = len(posterior) * sum(len(inner) for inner in edges)
    return Limit(f"tables, N = {len(posterior):,}: ndtr", n_operations, ndtr, arguments)


def of_pairs(cells):
    """Return one `np.bincount` a pair of latents, whose cells do not fit into cache."""
    n_latents, n_rows = cells.shape
    first, second = np.triu_indices(n_latents, 1)
    pairs = [
        cells[i] * (cells.max() + 1) + cells[j]
        for i, j in zip(first, second, strict=True)
    ]
    n_operations = len(pairs) * n_rows
    return Limit(f"pairs, N = {n_rows:,}: bincount", n_operations, _count, pairs)


def _count(cells, _):
    np.bincount(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    n_threads = parser.parse_args().threads
    posterior, _ = models.tiled(*models.load("betavae_b4"), models.FULL_GRID)
    edges = models.inner_edges(posterior)
    with one_blas_thread():
        of_draws(6000, 2000, 10).report(n_threads)
        of_tables(posterior, edges).report(n_threads)
        of_pairs(models.cells(posterior, edges)).report(n_threads)


if __name__ == "__main__":
    main()
