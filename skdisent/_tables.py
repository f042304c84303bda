"""Additive tables: bin masses of each latent times factors times weights.

Every table is a sum over rows, so batches of rows, threads, shards and groups of rows
are one mechanism: tables of parts add up to the table of the whole.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.special import entr, xlogy

from skdisent._discretization import bin_masses, guessed_bin_indices
from skdisent._plan import Plan, delayed

# Rows at a time: their bin masses fit into a core's cache.
BATCH_ROWS = 512

# Octaves of widths that count as alike.
OCTAVES = 0.5

# Rows at a time that a series may stand for; half the range of their means in stds, and
# of their log stds, that it may cover; its nodes on each axis; what its last terms may
# add to a mass, and the least that a term adds; the least mass that it is used for.
SMOOTH_ROWS = 4096
SMOOTH_HALF = 0.2
N_SMOOTH = 11
LAST_TERMS = 1e-15
LEAST_TERM = 1e-16
SMOOTH_MASS = 1e-9
CHEBYSHEV_NODES = np.cos(np.pi * (np.arange(N_SMOOTH) + 0.5) / N_SMOOTH)
TO_CHEBYSHEV = np.linalg.inv(
    np.polynomial.chebyshev.chebvander(CHEBYSHEV_NODES, N_SMOOTH - 1)
)
DEGREES = np.add.outer(np.arange(N_SMOOTH), np.arange(N_SMOOTH))

# Widths of a posterior beyond which it has no mass, 1e-19 of it, that changes a digit.
REACH = 9.0


@dataclass(frozen=True)
class LatentTable:
    """Sums over rows for one latent, on a leading axis of groups of rows.

    Attributes
    ----------
    mass : ndarray of shape (n_groups, 1 + total n_classes, n_bins)
        Row 0: weighted bin masses, the others: the same times p(class | x).
    squares : ndarray of shape (n_groups, 1 + total n_classes, n_bins)
        The same sums with every term squared, which tell the bias of plug-in amounts.
    row_entropy : ndarray of shape (n_groups,)
        Weighted sum of the entropies of the rows' own bin masses, in nats.
    """

    mass: np.ndarray
    squares: np.ndarray
    row_entropy: np.ndarray

    def __add__(self, other):
        return LatentTable(
            self.mass + other.mass,
            self.squares + other.squares,
            self.row_entropy + other.row_entropy,
        )


def design_matrix(weight, factors=None, groups=None):
    """Return the rows' weights times ``[1 | Y]``, columns offset by the row's group.

    Parameters
    ----------
    weight : ndarray of shape (n_samples,)
        Weights of the rows.
    factors : csr_array of shape (n_samples, total n_classes), default=None
        The one matrix of all factors.
    groups : ndarray of int of shape (n_samples,), default=None
        Group of each row, from 0; None is one group.

    Returns
    -------
    csr_array of shape (n_samples, n_groups * (1 + total n_classes))
    """
    columns = sparse.csr_array(np.ones((len(weight), 1)))
    if factors is not None:
        columns = sparse.hstack([columns, factors], format="csr")
    columns.data *= np.repeat(weight, np.diff(columns.indptr))
    return columns if groups is None else grouped(columns, groups, groups.max() + 1)


def grouped(columns, groups, n_groups):
    """Return columns for each group of rows: those of a row offset by its group."""
    width = columns.shape[1]
    offset = np.repeat(groups * width, np.diff(columns.indptr))
    return sparse.csr_array(
        (columns.data, columns.indices + offset, columns.indptr),
        shape=(columns.shape[0], n_groups * width),
    )


def latent_table(mean, std, inner, design, n_groups=1):
    """Return the `LatentTable` of one latent.

    Parameters
    ----------
    mean, std : ndarray of shape (n_samples,)
        The latent's posteriors.
    inner : ndarray of shape (n_bins - 1,)
        Edges between the bins.
    design : csr_array of shape (n_samples, n_groups * (1 + total n_classes))
        See `design_matrix`.
    n_groups : int
        Number of groups of rows in the design.
    """
    shape = (design.shape[1], len(inner) + 1)
    sums = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])
    # Rows of like widths, and neighbours among them, share a band of bins, outside of
    # which they have no mass.
    with np.errstate(divide="ignore"):  # points have a width of their own
        width = np.floor(np.log2(std) / OCTAVES)
    order = np.lexsort((mean, width))
    width = width[order]
    changes = np.flatnonzero(width[1:] != width[:-1]) + 1
    for alike in np.split(order, changes):
        for start in range(0, len(alike), SMOOTH_ROWS):
            rows = alike[start : start + SMOOTH_ROWS]
            _add_rows(sums, mean[rows], std[rows], inner, design[rows])
    mass, squares, row_entropy = (
        one.reshape(n_groups, -1, *one.shape[1:]) for one in sums
    )
    return LatentTable(mass, squares, row_entropy[:, 0])


def _add_rows(sums, mean, std, inner, design):
    """Add rows to the sums of masses, squared masses and entropies, in place."""
    smooth = SmoothTerms.of(mean, std, inner)
    if smooth is not None:
        smooth.add(sums, mean, std, design)
        return
    for start in range(0, len(mean), BATCH_ROWS):
        rows = slice(start, start + BATCH_ROWS)
        _add_batch(sums, mean[rows], std[rows], inner, design[rows].T)


def _add_batch(sums, mean, std, inner, columns):
    total, squares, entropies = sums
    band = _band(mean, std, inner)
    masses = bin_masses(mean, std, inner[band.start : band.stop - 1])
    total[:, band] += columns @ masses
    entropies += columns @ _row_entropies(masses)
    masses *= masses
    squares[:, band] += columns.power(2) @ masses


def _band(mean, std, inner):
    """Return the bins that any of the rows reaches."""
    first = np.searchsorted(inner, (mean - REACH * std).min())
    last = np.searchsorted(inner, (mean + REACH * std).max(), side="right")
    return slice(first, last + 1)


def _row_entropies(masses):
    """Return the entropies of rows of masses that sum to 1."""
    # An empty bin counts as a full one, whose term is 0 too.
    return -(masses * np.log(masses + (masses <= 0))).sum(axis=-1)


class SmoothTerms:
    """Masses of rows that hardly differ, as polynomials of mean and log std.

    The rows of a collapsed latent fill a small rectangle. On it masses, their squares
    and the entropies are Chebyshev series of few terms, so that a row costs its terms
    instead of its bins.

    Parameters
    ----------
    middle, half : ndarray of shape (2,)
        The rectangle of mean and log std.
    degrees : tuple of two ndarrays of shape (n_terms,)
        Degrees of the terms in mean and in log std.
    coefficients : ndarray of shape (n_terms, 2 * n_bins + 1)
        Of masses, squares and entropies.
    """

    def __init__(self, middle, half, degrees, coefficients):
        self.middle, self.half = middle, half
        self.degrees, self.coefficients = degrees, coefficients

    @classmethod
    def of(cls, mean, std, inner):
        """Return the terms of some rows, None where few do not hold all digits."""
        if len(mean) < SMOOTH_ROWS or std.min() == 0:
            return None
        bounds = np.array(
            [[mean.min(), mean.max()], [np.log(std.min()), np.log(std.max())]]
        )
        middle, half = bounds.mean(axis=1), np.ptp(bounds, axis=1) / 2
        if half[0] > SMOOTH_HALF * std.min() or half[1] > SMOOTH_HALF:
            return None
        means, log_stds = CHEBYSHEV_NODES * half[:, None] + [[0.0], [middle[1]]]
        nodes = np.repeat(means, N_SMOOTH), np.exp(np.tile(log_stds, N_SMOOTH))
        # Around their middle the nodes are exact, however far from 0 the rows are.
        masses = bin_masses(*nodes, inner - middle[0])
        values = np.column_stack([masses, masses**2, _row_entropies(masses)])
        # One axis after the other: the last axis holds the values.
        series = TO_CHEBYSHEV @ values.reshape(N_SMOOTH, -1)
        series = TO_CHEBYSHEV @ series.reshape(N_SMOOTH, N_SMOOTH, -1)
        largest = abs(series).max(axis=2)
        last = largest[DEGREES >= N_SMOOTH - 1].max()
        if last > LAST_TERMS or masses.min() < SMOOTH_MASS:
            return None
        degrees = np.nonzero(largest > LEAST_TERM)
        return cls(middle, half, degrees, series[degrees])

    def add(self, sums, mean, std, design):
        """Add rows to the sums of masses, squared masses and entropies, in place."""
        columns = design.T
        terms = self._terms(mean, np.log(std))
        by_column = (columns @ terms) @ self.coefficients
        squared = (columns.power(2) @ terms) @ self.coefficients
        total, squares, entropies = sums
        n_bins = total.shape[1]
        total += by_column[:, :n_bins]
        squares += squared[:, n_bins:-1]
        entropies += by_column[:, -1]

    def _terms(self, mean, log_std):
        scale = np.where(self.half > 0, self.half, 1.0)
        x = (mean - self.middle[0]) / scale[0]
        y = (log_std - self.middle[1]) / scale[1]
        j, k = self.degrees
        terms = np.polynomial.chebyshev.chebvander(x, j.max())[:, j]
        terms *= np.polynomial.chebyshev.chebvander(y, k.max())[:, k]
        return terms


@dataclass(frozen=True)
class TablePlan(Plan):
    """The tables of every latent, with all factors of the sample.

    Plans that compare equal do the same work.

    Attributes
    ----------
    edges : tuple of n_latents tuples of float
        Edges between the bins of each latent.
    """

    edges: tuple

    def prepare(self, sample):
        """Return one task a latent, for the `QuantizedAmounts` of the sample."""
        mean, std = sample.posterior.mean, sample.posterior.marginal_std
        factors = None if sample.factors is None else sample.factors.matrix
        design = design_matrix(sample.weight, factors)
        tasks = [
            delayed(latent_table)(mean[:, latent], std[:, latent], inner, design)
            for latent, inner in enumerate(map(np.array, self.edges))
        ]
        return tasks, lambda tables: QuantizedAmounts(
            tables, sample.weight, sample.factors
        )


@dataclass(frozen=True)
class QuantizedAmounts:
    """Entropies and mutual informations of quantized latents, in nats.

    Attributes
    ----------
    tables : list of n_latents LatentTable
        One group of rows each.
    weight : ndarray of shape (n_samples,)
        p(x) of the rows.
    factors : Factors or None
        The factors in the tables.
    """

    tables: list
    weight: np.ndarray
    factors: object = None

    @cached_property
    def log_n_bins(self):
        """Largest possible entropy of each latent, (n_latents,)."""
        return np.log([table.mass.shape[-1] for table in self.tables])

    @cached_property
    def latent_entropy(self):
        """H(z_i), (n_latents,)."""
        return np.array([entropy(table.mass[0, 0]) for table in self.tables])

    @cached_property
    def informativeness(self):
        """I(x, z_i) = H(z_i) - H(z_i | x), (n_latents,)."""
        given_x = np.array([table.row_entropy[0] for table in self.tables])
        return self.latent_entropy - given_x

    @cached_property
    def factor_entropy(self):
        """H(y_k) over the rows where the factor is known, (n_factors,)."""
        return factor_entropies(self.factors, self.weight)

    @cached_property
    def joint_entropy(self):
        """H(z_i, y_k), (n_latents, n_factors)."""
        return self._per_pair(entropy)

    @cached_property
    def mutual_info(self):
        """I(z_i, y_k), (n_latents, n_factors)."""
        return self._per_pair(mutual_information)

    def _per_pair(self, formula):
        return np.array(
            [
                [formula(table.mass[0, 1:][one]) for one in self.factors.blocks()]
                for table in self.tables
            ]
        )

    @cached_property
    def mutual_info_bias(self):
        """First-order bias of I(z_i, y_k) as an estimate, (n_latents, n_factors).

        ``(eff_zy - eff_z - eff_y + 1) / 2N``, where eff counts the cells that the rows
        fill, each by its share of hard rows.
        """
        weight, matrix = self.weight, self.factors.matrix
        classes, class_squares = matrix.T @ weight, matrix.power(2).T @ weight**2
        bias = np.empty((len(self.tables), len(self.factors.labels)))
        known_rows = self.factors.known()
        for k, block in enumerate(self.factors.blocks()):
            known = known_rows[k]
            total = weight[known].sum()
            rows = (weight[known] ** 2).sum() / total**2  # 1 / N
            eff_y = _cells(class_squares[block], classes[block]) / total / rows
            for i, table in enumerate(self.tables):
                mass, squares = table.mass[0], table.squares[0]
                eff_z = _cells(squares[0], mass[0]) / (weight**2).sum()
                eff_zy = _cells(squares[1:][block], mass[1:][block]) / total / rows
                bias[i, k] = (eff_zy - eff_z - eff_y + 1) * rows / 2
        return bias


def factor_entropies(factors, weight):
    """Return H(y_k) in nats over the rows where the factor is known, (n_factors,)."""
    classes = factors.matrix.T @ weight
    return np.array([entropy(classes[one]) for one in factors.blocks()])


def entropy(mass):
    """Return the entropy in nats of masses of any shape and any positive sum."""
    return entr(mass / mass.sum()).sum()


def mutual_information(joint):
    """Return the mutual information in nats of the two axes of a table of masses.

    The two ratios are exactly 1 where one class has all of the mass.
    """
    of_class = joint.sum(axis=1, keepdims=True)
    of_bin = joint.sum(axis=0, keepdims=True)
    total = of_class.sum()
    filled = joint > 0
    class_in_bin = np.divide(joint, of_bin, where=filled, out=np.ones_like(joint))
    # A class of less has nothing to add, and its share no reciprocal in the floats.
    counted = of_class > 1e-300 * total
    share = np.divide(total, of_class, where=counted, out=np.ones_like(of_class))
    return xlogy(joint, class_in_bin * share).sum() / total


def _cells(squares, mass):
    return np.divide(squares, mass, where=mass > 0, out=np.zeros_like(mass)).sum()


@dataclass(frozen=True)
class MeanPairPlan(Plan):
    """The joint tables of the posterior means of every two latents."""

    edges: tuple

    def prepare(self, sample):
        """Return one task a latent, for H(zbar_i, zbar_j), (n_latents, n_latents).

        The diagonal holds H(zbar_i); in nats.
        """
        mean = sample.posterior.mean + 0.0
        bins = [
            guessed_bin_indices(column, np.array(inner))
            for column, inner in zip(mean.T, self.edges, strict=True)
        ]
        n = len(bins)
        tasks = [
            delayed(pair_entropies)(bins[i], bins[i:], sample.weight) for i in range(n)
        ]

        def collect(rows):
            joint = np.empty((n, n))
            for i, values in enumerate(rows):
                joint[i, i:] = joint[i:, i] = values
            return joint

        return tasks, collect


def pair_entropies(first, others, weight):
    """Return the joint entropies in nats of a column of bins and each of others."""
    return [pair_entropy(first, second, weight) for second in others]


def pair_entropy(first, second, weight):
    """Return the joint entropy in nats of two columns of bin indices."""
    cells = first * (second.max() + 1) + second
    return entropy(np.bincount(cells, weights=weight))
