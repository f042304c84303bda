"""Sums over all latents but one, for latents that hardly vary over rows."""

import numpy as np
from numpy.polynomial import chebyshev

from skdisent._densities import HALF_LOG_2PI

# Numbers of nodes to try for the interpolation in a latent that hardly varies over
# rows, the ellipses around the nodes on which its error is bounded, the error of a row
# that is allowed; how far the log of a density over that of the middle Gaussian may
# change, as sums over nodes are rounded; and how large it may be, as what was clipped
# before must stay without effect.
NODE_COUNTS = (8, 12, 16)
ELLIPSES = np.array([4.0, 6.0, 8.0, 12.0, 16.0])
STEADY_ERROR = 1e-6
STEADY_BEND = 2.0
STEADY_RATIO = 30.0


class SteadyLatents:
    """Sums over all but one latent, for latents that hardly vary over rows.

    The density of all but latent i is that of all, which is there already, divided by
    q(z_i | x). For a collapsed latent that is nearly the same function of z_i in every
    row. Divided by that of a middle Gaussian it is so flat that an interpolating
    polynomial in z_i has it to a millionth, in either type of float: the sum over rows
    for all z_i follows from the sums at few nodes, a matrix product without
    exponentials.

    The error of n nodes on [-1, 1] for a function of at most M on the ellipse with foci
    -1 and 1 and half-axes of sum r is ``4 M r**(1 - n) / (r - 1)`` (Trefethen,
    Approximation Theory and Approximation Practice, theorem 8.2).

    Attributes
    ----------
    sets : ndarray of int of shape (n_steady,)
        The sets, of those wanted, that are had this way.
    latents : ndarray of int of shape (n_steady,)
        The latent that each of them lacks.
    n_nodes : int
        Number of nodes for each latent.
    """

    def __init__(self, rows, low, high):
        sets = rows.all_but_one
        latents = np.argmin(rows.members[sets], axis=1)
        self.center = low / 2 + high / 2
        # Of the center as it is rounded, so that no draw lies beyond.
        self.half = np.maximum(high - self.center, self.center - low)
        mean, std = rows.mean.mean(axis=1), np.exp(np.log(rows.std).mean(axis=1))
        self.half = np.where(self.half > 0, self.half, std)
        with np.errstate(over="ignore", invalid="ignore"):
            middle = self._polynomials(mean[:, None], std[:, None])
            difference = self._polynomials(rows.mean, rows.std) - middle
            errors = _interpolation_errors(*abs(difference[:2]).max(axis=2))[:, latents]
            bend = abs(difference[:2]).sum(axis=0).max(axis=1)[latents]
            ratio = abs(difference).sum(axis=0).max(axis=1)[latents]
        steady = (errors[-1] < STEADY_ERROR) & (bend < STEADY_BEND)
        steady &= ratio < STEADY_RATIO
        enough = (errors[:, steady] < STEADY_ERROR).all(axis=1)
        self.n_nodes = NODE_COUNTS[np.argmax(enough)]
        self.sets, self.latents = sets[steady], latents[steady]
        self.middle = middle[:, self.latents, 0]
        self._difference, self._factors = difference[:, self.latents], None
        self._nodes = chebyshev.chebpts1(self.n_nodes)

    def _polynomials(self, mean, std):
        """Return log-densities as coefficients of powers of z scaled to [-1, 1]."""
        half = self.half[:, None]
        offset = mean - self.center[:, None]
        quadratic = -0.5 / std / std
        linear = -2 * quadratic * offset
        constant = -0.5 * linear * offset - np.log(std) - HALF_LOG_2PI
        return np.stack([quadratic * half**2, linear * half, constant])

    def factors(self, dtype):
        """Return ones, and 1 / q(z_i | x) at the nodes over that of the middle.

        Of shape (n_rows, 1 + n_steady * n_nodes).
        """
        if self._factors is None or self._factors.dtype != dtype:
            _, n_steady, n_rows = self._difference.shape
            powers = -np.stack([self._nodes**2, self._nodes, np.ones(self.n_nodes)])
            factors = np.ones((n_rows, 1 + n_steady * self.n_nodes), dtype)
            exponents = self._difference.T.astype(dtype) @ powers.astype(dtype)
            np.exp(exponents.reshape(n_rows, -1), out=factors[:, 1:])
            self._factors = factors
        return self._factors

    def weights(self, z):
        """Return what makes sums for all z_i of those at the nodes.

        Parameters
        ----------
        z : ndarray of shape (n_draws, n_latents)
            The draws.

        Returns
        -------
        ndarray of shape (n_steady, n_nodes, n_draws)
        """
        x = ((z - self.center) / self.half)[:, self.latents].T
        terms = np.linalg.inv(chebyshev.chebvander(self._nodes, self.n_nodes - 1))
        basis = chebyshev.chebvander(x, self.n_nodes - 1) @ terms
        quadratic, linear, constant = self.middle[:, :, None]
        middle = (quadratic * x + linear) * x + constant
        return np.moveaxis(basis * np.exp(-middle)[..., None], 2, 1)


def _interpolation_errors(curved, sloped):
    """Return the errors of polynomials for e**(c x**2 + s x), relative to its least.

    Parameters
    ----------
    curved, sloped : ndarray of shape (n_latents,)
        Largest absolute c and s.

    Returns
    -------
    ndarray of shape (len(NODE_COUNTS), n_latents)
    """
    axis = (ELLIPSES + 1 / ELLIPSES)[:, None] / 2
    largest = np.exp(sloped * (1 + axis) + curved * (1 + axis**2))
    n_nodes = np.array(NODE_COUNTS)[:, None, None]
    shrink = 4 * ELLIPSES[:, None] ** (1.0 - n_nodes) / (ELLIPSES[:, None] - 1)
    return (largest * shrink).min(axis=1)
