"""MetricSuite: several metrics on one encoding, each estimate computed once."""

from contextlib import contextmanager

import numpy as np
from joblib import hash as content_hash
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from skdisent._base import DisentanglementMetric, encode, forget
from skdisent._plan import run
from skdisent._reading import check_features
from skdisent._sklearn import (
    CallbackSupportMixin,
    Progress,
    _fit_context,
    _VisualBlock,
)
from skdisent.exceptions import warn

__all__ = ["MetricSuite"]

# What a metric or an encoder raises on data it cannot use.
_FAILURES = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)


class MetricSuite(CallbackSupportMixin, BaseEstimator):
    """Several metrics as one scorer and one report.

    The encoder runs once, and metrics that need the same estimate share it. As
    ``scoring`` it returns a dict, as GridSearchCV, RandomizedSearchCV and
    cross_validate take it, with ``refit="name"``. A metric that cannot be computed on
    a fold is NaN under its own name, with a warning.

    Parameters
    ----------
    metrics : dict of str to metric
        The metrics by name; a name has no ``__``.

    Attributes
    ----------
    scores_ : dict of str to float
        Score of each metric; greater is better.
    metrics_ : dict of str to metric
        The fitted metrics.
    n_features_in_ : int
        Number of latents.
    feature_names_in_ : ndarray of shape (n_latents,)
        Names of the latents, where Z_mean is a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import JEMMIG, RMIG, MetricSuite
    >>> shape = np.tile(["oval", "heart"], 50)
    >>> Z_mean = np.column_stack([shape == "oval", np.zeros(100)]).astype(float)
    >>> Z_std = np.column_stack([np.full(100, 0.001), np.ones(100)])
    >>> suite = MetricSuite({"rmig": RMIG(), "jemmig": JEMMIG()})
    >>> scores = suite.fit(Z_mean, Z_std, shape).scores_
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'rmig': 1.0, 'jemmig': -0.0}
    """

    __metadata_request__fit = {"Z_mean": UNUSED, "Z_std": UNUSED}
    __metadata_request__score = {"Z_mean": UNUSED, "Z_std": UNUSED}

    _parameter_constraints: dict = {"metrics": [dict]}

    def __init__(self, metrics):
        self.metrics = metrics

    def get_params(self, deep=True):
        """Return the metrics and, if `deep`, their parameters as ``name__param``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return the parameters of the metrics too.

        Returns
        -------
        dict
            Parameters by name.
        """
        params = {"metrics": self.metrics}
        if deep and isinstance(self.metrics, dict):
            for name, metric in self.metrics.items():
                params[name] = metric
                inner = metric.get_params() if hasattr(metric, "get_params") else {}
                params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params):
        """Set the metrics, one metric by its name, or its parameters.

        Parameters
        ----------
        **params : dict
            ``metrics``, a metric's name, or ``name__param``.

        Returns
        -------
        MetricSuite
            The suite.
        """
        if "metrics" in params:
            self.metrics = params.pop("metrics")
        replaced = {
            name: params.pop(name) for name in [*params] if name in self.metrics
        }
        if replaced:
            self.metrics = {**self.metrics, **replaced}
        return super().set_params(**params)

    def _sk_visual_block_(self):
        # Notebooks show the metrics side by side, as those of a FeatureUnion.
        if not isinstance(self.metrics, dict) or not self.metrics:
            return _VisualBlock("single", self, names=type(self).__name__)
        return _VisualBlock("parallel", [*self.metrics.values()], names=[*self.metrics])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        metrics = self.metrics.values() if isinstance(self.metrics, dict) else ()
        tags.target_tags.required = any(
            metric.__sklearn_tags__().target_tags.required
            for metric in metrics
            if isinstance(metric, DisentanglementMetric)
        )
        tags.target_tags.multi_output = True
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, Z_mean, Z_std=None, y=None, *, sample_weight=None):
        """Compute all metrics.

        Parameters
        ----------
        Z_mean : array-like of shape (n_samples, n_latents) or GaussianPosterior
            Means of the posteriors q(z | x), or the posteriors themselves.
        Z_std : array-like of shape (n_samples, n_latents), default=None
            Standard deviations of the posteriors.
        y : array-like of shape (n_samples,) or (n_samples, n_factors), \
                FactorPosterior, or list of arrays (n_samples, n_classes), default=None
            Ground-truth factors.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted suite.

        Raises
        ------
        ValueError, TypeError
            What the first metric raises that cannot be computed.
        """
        self._check_metrics()
        forget(self)
        metrics = {name: clone(metric) for name, metric in self.metrics.items()}
        data = (Z_mean, Z_std, y, sample_weight)
        fit_together(metrics, data, _raise_named, self)
        self.metrics_ = metrics
        self.scores_ = {name: metric.score() for name, metric in metrics.items()}
        check_features(self, Z_mean, reset=True)
        return self

    def score(self, Z_mean=None, Z_std=None, y=None, *, sample_weight=None):
        """Return the score of each metric, where greater is better.

        Parameters
        ----------
        Z_mean : array-like of shape (n_samples, n_latents) or GaussianPosterior, \
                default=None
            Posteriors to score with the fitted bins; None returns the fitted scores.
        Z_std : array-like of shape (n_samples, n_latents), default=None
            Standard deviations of the posteriors.
        y : array-like of shape (n_samples,) or (n_samples, n_factors), \
                FactorPosterior, or list of arrays (n_samples, n_classes), default=None
            Ground-truth factors.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        dict of str to float
            Scores by name.
        """
        check_is_fitted(self, "scores_")
        data = (Z_mean, Z_std, y, sample_weight)
        if all(one is None for one in data):
            return dict(self.scores_)
        found = compute_together(self.metrics_, data, _raise_named, reset=False)
        return {
            name: self.metrics_[name].as_score(attributes["value_"])
            for name, attributes in found.items()
        }

    def __call__(self, estimator, X, y=None, *, sample_weight=None):
        """Score an encoder, as scikit-learn's model selection calls a scorer.

        Parameters
        ----------
        estimator : object with transform
            Fitted encoder; ``transform`` returns a GaussianPosterior, or an array for a
            point encoder.
        X : array-like of shape (n_samples, n_features)
            Data to encode.
        y : array-like, default=None
            Ground-truth factors.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        dict of str to float
            Scores by name; NaN for a metric that could not be computed, with a warning.
        """
        self._check_metrics()
        metrics = {name: clone(metric) for name, metric in self.metrics.items()}
        failed = _Failures()
        with failed.catch([*metrics]):
            data = (encode(estimator, X), None, y, sample_weight)
        alive = {name: one for name, one in metrics.items() if name not in failed}
        if alive:
            fit_together(alive, data, failed.catch)
        return {
            name: np.nan if name in failed else metric.score()
            for name, metric in metrics.items()
        }

    def _accept_sample_weight(self):
        # scikit-learn asks each scorer of a dict whether it takes weights.
        return True

    def _check_metrics(self):
        if not isinstance(self.metrics, dict) or not self.metrics:
            raise ValueError(
                "metrics must be a non-empty dict of names to metrics, got "
                f"{self.metrics!r}."
            )
        for name, metric in self.metrics.items():
            if not isinstance(name, str) or not name or "__" in name:
                raise ValueError(
                    f"metrics: a name must be a non-empty string without '__', got "
                    f"{name!r}."
                )
            if name == "metrics":
                raise ValueError("metrics: no metric can have the name 'metrics'.")
            if not isinstance(metric, DisentanglementMetric):
                raise TypeError(
                    f"metrics: {name!r} must be a metric of skdisent, such as RMIG(), "
                    f"got {metric!r}."
                )

    def to_frame(self):
        """Return all values as a tidy data frame.

        Returns
        -------
        pandas.DataFrame
            Columns ``metric``, ``of`` ("model", "factor", "latent" or "group"),
            ``name`` (of the part, or its number) and ``value``.
        """
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=["metric", "of", "name", "value"])

    def _rows(self):
        check_is_fitted(self, "metrics_")
        rows = []
        for name, metric in self.metrics_.items():
            rows.append((name, "model", "", metric.value_))
            for of, names, values in metric._parts():
                rows += [(name, of, *one) for one in zip(names, values, strict=True)]
        return rows

    def report(self, *, digits=3):
        """Return a text report of the model, each factor and each latent.

        Parameters
        ----------
        digits : int, default=3
            Digits after the point.

        Returns
        -------
        str
            One table each, amounts as the metrics give them.
        """
        tables = {}
        for metric, of, part, value in self._rows():
            tables.setdefault(of, {}).setdefault(part, {})[metric] = value
        lines = [f"{'model':<16}{'value':>10}  better is"]
        for name, value in tables.pop("model")[""].items():
            better = "higher" if self.metrics_[name].greater_is_better else "lower"
            lines.append(f"{name:<16}{value:>10.{digits}f}  {better}")
        for of, parts in tables.items():
            lines += ["", *_table(of, parts, digits)]
        return "\n".join(lines)


def _table(of, parts, digits):
    """Return the lines of a table with a row a part and a column a metric."""
    names = list(dict.fromkeys(name for values in parts.values() for name in values))
    width = max(10, *(len(name) + 2 for name in names))
    lines = [f"{of:<16}" + "".join(f"{name:>{width}}" for name in names)]
    for part, values in parts.items():
        cells = (
            f"{values[name]:>{width}.{digits}f}" if name in values else " " * width
            for name in names
        )
        lines.append(f"{part!s:<16}" + "".join(cells))
    return lines


@contextmanager
def _raise_named(names):
    """Let the error of a metric through, with the metric's name as a note."""
    try:
        yield
    except _FAILURES as error:
        error.add_note(f"Raised for {', '.join(map(repr, names))} of the suite.")
        raise


class _Failures(dict):
    """The errors of the metrics that could not be computed, by name."""

    @contextmanager
    def catch(self, names):
        """Record an error for all the names, with a warning that tells the cause."""
        try:
            yield
        except _FAILURES as error:
            for name in names:
                self[name] = error
            warn(
                f"{', '.join(map(repr, names))} of the suite could not be computed and "
                f"is NaN: {type(error).__name__}: {error}"
            )


def fit_together(metrics, data, guard, progress_of=None):
    """Fit metrics in place on the same data; those that fail stay unfitted."""
    found = compute_together(metrics, data, guard, reset=True, progress_of=progress_of)
    for name, attributes in found.items():
        vars(metrics[name]).update(attributes)


def compute_together(metrics, data, guard, *, reset, progress_of=None):
    """Return the attributes of metrics on the same data, each estimate computed once.

    Parameters
    ----------
    metrics : dict of str to metric
        The metrics.
    data : tuple
        Z_mean, Z_std, y and sample_weight.
    guard : callable
        Makes a context manager, given the names of the metrics that an error is for.
    reset : bool
        Whether the metrics learn from the data (fit) or stay as they are (score).
    progress_of : estimator, default=None
        The one whose callbacks are told how far the work is.

    Returns
    -------
    dict of str to dict
        Attributes by name, of the metrics that did not fail.
    """
    samples, plans = _read_and_plan(metrics, data, guard, reset)
    prepared = []
    for plan, sample, names in _distinct_work(metrics, samples, plans):
        with guard(names):
            prepared.append((names, plan, *plan.prepare(sample)))
    estimates = {}
    with Progress(progress_of, sum(len(one[2]) for one in prepared)) as progress:
        for names, plan, tasks, collect in prepared:
            n_jobs = next(filter(None, (metrics[one].n_jobs for one in names)), None)
            with guard(names):
                estimate = collect(progress.watch(run(tasks, n_jobs)))
                estimates |= {(name, plan): estimate for name in names}
    found = {}
    for name, needed in plans.items():
        if all((name, plan) in estimates for plan in needed):
            with guard([name]):
                parts = [estimates[name, plan] for plan in needed]
                found[name] = metrics[name]._formula(samples[name], *parts)
    return found


def _read_and_plan(metrics, data, guard, reset):
    """Return sample and plans of each metric; equal readings and bins are shared."""
    read, bins, samples, plans = {}, {}, {}, {}
    for name, metric in metrics.items():
        with guard([name]):
            key = _reading_key(metric)
            if key in read:
                check_features(metric, data[0], reset)
            else:
                read[key] = metric._read(*data, reset=reset)
            samples[name] = read[key]
            if metric._quantizes():
                _bin_once(metric, samples[name], bins, reset)
            plans[name] = metric._plans(samples[name])
    return samples, plans


def _reading_key(metric):
    """Return what makes two metrics read y alike; None for those that do not."""
    reader = metric._factor_reader(reset=True)
    return (
        None if reader is None else content_hash((reader.discretizer, reader.missing))
    )


def _bin_once(metric, sample, bins, reset):
    """Fit the bins of a metric, or check them; equal ones are shared."""
    key = content_hash(metric.discretizer)
    if key in bins and reset:
        metric.discretizer_ = bins[key]
    elif key not in bins:
        if reset:
            metric._fit_bins(sample)
        metric._check_bins(sample)
        bins[key] = metric.discretizer_


def _distinct_work(metrics, samples, plans):
    """Return (plan, sample, names) of each estimate that is to be computed.

    A metric without factors reads what it needs off an estimate with factors.
    """
    work = {}
    for name, needed in plans.items():
        for plan in needed:
            key = _reading_key(metrics[name])
            work.setdefault(plan, {}).setdefault(key, []).append(name)
    for plan, users in work.items():
        unsupervised = users.pop(None, [])
        if not users:
            users[None] = []
        next(iter(users.values())).extend(unsupervised)
        for names in users.values():
            yield plan, samples[names[0]], names
