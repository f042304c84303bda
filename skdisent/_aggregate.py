"""Draws from the aggregate posterior, and log q(z_A) of sets of latents at them.

q(z) is the mixture of all rows' posteriors. One set of draws serves every amount: each
is the mean of a linear combination of log-densities, so it has the standard error of
one mean, and amounts that are compared share their noise.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.utils import check_random_state

from skdisent._densities import HALF_LOG_2PI, LatentSets
from skdisent._kernels import COMPACT_DRAWS, CUT, compact_blocks
from skdisent._plan import Plan, delayed
from skdisent._quadrature import (
    DEEPEST_AT_POINTS,
    Mixture,
    entropy_and_log_density,
    resolved,
)
from skdisent._tables import design_matrix, entropy
from skdisent._uncertainty import pairs, regress_out, standard_error_of_pairs

# The least number of tasks; log-densities beyond which there are more; the least number
# of blocks of draws that must then share what a task needs of every row.
MIN_PARTS = 8
PART_VALUES = 1 << 28
PART_BLOCKS = 4

# Up to so many log-densities the last digit costs little; beyond it float32 errors of
# about 1e-6 nats are far below the noise of the draws.
EXACT_VALUES = 1 << 26

# Pairs of draws needed for each control variate, so that fitting it costs little.
PAIRS_PER_CONTROL = 10


@dataclass(frozen=True)
class DrawPlan(Plan):
    """Draws and the log-densities of groups of latents, and of all others, at them.

    Attributes
    ----------
    groups : tuple of tuples of int
        Groups of latents.
    n_samples : int
        Number of draws.
    random_state : int, RandomState instance or None
        Seed of the draws.
    """

    groups: tuple
    n_samples: int
    random_state: object

    def prepare(self, sample):
        """Return the tasks of some draws each, for the amounts of the sample."""
        posterior, weight = sample.posterior, sample.weight
        sets = LatentSets(self.groups, posterior.shape[1])
        if posterior._is_point:
            entropies = partition_entropies(posterior.mean, weight, sets)
            return [], lambda _: PointAmounts(entropies)
        _refuse_mixed(posterior.marginal_std, sample.rows)
        entropies = posterior._log_volumes(sets, sample.rows) @ weight
        entropies += (0.5 + HALF_LOG_2PI) * np.array([len(one) for one in sets.members])
        rows, z = draw(posterior, weight, self.n_samples, self.random_state)
        own = posterior._densities(rows, sets).own(z)
        # Single latents go by quadrature where there are enough draws to make use of
        # their entropies; then the sums over all rows are left to the other sets.
        single = self._single(posterior)
        summed = np.setdiff1d(np.arange(len(sets)), [*single])
        parts, tasks = _sum_tasks(posterior, weight, rows, z, own, sets, summed)
        tasks += marginal_tasks(posterior, weight, single.values(), z)

        def collect(results):
            others, mixture = np.full((2, *own.shape), np.nan)
            for part, values in zip(parts, results, strict=False):
                others[np.ix_(summed, part)] = values
            weighted = own + np.log(weight)[rows]
            mixture[summed] = np.logaddexp(others[summed], weighted[summed])
            marginal = np.full(len(sets), np.nan)
            for k, values in zip(single, results[len(parts) :], strict=True):
                marginal[k], mixture[k] = values
            marginal = marginal[1 : len(self.groups) + 1]
            return DrawAmounts(own, mixture, others, weight[rows], entropies, marginal)

        return tasks, collect

    def _single(self, posterior):
        """Return the latent of each set whose marginal density is had by quadrature."""
        if self.n_samples < 2 * PAIRS_PER_CONTROL * (1 + 3 * len(self.groups)):
            return {}
        fine = resolved(posterior.mean, posterior.marginal_std, DEEPEST_AT_POINTS)
        return {
            k: group[0]
            for k, group in enumerate(self.groups, start=1)
            if len(group) == 1 and fine[group[0]]
        }


def _refuse_mixed(std, rows):
    point = np.argwhere(std == 0)
    if len(point):
        row, latent = point[0]
        raise ValueError(
            f"Z_std is 0 for latent {latent} in row {rows[row]}, positive elsewhere: "
            "a point has no density beside those of Gaussians. Pass a positive std "
            "everywhere, or leave Z_std out for a point encoder."
        )


def draw(posterior, weight, n_draws, random_state=None):
    """Draw rows in proportion to their weights, then z from each row's posterior.

    Draws come in pairs from equal shares of the total weight (three from the last,
    where their number is odd): spread more evenly than independent ones, while the two
    of a pair still tell the noise.

    Parameters
    ----------
    posterior : GaussianPosterior
        The posteriors of n_samples rows.
    weight : ndarray of shape (n_samples,)
        Weights of the rows.
    n_draws : int
        Number of draws, at least 2.
    random_state : int, RandomState instance or None
        Seed; the global random state is not touched.

    Returns
    -------
    rows : ndarray of int of shape (n_draws,)
        Row of each draw.
    z : ndarray of shape (n_draws, n_latents)
        The draws.
    """
    if random_state is None:
        random_state = np.random.RandomState()
    rng = check_random_state(random_state)
    first, size = pairs(n_draws)
    share = np.repeat(first, size) + rng.uniform(size=n_draws) * np.repeat(size, size)
    cumulative = np.cumsum(weight)
    position = share / n_draws * cumulative[-1]
    rows = np.searchsorted(cumulative, position, side="right")
    rows = np.minimum(rows, len(weight) - 1)
    return rows, posterior._draw(
        rows, rng.standard_normal((n_draws, posterior.shape[1]))
    )


def _sum_tasks(posterior, weight, rows, z, own, sets, summed):
    """Return parts of neighbouring draws, and tasks that give their sums over rows."""
    n_values = len(weight) * len(z) * len(summed)
    blocks = compact_blocks(z, posterior.marginal_std)
    most = max(len(blocks) // PART_BLOCKS, MIN_PARTS)
    n_parts = min(n_values // PART_VALUES + MIN_PARTS, most, len(z))
    # In multiples of a whole block, where there are enough.
    size = COMPACT_DRAWS if len(blocks) >= n_parts else 1
    ends = np.arange(1, n_parts) * (len(z) // size) // n_parts * size
    parts = np.split(np.concatenate(blocks), ends)
    log_weight = np.log(weight)
    tasks = [
        delayed(posterior._log_sums)(
            log_weight,
            rows[part],
            z[part],
            own[:, part] + log_weight[rows[part]],
            sets,
            summed,
            fast=n_values > EXACT_VALUES,
        )
        for part in parts
    ]
    return parts, tasks


def marginal_tasks(posterior, weight, latents, z):
    """Return tasks that give h(z_i), and log q(z_i) at the draws, of some latents."""
    mean, std = posterior.mean, posterior.marginal_std
    design = design_matrix(weight)
    return [
        delayed(entropy_and_log_density)(
            Mixture(mean[:, i] - mean[0, i], std[:, i].copy(), design),
            z[:, i] - mean[0, i],
        )
        for i in latents
    ]


def partition_entropies(points, weight, sets):
    """Return the entropy in nats of the partition of the rows by z_A, for each set."""
    return np.array(
        [_partition_entropy(points[:, latents], weight) for latents in sets.members]
    )


def _partition_entropy(points, weight):
    if points.shape[1] == 0:
        return 0.0
    part = np.unique(points + 0.0, axis=0, return_inverse=True)[1]
    return entropy(np.bincount(part.ravel(), weights=weight))


@dataclass(frozen=True)
class PointAmounts:
    """The same amounts for a point encoder, in the limit of vanishing noise, exact.

    Attributes
    ----------
    entropies : ndarray of shape (n_sets,)
        I(x, z_A), the entropy of the partition of the rows into distinct z_A.
    """

    entropies: np.ndarray

    @property
    def n_groups(self):
        """Number of groups."""
        return (len(self.entropies) - 1) // 2

    @property
    def information(self):
        """I(x, z)."""
        return self.entropies[0]

    @property
    def informativeness(self):
        """I(x, z_G), (n_groups,)."""
        return self.entropies[1 : self.n_groups + 1]

    @property
    def separability(self):
        """I(x, z_G | z_-G), (n_groups,)."""
        return self.entropies[0] - self.entropies[self.n_groups + 1 :]

    # Nothing is dependent given x, and no draw has noise or a row of its own.
    conditional_dependence = 0.0
    own_row_effect = 0.0

    def standard_errors(self, of_separability, of_informativeness):
        """Return zeros, one a linear combination."""
        return np.zeros(np.shape(of_separability)[:-1])


@dataclass(frozen=True)
class DrawAmounts:
    """Amounts of groups of latents from draws, in nats, with their standard errors.

    Attributes
    ----------
    own : ndarray of shape (n_sets, n_draws)
        log q(z_A | x) of each draw's own row.
    mixture : ndarray of shape (n_sets, n_draws)
        log q(z_A).
    others : ndarray of shape (n_sets, n_draws)
        The same without each draw's own row; NaN where only the mixture is known.
    own_weight : ndarray of shape (n_draws,)
        p(x) of each draw's own row.
    entropies : ndarray of shape (n_sets,)
        H(z_A | x), exact.
    marginal_entropies : ndarray of shape (n_groups,)
        H(z_G), exact, or NaN where it is not known.
    """

    own: np.ndarray
    mixture: np.ndarray
    others: np.ndarray
    own_weight: np.ndarray
    entropies: np.ndarray
    marginal_entropies: np.ndarray

    @property
    def n_groups(self):
        """Number of groups."""
        return (len(self.own) - 1) // 2

    @cached_property
    def _terms(self):
        """What the amounts are means of: I(x, z), I(x, z_G) and I(x, z_G | z_-G)."""
        return self._combine(self.mixture)

    def _combine(self, mixture):
        n = self.n_groups
        information = self.own - mixture
        return np.vstack([information[: n + 1], information[0] - information[n + 1 :]])

    @cached_property
    def _controls(self):
        """Log-densities less their means that are known, (n_controls, n_draws)."""
        own = self.own + self.entropies[:, None]
        marginal = self.mixture[1 : self.n_groups + 1].copy()
        marginal += self.marginal_entropies[:, None]
        controls = np.vstack([own, marginal[~np.isnan(self.marginal_entropies)]])
        enough = self.own.shape[1] // 2 >= PAIRS_PER_CONTROL * len(controls)
        return controls if enough else controls[:0]

    @cached_property
    def _regression(self):
        return regress_out(self._terms, self._controls)

    @property
    def _adjusted(self):
        return self._regression[0]

    @property
    def information(self):
        """I(x, z)."""
        return self._adjusted[0].mean()

    @property
    def informativeness(self):
        """I(x, z_G), (n_groups,)."""
        return self._adjusted[1 : self.n_groups + 1].mean(axis=1)

    @property
    def separability(self):
        """I(x, z_G | z_-G), (n_groups,)."""
        return self._adjusted[self.n_groups + 1 :].mean(axis=1)

    @property
    def conditional_dependence(self):
        """I(z_G, z_-G | x), exact, (n_groups,)."""
        n = self.n_groups
        h = self.entropies
        return h[1 : n + 1] + h[n + 1 :] - h[0]

    @property
    def own_row_effect(self):
        """How I(x, z_G | z_-G) changes where no draw sees its own row, (n_groups,)."""
        if (self.own_weight == 1).any():  # a single row has no others
            return np.zeros(self.n_groups)
        n = self.n_groups
        share = self.others - self.mixture
        # Where the others' share is below what the sums hold, the own row is all, and
        # the effect as large as can be told.
        alone = np.maximum(share[0], -CUT)
        effect = np.where(share[n + 1 :] < -CUT, CUT, share[n + 1 :] - alone)
        return effect.mean(axis=1)

    def standard_errors(self, of_separability, of_informativeness):
        """Return the standard errors of linear combinations of the amounts.

        Parameters
        ----------
        of_separability, of_informativeness : ndarray of shape (..., n_groups)
            Coefficients.

        Returns
        -------
        ndarray of shape (...)
        """
        n = self.n_groups
        combined = of_separability @ self._adjusted[n + 1 :]
        combined += of_informativeness @ self._adjusted[1 : n + 1]
        # Fitting the coefficients makes residuals too small and the mean less sure.
        n_pairs, rank = self.own.shape[1] // 2, self._regression[1]
        fitted = n_pairs / (n_pairs - rank)
        return fitted * standard_error_of_pairs(combined)
