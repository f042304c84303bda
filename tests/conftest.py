"""Data and helpers that several test modules share, as fixtures."""

import functools
import io
import lzma
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from skdisent import UniformDiscretizer

DATA = Path(__file__).parent / "data"


@functools.cache
def _load_reference(model):
    arrays = np.load(
        io.BytesIO(lzma.decompress((DATA / f"{model}.npz.xz").read_bytes()))
    )
    mean, std = _joined(arrays["z_mean"]), _joined(arrays["z_std"])
    return SimpleNamespace(
        mean=mean,
        # One row stands for all where the model has one std for every row.
        std=np.broadcast_to(std, mean.shape),
        y=arrays["y"].T.astype(np.int64),
        values={
            name: arrays[name].astype(np.float64) for name in arrays if "/" in name
        },
    )


def _joined(planes):
    """Return the float32 array whose four bytes are stored apart."""
    as_bytes = np.ascontiguousarray(np.moveaxis(planes, 0, -1))
    return as_bytes.view("<f4")[..., 0].T.copy()


@pytest.fixture(scope="session")
def load_reference():
    """Return posteriors of a real model and what other programs computed on them."""
    return _load_reference


@pytest.fixture
def paper_bins():
    """Return the grid of the paper."""
    return UniformDiscretizer(100, bin_range=(-4, 4))


def _generic(seed=0, n=60):
    """Return data without ties, nothing on an edge, every information positive."""
    rng = np.random.default_rng(seed)
    y = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 2, n)])
    mean = rng.normal(scale=0.5, size=(n, 3))
    mean[:, 0] += 1.1 * (y[:, 0] - 1.0)
    mean[:, 1] += 0.9 * (y[:, 1] - 0.5)
    return mean, rng.uniform(0.1, 0.6, size=(n, 3)), y


@pytest.fixture(scope="session")
def generic():
    return _generic


def _covariances(n, n_latents, seed=0, scale=0.3):
    """Return random covariance matrices with correlations, one a row."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, n_latents, n_latents)) / np.sqrt(n_latents)
    return scale**2 * (factor @ np.swapaxes(factor, 1, 2) + 0.3 * np.eye(n_latents))


@pytest.fixture(scope="session")
def covariances():
    return _covariances


def _whitened(n, covariance, seed=0):
    """Return Gaussian means whose sample covariance is exactly the one given."""
    points = np.random.default_rng(seed).normal(size=(n, len(covariance)))
    points -= points.mean(axis=0)
    own = np.linalg.cholesky(points.T @ points / n)
    return np.linalg.solve(own, points.T).T @ np.linalg.cholesky(covariance).T


@pytest.fixture(scope="session")
def whitened():
    return _whitened
