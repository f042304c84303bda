"""Factors y of any kind, read into one row-stochastic matrix."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.preprocessing import KBinsDiscretizer

from skdisent._discretization import bin_masses, fit_discretizer, inner_edges
from skdisent._posterior import GaussianPosterior, axis_key, checked_posterior
from skdisent._sklearn import _safe_indexing
from skdisent._validation import (
    as_array,
    as_float_array,
    as_float_matrix,
    column_names,
    naming,
    refuse_lossy,
)
from skdisent.exceptions import warn

__all__ = ["FactorPosterior"]

# Class probabilities in float32 sum to 1 up to their own rounding.
SUM_TOLERANCE = 1e-4


class FactorPosterior:
    """Factors p(y_k | x) that are not plain labels, in the place of y.

    Parameters
    ----------
    columns : list of n_factors columns
        Each one labels of shape (n_samples,), probabilities of shape
        (n_samples, n_classes) whose rows sum to 1, or a :class:`GaussianPosterior`
        with one latent, which is a stochastic continuous factor.
    names : list of str, default=None
        Names of the factors.

    Attributes
    ----------
    columns : list of n_factors columns
        The columns, as arrays or posteriors.
    names : list of str or None
        Names of the factors.

    Raises
    ------
    ValueError
        If a column has none of these shapes, or lengths differ.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import FactorPosterior
    >>> expert = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    >>> y = FactorPosterior([expert, ["red", "blue", "red"]], names=["shape", "hue"])
    >>> y
    FactorPosterior(n_samples=3, n_factors=2)
    >>> y[:2].shape
    (2, 2)
    """

    # __len__ and __getitem__ alone would make it unpack into rows.
    __iter__ = None
    ndim = 2

    def __init__(self, columns, names=None):
        if not isinstance(columns, list | tuple) or not columns:
            raise ValueError(
                "columns must be a non-empty list with one entry a factor, got "
                f"{type(columns).__name__}."
            )
        self.columns = [_column(one, k) for k, one in enumerate(columns)]
        lengths = {len(one) for one in self.columns}
        if len(lengths) > 1:
            raise ValueError(
                f"columns must have one length, got {sorted(lengths)} rows."
            )
        if isinstance(names, str):
            raise ValueError(
                f"names must be a list of names, got the string {names!r}."
            )
        self.names = None if names is None else [str(one) for one in names]
        if names is not None and len(self.names) != len(columns):
            raise ValueError(
                f"names has {len(self.names)} entries for {len(columns)} columns."
            )

    @property
    def shape(self):
        """Number of rows and of factors."""
        return len(self), len(self.columns)

    def __len__(self):
        return len(self.columns[0])

    def __repr__(self):
        return "FactorPosterior(n_samples={}, n_factors={})".format(*self.shape)

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "a FactorPosterior is not one array of labels: splitters that stratify by "
            "y cannot use it, so pass cv=KFold(...), and read single factors from "
            ".columns."
        )

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) == 2 and keys[1] is Ellipsis:
            keys = keys[:1]
        if len(keys) != 1:
            raise IndexError(
                f"a FactorPosterior is indexed by rows only, got the key {key!r}."
            )
        rows = slice(None) if keys[0] is Ellipsis else axis_key(keys[0], len(self))
        return FactorPosterior([one[rows] for one in self.columns], self.names)


def _column(value, k):
    """Return one column of a FactorPosterior, its shape checked."""
    name = f"columns[{k}]"
    if isinstance(value, GaussianPosterior):
        if value.shape[1] != 1:
            raise ValueError(
                f"{name} is a posterior of {value.shape[1]} latents: a factor is a "
                "GaussianPosterior of one."
            )
        return value
    array = _label_array(value, name)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} must be labels of shape (n_samples,) or probabilities of shape "
            f"(n_samples, n_classes), got shape {array.shape}."
        )
    return array


@dataclass(frozen=True)
class Factors:
    """All factors side by side, one block of columns each.

    Attributes
    ----------
    matrix : csr_array of shape (n_samples, total n_classes)
        p(y_k | x) of every factor: the rows of a block sum to 1, or are empty where the
        label is missing.
    offsets : ndarray of shape (n_factors + 1,)
        First column of each block.
    labels : list of n_factors str
        What a message calls the factor.
    names : ndarray of shape (n_factors,) or None
        Names, where they were given.
    discretizers : list of n_factors fitted discretizers or None
        The bins of continuous factors.
    """

    matrix: sparse.csr_array
    offsets: np.ndarray
    labels: list
    names: np.ndarray | None
    discretizers: list

    def blocks(self):
        """Return the slice of columns of each factor."""
        ends = self.offsets
        return [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]

    def known(self):
        """Return in which rows each factor is known, (n_factors, n_samples)."""
        return np.array(
            [np.diff(self.matrix[:, block].indptr) > 0 for block in self.blocks()]
        )


@dataclass(frozen=True)
class FactorReader:
    """How the columns of y are turned into blocks.

    Attributes
    ----------
    discretizer : discretizer or None
        For continuous factors; None is ten equal-frequency bins and a warning.
    missing : {"error", "drop"}
        Whether a missing label is an error or an empty row.
    fitted : list of fitted discretizers or None
        Those of an earlier reading, to be used again.
    fitted_names : ndarray of shape (n_factors,) or None
        The names in an earlier reading, to be compared with.
    """

    discretizer: object = None
    missing: str = "error"
    fitted: list | None = None
    fitted_names: np.ndarray | None = None

    def read(self, y, n_samples, rows, sample_weight):
        """Return the `Factors` of the rows of y that have a weight."""
        columns, names = split_columns(y)
        lengths = {len(one) for one in columns}
        if lengths != {n_samples}:
            raise ValueError(
                "Z_mean and y have inconsistent numbers of samples: "
                f"{n_samples} and {max(lengths)}."
            )
        self._check_factors(columns, names)
        labels = [
            f"factor {k}" if names is None else f"factor {k} ({names[k]})"
            for k in range(len(columns))
        ]
        kept = [one[rows] for one in columns]
        read = [
            self._read_column(one, k, label, rows, sample_weight)
            for k, (one, label) in enumerate(zip(kept, labels, strict=True))
        ]
        blocks, discretizers = zip(*read, strict=True)
        widths = [block.shape[1] for block in blocks]
        return Factors(
            matrix=sparse.hstack(blocks, format="csr"),
            offsets=np.concatenate([[0], np.cumsum(widths)]),
            labels=labels,
            names=names,
            discretizers=list(discretizers),
        )

    def _check_factors(self, columns, names):
        if self.fitted is not None and len(self.fitted) != len(columns):
            raise ValueError(
                f"y has {len(columns)} factors, but the metric was fitted with "
                f"{len(self.fitted)}."
            )
        if self.fitted_names is None or names is None:
            return
        if list(self.fitted_names) != list(names):
            raise ValueError(
                f"y has the factors {', '.join(names)}, but the metric was fitted with "
                f"{', '.join(self.fitted_names)}: pass the same columns in their order."
            )

    def _read_column(self, column, k, label, rows, sample_weight):
        if isinstance(column, GaussianPosterior):
            posterior = checked_posterior(column, f"y ({label})")
            return self._binned(posterior, k, label, sample_weight)
        if column.ndim == 2:
            return self._probabilities(column, label, rows), None
        known, values = _known_values(column, label)
        self._check_missing(known, label, rows)
        if self._is_continuous(values, k):
            weight = None if sample_weight is None else sample_weight[known]
            values = as_float_matrix(values[:, None], f"y ({label})")
            posterior = GaussianPosterior(values)
            block, fitted = self._binned(posterior, k, label, weight)
            return _spread(block, known), fitted
        return _spread(_one_hot(values, label), known), None

    def _is_continuous(self, values, k):
        if self.fitted is not None:
            return self.fitted[k] is not None
        return is_continuous(values)

    def _binned(self, posterior, k, label, sample_weight):
        fitted = None if self.fitted is None else self.fitted[k]
        if fitted is None:
            what = f"factor_discretizer (fitted on {label} of y)"
            bins = self._factor_bins(label)
            fitted = fit_discretizer(bins, posterior, sample_weight, what)
        inner = inner_edges(fitted, 1, "factor_discretizer")[0]
        mean, std = posterior.mean[:, 0], posterior.marginal_std[:, 0]
        return sparse.csr_array(bin_masses(mean, std, inner)), fitted

    def _factor_bins(self, label):
        if self.discretizer is not None:
            return self.discretizer
        warn(
            f"{label} of y is continuous and was cut into 10 equal-frequency bins: "
            "pass factor_discretizer to choose the bins, or discrete labels."
        )
        return KBinsDiscretizer(
            10,
            encode="ordinal",
            strategy="quantile",
            quantile_method="averaged_inverted_cdf",
            subsample=None,
        )

    def _probabilities(self, column, label, rows):
        name = f"y ({label})"
        table = as_float_array(column, name, finite=False)
        known = ~np.isnan(table).any(axis=1)
        self._check_missing(known, label, rows)
        table = as_float_array(table[known], name)
        if (table < 0).any() or (table > 1 + SUM_TOLERANCE).any():
            raise ValueError(
                f"y: {label} is a table of probabilities, but holds values outside "
                "[0, 1]: pass softmax of the logits, or labels of shape (n_samples,)."
            )
        total = table.sum(axis=1, keepdims=True)
        wrong = np.flatnonzero(abs(total[:, 0] - 1) > SUM_TOLERANCE)
        if len(wrong):
            row = rows[np.flatnonzero(known)[wrong[0]]]
            raise ValueError(
                f"y: the probabilities of {label} must sum to 1 in each row, got "
                f"{total[wrong[0], 0]:.6g} in row {row}."
            )
        return _spread(sparse.csr_array(table / total), known)

    def _check_missing(self, known, label, rows):
        if not known.any():
            raise ValueError(
                f"y: {label} has no known value in any row: drop this factor."
            )
        if self.missing == "drop" or known.all():
            return
        gaps = np.flatnonzero(~known)
        raise ValueError(
            f"y: {label} has {len(gaps)} missing values (NaN or None), the first in "
            f"row {rows[gaps[0]]}: drop those rows, or pass missing='drop' to use the "
            "rows where each factor is known."
        )


def split_columns(y):
    """Return the columns of y, one a factor, and their names or None."""
    if isinstance(y, FactorPosterior):
        names = None if y.names is None else np.array(y.names, dtype=object)
        return y.columns, names
    if isinstance(y, GaussianPosterior):
        raise TypeError(
            "y is a GaussianPosterior: wrap stochastic factors as "
            "FactorPosterior([column, ...]), one latent each."
        )
    if is_list_of_tables(y):
        return FactorPosterior(list(y)).columns, None
    return _table_columns(y)


def is_list_of_tables(y):
    """Return whether y is what predict_proba of a multi-output classifier returns."""
    return (
        isinstance(y, list | tuple)
        and len(y) > 0
        and all(getattr(one, "ndim", None) == 2 for one in y)
    )


def _table_columns(y):
    refuse_lossy(y, "y")
    is_frame = hasattr(y, "shape") and hasattr(y, "columns")
    columns, names = _frame_columns(y) if is_frame else _array_columns(y)
    if not columns:
        raise ValueError("y has no factors: 0 columns were passed.")
    _refuse_bare_probabilities(columns)
    return columns, names


def _frame_columns(y):
    """Return the columns of a data frame, which keeps one dtype a column."""
    columns = [_safe_indexing(y, k, axis=1) for k in range(y.shape[1])]
    return [_label_array(one, "y") for one in columns], column_names(y, "y")


def _array_columns(y):
    table = _label_array(y, "y")
    if table.ndim not in (1, 2):
        raise ValueError(
            "y must have shape (n_samples,) or (n_samples, n_factors), got shape "
            f"{table.shape}."
        )
    columns = list(table.T) if table.ndim == 2 else [table]
    name = getattr(y, "name", None)  # of a pandas or polars Series
    has_name = isinstance(name, str) and name
    return columns, np.array([name], dtype=object) if has_name else None


def _label_array(value, name):
    """Return labels as an array; a list keeps its numbers apart from its strings."""
    if isinstance(value, list | tuple):
        array = as_array(value, name)
        return array if array.dtype.kind in "biuf" else _object_array(value, name)
    return as_array(value, name)


def _object_array(value, name):
    try:
        return np.array(value, dtype=object)
    except ValueError as error:
        raise ValueError(f"{name} is not a table of labels: {error}") from error


def _refuse_bare_probabilities(columns):
    if len(columns) < 2 or any(one.dtype.kind != "f" for one in columns):
        return
    table = np.column_stack(columns)
    if not (len(table) and ((table >= 0) & (table <= 1)).all()):
        return
    if np.allclose(table.sum(axis=1), 1):
        raise ValueError(
            "y is a float table whose rows sum to 1, which looks like the class "
            f"probabilities of one factor with {table.shape[1]} classes: pass "
            "FactorPosterior([y]), or integers where each column is a factor."
        )


def is_continuous(values):
    """Return whether floats look like measurements, not like labels."""
    if values.dtype.kind != "f" or (values == np.floor(values)).all():
        return False
    return len(np.unique(values)) > len(values) / 2


def _known_values(column, label):
    """Return a mask of the known rows and their values."""
    kind = column.dtype.kind
    if kind in "cV":
        raise TypeError(f"y: {label} has dtype {column.dtype}, which is not a label.")
    if kind in "OT":
        return _known_objects(column.astype(object), label)
    if kind not in "fmM":
        return np.ones(len(column), dtype=bool), column
    known = ~(np.isnan(column) if kind == "f" else np.isnat(column))
    values = column[known]
    if kind == "f" and np.isinf(values).any():
        raise ValueError(f"y: {label} holds infinity, which is not a label.")
    return known, values


def _known_objects(column, label):
    with naming(f"y ({label})"):
        known = np.array([not is_missing(one) for one in column], dtype=bool)
    values = column[known]
    numbers = all(isinstance(one, Real) for one in values)
    if numbers and not all(isinstance(one, Integral) for one in values):
        values = as_float_array(values, f"y ({label})")
    return known, values


def is_missing(value):
    """Return whether a label is None, or NaN, NaT or NA, which do not equal themselves.

    pandas' NA answers the comparison with another NA.
    """
    if value is None:
        return True
    equal = value == value
    return isinstance(equal, bool | np.bool_) and not equal or _is_na(equal)


def _is_na(value):
    return type(value).__name__ == "NAType"


def _one_hot(values, label):
    if values.dtype.kind == "O":  # labels that need not compare
        values = _hashed_codes(values, label)
    classes, codes = np.unique(values, return_inverse=True)
    n = len(values)
    return sparse.csr_array(
        (np.ones(n), codes.reshape(n), np.arange(n + 1)), shape=(n, len(classes))
    )


def _hashed_codes(values, label):
    codes = {}
    with naming(f"y ({label})"):
        return np.array([codes.setdefault(one, len(codes)) for one in values])


def _spread(block, known):
    """Return the block with an empty row for each row that is not known."""
    if known.all():
        return block
    lengths = np.zeros(len(known), dtype=block.indptr.dtype)
    lengths[known] = np.diff(block.indptr)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_array(
        (block.data, block.indices, indptr), shape=(len(known), block.shape[1])
    )
