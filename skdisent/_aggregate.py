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
from skdisent._plan import Plan, delayed
from skdisent._quadrature import integral_tasks, resolved
from skdisent._tables import design_matrix, entropy

# Draws at a time, and log-densities held at a time: they fit into a core's cache.
BLOCK_DRAWS = 32
BLOCK_VALUES = 1 << 17

# Log-densities in a task, about a second of work, and the least number of tasks.
PART_VALUES = 1 << 28
MIN_PARTS = 8

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
        if posterior.is_point:
            entropies = partition_entropies(posterior.mean, weight, sets)
            return [], lambda _: PointAmounts(entropies)
        _refuse_mixed(posterior.marginal_std, sample.rows)
        sizes = np.array([len(latents) for latents in sets.members])
        entropies = posterior.log_volumes(sets) @ weight + (0.5 + HALF_LOG_2PI) * sizes
        rows, z = draw(posterior, weight, self.n_samples, self.random_state)
        own = posterior.densities(rows, sets).own(z)
        tasks = others_tasks(posterior, weight, rows, z, sets)
        used, controls = self._quadrature_tasks(posterior, weight)

        def collect(results):
            marginal = np.full(len(self.groups), np.nan)
            marginal[used] = np.ravel(results[len(tasks) :])
            others = np.concatenate(results[: len(tasks)], axis=1)
            return DrawAmounts(own, others, weight[rows], entropies, marginal)

        return tasks + controls, collect

    def _quadrature_tasks(self, posterior, weight):
        """Return which H(z_G) quadrature gives and are of use, and its tasks."""
        if self.n_samples < 2 * PAIRS_PER_CONTROL * (1 + 3 * len(self.groups)):
            return [], []
        mean, std = posterior.mean, posterior.marginal_std
        fine = resolved(mean, std)
        used = [k for k, g in enumerate(self.groups) if len(g) == 1 and fine[g[0]]]
        latents = [self.groups[k][0] for k in used]
        mean, std = mean[:, latents], std[:, latents]
        return used, integral_tasks(mean, std, design_matrix(weight), [])


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
    first, size = _strata(n_draws)
    share = np.repeat(first, size) + rng.uniform(size=n_draws) * np.repeat(size, size)
    cumulative = np.cumsum(weight)
    position = share / n_draws * cumulative[-1]
    rows = np.searchsorted(cumulative, position, side="right")
    rows = np.minimum(rows, len(weight) - 1)
    return rows, posterior.draw(
        rows, rng.standard_normal((n_draws, posterior.shape[1]))
    )


def _strata(n_draws):
    """Return the first draw and the number of draws of each pair."""
    first = np.arange(0, n_draws - 1, 2)
    return first, np.diff(np.append(first, n_draws))


def others_tasks(posterior, weight, rows, z, sets):
    """Return tasks that give log of sum_n w_n q(z_A | x_n) over all but the own row.

    Parameters
    ----------
    posterior : GaussianPosterior
        The posteriors of n_samples rows.
    weight : ndarray of shape (n_samples,)
        Weights of the rows.
    rows : ndarray of int of shape (n_draws,)
        Row of each draw.
    z : ndarray of shape (n_draws, n_latents)
        The draws.
    sets : LatentSets
        The sets A.

    Returns
    -------
    list of delayed calls
        Each gives an array of shape (n_sets, some draws), minus infinity where there is
        no other row.
    """
    n_parts = len(weight) * len(z) * len(sets) // PART_VALUES + 1
    n_parts = min(max(n_parts, MIN_PARTS), len(z))
    log_weight = np.log(weight)
    return [
        delayed(others_log_density)(posterior, log_weight, rows[part], z[part], sets)
        for part in np.array_split(np.arange(len(z)), n_parts)
    ]


def others_log_density(posterior, log_weight, rows, z, sets):
    """Return what a task of `others_tasks` gives."""
    n_rows = max(1, BLOCK_VALUES // (BLOCK_DRAWS * len(sets)))
    largest = np.full((len(sets), len(z)), -np.inf)
    total = np.zeros((len(sets), len(z)))
    for start in range(0, len(log_weight), n_rows):
        block = slice(start, start + n_rows)
        densities = posterior.densities(block, sets)
        for first in range(0, len(z), BLOCK_DRAWS):
            some = slice(first, first + BLOCK_DRAWS)
            terms = densities.at(z[some], log_weight[block])
            own = rows[some] - start
            inside = np.flatnonzero((own >= 0) & (own < terms.shape[2]))
            terms[:, inside, own[inside]] = -np.inf
            _add_exponentials(terms, largest[:, some], total[:, some])
    with np.errstate(divide="ignore"):  # no other row: log 0
        return np.log(total) + np.where(total > 0, largest, 0.0)


def _add_exponentials(terms, largest, total):
    """Add exp(terms) over the last axis to ``total * exp(largest)``, in place."""
    top = np.maximum(terms.max(axis=2), largest)
    any_term = np.isfinite(top)
    origin = np.where(any_term, top, 0.0)
    total *= np.exp(largest - origin)
    terms -= origin[:, :, None]
    # Beside the largest term, which is 1 now, e**-700 changes no digit, while the
    # processor takes up to 70 times as long for numbers that small.
    np.maximum(terms, -700.0, out=terms)
    np.exp(terms, out=terms)
    total += terms.sum(axis=2) * any_term
    largest[...] = top


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
    others : ndarray of shape (n_sets, n_draws)
        log of the other rows' share of q(z_A).
    own_weight : ndarray of shape (n_draws,)
        p(x) of each draw's own row.
    entropies : ndarray of shape (n_sets,)
        H(z_A | x), exact.
    marginal_entropies : ndarray of shape (n_groups,)
        H(z_G), exact, or NaN where it is not known.
    """

    own: np.ndarray
    others: np.ndarray
    own_weight: np.ndarray
    entropies: np.ndarray
    marginal_entropies: np.ndarray

    @property
    def n_groups(self):
        """Number of groups."""
        return (len(self.own) - 1) // 2

    @cached_property
    def _mixture(self):
        """Log q(z_A) at each draw, (n_sets, n_draws)."""
        return np.logaddexp(self.others, np.log(self.own_weight) + self.own)

    @cached_property
    def _terms(self):
        """What the amounts are means of: I(x, z), I(x, z_G) and I(x, z_G | z_-G)."""
        return self._combine(self._mixture)

    def _combine(self, mixture):
        n = self.n_groups
        information = self.own - mixture
        return np.vstack([information[: n + 1], information[0] - information[n + 1 :]])

    @cached_property
    def _controls(self):
        """Log-densities less their means that are known, (n_controls, n_draws)."""
        own = self.own + self.entropies[:, None]
        marginal = (
            self._mixture[1 : self.n_groups + 1] + self.marginal_entropies[:, None]
        )
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
        # Rows beyond the floats are far, with room for the normalizer of a metric.
        others = np.maximum(self.others, -1e100)
        elsewhere = self._combine(others - np.log1p(-self.own_weight))
        return (elsewhere - self._terms)[self.n_groups + 1 :].mean(axis=1)

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


def regress_out(values, controls):
    """Return values less their regression on controls whose mean is known to be 0.

    The coefficients are fitted on the differences within pairs of draws, which is the
    noise that is left in the mean. They are one linear map for all values, so what
    holds between amounts holds between their estimates too.

    Parameters
    ----------
    values : ndarray of shape (n_values, n_draws)
        One amount a row.
    controls : ndarray of shape (n_controls, n_draws)
        Control variates; some may depend on others.

    Returns
    -------
    residuals : ndarray of shape (n_values, n_draws)
        Values with the same means, of less noise.
    rank : int
        Number of independent controls.
    """
    noise = [_within_pairs(one).T for one in (controls, values)]
    coefficients, _, rank, _ = np.linalg.lstsq(*noise)
    return values - coefficients.T @ controls, rank


def _within_pairs(values):
    """Return values less the mean of their pair of draws."""
    first, size = _strata(values.shape[-1])
    means = np.add.reduceat(values, first, axis=-1) / size
    return values - np.repeat(means, size, axis=-1)


def standard_error_of_pairs(values):
    """Return the standard error of the mean of draws that came in pairs.

    Parameters
    ----------
    values : ndarray of shape (..., n_draws)
        One value a draw.

    Returns
    -------
    ndarray of shape (...)
    """
    first, size = _strata(values.shape[-1])
    squares = np.add.reduceat(_within_pairs(values) ** 2, first, axis=-1)
    variance = squares / (size - 1)
    return np.sqrt((size * variance).sum(axis=-1)) / values.shape[-1]
