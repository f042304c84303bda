"""The arguments of fit and score, read into one checked `Sample`."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import validate_data

from skdisent._factors import FactorPosterior, Factors, is_list_of_tables
from skdisent._posterior import GaussianPosterior
from skdisent._validation import as_array, as_float_array

# Rounding of a covariance that was inverted in float32.
ASYMMETRY = 1e-5


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
    _check_features(metric, Z_mean, reset)
    n_samples = len(posterior)
    weight, rows = _read_weight(sample_weight, n_samples)
    if len(rows) < n_samples:
        posterior = posterior[rows]
    given = None if sample_weight is None else weight
    factors = None
    if needs_y:
        if y is None:
            raise ValueError(
                f"This {type(metric).__name__} estimator requires y to be passed, but "
                "the target y is None."
            )
        factors = factor_reader.read(y, n_samples, rows, given)
    return Sample(posterior, weight / weight.sum(), given, rows, factors)


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
    if is_list_of_tables(second):
        return
    table = as_array(second, "y")
    if table.dtype.kind != "f" or table.shape != as_array(Z_mean, "Z_mean").shape:
        return
    if table.ndim == 2 and (table >= 0).all() and all(map(_continuous, table.T)):
        raise ValueError(
            "y is missing, and the second argument has the shape and the values of a "
            "std. Is this Z_std? Pass y as well; continuous factors that are meant as "
            "y go in by name, y=..."
        )


def _continuous(column):
    distinct = np.unique(column)
    return (distinct != np.floor(distinct)).any() and len(distinct) > len(column) / 2


def _is_std(Z_mean, second):
    """Return whether a lone second argument is Z_std (True) or y (False)."""
    array = as_array(second, "Z_std")
    shape = as_array(Z_mean, "Z_mean").shape
    numeric = _as_numbers(array)
    if numeric is None or (array.ndim == 1 and array.shape == shape[:1]):
        return False
    if numeric.shape == shape and array.ndim == 2 and not (numeric < 0).any():
        return True
    what = (
        "it has negative values; a std from log-variances is exp(0.5 * logvar)"
        if numeric.shape == shape
        else f"it has shape {array.shape}, where Z_mean has {shape}"
    )
    raise ValueError(
        f"the second argument is neither Z_std nor y: pass it by name ({what})."
    )


def _as_numbers(array):
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind != "O":
        return None
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):  # labels of some kind
        return None


def _read_posterior(Z_mean, Z_std):
    if isinstance(Z_mean, GaussianPosterior):
        return _checked(Z_mean, "Z_mean.mean", "Z_mean.std")
    mean = _read_matrix(Z_mean, "Z_mean")
    if Z_std is None:
        return GaussianPosterior(mean)
    std = as_array(Z_std, "Z_std")
    if std.shape != mean.shape:
        raise ValueError(
            f"Z_std must have the shape of Z_mean, {mean.shape}, got shape {std.shape}."
        )
    return _checked(GaussianPosterior(mean, Z_std), "Z_mean", "Z_std")


def _checked(posterior, mean_name, std_name):
    """Return the posterior in float64, its values checked."""
    mean = _read_matrix(posterior.mean, mean_name)
    if posterior.covariance is not None:
        return GaussianPosterior(mean, covariance=_read_covariance(posterior))
    if posterior.std is None:
        return GaussianPosterior(mean)
    std = as_float_array(posterior.std, std_name)
    negative = np.argwhere(std < 0)
    if len(negative):
        raise ValueError(
            f"{std_name} is negative ({std[tuple(negative[0])]:g} in row "
            f"{negative[0][0]}): if these are log-variances, pass exp(0.5 * logvar) "
            "or use GaussianPosterior.from_logvar."
        )
    return GaussianPosterior(mean, std)


def _read_matrix(value, name):
    array = as_float_array(value, name)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n_samples, n_latents): expected 2D array, got "
            f"{array.ndim}D array of shape {array.shape}. Reshape one latent with "
            f"{name}.reshape(-1, 1)."
        )
    for count, what in zip(array.shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise ValueError(
                f"{name}: found array with 0 {what} (shape={array.shape}) while a "
                "minimum of 1 is required."
            )
    return array


def _read_covariance(posterior):
    covariance = as_float_array(posterior.covariance, "covariance")
    transposed = np.swapaxes(covariance, -1, -2)
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    _refuse_rows((variance < 0).any(axis=-1), "has a negative variance")
    std = np.sqrt(variance)
    allowed = ASYMMETRY * std[..., :, None] * std[..., None, :]
    lopsided = abs(covariance - transposed) > allowed
    _refuse_rows(lopsided.any(axis=(-1, -2)), "is not symmetric")
    return covariance / 2 + transposed / 2


def _refuse_rows(bad, what):
    if bad.any():
        where = f" of row {np.argmax(bad)}" if bad.ndim else ""
        raise ValueError(f"covariance{where} {what}: pass valid covariance matrices.")


def _check_features(metric, Z_mean, reset):
    try:
        validate_data(metric, Z_mean, reset=reset, skip_check_array=True)
    except ValueError as error:
        raise ValueError(f"Z_mean: {error}") from error


def _read_weight(sample_weight, n_samples):
    """Return the positive weights and the rows that have them."""
    if sample_weight is None:
        return np.ones(n_samples), np.arange(n_samples)
    weight = as_float_array(sample_weight, "sample_weight")
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), one weight a row, got "
            f"{weight.shape}."
        )
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight is negative in row {np.argmax(weight < 0)}: weights are "
            "shares of rows; 0 leaves a row out."
        )
    largest = weight.max()
    if largest == 0:
        raise ValueError(
            "sample_weight is zero in every row: at least one row needs a weight."
        )
    weight = weight / largest
    rows = np.flatnonzero(weight)
    return weight[rows], rows
