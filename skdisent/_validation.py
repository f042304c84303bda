"""Objects of users turned into arrays, or refused by the name of their argument."""

from contextlib import contextmanager

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from skdisent._sklearn import _get_feature_names

# Beyond it float64 has no room for sums and differences of many values.
LARGEST = 1e300

# What numpy and scikit-learn raise when they cannot convert or will not accept;
# KBinsDiscretizer has an IndexError for values that hardly differ.
_NOT_OF_TYPE = (ValueError, OverflowError, RuntimeError, IndexError)
_REFUSALS = (TypeError, *_NOT_OF_TYPE)


@contextmanager
def naming(what):
    """Put the name of our own argument in front of what a library raises."""
    try:
        yield
    except _REFUSALS as error:
        # scikit-learn's InvalidParameterError is both.
        kind = ValueError if isinstance(error, _NOT_OF_TYPE) else TypeError
        raise kind(f"{what} cannot be used: {error}") from error


def refuse_lossy(value, name):
    """Refuse what a conversion to an array would quietly change."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, whose mask would be lost: drop the masked "
            f"rows first and pass {name}.data of the others."
        )
    if sparse.issparse(value):
        raise TypeError(
            f"{name} is sparse, but a dense array is required: pass {name}.toarray()."
        )
    if getattr(value, "requires_grad", False) is True:
        raise TypeError(
            f"{name} is a tensor that requires grad: pass {name}.detach().numpy()."
        )


def as_array(value, name):
    """Return `value` as an array of its own dtype."""
    refuse_lossy(value, name)
    with naming(name):
        array = np.asarray(value)
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(
            f"{name} is a {type(value).__name__}, which numpy cannot read: pass an "
            "array, a list or a data frame."
        )
    return array


def as_float_array(value, name, *, finite=True):
    """Return `value` as a float64 array of any shape, finite unless told otherwise."""
    array = as_array(value, name)
    if array.dtype.kind not in "biufcO":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}.")
    # A long double beyond float64 becomes infinity, which is refused like any other;
    # scikit-learn's first look at the values is their sum.
    with naming(name), np.errstate(over="ignore", invalid="ignore"):
        return check_array(
            array,
            dtype=np.float64,
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=finite,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )


def as_float_matrix(value, name):
    """Return `value` as a finite float64 array (n_samples, n_latents), not empty."""
    array = as_float_array(value, name)
    if array.ndim != 2:
        way_out = {
            1: f"Reshape one latent with {name}.reshape(-1, 1).",
            3: "A mean and a std go in as two arguments, or as GaussianPosterior(mean, "
            "std).",
        }.get(array.ndim, "Flatten each row to its latents.")
        raise ValueError(
            f"{name} must have shape (n_samples, n_latents): expected 2D array, got "
            f"{array.ndim}D array of shape {array.shape}. {way_out}"
        )
    for count, what in zip(array.shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise ValueError(
                f"{name}: found array with 0 {what} (shape={array.shape}) while a "
                "minimum of 1 is required."
            )
    refuse_beyond_largest(array, name)
    return array


def as_std(value, name):
    """Return `value` as finite standard deviations in float64."""
    std = as_float_array(value, name)
    negative = np.argwhere(std < 0)
    if len(negative):
        raise ValueError(
            f"{name} is negative ({std[tuple(negative[0])]:g} in row "
            f"{negative[0][0]}): if these are log-variances, pass exp(0.5 * logvar) "
            "or use GaussianPosterior.from_logvar."
        )
    refuse_beyond_largest(std, name)
    return std


def refuse_beyond_largest(array, name):
    """Refuse finite values so large that their differences may not be finite."""
    beyond = abs(array) > LARGEST
    if beyond.any():
        raise ValueError(
            f"{name} holds {array[beyond][0]:g}: beyond {LARGEST:g} float64 cannot "
            "tell values apart, so rescale it."
        )


def as_weight(sample_weight, n_samples):
    """Return one weight a row, the largest of them 1; None is all equal."""
    if sample_weight is None:
        return np.ones(n_samples)
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
    return weight / largest


def column_names(table, name):
    """Return the names of a data frame's columns, None where they are not strings."""
    with naming(name):
        return _get_feature_names(table)
