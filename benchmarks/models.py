"""Real posteriors to measure on, those that the tests read, and what is fitted."""

import io
import lzma
from pathlib import Path

import numpy as np

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
)
from skdisent._reading import Sample

DATA = Path(__file__).parents[1] / "tests" / "data"
NAMES = ["betavae_b4", "betavae_b16", "pca_10", "fa_8"]

# Rows of the whole grid of sprites.
FULL_GRID = 92_160


def load(name):
    """Return the posterior and the factors of a model."""
    packed = (DATA / f"{name}.npz.xz").read_bytes()
    arrays = np.load(io.BytesIO(lzma.decompress(packed)))
    mean, std = (
        # The four bytes of each float are stored apart.
        np.ascontiguousarray(np.moveaxis(arrays[key], 0, -1)).view("<f4")[..., 0].T
        for key in ("z_mean", "z_std")
    )
    std = np.broadcast_to(std, mean.shape)
    posterior = GaussianPosterior(mean.astype(np.float64), std.astype(np.float64))
    return posterior, arrays["y"].T.astype(np.int64)


def tiled(posterior, y, n_rows):
    """Return n_rows rows of a real model, repeated with jitter."""
    rng = np.random.default_rng(0)
    rows = np.arange(n_rows) % len(posterior)
    jitter = 0.1 * rng.standard_normal((n_rows, posterior.shape[1]))
    mean = posterior.mean[rows] + jitter * posterior.std[rows]
    return GaussianPosterior(mean, posterior.std[rows]), y[rows]


def sample_of(posterior):
    """Return the posterior as a sample of equal weights, without factors."""
    n = len(posterior)
    return Sample(posterior, np.full(n, 1 / n), None, np.arange(n))


def all_metrics(n_draws, n_jobs=None):
    """Return the eight metrics by name, those of draws with the same seed."""
    jobs = {"n_jobs": n_jobs}
    draws = {"n_samples": n_draws, "random_state": 0, **jobs}
    return {
        "informativeness": Informativeness(**jobs),
        "rmig": RMIG(**jobs),
        "jemmig": JEMMIG(**jobs),
        "misjed": MISJED(**jobs),
        "sepin": SEPIN(**draws),
        "wsepin": WSEPIN(**draws),
        "indin": INDIN(**draws),
        "windin": WINDIN(**draws),
    }


def inner_edges(posterior):
    """Return the default edges between the bins of each latent."""
    edges = Informativeness().fit(posterior).discretizer_.bin_edges_
    return [one[1:-1] for one in edges]


def cells(posterior, edges):
    """Return the bins of the means, (n_latents, n_samples)."""
    columns = zip(posterior.mean.T, edges, strict=True)
    return np.array([np.searchsorted(inner, mean, "right") for mean, inner in columns])
