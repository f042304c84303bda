"""Objects of users turned into arrays, or refused by the name of their argument."""

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

# What numpy and scikit-learn raise when they cannot convert or will not accept.
_REFUSALS = (TypeError, ValueError, OverflowError, RuntimeError)


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
    try:
        return np.asarray(value)
    except _REFUSALS as error:
        raise _renamed(error, name) from error


def as_float_array(value, name):
    """Return `value` as a float64 array of any shape, finite throughout."""
    refuse_lossy(value, name)
    try:
        return check_array(
            value,
            dtype=np.float64,
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )
    except _REFUSALS as error:
        raise _renamed(error, name) from error


def _renamed(error, name):
    """Return the error of a library with our own argument in front."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"{name} cannot be used as an array of numbers or labels: {error}")
