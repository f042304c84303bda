"""Log of sums of weighted Gaussian densities over all rows, for many sets of latents.

Two ways to the same sums. The plain one takes differences of draws and means in float64
and keeps the largest term apart. The fast one goes through blocks of neighbouring
draws: rows too far from a block to change a digit are left out by a bound, and the
exponents of the others are one matrix product a set, around the middle of the block, in
the narrowest floats that hold them to a known error (`_expansions`).
"""

from dataclasses import dataclass

import numpy as np

from skdisent._expansions import DiagonalRows, FullRows
from skdisent._steady import SteadyLatents

# Draws at a time and log-densities held at a time: they fit into a core's cache.
BLOCK_DRAWS = 32
BLOCK_VALUES = 1 << 17

# The same for the fast way: draws in a block, values held for rows, rows in a product.
COMPACT_DRAWS = 128
CHUNK_VALUES = 1 << 21
PRODUCT_ROWS = 1 << 11

# Where so few rows fit into a chunk, what each of them costs is not made good.
LEAST_ROWS = 128

# Share of the rows from which on choosing them costs more than summing all.
NEARLY_ALL = 0.8

# Rows below e**-CUT of a draw's own row, all together, change no digit.
CUT = 45.0

# Amounts below it are rounding of the fast way, in nats.
ROUNDING = 1e-6


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
    highest : float
        Largest exponent, relative to that of the own row.
    """

    dtype: type
    rounding: float
    highest: float

    def holds(self, square, highest, least_std, largest_std):
        """Return whether it holds such squares, exponents and variances."""
        limits = np.finfo(self.dtype)
        return (
            self.holds_square(square)
            and highest < self.highest
            and limits.tiny**0.25 < least_std
            and largest_std < limits.max**0.25
        )

    def holds_square(self, square):
        """Return whether it holds sums of such squares."""
        return square * np.finfo(self.dtype).eps <= self.rounding

    @property
    def smallest(self):
        """Exponent below which exponentials are denormal, and slow to compute."""
        return self.dtype(np.log(np.finfo(self.dtype).tiny) + 1)


PRECISIONS = (
    Precision(np.float32, 1e-3, 80.0),
    Precision(np.float64, 1e-8, 700.0),
)


class PrecisionError(ArithmeticError):
    """No type of float holds the exponents of the fast way."""


def narrowest(square, highest, least_std, largest_std):
    """Return the narrowest precision that holds the work.

    Parameters
    ----------
    square : float
        Largest sum of squared distances in units of std, halved.
    highest : float
        Largest exponent of any row relative to that of a draw's own row.
    least_std, largest_std : float
        Smallest and largest std.
    """
    for precision in PRECISIONS:
        if precision.holds(square, highest, least_std, largest_std):
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


def fast_log_sums(posterior, log_weight, rows, z, own, sets, wanted):
    """Return what `GaussianPosterior.log_sums` gives, the fast way where it can.

    A sum is too small where it is less than e**-CUT of the own row.
    """
    kind = DiagonalRows if posterior.covariance is None else FullRows
    n_rows = CHUNK_VALUES // kind.values_per_row(posterior, len(wanted))
    if n_rows < LEAST_ROWS:
        return plain_log_sums(posterior, log_weight, rows, z, sets, wanted)
    blocks = [
        _Block(some, z[some], rows[some], own[np.ix_(wanted, some)])
        for some in compact_blocks(z, posterior.marginal_std)
    ]
    members = sets.membership[wanted]
    for start in range(0, len(log_weight), n_rows):
        some = slice(start, start + n_rows)
        part = posterior[some]
        expanded = kind(part, log_weight[some], members)
        chunk = _Chunk(start, part, expanded, z, sets, wanted)
        for block in blocks:
            block.add(chunk)
    result = np.empty((len(wanted), len(z)))
    for block in blocks:
        result[:, block.draws] = block.log_total
    return result


class _Chunk:
    """Some rows, from `start` on, and what all blocks of draws need of them."""

    def __init__(self, start, posterior, expanded, z, sets, wanted):
        self.start, self.posterior, self.expanded = start, posterior, expanded
        self.sets, self.wanted = sets, wanted
        self.steady = SteadyLatents(expanded, z.min(axis=0), z.max(axis=0))
        self.steady_weights = self.steady.weights(z)

    def columns(self, k, some, dtype):
        """Return what the densities of some rows are summed with, for the k-th set.

        Ones, and beside all latents what leaves the steady ones out.
        """
        if k > 0:
            return np.ones((len(some), 1), dtype)
        factors = self.steady.factors(dtype)
        return factors if len(some) == len(factors) else factors[some]


class _Block:
    """Some neighbouring draws, and their sums over rows so far."""

    def __init__(self, draws, z, rows, own):
        self.draws, self.z, self.rows, self.own = draws, z, rows, own
        self.origin = (z.max(axis=0) + z.min(axis=0)) / 2
        self.reach = abs(z - self.origin).max(axis=0)
        self.log_total = np.full(own.shape, -np.inf)

    def add(self, chunk):
        """Add the rows of a chunk."""
        if not chunk.expanded.held:
            self._add(self._plain(chunk, np.arange(len(chunk.posterior))))
            return
        around = chunk.expanded.around(self.origin, self.reach)
        bound = around.bound - self.own.min(axis=1)[:, None]
        kept = bound > -CUT
        some = np.flatnonzero(kept.any(axis=0))
        if not len(some):
            return
        try:
            precision = narrowest(
                around.square[some].max(), bound.max(), *chunk.expanded.std_range
            )
        except PrecisionError:
            added = self._plain(chunk, some)
        else:
            with np.errstate(divide="ignore"):  # no other row: log 0
                added = np.log(self._sums(chunk, around, kept, precision)) + self.own
        self._add(added)

    def _add(self, logs):
        np.logaddexp(self.log_total, logs, out=self.log_total)

    def _sums(self, chunk, around, kept, precision):
        """Return sums relative to the own row from products, (n_wanted, n_draws)."""
        around.expand(precision.dtype)
        all_held = precision.holds_square(around.square.max())
        steady = chunk.steady
        kept[0] |= kept[steady.sets].any(axis=0)
        total = np.zeros(self.own.shape)
        for k in np.setdiff1d(np.flatnonzero(kept.any(axis=1)), steady.sets):
            some = np.flatnonzero(kept[k])
            if all_held and len(some) > NEARLY_ALL * kept.shape[1]:
                some = np.arange(kept.shape[1])
            columns = chunk.columns(k, some, precision.dtype)
            products = _exponentials(
                around.row_features(k, some),
                around.draw_features(k, self.z - self.origin, self.own[k]),
                _positions(some + chunk.start, self.rows),
                precision,
            )
            sums = sum(columns[piece].T @ terms for piece, terms in products)
            total[k] = sums[0]
            if k == 0:
                at_nodes = sums[1:].reshape(-1, steady.n_nodes, len(self.z))
                weights = chunk.steady_weights[..., self.draws]
                total[steady.sets] = (at_nodes * weights).sum(axis=1)
        total[steady.sets] *= np.exp(self.own[0] - self.own[steady.sets])
        return total

    def _plain(self, chunk, some):
        return plain_log_sums(
            chunk.posterior[some],
            chunk.expanded.log_weight[some],
            _positions(some + chunk.start, self.rows),
            self.z,
            chunk.sets,
            chunk.wanted,
        )


def _exponentials(rows, draws, own, precision):
    """Yield slices of the rows, and e to their exponents, (n_rows, n_draws).

    Each draw's own row, where `own` says, counts as nothing.
    """
    draws = draws.astype(precision.dtype)
    highest = precision.dtype(precision.highest)
    # Fresh memory for every piece would take as long as its exponentials.
    buffer = np.empty((min(PRODUCT_ROWS, len(rows)), draws.shape[1]), draws.dtype)
    for first in range(0, len(rows), PRODUCT_ROWS):
        piece = slice(first, first + PRODUCT_ROWS)
        exponents = buffer[: len(rows[piece])]
        np.matmul(rows[piece], draws, out=exponents)
        # What is that small beside the own row changes no digit.
        np.clip(exponents, precision.smallest, highest, out=exponents)
        here = own - first
        inside = np.flatnonzero((here >= 0) & (here < len(exponents)))
        exponents[here[inside], inside] = -np.inf
        yield piece, np.exp(exponents, out=exponents)


def _positions(sorted_values, wanted):
    """Return where each wanted value stands, -1 where it is not there."""
    place = np.searchsorted(sorted_values, wanted)
    inside = np.minimum(place, len(sorted_values) - 1)
    return np.where(sorted_values[inside] == wanted, inside, -1)
