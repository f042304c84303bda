"""What differs between versions of scikit-learn or is private there, in one place."""

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_params,
)
from sklearn.utils._repr_html.estimator import _VisualBlock
from sklearn.utils.parallel import _get_threadpool_controller
from sklearn.utils.validation import _get_feature_names as _names_by_sklearn

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:
        """Stands in for callbacks, which scikit-learn has from 1.9 on."""


__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "Progress",
    "StrOptions",
    "_VisualBlock",
    "_fit_context",
    "_get_feature_names",
    "_safe_indexing",
    "one_blas_thread",
    "validate_params",
]


def _get_feature_names(table):
    """Return the names of a table's columns, None where they are not strings.

    Before 1.9 scikit-learn knows polars by the interchange protocol, which polars 2 no
    longer has.
    """
    names = _names_by_sklearn(table)
    if names is None and type(table).__module__ == "polars.dataframe.frame":
        return np.array(table.columns, dtype=object) if table.columns else None
    return names


def one_blas_thread():
    """Return a context in which matrix products do not start threads of their own."""
    return _get_threadpool_controller().limit(limits=1, user_api="blas")


class Progress:
    """Tells the callbacks of an estimator how far its fit has come.

    Parameters
    ----------
    estimator : estimator
        The one that is fitted; without callbacks nothing happens.
    n_tasks : int
        Number of tasks of the fit.
    """

    def __init__(self, estimator, n_tasks):
        self.estimator, self.n_tasks = estimator, n_tasks
        self.context = None

    def __enter__(self):
        if hasattr(self.estimator, "_init_callback_context"):
            self.context = self.estimator._init_callback_context(
                max_subtasks=self.n_tasks
            )
            self.context.call_on_fit_task_begin(estimator=self.estimator)
        return self

    def __exit__(self, kind, error, traceback):
        if self.context is not None and kind is None:
            self.context.call_on_fit_task_end(estimator=self.estimator)

    def watch(self, results):
        """Return the results as a list, each one counted when it is there."""
        counted = []
        for result in results:
            counted.append(result)
            if self.context is not None:
                part = self.context.subcontext(task_name="part")
                part.call_on_fit_task_begin(estimator=self.estimator)
                part.call_on_fit_task_end(estimator=self.estimator)
        return counted
