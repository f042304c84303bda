"""What the library takes from scikit-learn's private modules, in one place."""

from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_params,
)
from sklearn.utils.validation import _check_n_features, _get_feature_names

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "_check_n_features",
    "_fit_context",
    "_get_feature_names",
    "_safe_indexing",
    "validate_params",
]
