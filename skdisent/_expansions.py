"""Exponents of Gaussian densities as polynomials of the draw, around a near origin.

The log-density of a row at a draw z, a sum of ``-(z - m)**2 / (2 * std**2) - log(std)``,
is multiplied out: quadratic, linear and constant coefficients of the row times the same
powers of the draw. The exponents of many rows at many draws are one matrix product then.
"""

import numpy as np
from numpy.polynomial import chebyshev

from skdisent._densities import HALF_LOG_2PI

# Distances in stds beyond this are as good as infinite, and squares of them add up
# without rounding.
FAR = 100.0

# Numbers of nodes to try for the interpolation in a latent that hardly varies over
# rows, the ellipses around the nodes on which its error is bounded, and the error of a
# row that is allowed.
NODE_COUNTS = (8, 12, 16)
ELLIPSES = np.array([4.0, 6.0, 8.0, 12.0, 16.0])
STEADY_ERROR = 1e-6


class DiagonalRows:
    """Some rows whose latents are independent given x.

    Parameters
    ----------
    posterior : GaussianPosterior
        The rows, with `std`.
    log_weight : ndarray of shape (n_rows,)
        Log-weights of the rows.
    members : ndarray of shape (n_wanted, n_latents)
        Which latents are in each wanted set, ones and zeros; all of them in the first.
    """

    def __init__(self, posterior, log_weight, members):
        self.mean, self.std = posterior.mean.T.copy(), posterior.std.T.copy()
        self.log_weight, self.members = log_weight, members
        self.log_std = np.log(self.std) + HALF_LOG_2PI
        self.least_std = self.std.min()
        with np.errstate(over="ignore"):  # no precision holds a std that small
            self.inverse_variance = 1 / self.std / self.std
        self._features = {}

    def features(self, dtype):
        """Return two arrays for features, (n_rows, 2 * n_latents + 2) each.

        Inverse variances and ones, which no origin changes, stand in the first. They are
        filled again for each origin, as fresh memory is slow.
        """
        if dtype not in self._features:
            n_latents, n_rows = self.mean.shape
            features = np.ones((n_rows, 2 * n_latents + 2), dtype)
            with np.errstate(over="ignore"):
                features[:, :n_latents] = self.inverse_variance.T
            self._features[dtype] = features, np.empty_like(features)
        return self._features[dtype]

    def around(self, origin, reach):
        """Return the expansions around an origin, for draws within reach of it."""
        return DiagonalExpansions(self, origin, reach)


class DiagonalExpansions:
    """The expansions of rows around one origin.

    Attributes
    ----------
    bound : ndarray of shape (n_wanted, n_rows)
        Log-densities, with weights, that no draw within reach exceeds.
    square : ndarray of shape (n_rows,)
        Half the largest sum of squared distances in units of std.
    """

    def __init__(self, rows, origin, reach):
        self.rows = rows
        self.offset = rows.mean - origin[:, None]
        farthest = np.abs(self.offset)
        nearest = farthest - reach[:, None]
        np.maximum(nearest, 0.0, out=nearest)
        farthest += reach[:, None]
        with np.errstate(over="ignore"):  # a distance beyond the floats is far
            farthest /= rows.std
            nearest /= rows.std
            self.square = np.einsum("ln,ln->n", farthest, farthest) / 2
        np.minimum(nearest, FAR, out=nearest)
        nearest *= nearest
        nearest *= -0.5
        nearest -= rows.log_std
        self.bound = rows.members @ nearest
        self.bound += rows.log_weight

    def expand(self, dtype):
        """Compute the coefficients of all rows in a type of float.

        They are right for rows whose `square` the type holds.
        """
        rows = self.rows
        self._features, self._chosen = rows.features(dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            linear = rows.inverse_variance * self.offset
            self._features[:, len(linear) : -2] = linear.T
            linear *= self.offset
            linear *= -0.5
            linear -= rows.log_std
            self.constant = rows.members @ linear
            self.constant += rows.log_weight

    def row_features(self, k, some):
        """Return the features of some rows for the k-th set, (n_some, n_features).

        They hold until the next call.
        """
        features = self._features
        if len(some) < len(features):
            features = self._chosen[: len(some)]
            np.take(self._features, some, axis=0, out=features, mode="clip")
        features[:, -2] = self.constant[k, some]
        return features

    def draw_features(self, k, z, own):
        """Return the features of draws for the k-th set, (n_features, n_draws).

        Products of those of the rows with them are exponents relative to `own`.
        """
        inside = self.rows.members[k, :, None]
        z = z.T * inside
        return np.vstack([-0.5 * z * z, z, np.ones_like(own), -own])


class SteadyLatents:
    """Sums over all but one latent, for latents that hardly vary over rows.

    The density of all but latent i is that of all, which is there already, divided by
    q(z_i | x). For a collapsed latent that is nearly the same function of z_i in every
    row. Divided by that of a middle Gaussian it is so flat that an interpolating
    polynomial in z_i has it to the last digit of float32: the sum over rows for all z_i
    follows from the sums at few nodes, a matrix product without exponentials.

    The error of n nodes on [-1, 1] for a function of at most M on the ellipse with foci
    -1 and 1 and half-axes of sum r is ``4 M r**(1 - n) / (r - 1)`` (Trefethen,
    Approximation Theory and Approximation Practice, theorem 8.2).

    Attributes
    ----------
    sets : ndarray of int of shape (n_steady,)
        The sets, of those wanted, that are had this way.
    """

    def __init__(self, rows, low, high):
        sets = np.flatnonzero(rows.members.sum(axis=1) == rows.members.shape[1] - 1)
        latents = np.argmin(rows.members[sets], axis=1)
        self.center, self.half = (low + high) / 2, (high - low) / 2
        self.half[self.half == 0] = 1.0
        mean, std = rows.mean.mean(axis=1), np.exp(np.log(rows.std).mean(axis=1))
        with np.errstate(over="ignore", invalid="ignore"):
            middle = self._polynomials(mean[:, None], std[:, None])
            difference = self._polynomials(rows.mean, rows.std) - middle
            errors = _interpolation_errors(*abs(difference[:2]).max(axis=2))[:, latents]
        steady = errors[-1] < STEADY_ERROR
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
