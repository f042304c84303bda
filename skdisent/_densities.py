"""Log-densities of many sets of latents at once, diagonal or full posteriors."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class LatentSets:
    """All latents, each group of them, and all but each group, in this order.

    Attributes
    ----------
    groups : tuple of tuples of int
        Disjoint groups of latents, which may leave latents out.
    n_latents : int
        Number of latents.
    """

    groups: tuple
    n_latents: int

    @cached_property
    def members(self):
        """The latents of each set."""
        everyone = np.arange(self.n_latents)
        groups = [np.array(group, dtype=np.intp) for group in self.groups]
        return [everyone, *groups, *(np.setdiff1d(everyone, one) for one in groups)]

    @cached_property
    def membership(self):
        """Which latents are in each set, ones and zeros, (n_sets, n_latents)."""
        return np.array([np.isin(self.members[0], one) for one in self.members], float)

    @cached_property
    def uncovered(self):
        """The latents in no group."""
        groups = self.members[1 : 1 + len(self.groups)]
        return np.setdiff1d(self.members[0], np.concatenate(groups))

    def __len__(self):
        return 1 + 2 * len(self.groups)

    def sums(self, terms, start=0.0):
        """Return the sums over each set of terms of shape (n_latents, ...).

        All but a group is summed from what stands before and after it: the total less
        the group would cancel where the group's terms are huge.

        Parameters
        ----------
        terms : ndarray of shape (n_latents, ...)
            One term a latent.
        start : float or ndarray
            What every sum begins with, broadcast to one term.

        Returns
        -------
        ndarray of shape (n_sets, ...)
        """
        n_groups = len(self.groups)
        result = np.empty((len(self), *terms.shape[1:]))
        parts, others = result[1 : n_groups + 1], result[n_groups + 1 :]
        for part, (first, *more) in zip(parts, self.groups, strict=True):
            part[...] = terms[first]
            for latent in more:
                part += terms[latent]
        before = result[0]
        before[...] = start
        for latent in self.uncovered:
            before += terms[latent]
        for part, other in zip(parts, others, strict=True):
            other[...] = before
            before += part
        after = np.zeros_like(before)
        for part, other in zip(parts[::-1], others[::-1], strict=True):
            other += after
            after += part
        parts += start
        return result


class DiagonalDensities:
    """Log-densities of rows whose latents are independent given x.

    Parameters
    ----------
    mean, std : ndarray of shape (n_rows, n_latents)
        The rows' posteriors.
    sets : LatentSets
        The sets of latents.
    """

    def __init__(self, mean, std, sets):
        self.mean, self.std, self.sets = mean.T, std.T, sets
        self.offset = np.log(self.std) + HALF_LOG_2PI

    def at(self, z, log_weight, wanted):
        """Return log w q(z_A | x) of the wanted sets, (n_wanted, n_draws, n_rows)."""
        mean, std, offset = (
            one[:, None, :] for one in (self.mean, self.std, self.offset)
        )
        terms = _log_normal(z.T[:, :, None], mean, std, offset)
        return self.sets.sums(terms, log_weight)[wanted]

    def own(self, z):
        """Return log q(z_A | x) of each row at its own draw, (n_sets, n_rows)."""
        return self.sets.sums(_log_normal(z.T, self.mean, self.std, self.offset))


def _log_normal(z, mean, std, offset):
    terms = z - mean
    # A distance beyond the floats has a density of 0.
    with np.errstate(over="ignore"):
        terms /= std
        terms *= terms
    terms *= -0.5
    terms -= offset
    return terms


class FullDensities:
    """Log-densities of rows with a covariance matrix, one a row or one for all.

    Every set has its own Cholesky factor: differences of larger sets would cancel.

    Parameters
    ----------
    mean : ndarray of shape (n_rows, n_latents)
        The rows' means.
    covariance : ndarray of shape (n_rows, n_latents, n_latents) or \
            (1, n_latents, n_latents)
        The rows' covariances.
    sets : LatentSets
        The sets of latents.
    """

    def __init__(self, mean, covariance, sets):
        self.mean, self.covariance, self.sets = mean, covariance, sets
        self._factors = {}

    def at(self, z, log_weight, wanted):
        """Return log w q(z_A | x) of the wanted sets, (n_wanted, n_draws, n_rows)."""
        distance = z[None, :, :] - self.mean[:, None, :]
        return self._log_densities(distance, wanted) + log_weight

    def own(self, z):
        """Return log q(z_A | x) of each row at its own draw, (n_sets, n_rows)."""
        distance = (z - self.mean)[:, None, :]
        return self._log_densities(distance, range(len(self.sets)))[:, 0, :]

    def _log_densities(self, distance, wanted):
        n_rows, n_draws, _ = distance.shape
        result = np.empty((len(wanted), n_draws, n_rows))
        for one, k in zip(result, wanted, strict=True):
            whitener, offset = self._factor(k)
            # A distance beyond the floats, inf - inf on the way, has a density of 0.
            with np.errstate(over="ignore", invalid="ignore"):
                white = distance[:, :, self.sets.members[k]] @ whitener
                squares = (white * white).sum(axis=2)
            squares[np.isnan(squares)] = np.inf
            one[...] = (-0.5 * squares - offset[:, None]).T
        return result

    def _factor(self, k):
        """Return what whitens the k-th set, and minus its log-density at the mean."""
        if k not in self._factors:
            factor = cholesky(self.covariance, self.sets.members[k])
            offset = log_diagonal(factor) + factor.shape[-1] * HALF_LOG_2PI
            self._factors[k] = np.swapaxes(np.linalg.inv(factor), 1, 2), offset
        return self._factors[k]


def cholesky(covariance, latents, rows=None):
    """Return the Cholesky factors of the latents' covariances.

    Parameters
    ----------
    covariance : ndarray of shape (n_rows or 1, n_latents, n_latents)
        Covariances of all latents.
    latents : ndarray of int of shape (n_chosen,)
        Some of the latents.
    rows : ndarray of int of shape (n_rows,), default=None
        What an error calls the rows.

    Returns
    -------
    ndarray of shape (n_rows or 1, n_chosen, n_chosen)

    Raises
    ------
    ValueError
        If a matrix is singular to rounding; names its row.
    """
    some = covariance[:, latents[:, None], latents]
    tiny = len(latents) * np.finfo(np.float64).eps
    try:
        factor = np.linalg.cholesky(some)
    except np.linalg.LinAlgError:
        _refuse_singular(np.linalg.eigvalsh(some)[:, 0] <= 0, rows)
        raise
    pivots = np.diagonal(factor, axis1=1, axis2=2) ** 2
    variances = np.diagonal(some, axis1=1, axis2=2)
    _refuse_singular((pivots <= tiny * variances).any(axis=1), rows)
    return factor


def _refuse_singular(bad, rows):
    if bad.any():
        first = np.argmax(bad) if rows is None else rows[np.argmax(bad)]
        row = f" of row {first}" if len(bad) > 1 else ""
        raise ValueError(
            f"covariance{row} is singular or not positive definite: these metrics need "
            "the density of every latent given the others."
        )


def log_diagonal(factor):
    """Return half the log-determinants of the matrices with these Cholesky factors."""
    return np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
