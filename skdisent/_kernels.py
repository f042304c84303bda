"""Log of sums of weighted Gaussian densities over all rows, for many sets of latents.

Two ways to the same sums. The plain one takes differences of draws and means in float64
and keeps the largest term apart. The fast one writes the exponents of all sets as one
matrix product, around a local origin and relative to each draw's own row, in the
narrowest floats that hold them to a known error; rows too far from a block of draws to
change a digit are left out by a bound.
"""

from dataclasses import dataclass

import numpy as np

from skdisent._densities import HALF_LOG_2PI

# Draws at a time and log-densities held at a time: they fit into a core's cache.
BLOCK_DRAWS = 32
BLOCK_VALUES = 1 << 17

# The same for the fast way: draws, rows that are looked at, rows in one product.
COMPACT_DRAWS = 128
CHUNK_ROWS = 1 << 13
PRODUCT_VALUES = 1 << 18

# Rows below e**-CUT of a draw's own row, all together, change no digit.
CUT = 45.0


def plain_log_sums(posterior, log_weight, rows, z, sets, wanted):
    """Return what `GaussianPosterior.log_sums` gives, the plain way."""
    n_rows = max(1, BLOCK_VALUES // (BLOCK_DRAWS * len(sets)))
    largest = np.full((len(wanted), len(z)), -np.inf)
    total = np.zeros((len(wanted), len(z)))
    for start in range(0, len(log_weight), n_rows):
        block = slice(start, start + n_rows)
        densities = posterior._densities(block, sets)
        for first in range(0, len(z), BLOCK_DRAWS):
            some = slice(first, first + BLOCK_DRAWS)
            terms = densities.at(z[some], log_weight[block], wanted)
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


@dataclass(frozen=True)
class Precision:
    """A type of float, and what its exponents can hold.

    Attributes
    ----------
    dtype : type
        The type.
    rounding : float
        Error of a single exponent that is allowed. Errors have either sign and average
        out over rows and draws.
    lowest, highest : float
        Exponents, relative to the own row's of all latents, between which those of
        every set's own row and of all others must stay.
    """

    dtype: type
    rounding: float
    lowest: float
    highest: float

    def holds(self, square, lowest, highest, std):
        """Return whether it holds such squares, exponents and inverse variances."""
        limits = np.finfo(self.dtype)
        return (
            square * limits.eps <= self.rounding
            and self.lowest < lowest
            and highest < self.highest
            and std > limits.tiny**0.25
        )

    @property
    def smallest(self):
        """Exponent below which exponentials are denormal, and slow to compute."""
        return np.log(np.finfo(self.dtype).tiny) + 1


PRECISIONS = (
    Precision(np.float32, 1e-3, -40.0, 80.0),
    Precision(np.float64, 1e-8, -600.0, 700.0),
)


class PrecisionError(ArithmeticError):
    """No type of float holds the exponents of the fast way."""


def narrowest(square, lowest, highest, std):
    """Return the narrowest precision that holds the work.

    Parameters
    ----------
    square : float
        Largest sum of squared distances in units of std, halved.
    lowest, highest : float
        Least exponent of a set's own row and largest of any row, relative to that of
        all latents of the own row.
    std : float
        Smallest std.
    """
    for precision in PRECISIONS:
        if precision.holds(square, lowest, highest, std):
            return precision
    raise PrecisionError


def compact_blocks(z, std):
    """Return the draws in blocks of neighbours, as a list of index arrays.

    Distances are in units of the posteriors' usual std.
    """
    log_scale = np.log(std).mean(axis=0)
    stack, blocks = [np.arange(len(z))], []
    while stack:
        some = stack.pop()
        if len(some) <= COMPACT_DRAWS:
            blocks.append(some)
            continue
        extent = np.maximum(np.ptp(z[some], axis=0), np.finfo(np.float64).tiny)
        widest = np.argmax(np.log(extent) - log_scale)
        n_blocks = -(-len(some) // COMPACT_DRAWS)
        half = n_blocks // 2 * COMPACT_DRAWS
        order = np.argpartition(z[some, widest], half)
        stack += [some[order[half:]], some[order[:half]]]
    return blocks


def diagonal_log_sums(posterior, log_weight, rows, z, own, sets, wanted):
    """Return what `GaussianPosterior.log_sums` gives, the fast way where it can.

    A sum is too small where it is less than e**-CUT of the own row.
    """
    result = np.empty((len(wanted), len(z)))
    for some in compact_blocks(z, posterior.std):
        block = _Block(z[some], rows[some], own[:, some], sets, wanted)
        try:
            result[:, some] = block.log_sums(posterior, log_weight)
        except PrecisionError:
            result[:, some] = plain_log_sums(
                posterior, log_weight, rows[some], z[some], sets, wanted
            )
    return result


class _Block:
    """Some neighbouring draws, and their sums over rows so far."""

    def __init__(self, z, rows, own, sets, wanted):
        self.rows, self.sets, self.wanted = rows, sets, wanted
        self.members = sets.membership[wanted]
        self.origin = (z.max(axis=0) + z.min(axis=0)) / 2
        self.z = z - self.origin
        self.reach = abs(self.z).max(axis=0)[:, None]
        self.reference = own[0]
        self.least = own[wanted].min(axis=1)[:, None]
        self.lowest = (own[wanted] - own[0]).min()
        self.total = np.zeros((len(z), len(wanted)))

    def log_sums(self, posterior, log_weight):
        """Return the logs of the sums over all rows, (n_wanted, n_draws)."""
        for start in range(0, len(log_weight), CHUNK_ROWS):
            chunk = slice(start, start + CHUNK_ROWS)
            mean, std = posterior.mean[chunk].T, posterior.std[chunk].T
            self.add(start, mean, std, log_weight[chunk])
        with np.errstate(divide="ignore"):  # no other row: log 0
            return (np.log(self.total) + self.reference[:, None]).T

    def add(self, start, mean, std, log_weight):
        """Add rows from `start` on; mean and std have shape (n_latents, n_rows)."""
        offset = mean - self.origin[:, None]
        log_std = np.log(std) + HALF_LOG_2PI
        apart = np.abs(offset)
        nearest = np.maximum(apart - self.reach, 0.0)
        with np.errstate(over="ignore"):  # a distance beyond the floats is far
            nearest /= std
            nearest *= nearest
            square = (((apart + self.reach) / std) ** 2).sum(axis=0) / 2
        bound = self.sets.sums(-0.5 * nearest - log_std, log_weight)[self.wanted]
        kept = np.flatnonzero((bound - self.least > -CUT).any(axis=0))
        if not len(kept):
            return
        offset, std, log_std = offset[:, kept], std[:, kept], log_std[:, kept]
        precision = narrowest(
            square[kept].max(),
            self.lowest,
            bound[:, kept].max() - self.reference.min(),
            std.min(),
        )
        own = _positions(kept + start, self.rows)
        size = max(1, PRODUCT_VALUES // (len(self.z) * len(self.wanted)))
        for first in range(0, len(kept), size):
            some = slice(first, first + size)
            features = self._row_features(
                offset[:, some],
                std[:, some],
                log_std[:, some],
                log_weight[kept[some]],
                precision.dtype,
            )
            self._add_product(features, precision, own - first)

    def _row_features(self, offset, std, log_std, log_weight, dtype):
        """Return the features of rows, (2 * n_latents + 2, n_wanted, n_rows).

        The exponent of a set is their product with the features of a draw: the sum over
        the set of -(z - m)**2 / (2 * std**2) - log(std), multiplied out.
        """
        n_latents = len(offset)
        quadratic = -0.5 / (std * std)
        linear = -2 * quadratic * offset
        constant = -0.5 * linear * offset - log_std
        shape = (2 * n_latents + 2, len(self.wanted), offset.shape[1])
        features = np.empty(shape, dtype)
        members = self.members.T[:, :, None].astype(dtype)
        for part, one in (
            (slice(n_latents), quadratic),
            (slice(n_latents, -2), linear),
        ):
            np.multiply(members, one.astype(dtype)[:, None, :], out=features[part])
        features[-2] = self.sets.sums(constant, log_weight)[self.wanted]
        features[-1] = 1.0
        return features

    def _add_product(self, features, precision, own):
        ones = np.ones((len(self.z), 1))
        draws = np.hstack([self.z * self.z, self.z, ones, -self.reference[:, None]])
        n_wanted, n_rows = features.shape[1:]
        exponents = draws.astype(precision.dtype) @ features.reshape(len(features), -1)
        # What is that small beside the own row changes no digit.
        np.maximum(exponents, precision.smallest, out=exponents)
        exponents = exponents.reshape(len(self.z), n_wanted, n_rows)
        inside = np.flatnonzero((own >= 0) & (own < n_rows))
        exponents[inside, :, own[inside]] = -np.inf
        np.exp(exponents, out=exponents)
        self.total += exponents.sum(axis=2)


def _positions(sorted_values, wanted):
    """Return where each wanted value stands, -1 where it is not there."""
    place = np.searchsorted(sorted_values, wanted)
    inside = np.minimum(place, len(sorted_values) - 1)
    return np.where(sorted_values[inside] == wanted, inside, -1)
