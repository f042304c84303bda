"""Differential entropies of one-dimensional mixtures, by numerical integration.

The rule for the nodes: the line is halved again and again. A Gaussian of width `std` is
evaluated on intervals no wider than `std`, out to 9 of its own widths on either side;
an interval that narrower Gaussians reach is halved further, and what the wider ones put
there is carried down by polynomial interpolation. Each interval has 12 Gauss-Legendre
nodes. So the nodes are fine where posteriors are sharp and only there, and a Gaussian
costs the same whatever its width. Many Gaussians on one interval are added up as
Chebyshev series.

The error: the tails left out hold 2e-19 of the mass, interpolation is exact to
rounding, and the integrand ``f log f`` is analytic on an interval that is no wider than
the narrowest Gaussian on it. The amounts are right to 1e-9 nats for widths from 1e-6 to
1e3, which the tests check against rules with more nodes and against closed forms.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev
from scipy import sparse
from scipy.special import xlogy

from skdisent._plan import Plan, delayed
from skdisent._tables import design_matrix, factor_entropies, grouped

REACH = 9.0
N_NODES = 12
# Values held at a time, and Gaussians spread out at a time.
BLOCK_VALUES = 1 << 21
BLOCK_ROWS = 1 << 12
DEEPEST = 50
# Where halving starts if no Gaussian is wider.
FIRST_LEVEL = 8
# Points inside an interval that is finer would be rounded by more than 1e-8 of it.
DEEPEST_AT_POINTS = 26
# A narrower Gaussian has densities beyond the floats.
SMALLEST = 1e-300
# Terms of a series in mean and in log std, the least that counts in units of a density
# of width 1, and the Gaussians per interval and class that make a series worth while.
N_TERMS = 20
LEAST_TERM = 1e-17
ROWS_PER_CELL = 4
SQRT_2PI = np.sqrt(2 * np.pi)


def _unit_rule():
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    halves = [(nodes - 1) / 2, (nodes + 1) / 2]
    vandermonde = np.polynomial.legendre.legvander
    basis = np.linalg.inv(vandermonde(nodes, N_NODES - 1))
    carry = [vandermonde(half, N_NODES - 1) @ basis for half in halves]
    return (nodes + 1) / 2, weights / 2, np.stack(carry), basis


# Nodes and weights on [0, 1], and what carries values at the nodes to those of the two
# halves and to coefficients of Legendre polynomials.
NODES, WEIGHTS, TO_HALVES, TO_LEGENDRE = _unit_rule()


@dataclass
class Mixture:
    """One latent's posteriors, as Gaussians that are summed over rows.

    Attributes
    ----------
    mean, std : ndarray of shape (n_samples,)
        The Gaussians.
    design : csr_array of shape (n_samples, 1 + total n_classes)
        Weights of each Gaussian in the whole mixture and in each class.
    """

    mean: np.ndarray
    std: np.ndarray
    design: sparse.csr_array

    def __post_init__(self):
        self.low = (self.mean - REACH * self.std).min()
        self.width = (self.mean + REACH * self.std).max() - self.low
        self.level = np.ceil(np.log2(self.width / self.std)).astype(int)

    def intervals_of(self, rows, level):
        """Return the first and the last interval that each Gaussian reaches."""
        step = self.width / 2**level
        center, reach = self.mean[rows] - self.low, REACH * self.std[rows]
        first = np.floor((center - reach) / step).astype(np.int64)
        last = np.floor((center + reach) / step).astype(np.int64)
        return np.maximum(first, 0), np.minimum(last, 2**level - 1)

    def densities(self, rows, level, intervals):
        """Return sums over rows at the nodes, (1 + n_classes, n_intervals, N_NODES)."""
        width = self.design.shape[1]
        total = np.zeros((width, len(intervals), N_NODES))
        # Rows side by side reach few intervals, so that a block of them stays in cache.
        rows = rows[np.argsort(self.mean[rows], kind="stable")]
        step = self.width / 2**level
        series = CellSeries(self.std[rows] / step)
        for start in range(0, len(rows), BLOCK_ROWS):
            some = rows[start : start + BLOCK_ROWS]
            first, last = self.intervals_of(some, level)
            begin = np.searchsorted(intervals, first)
            end = np.searchsorted(intervals, last, side="right")
            reach = slice(begin.min(), end.max())
            center = (self.mean[some] - self.low) / step
            if len(some) > ROWS_PER_CELL * width * (1 + np.ptp(np.floor(center))):
                relative = center, self.std[some] / step
                sums = series.sums(*relative, self.design[some], intervals[reach])
                sums /= step
            else:
                at_nodes = self._spread(
                    some, level, intervals[reach], begin - reach.start, end - begin
                )
                sums = (self.design[some].T @ at_nodes).toarray()
            total[:, reach] += sums.reshape(width, -1, N_NODES)
        return total

    def _spread(self, rows, level, intervals, begin, counts):
        """Return the density of each row at the nodes of the intervals it reaches."""
        step = self.width / 2**level
        owner = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        place = begin[owner] + within
        # The offset of a mean inside its own interval is rounded once, so that all of
        # a Gaussian's nodes stand right to each other however narrow it is.
        center = (self.mean[rows] - self.low) / step
        whole = np.floor(center)
        std = self.std[rows]
        distance = NODES - (center - whole)[owner, None]
        distance += (intervals[place] - whole[owner])[:, None]
        distance *= (step / std)[owner, None]
        distance *= distance
        distance *= -0.5
        density = np.exp(distance, out=distance)
        density *= (1 / (std * SQRT_2PI))[owner, None]
        columns = place[:, None] * N_NODES + np.arange(N_NODES)
        indptr = np.concatenate([[0], np.cumsum(counts)]) * N_NODES
        return sparse.csr_array(
            (density.ravel(), columns.ravel(), indptr),
            shape=(len(rows), len(intervals) * N_NODES),
        )

    def leaves(self):
        """Yield (level, intervals, densities at their nodes), over the whole line.

        Densities have shape (1 + n_classes, n_intervals, N_NODES). No Gaussian is
        narrower than the interval.
        """
        most = max(1, BLOCK_VALUES // (N_NODES * self.design.shape[1]))
        everyone, first = np.arange(len(self.mean)), min(self.level.min(), FIRST_LEVEL)
        stack = _blocks(self, everyone, first, np.arange(2**first), None, most)
        while stack:
            level, intervals, density, rows = stack.pop()
            own = rows[self.level[rows] == level]
            if len(own):
                added = self.densities(own, level, intervals)
                density = added if density is None else density + added
            rows = rows[self.level[rows] > level]
            halved = _reached(self, rows, level, intervals)
            if density is not None and not halved.all():
                yield level, intervals[~halved], density[:, ~halved]
            halves = _halves(intervals[halved], density, halved)
            stack += _blocks(self, rows, level + 1, *halves, most)


class CellSeries:
    """Densities of Gaussians whose means share an interval, as Chebyshev series.

    On intervals no wider than a Gaussian its values at the nodes are smooth functions
    of where in its interval the mean is, and of the log of the std: many Gaussians add
    up their terms, and the nodes are left to the sums. All is in units of the interval.

    Parameters
    ----------
    std : ndarray of shape (n_rows,)
        Stds of all Gaussians, from 1 to 2.
    """

    def __init__(self, std):
        self.low, self.high = np.log(std.min()), np.log(std.max())
        self.half = max((self.high - self.low) / 2, np.finfo(np.float64).eps)

    @cached_property
    def _series(self):
        """Offsets of intervals, degrees in mean and std, and coefficients."""
        farthest = int(np.ceil(REACH * np.exp(self.high)))
        offsets = np.arange(-farthest, farthest + 1)
        nodes = (offsets[:, None] + NODES).ravel()
        of_std = 6 + int(np.ceil((N_TERMS - 6) * 2 * self.half / np.log(2)))
        x, y = chebyshev.chebpts1(N_TERMS), chebyshev.chebpts1(of_std)
        std = np.exp(self.low + (y + 1) * self.half)[:, None, None]
        values = np.exp(-0.5 * ((nodes - (x[:, None] + 1) / 2) / std) ** 2)
        values /= std * SQRT_2PI
        # Values at the points to terms, one axis after the other.
        terms = np.linalg.inv(chebyshev.chebvander(x, N_TERMS - 1)) @ values
        to_terms = np.linalg.inv(chebyshev.chebvander(y, of_std - 1))
        terms = np.tensordot(to_terms, terms, axes=1)
        of_std, of_mean = np.nonzero(abs(terms).max(axis=2) > LEAST_TERM)
        return offsets, of_mean, of_std, terms[of_std, of_mean]

    def sums(self, center, std, design, intervals):
        """Return sums of densities at the nodes of the intervals.

        Parameters
        ----------
        center, std : ndarray of shape (n_rows,)
            The Gaussians, sorted by their mean.
        design : csr_array of shape (n_rows, width)
            Their weights.
        intervals : ndarray of int of shape (n_intervals,)
            Sorted intervals, all that the Gaussians reach.

        Returns
        -------
        ndarray of shape (width, n_intervals, N_NODES)
        """
        offsets, of_mean, of_std, terms = self._series
        width = design.shape[1]
        cell = np.floor(center).astype(np.int64)
        x = 2 * (center - cell) - 1
        y = (np.log(std) - self.low) / self.half - 1
        powers = chebyshev.chebvander(x, of_mean.max())[:, of_mean]
        powers *= chebyshev.chebvander(y, of_std.max())[:, of_std]
        cells, group = np.unique(cell, return_inverse=True)
        moments = grouped(design, group, len(cells)).T @ powers
        densities = (moments @ terms).reshape(len(cells), width, -1, N_NODES)
        reached = cells[:, None] + offsets
        place = np.minimum(np.searchsorted(intervals, reached), len(intervals) - 1)
        inside = intervals[place] == reached
        result = np.zeros((len(intervals), width, N_NODES))
        np.add.at(result, place[inside], np.swapaxes(densities, 1, 2)[inside])
        return np.swapaxes(result, 0, 1)


def integrate(mixture, integrand):
    """Return the integral of a vector-valued function of the mixture's densities.

    Parameters
    ----------
    mixture : Mixture
        What is integrated over the real line.
    integrand : callable
        Maps densities of shape (1 + n_classes, n_points) to (n_values, n_points).
    """
    total = 0.0
    for level, intervals, density in mixture.leaves():
        values = integrand(density.reshape(len(density), -1))
        weights = np.tile(WEIGHTS, len(intervals)) * mixture.width / 2**level
        total += values @ weights
    return total


def entropy_and_log_density(mixture, points):
    """Return h(z) in nats, and log q(z) at some points, from one pass.

    Parameters
    ----------
    mixture : Mixture
        The whole mixture, without classes.
    points : ndarray of shape (n_points,)
        Where the density is wanted, within reach of the Gaussians.

    Returns
    -------
    entropy : float
    log_density : ndarray of shape (n_points,)
        Right to about 1e-8 where a draw of the mixture is likely to be.
    """
    entropy = 0.0
    density_at = np.empty(len(points))
    for level, intervals, (density,) in mixture.leaves():
        step = mixture.width / 2**level
        entropy += (_entropy_terms(density[None]) @ WEIGHTS).sum() * step
        position = (points - mixture.low) / step
        interval = np.floor(position)
        place = np.minimum(np.searchsorted(intervals, interval), len(intervals) - 1)
        inside = np.flatnonzero(intervals[place] == interval)
        local = 2 * (position - interval)[inside] - 1
        basis = np.polynomial.legendre.legvander(local, N_NODES - 1)
        coefficients = density[place[inside]] @ TO_LEGENDRE.T
        density_at[inside] = (basis * coefficients).sum(axis=1)
    return entropy, np.log(density_at)


def _reached(mixture, rows, level, intervals):
    """Return which intervals any of the rows reaches."""
    first, last = mixture.intervals_of(rows, level)
    size = len(intervals) + 1
    opened = np.bincount(np.searchsorted(intervals, first), minlength=size)
    closed = np.bincount(np.searchsorted(intervals, last, "right"), minlength=size)
    return np.cumsum(opened - closed)[:-1] > 0


def _halves(intervals, density, halved):
    children = (2 * intervals[:, None] + [0, 1]).ravel()
    if density is None:
        return children, None
    carried = np.einsum("cin,hmn->cihm", density[:, halved], TO_HALVES)
    return children, carried.reshape(len(density), len(children), N_NODES)


def _blocks(mixture, rows, level, intervals, density, most):
    """Cut the intervals into blocks, each with the rows that reach it."""
    if not len(intervals):
        return []
    first, last = mixture.intervals_of(rows, level)
    blocks = []
    for start in range(0, len(intervals), most):
        some = slice(start, start + most)
        ends = intervals[some][[0, -1]]
        reach = rows[(last >= ends[0]) & (first <= ends[1])]
        part = None if density is None else density[:, some]
        blocks.append((level, intervals[some], part, reach))
    return blocks


@dataclass(frozen=True)
class QuadraturePlan(Plan):
    """The one-dimensional integrals of every latent, with all factors of the sample."""

    def prepare(self, sample):
        """Return one task a latent, for the `DifferentialAmounts` of the sample."""
        mean, std = sample.posterior.mean, sample.posterior.marginal_std
        _refuse_unresolved(mean, std)
        factors = sample.factors
        matrix = None if factors is None else factors.matrix
        blocks = [] if factors is None else factors.blocks()
        tasks = integral_tasks(mean, std, design_matrix(sample.weight, matrix), blocks)
        given_x = sample.weight @ np.log(std) + 0.5 * np.log(2 * np.pi * np.e)
        return tasks, lambda integrals: DifferentialAmounts(
            np.array(integrals), given_x, sample.weight, factors
        )


def _refuse_unresolved(mean, std):
    points = (std == 0).any(axis=0)
    if points.any():
        raise ValueError(
            f"Z_std is 0 for latent {np.argmax(points)}: a point has no differential "
            "entropy. Pass a positive std, or method='quantization'."
        )
    fine = resolved(mean, std)
    if not fine.all():
        latent = np.argmin(fine)
        raise ValueError(
            f"Z_std of latent {latent} is too small for the range of its means to be "
            f"integrated in float64 (down to {std[:, latent].min():g}): pass "
            "method='quantization'."
        )


def resolved(mean, std, deepest=DEEPEST):
    """Return which latents float64 can integrate, (n_latents,)."""
    finest = std.min(axis=0)
    span = np.ptp(mean, axis=0) + 2 * REACH * std.max(axis=0)
    with np.errstate(over="ignore"):
        return (span < finest * 2.0**deepest) & (finest >= SMALLEST)


def integral_tasks(mean, std, design, blocks):
    """Return one call of `latent_integrals` a latent."""
    # Far from the origin a narrow Gaussian is lost; entropies do not depend on it.
    return [
        delayed(latent_integrals)(Mixture(m - m[0], s, design), blocks)
        for m, s in zip(mean.T.copy(), std.T.copy(), strict=True)
    ]


def latent_integrals(mixture, blocks):
    """Return h(z), then I(z, y_k) and h(z, y_k) of each factor, in nats."""
    classes = mixture.design.sum(axis=0)[1:]

    def integrand(density):
        rows = [_entropy_terms(density[:1])]
        for block in blocks:
            joint, mass = density[1:][block], classes[block]
            joint, share = joint / mass.sum(), mass / mass.sum()
            share = np.where(share > SMALLEST, share, 1.0)  # less has nothing to add
            whole = joint.sum(axis=0)
            filled = (joint > 0) & (whole > 0)
            given_z = np.divide(joint, whole, where=filled, out=np.ones_like(joint))
            rows.append(xlogy(joint, given_z / share[:, None]).sum(axis=0))
            rows.append(_entropy_terms(joint))
        return np.array(rows)

    return integrate(mixture, integrand)


def _entropy_terms(joint):
    # Where densities underflow, interpolation can leave the smallest float below 0.
    return -xlogy(joint, np.where(joint > 0, joint, 1.0)).sum(axis=0)


@dataclass(frozen=True)
class DifferentialAmounts:
    """Differential entropies and mutual informations of latents, in nats.

    Attributes
    ----------
    integrals : ndarray of shape (n_latents, 1 + 2 * n_factors)
        See `latent_integrals`.
    entropy_given_x : ndarray of shape (n_latents,)
        Mean entropy of the rows' posteriors.
    weight : ndarray of shape (n_samples,)
        p(x) of the rows.
    factors : Factors or None
        The factors in the integrals.
    """

    integrals: np.ndarray
    entropy_given_x: np.ndarray
    weight: np.ndarray
    factors: object = None

    # Differential entropies have no largest value, and no bins to fill.
    log_n_bins = None
    mutual_info_bias = None

    @property
    def latent_entropy(self):
        """h(z_i), (n_latents,)."""
        return self.integrals[:, 0]

    @property
    def informativeness(self):
        """I(x, z_i) = h(z_i) - h(z_i | x), (n_latents,)."""
        return self.latent_entropy - self.entropy_given_x

    @property
    def mutual_info(self):
        """I(z_i, y_k), (n_latents, n_factors)."""
        return self.integrals[:, 1::2]

    @property
    def joint_entropy(self):
        """h(z_i, y_k), (n_latents, n_factors)."""
        return self.integrals[:, 2::2]

    @cached_property
    def factor_entropy(self):
        """H(y_k) over the rows where the factor is known, (n_factors,)."""
        return factor_entropies(self.factors, self.weight)
