"""Bins for quantized amounts: equal-width ones, or those of any discretizer."""

from numbers import Integral, Real

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter, validate_data

from skdisent._posterior import GaussianPosterior, checked_posterior
from skdisent._sklearn import Interval, _fit_context
from skdisent._validation import as_float_matrix, as_weight, naming
from skdisent.exceptions import warn

__all__ = ["UniformDiscretizer"]

# Nine equally likely points of a standard normal, in the middle of their shares.
ROW_QUANTILES = ndtri((np.arange(9) + 0.5) / 9)

MASS_BEYOND = 0.01
ROW_SHARE = 0.10
ROW_SHARE_MIN_ROWS = 100


class UniformDiscretizer(BaseEstimator):
    """Equal-width bins for latents, the default of every quantized metric.

    Parameters
    ----------
    n_bins : int, default=101
        Number of bins per latent. An odd number keeps the edges off the mean of the
        aggregate posterior, where the means of a collapsed latent sit.
    bin_range : tuple of two floats, default=None
        Lower and upper edge, for all latents. None takes the mean of each latent's
        aggregate posterior plus and minus 4 of its standard deviations, so that
        scores do not change with the scale of a latent. ``n_bins=100`` and
        ``bin_range=(-4, 4)`` is the grid of the paper.

    Attributes
    ----------
    bin_edges_ : list of n_latents ndarrays of shape (n_bins + 1,)
        Edges of the bins. The two end bins are open: the metrics use the inner edges
        only. A latent without variance gets one bin.
    n_bins_ : ndarray of shape (n_latents,)
        Number of bins of each latent.
    n_features_in_ : int
        Number of latents.

    Examples
    --------
    >>> from skdisent import RMIG, UniformDiscretizer
    >>> RMIG(discretizer=UniformDiscretizer(100, bin_range=(-4, 4)))
    RMIG(discretizer=UniformDiscretizer(bin_range=(-4, 4), n_bins=100))
    """

    _parameter_constraints: dict = {
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "bin_range": [tuple, list, None],
    }

    def __init__(self, n_bins=101, *, bin_range=None):
        self.n_bins = n_bins
        self.bin_range = bin_range

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find the edges.

        Parameters
        ----------
        X : GaussianPosterior or array-like of shape (n_samples, n_latents)
            Posteriors, or plain values of the latents.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        UniformDiscretizer
            The fitted discretizer.
        """
        if isinstance(X, GaussianPosterior):
            posterior = checked_posterior(X, "X")
        else:
            posterior = GaussianPosterior(as_float_matrix(X, "X"))
        validate_data(self, X, skip_check_array=True)
        weight = as_weight(sample_weight, len(posterior))
        low, high = self._range(posterior, weight / weight.sum())
        self.bin_edges_ = [
            np.linspace(a, b, self.n_bins + 1) if a < b else np.array([-np.inf, np.inf])
            for a, b in zip(low, high, strict=True)
        ]
        self.n_bins_ = np.array([len(edges) - 1 for edges in self.bin_edges_])
        return self

    def _range(self, posterior, weight):
        mean = posterior.mean
        if self.bin_range is not None:
            low, high = _checked_range(self.bin_range)
            return np.full(mean.shape[1], low), np.full(mean.shape[1], high)
        center, deviation = aggregate_moments(mean, posterior.marginal_std, weight)
        return center - 4 * deviation, center + 4 * deviation


def _checked_range(bin_range):
    if len(bin_range) != 2 or not all(isinstance(end, Real) for end in bin_range):
        raise ValueError(
            f"bin_range must hold two numbers, low and high, got {bin_range!r}."
        )
    with naming("bin_range"):
        low, high = map(float, bin_range)
    if not (low < high and np.isfinite(high - low)):
        raise ValueError(
            f"bin_range must be finite with low < high, got {bin_range!r}."
        )
    return low, high


def aggregate_moments(mean, std, weight):
    """Return mean and standard deviation of each latent's aggregate posterior.

    The first row is the origin, so that a constant latent has a deviation of exactly 0;
    the largest amount is the unit, so that no square leaves the floats.
    """
    centered = mean - mean[0]
    unit = np.maximum(abs(centered).max(axis=0), std.max(axis=0))
    unit[unit == 0] = 1.0
    centered = centered / unit
    center = weight @ centered
    variance = weight @ ((std / unit) ** 2 + (centered - center) ** 2)
    return mean[0] + unit * center, unit * np.sqrt(variance)


def fit_discretizer(discretizer, posterior, sample_weight=None, what="discretizer"):
    """Return a clone of `discretizer` fitted on the aggregate posterior.

    `what` is what a message calls it and its data.
    """
    with naming(what):
        fitted = clone(discretizer)
        if isinstance(fitted, UniformDiscretizer):
            marginals = GaussianPosterior(posterior.mean, posterior.marginal_std)
            return fitted.fit(marginals, None, sample_weight=sample_weight)
        cloud, weight = _cloud(posterior, sample_weight)
        if weight is None or not _takes_weights(fitted):
            return fitted.fit(cloud, None)
        return fitted.fit(cloud, None, sample_weight=weight)


def _cloud(posterior, sample_weight):
    """Return the aggregate posterior as points, and their weights.

    Nine equally likely quantiles a row, or the means of a point encoder.
    """
    nodes = np.zeros(1) if posterior._is_point else ROW_QUANTILES
    mean, std = posterior.mean, posterior.marginal_std
    cloud = mean[:, None, :] + nodes[:, None] * std[:, None, :]
    if sample_weight is not None:
        sample_weight = np.repeat(sample_weight / len(nodes), len(nodes))
    return cloud.reshape(-1, mean.shape[1]), sample_weight


def _takes_weights(discretizer):
    # KBinsDiscretizer's uniform bins run from minimum to maximum, whatever the weights,
    # and its fit refuses them.
    uniform = getattr(discretizer, "strategy", None) == "uniform"
    return has_fit_parameter(discretizer, "sample_weight") and not uniform


def inner_edges(discretizer, n_columns, name="discretizer"):
    """Return the edges between the bins, one array a column; the end bins are open."""
    edges = getattr(discretizer, "bin_edges_", None)
    if edges is None:
        raise TypeError(
            f"{name} must have bin_edges_ once it is fitted, as KBinsDiscretizer has, "
            f"got {discretizer!r}."
        )
    if len(edges) != n_columns:
        raise ValueError(
            f"{name} has bins for {len(edges)} columns, but there are {n_columns}: "
            "fit it on as many columns, or pass one that is not frozen."
        )
    # Adding 0.0 makes -0.0 the zero that a mean at the edge is compared with.
    inner = [np.asarray(one, dtype=np.float64)[1:-1] + 0.0 for one in edges]
    for column, one in enumerate(inner):
        if not (np.isfinite(one).all() and (np.diff(one) >= 0).all()):
            raise ValueError(
                f"{name} gave column {column} inner edges that are not finite and "
                "ascending."
            )
    return inner


def bin_masses(mean, std, inner):
    """Return the masses of the bins under N(mean, std**2), of shape (n, n_bins).

    ``step`` is Phi at an edge, less 1 for the edges right of the mean: each difference
    is one of tails that do not cancel, and the mean's own bin gets the 1 back. A std of
    0 is a point mass; a bin contains its left edge.
    """
    mean = mean + 0.0
    point = std == 0
    # A distance beyond the floats is the far tail, whose mass is 0.
    with np.errstate(over="ignore"):
        signed = mean[:, None] - inner
        signed /= np.where(point, 1.0, std)[:, None]
    signed[point] = np.inf
    steps = np.zeros((len(mean), len(inner) + 2))
    step = np.abs(signed, out=steps[:, 1:-1])
    np.negative(step, out=step)
    ndtr(step, out=step)
    np.copysign(step, signed, out=step)
    masses = steps[:, 1:] - steps[:, :-1]
    masses[np.arange(len(mean)), bin_indices(mean, inner)] += 1.0
    return masses


def bin_indices(values, inner):
    """Return the bin that each value lies in; a bin contains its left edge."""
    return np.searchsorted(inner, values, side="right")


def guessed_bin_indices(values, inner):
    """Return the same for many values, quickly where bins are of one width.

    The bin as if all were of one width, looked up where that is wrong.
    """
    with np.errstate(over="ignore"):  # what is beyond the floats is in an end bin
        width = np.ptp(inner) / (len(inner) - 1) if len(inner) > 1 else 0.0
        if width < np.finfo(np.float64).tiny or width == np.inf:
            return bin_indices(values, inner)
        guess = (values - inner[0]) / width + 1
    guess = np.clip(guess, 0, len(inner)).astype(np.intp)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    wrong = (values < edges[guess]) | (values >= edges[guess + 1])
    guess[wrong] = bin_indices(values[wrong], inner)
    return guess


def warn_of_outlier_rows(sample):
    """Warn where one row decides the range of a latent's bins."""
    posterior, weight = sample.posterior, sample.weight
    if len(weight) < ROW_SHARE_MIN_ROWS:
        return
    std = posterior.marginal_std
    center, deviation = aggregate_moments(posterior.mean, std, weight)
    unit = np.where(deviation > 0, deviation, 1.0)
    second = (std / unit) ** 2 + ((posterior.mean - center) / unit) ** 2
    share = weight[:, None] * second * (deviation > 0)
    for latent in np.flatnonzero(share.max(axis=0) > ROW_SHARE):
        row = np.argmax(share[:, latent])
        warn(
            f"row {sample.rows[row]} holds {share[row, latent]:.0%} of the variance of "
            f"latent {latent} and stretches its bins, which flatters scores "
            "that count bins: drop the row, or pass UniformDiscretizer(bin_range=...)."
        )


def warn_of_mass_beyond(discretizer, sample):
    """Warn where the end bins of a UniformDiscretizer take more than their own mass."""
    posterior = sample.posterior
    std = posterior.marginal_std
    for latent, edges in enumerate(discretizer.bin_edges_):
        mean, width = posterior.mean[:, latent], std[:, latent]
        beyond = sample.weight @ _mass_outside(mean, width, edges[0], edges[-1])
        if beyond > MASS_BEYOND:
            warn(
                f"{beyond:.1%} of the mass of latent {latent} lies beyond the range "
                f"[{edges[0]:g}, {edges[-1]:g}] of its bins and goes to the end bins: "
                "pass a wider bin_range, or quantile bins for heavy tails."
            )


def _mass_outside(mean, std, low, high):
    """Return the mass of each row below and above an interval."""
    below, above = low - mean, mean - high
    # Over a std of 0 either is infinite, or 0 at an end, which counts as inside.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for distance in (below, above):
            distance /= std
            distance[np.isnan(distance)] = -np.inf
            ndtr(distance, out=distance)
    return below + above
