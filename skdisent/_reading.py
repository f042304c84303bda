"""The arguments of fit and score, read into one checked `Sample`."""

from dataclasses import dataclass
from numbers import Number

import numpy as np
from sklearn.utils.validation import validate_data

from skdisent._factors import (
    FactorPosterior,
    Factors,
    is_list_of_tables,
    is_missing,
)
from skdisent._posterior import GaussianPosterior, checked_posterior
from skdisent._validation import (
    as_array,
    as_float_matrix,
    as_std,
    as_weight,
    column_names,
    naming,
)

# A row of a smaller share is no row: the square of its weight would be 0.
NEGLIGIBLE = 1e-100


@dataclass(frozen=True)
class Sample:
    """What a metric is computed from: the rows that have a weight.

    Attributes
    ----------
    posterior : GaussianPosterior
        In float64, finite, with valid std or covariance.
    weight : ndarray of shape (n_samples,)
        p(x) of the rows, positive, with sum 1.
    sample_weight : ndarray of shape (n_samples,) or None
        The weights as they came, None where the user gave none.
    rows : ndarray of shape (n_samples,)
        Where each row stood in the input, for messages.
    factors : Factors or None
        The factors, for the metrics that need them.
    """

    posterior: GaussianPosterior
    weight: np.ndarray
    sample_weight: np.ndarray | None
    rows: np.ndarray
    factors: Factors | None = None


def read_sample(metric, Z_mean, Z_std, y, sample_weight, factor_reader, *, reset):
    """Return the checked `Sample` of one call of fit or score.

    Parameters
    ----------
    metric : estimator
        Learns the number and names of the latents, or is compared with them.
    Z_mean, Z_std, y, sample_weight
        As the user passed them.
    factor_reader : FactorReader or None
        Reads y; None where the metric does not use it.
    reset : bool
        Whether the metric learns (fit) or compares (score).
    """
    needs_y = factor_reader is not None
    Z_mean, Z_std, y = assign_arguments(Z_mean, Z_std, y, needs_y)
    posterior = _read_posterior(Z_mean, Z_std)
    check_features(metric, Z_mean, reset)
    n_samples = len(posterior)
    relative = as_weight(sample_weight, n_samples)
    weight = relative / relative.sum()
    rows = np.flatnonzero(weight > NEGLIGIBLE)
    if len(rows) < n_samples:
        posterior, weight = posterior[rows], weight[rows]
    given = None if sample_weight is None else relative[rows]
    factors = None
    if needs_y:
        if y is None:
            raise ValueError(
                f"This {type(metric).__name__} estimator requires y to be passed, but "
                "the target y is None."
            )
        factors = factor_reader.read(y, n_samples, rows, given)
    return Sample(posterior, weight, given, rows, factors)


def assign_arguments(Z_mean, Z_std, y, needs_y):
    """Return (Z_mean, Z_std, y), a lone second argument put where it belongs.

    scikit-learn calls ``fit(X, y)`` and ``score(X, y)`` by position, where the order
    here is ``(Z_mean, Z_std, y)``.
    """
    if isinstance(Z_mean, GaussianPosterior):
        if Z_std is None:
            return Z_mean, None, y
        if y is not None:
            raise ValueError(
                "std given twice: Z_mean is a GaussianPosterior, which has its own "
                "std, and Z_std was passed too. Drop Z_std."
            )
        return Z_mean, None, Z_std
    if Z_std is None or y is not None:
        return Z_mean, Z_std, y
    if isinstance(Z_std, FactorPosterior):
        return Z_mean, None, Z_std
    if needs_y:
        _refuse_std_as_y(Z_mean, Z_std)
        return Z_mean, None, Z_std
    if _is_std(Z_mean, Z_std):
        return Z_mean, Z_std, None
    return Z_mean, None, Z_std


def _refuse_std_as_y(Z_mean, second):
    if isinstance(second, GaussianPosterior) or is_list_of_tables(second):
        return
    table = as_array(second, "y")
    if table.dtype.kind != "f" or table.shape != as_array(Z_mean, "Z_mean").shape:
        return
    # The std of a collapsed latent repeats, so that it need not look continuous.
    fractional = (table != np.floor(table)).any(axis=0)
    if table.ndim == 2 and (table >= 0).all() and fractional.all():
        raise ValueError(
            "y is missing, and the second argument has the shape and the values of a "
            "std. Is this Z_std? Pass y as well; factors of such values go in by "
            "name, y=..."
        )


def _is_std(Z_mean, second):
    """Return whether a lone second argument is Z_std (True) or y (False)."""
    array = as_array(second, "Z_std")
    shape = as_array(Z_mean, "Z_mean").shape
    is_column = array.ndim == 1 and array.shape == shape[:1]
    if is_column or (array.ndim > 0 and not _is_numeric(array)):
        return False
    what = f"it has shape {array.shape}, where Z_mean has {shape}"
    if array.ndim == 2 and array.shape == shape:
        if array.dtype.kind == "O" or not (array < 0).any():
            return True
        what = "it has negative values; a std from log-variances is exp(0.5 * logvar)"
    raise ValueError(
        f"the second argument is neither Z_std nor y: pass it by name ({what})."
    )


def _is_numeric(array):
    """Return whether an array holds no labels: numbers, known or missing."""
    if array.dtype.kind != "O":
        return array.dtype.kind in "biufc"
    with naming("the second argument (Z_std or y)"):
        return all(isinstance(one, Number) or is_missing(one) for one in array.flat)


def _read_posterior(Z_mean, Z_std):
    if isinstance(Z_mean, GaussianPosterior):
        return checked_posterior(Z_mean, "Z_mean")
    mean = as_float_matrix(Z_mean, "Z_mean")
    if Z_std is None:
        return GaussianPosterior(mean)
    std = as_array(Z_std, "Z_std")
    if std.shape != mean.shape:
        raise ValueError(
            f"Z_std must have the shape of Z_mean, {mean.shape}, got shape {std.shape}."
        )
    _check_columns(column_names(Z_mean, "Z_mean"), column_names(Z_std, "Z_std"))
    return GaussianPosterior(mean, as_std(std, "Z_std"))


def _check_columns(mean_names, std_names):
    """Refuse a latent that stands in different columns of Z_mean and Z_std.

    Names that only one of them has are fine: mu_0 and sigma_0.
    """
    if mean_names is None or std_names is None:
        return
    moved = np.isin(std_names, mean_names) & (std_names != mean_names)
    if moved.any():
        raise ValueError(
            "Z_std has its columns in another order than Z_mean: "
            f"{std_names[np.argmax(moved)]!r} stands elsewhere. Pass "
            "Z_std[Z_mean.columns]."
        )


def check_features(metric, Z_mean, reset):
    """Learn the number and names of the latents, or compare with those learnt."""
    with naming("Z_mean"):
        validate_data(metric, Z_mean, reset=reset, skip_check_array=True)
