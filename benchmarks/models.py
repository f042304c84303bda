"""Real posteriors to measure on: those that the tests read."""

import io
import lzma
from pathlib import Path

import numpy as np

from skdisent import GaussianPosterior

DATA = Path(__file__).parents[1] / "tests" / "data"
NAMES = ["betavae_b4", "betavae_b16", "pca_10", "fa_8"]


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
