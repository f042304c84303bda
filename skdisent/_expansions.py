"""Exponents of Gaussian densities as polynomials of the draw, around a near origin.

The log-density of a row at a draw z, a sum of ``-(z - m)**2 / (2 * std**2)`` and of
constants, is multiplied out: quadratic, linear and constant coefficients of the row
times the same powers of the draw. The exponents of many rows at many draws are one
matrix product then.
"""

import numpy as np

from skdisent._densities import HALF_LOG_2PI, cholesky, log_diagonal
from skdisent._steady import NODE_COUNTS

# Distances in stds beyond this are as good as infinite, and squares of them add up
# without rounding.
FAR = 100.0

# Variance of a latent over that given the others, up to which precisions that are
# subtracted from each other keep 10 digits.
LARGEST_INFLATION = 1e6


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

    Attributes
    ----------
    held : bool
        Whether the rows can be expanded at all; the rest holds only then.
    std_range : tuple of two floats
        Smallest std of a latent given the others, and largest std.
    all_but_one : ndarray of int
        The sets that lack one latent, whose density is a factor of that of all.
    """

    held = True

    def __init__(self, posterior, log_weight, members):
        self.mean, self.std = posterior.mean.T.copy(), posterior.std.T.copy()
        self.log_weight, self.members = log_weight, members
        self.all_but_one = np.flatnonzero(members.sum(axis=1) == len(self.mean) - 1)
        self.log_std = np.log(self.std) + HALF_LOG_2PI
        self.std_range = self.std.min(), self.std.max()
        with np.errstate(over="ignore"):  # no precision holds a std that small
            self.inverse_variance = 1 / self.std / self.std
        self._features = {}

    def features(self, dtype):
        """Return two arrays for features, (n_rows, 2 * n_latents + 2) each.

        Inverse variances and ones, which no origin changes, stand in the first. They
        are filled again for each origin, as fresh memory is slow.
        """
        if dtype not in self._features:
            n_latents, n_rows = self.mean.shape
            features = np.ones((n_rows, 2 * n_latents + 2), dtype)
            with np.errstate(over="ignore"):
                features[:, :n_latents] = self.inverse_variance.T
            self._features[dtype] = features, np.empty_like(features)
        return self._features[dtype]

    @staticmethod
    def values_per_row(posterior, n_wanted):
        """Return about how many values are held for a row."""
        return n_wanted * NODE_COUNTS[-1] + 10 * posterior.shape[1]

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


class FullRows:
    """Some rows with a covariance matrix, one a row or one for all.

    The precision of all but a group of latents is a Schur complement of that of all.
    Its digits are enough unless a latent is nearly a function of the others; then the
    rows are not held.

    Parameters and attributes are those of `DiagonalRows`, but for the features, which
    each set has of its own; the density of no latent is a factor of that of all.
    """

    all_but_one = np.empty(0, dtype=np.intp)

    def __init__(self, posterior, log_weight, members):
        self.mean, self.std = posterior.mean.T.copy(), posterior.marginal_std.T.copy()
        self.log_weight, self.members = log_weight, members
        n_latents = len(self.mean)
        covariance = posterior.covariance.reshape(-1, n_latents, n_latents)
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.linalg.inv(covariance)
            self.inverse_std = np.sqrt(np.diagonal(whole, axis1=1, axis2=2)).T
            inflation = (self.std * self.inverse_std).max() ** 2
        self.held = np.isfinite(whole).all() and inflation < LARGEST_INFLATION
        if not self.held:
            return
        self.std_range = 1 / self.inverse_std.max(), self.std.max()
        log_volume = log_diagonal(cholesky(covariance, np.arange(n_latents)))
        self.precision, self.log_scale = [], []
        for inside in members.astype(bool):
            precision, volume = _of_set(covariance, whole, log_volume, inside)
            self.precision.append(precision)
            self.log_scale.append(-volume - inside.sum() * HALF_LOG_2PI)
        self.pairs = np.triu_indices(n_latents)
        self._features = {}

    @staticmethod
    def values_per_row(posterior, n_wanted):
        """Return about how many values are held for a row."""
        n_latents = posterior.shape[1]
        shared = posterior.covariance.ndim == 2
        return n_wanted * (n_latents + 2 if shared else 2 * n_latents**2)

    def around(self, origin, reach):
        """Return the expansions around an origin, for draws within reach of it."""
        return FullExpansions(self, origin, reach)

    def features(self, k, dtype):
        """Return an array for features of the k-th set, (n_rows, n_features).

        Quadratic coefficients, which no origin changes, and ones stand in it. Where all
        rows share a covariance, they are left to the draws.
        """
        if (k, dtype) not in self._features:
            shared = len(self.precision[k]) == 1
            first = 0 if shared else len(self.pairs[0])
            n_latents, n_rows = self.mean.shape
            features = np.ones((n_rows, first + n_latents + 2), dtype)
            if not shared:
                features[:, :first] = self.quadratic(k)
            self._features[k, dtype] = features
        return self._features[k, dtype]

    def quadratic(self, k):
        """Return coefficients of products of two latents, (n_rows or 1, n_pairs)."""
        first, second = self.pairs
        return self.precision[k][:, first, second] * np.where(
            first < second, -1.0, -0.5
        )


def _of_set(covariance, whole, log_volume, inside):
    """Return the precision of a set, zeros elsewhere, and half its log-determinant."""
    if inside.all():
        return whole, log_volume
    precision = np.zeros_like(whole)
    some, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    block = np.ix_(np.arange(len(whole)), some, some)
    if len(some) < len(others):
        precision[block] = np.linalg.inv(covariance[block])
        return precision, log_diagonal(cholesky(covariance, some))
    across = whole[:, some[:, None], others]
    rest = whole[:, others[:, None], others]
    explained = across @ np.linalg.inv(rest) @ np.swapaxes(across, 1, 2)
    precision[block] = whole[block] - explained
    return precision, log_volume + log_diagonal(cholesky(whole, others))


class FullExpansions:
    """The expansions of rows with a covariance around one origin.

    Attributes
    ----------
    bound, square : ndarray
        See `DiagonalExpansions`.
    """

    def __init__(self, rows, origin, reach):
        self.rows = rows
        self.offset = rows.mean - origin[:, None]
        apart = np.abs(self.offset)
        with np.errstate(over="ignore"):  # a distance beyond the floats is far
            nearest = np.maximum(apart - reach[:, None], 0.0) / rows.std
            # |P_ij| is at most the product of the roots of P_ii and P_jj.
            farthest = ((apart + reach[:, None]) * rows.inverse_std).sum(axis=0)
            self.square = farthest**2 / 2
        nearest = np.minimum(nearest, FAR)
        nearest *= nearest
        self.bound = np.empty((len(rows.members), len(nearest[0])))
        for k, inside in enumerate(rows.members.astype(bool)):
            # No distance is less than that along one axis.
            distance = nearest[inside].max(axis=0, initial=0.0)
            self.bound[k] = rows.log_scale[k] - 0.5 * distance
        self.bound += rows.log_weight

    def expand(self, dtype):
        """Choose the type of float of the coefficients."""
        self._dtype = dtype

    def row_features(self, k, some):
        """Return the features of some rows for the k-th set, (n_some, n_features)."""
        rows, offset = self.rows, self.offset.T[some]
        features = rows.features(k, self._dtype)[some]
        precision, log_scale = rows.precision[k], rows.log_scale[k]
        if len(precision) == 1:
            linear = offset @ precision[0]
        else:
            linear = np.einsum("nij,nj->ni", precision[some], offset)
            log_scale = log_scale[some]
        constant = -0.5 * np.einsum("ni,ni->n", linear, offset) + rows.log_weight[some]
        features[:, -2 - len(rows.mean) : -2] = linear
        features[:, -2] = constant + log_scale
        return features

    def draw_features(self, k, z, own):
        """Return the features of draws for the k-th set, (n_features, n_draws)."""
        first, second = self.rows.pairs
        products = z.T[first] * z.T[second]
        if len(self.rows.precision[k]) == 1:
            own, products = own - self.rows.quadratic(k)[0] @ products, products[:0]
        return np.vstack([products, z.T, np.ones_like(own), -own])
