"""The metric as scikit-learn estimator and, unchanged, as scorer."""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from skdisent._discretization import (
    UniformDiscretizer,
    fit_discretizer,
    inner_edges,
    warn_of_mass_beyond,
    warn_of_outlier_rows,
)
from skdisent._plan import run
from skdisent._reading import read_sample
from skdisent._sklearn import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    Progress,
    _fit_context,
)
from skdisent.exceptions import warn

# Informativeness below it is rounding, in nats.
NOTHING = 1e-8

N_JOBS = {"n_jobs": [None, Integral]}
TOP_K = {"k": [Interval(Integral, 1, None, closed="left"), None]}
DISCRETIZER = {"discretizer": [HasMethods("fit"), None]}


class DisentanglementMetric(CallbackSupportMixin, BaseEstimator):
    """Base of all metrics: read, estimate, formula.

    A subclass says which estimates it needs (`_plans`) and reads its number off them
    (`_formula`).
    """

    # scikit-learn's data arguments X and y; only sample_weight can be routed.
    __metadata_request__fit = {"Z_mean": UNUSED, "Z_std": UNUSED}
    __metadata_request__score = {"Z_mean": UNUSED, "Z_std": UNUSED}

    greater_is_better = True

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, Z_mean, Z_std=None, y=None, *, sample_weight=None):
        """Compute the metric, and fit the bins it uses.

        Parameters
        ----------
        Z_mean : array-like of shape (n_samples, n_latents) or GaussianPosterior
            Means of the posteriors q(z | x), or the posteriors themselves.
        Z_std : array-like of shape (n_samples, n_latents), default=None
            Standard deviations of the posteriors. None with an array of means is a
            point encoder.
        y : array-like of shape (n_samples,) or (n_samples, n_factors), \
                FactorPosterior, or list of arrays (n_samples, n_classes), default=None
            Ground-truth factors; ignored by the metrics that need none.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a weight of k is k copies, 0 is no row.

        Returns
        -------
        self : object
            The fitted metric.

        Raises
        ------
        ValueError, TypeError
            If an argument cannot be used; the message names it and the way out.

        Notes
        -----
        Two positional arguments are understood as scikit-learn passes them: after a
        GaussianPosterior, or for a metric that needs y, the second is y; otherwise one
        of the shape of Z_mean is Z_std. In data frames the columns of Z_std must stand
        in the order of those of Z_mean. Values beyond 1e300 are refused, and rows of
        less than 1e-100 of the largest weight count as no row.
        """
        forget(self)
        sample = self._read(Z_mean, Z_std, y, sample_weight, reset=True)
        if self._quantizes():
            self._fit_bins(sample)
            self._check_bins(sample)
        prepared = [plan.prepare(sample) for plan in self._plans(sample)]
        with Progress(self, sum(len(tasks) for tasks, _ in prepared)) as progress:
            estimates = [
                collect(progress.watch(run(tasks, self.n_jobs)))
                for tasks, collect in prepared
            ]
        vars(self).update(self._formula(sample, *estimates))
        return self

    def score(self, Z_mean=None, Z_std=None, y=None, *, sample_weight=None):
        """Return the metric with its sign such that greater is better.

        Parameters
        ----------
        Z_mean : array-like of shape (n_samples, n_latents) or GaussianPosterior, \
                default=None
            Posteriors to score with the fitted bins; None returns the fitted value.
        Z_std : array-like of shape (n_samples, n_latents), default=None
            Standard deviations of the posteriors.
        y : array-like of shape (n_samples,) or (n_samples, n_factors), \
                FactorPosterior, or list of arrays (n_samples, n_classes), default=None
            Ground-truth factors; ignored by the metrics that need none.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            ``value_``, or its opposite where lower is better.
        """
        check_is_fitted(self, "value_")
        if Z_mean is None:
            if any(one is not None for one in (Z_std, y, sample_weight)):
                raise ValueError(
                    "Z_mean is missing: pass it with the other arguments, or pass "
                    "nothing for the score of the fitted data."
                )
            value = self.value_
        else:
            sample = self._read(Z_mean, Z_std, y, sample_weight, reset=False)
            if self._quantizes():
                check_is_fitted(self, "discretizer_")
                self._check_bins(sample)
            estimates = [
                plan.estimate(sample, self.n_jobs) for plan in self._plans(sample)
            ]
            value = self._formula(sample, *estimates)["value_"]
        return self.as_score(value)

    def as_score(self, value):
        """Return a value of the metric with its sign such that greater is better.

        Parameters
        ----------
        value : float
            As `value_`.

        Returns
        -------
        float
            The value, or its opposite where lower is better.
        """
        return float(value if self.greater_is_better else -value)

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
        float
            Score of a clone fitted on the encoded data; greater is better.
        """
        posterior = encode(estimator, X)
        metric = clone(self)
        metric.fit(posterior, None, y, sample_weight=sample_weight)
        return metric.score()

    def _accept_sample_weight(self):
        # scikit-learn asks each scorer of a dict whether it takes weights.
        return True

    def _read(self, Z_mean, Z_std, y, sample_weight, *, reset):
        reader = self._factor_reader(reset)
        return read_sample(self, Z_mean, Z_std, y, sample_weight, reader, reset=reset)

    def _factor_reader(self, reset):
        """Return how the metric reads y, None where it does not use it."""
        return None

    def _parts(self):
        """Return (what, names, values) of the parts that a report shows."""
        return []

    def _latent_names(self):
        return getattr(self, "feature_names_in_", range(self.n_features_in_))

    def _quantizes(self):
        """Return whether the metric with its parameters uses bins."""
        return True

    def _fit_bins(self, sample):
        chosen = UniformDiscretizer() if self.discretizer is None else self.discretizer
        self.discretizer_ = fit_discretizer(
            chosen, sample.posterior, sample.sample_weight
        )
        if isinstance(chosen, UniformDiscretizer) and chosen.bin_range is None:
            warn_of_outlier_rows(sample)

    def _check_bins(self, sample):
        """Warn where a fixed or fitted range does not fit the sample."""
        discretizer = getattr(self.discretizer_, "estimator", self.discretizer_)
        if isinstance(discretizer, UniformDiscretizer):
            warn_of_mass_beyond(discretizer, sample)

    def _edges(self, sample):
        """Return the fitted inner edges as a plain value."""
        inner = inner_edges(self.discretizer_, sample.posterior.shape[1])
        return tuple(tuple(one.tolist()) for one in inner)


def forget(estimator):
    """Remove what an estimator learned before, as not every fit learns the same."""
    for name in [*vars(estimator)]:
        if name.endswith("_") and not name.startswith("_"):
            delattr(estimator, name)


def encode(estimator, X):
    """Return what the encoder makes of X: a posterior, or means."""
    if not hasattr(estimator, "transform"):
        raise TypeError(
            f"{type(estimator).__name__} has no transform: a metric scores an encoder "
            "whose transform returns a GaussianPosterior, or an array of means. Wrap a "
            "pretrained one in FunctionTransformer."
        )
    posterior = estimator.transform(X)
    if isinstance(posterior, tuple):
        raise TypeError(
            f"the transform of {type(estimator).__name__} returned a tuple: return "
            "GaussianPosterior(mean, std)."
        )
    return posterior


def mean_of_largest(values, k):
    """Return the mean of the k largest values, absent ones counting as 0."""
    if k is None:
        return float(np.mean(values))
    return float(np.sort(values)[::-1][:k].sum() / k)


def ranking(values):
    """Return the indices that sort values from largest to smallest, ties in order."""
    return np.argsort(-values, kind="stable")


def normalized(values, normalizer):
    """Return values / normalizer, where 0 / 0 is 0; warn of latents without one.

    The first axis is that of the latents.
    """
    zero = normalizer == 0
    if zero.any():
        names = np.flatnonzero(zero.reshape(len(zero), -1).any(axis=1))
        warn(
            f"latent {', '.join(map(str, names))}: the normalizer is 0 (one bin, or no "
            "variance), so the normalized value was set to 0."
        )
    return np.divide(values, normalizer, where=~zero, out=np.zeros_like(values))


def warn_if_collapsed(informativeness, nothing=NOTHING):
    """Warn where no latent says anything about x."""
    if (informativeness < nothing).all():
        warn(
            "every latent is collapsed: its posterior is the same for every row, so "
            "all information is 0."
        )
