"""SEPIN, WSEPIN, INDIN, WINDIN: latents that are separate and informative."""

from numbers import Integral

import numpy as np

from skdisent._aggregate import DrawPlan
from skdisent._base import (
    DISCRETIZER,
    N_JOBS,
    TOP_K,
    DisentanglementMetric,
    normalized,
    ranking,
    warn_if_collapsed,
)
from skdisent._kernels import CUT, ROUNDING
from skdisent._sklearn import Interval
from skdisent._tables import TablePlan
from skdisent.exceptions import warn

__all__ = ["INDIN", "SEPIN", "WINDIN", "WSEPIN"]

# A score that changes by this share when no draw sees its own row needs more rows.
OWN_ROW_SHARE = 0.2


class GroupMetric(DisentanglementMetric):
    """Base of the metrics of a group of latents against all others.

    Each is a sum over groups of an amount of the group (`_amounts`) times its share
    (`_shares`).
    """

    _parameter_constraints: dict = {
        "groups": ["array-like", None],
        "normalize": ["boolean"],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        **DISCRETIZER,
        **N_JOBS,
        "random_state": ["random_state"],
    }

    def _parts(self):
        if self.groups is None:
            return [("latent", self._latent_names(), self.latent_values_)]
        names = ["+".join(map(str, group)) for group in self.groups]
        return [("group", names, self.latent_values_)]

    def _quantizes(self):
        return self.normalize

    def _plans(self, sample):
        groups = read_groups(self.groups, sample.posterior.shape[1])
        draws = DrawPlan(groups, self.n_samples, self.random_state)
        if not self.normalize:
            return (draws,)
        if any(len(group) > 1 for group in groups):
            raise ValueError(
                "normalize=True divides by the quantized H(z_G), which has n_bins ** "
                "len(G) cells for a group of latents: pass normalize=False, or groups "
                "of one latent each."
            )
        return draws, TablePlan(self._edges(sample))

    def _formula(self, sample, draws, tables=None):
        _warn_of_points(sample)
        warn_if_collapsed(draws.informativeness, ROUNDING)
        scale = np.ones(draws.n_groups)
        if tables is not None:
            groups = read_groups(self.groups, sample.posterior.shape[1])
            latents = [latent for (latent,) in groups]
            scale = normalized(scale, tables.latent_entropy[latents])
        values = scale * self._amounts(draws)
        shares, of_informativeness = self._shares(draws.informativeness, values)
        value = float(shares @ values)
        error = float(draws.standard_errors(shares * scale, of_informativeness))
        _warn_near_cap(shares @ (scale * draws.own_row_effect), value, error)
        return {
            "informativeness_": draws.informativeness,
            "latent_values_": values,
            "ranking_": ranking(values),
            "mutual_info_rest_": draws.informativeness
            - draws.separability
            + draws.conditional_dependence,
            "information_": float(draws.information),
            "latent_std_errors_": draws.standard_errors(
                np.diag(scale), np.zeros((draws.n_groups, draws.n_groups))
            ),
            "std_error_": error,
            "value_": value,
            **self._weights(shares),
        }


class TopGroupMetric(GroupMetric):
    """Mean of the k largest amounts."""

    _parameter_constraints: dict = {**TOP_K, **GroupMetric._parameter_constraints}

    def __init__(
        self,
        k=None,
        *,
        groups=None,
        normalize=False,
        n_samples=10_000,
        discretizer=None,
        n_jobs=None,
        random_state=None,
    ):
        self.k = k
        self.groups = groups
        self.normalize = normalize
        self.n_samples = n_samples
        self.discretizer = discretizer
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _shares(self, informativeness, values):
        k = len(values) if self.k is None else self.k
        shares = np.zeros_like(values)
        shares[ranking(values)[:k]] = 1 / k
        return shares, np.zeros_like(values)

    def _weights(self, shares):
        return {}


class WeightedGroupMetric(GroupMetric):
    """Mean of the amounts, weighted by informativeness."""

    def __init__(
        self,
        *,
        groups=None,
        normalize=False,
        n_samples=10_000,
        discretizer=None,
        n_jobs=None,
        random_state=None,
    ):
        self.groups = groups
        self.normalize = normalize
        self.n_samples = n_samples
        self.discretizer = discretizer
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _shares(self, informativeness, values):
        """Return rho, and the derivative of the value by the informativeness."""
        counted = informativeness >= ROUNDING
        total = informativeness[counted].sum()
        if total == 0:
            return np.zeros_like(values), np.zeros_like(values)
        shares = np.where(counted, informativeness, 0.0) / total
        return shares, np.where(counted, values - shares @ values, 0.0) / total

    def _weights(self, shares):
        return {"weights_": shares}


class SEPIN(TopGroupMetric):
    """SEPIN@k, separability and informativeness: higher is better, from 0.

    ``SEPIN@k`` is the mean of the k largest ``I(x, z_i | z_-i)``, the information in
    nats about the data that a latent has and the others do not. No value exceeds
    I(x, z), which is at most the log of n_samples: near that cap the other latents
    already identify the row, SEPIN falls to 0, and a warning asks for more rows.

    Parameters
    ----------
    k : int, default=None
        How many of the largest values to average; None is all. Beyond the number of
        groups the missing ones count as 0.
    groups : list of lists of int, default=None
        Groups of latents that are taken together, which may leave latents out; None is
        each latent alone.
    normalize : bool, default=False
        Whether to divide each latent's value by its quantized H(z_i); not for groups of
        several latents. The ratio of a differential and a quantized amount is not
        bounded by 1.
    n_samples : int, default=10_000
        Number of draws from the aggregate posterior, at least 2.
    discretizer : discretizer, default=None
        Bins of H(z_i) for `normalize`; None is :class:`UniformDiscretizer`.
    n_jobs : int, default=None
        Number of jobs, over draws.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    value_ : float
        The metric.
    std_error_ : float
        Standard error of `value_` from the draws, for the rows as they are.
    latent_values_ : ndarray of shape (n_groups,)
        Value of each group, in nats unless `normalize`.
    latent_std_errors_ : ndarray of shape (n_groups,)
        Standard errors of `latent_values_`.
    ranking_ : ndarray of shape (n_groups,)
        Groups from the largest value to the smallest.
    informativeness_ : ndarray of shape (n_groups,)
        I(x, z_G) in nats.
    mutual_info_rest_ : ndarray of shape (n_groups,)
        ``I(z_G, z_-G)`` in nats.
    information_ : float
        I(x, z) in nats.
    discretizer_ : discretizer
        The fitted bins, if `normalize`.
    n_features_in_ : int
        Number of latents.
    feature_names_in_ : ndarray of shape (n_latents,)
        Names of the latents, where Z_mean is a data frame.

    See Also
    --------
    WSEPIN : The mean weighted by informativeness.
    INDIN : Without what latents share given the data.

    References
    ----------
    .. [1] K. Do and T. Tran, "Theory and Evaluation Metrics for Learning Disentangled
       Representations", ICLR 2020, equation 8.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import SEPIN
    >>> level = np.array([-3.0, -1.0, 1.0, 3.0])
    >>> Z_mean = np.column_stack([np.repeat(level, 80), np.tile(level, 80)])
    >>> sepin = SEPIN(random_state=0).fit(Z_mean, np.full((320, 2), 0.01))
    >>> sepin.latent_values_.round(4)
    array([1.3863, 1.3863])
    """

    def _amounts(self, draws):
        return draws.separability


class WSEPIN(WeightedGroupMetric):
    """SEPIN weighted by informativeness: higher is better, from 0.

    ``WSEPIN = sum_i rho_i I(x, z_i | z_-i)`` in nats, where ``rho_i`` is a latent's
    share of the informativeness of all, so that noisy latents do not count.

    Parameters
    ----------
    groups : list of lists of int, default=None
        Groups of latents that are taken together, which may leave latents out; None is
        each latent alone.
    normalize : bool, default=False
        Whether to divide each latent's value by its quantized H(z_i); not for groups of
        several latents. The ratio of a differential and a quantized amount is not
        bounded by 1.
    n_samples : int, default=10_000
        Number of draws from the aggregate posterior, at least 2.
    discretizer : discretizer, default=None
        Bins of H(z_i) for `normalize`; None is :class:`UniformDiscretizer`.
    n_jobs : int, default=None
        Number of jobs, over draws.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    value_ : float
        The metric.
    std_error_ : float
        Standard error of `value_` from the draws, for the rows as they are.
    latent_values_ : ndarray of shape (n_groups,)
        Value of each group, in nats unless `normalize`.
    latent_std_errors_ : ndarray of shape (n_groups,)
        Standard errors of `latent_values_`.
    ranking_ : ndarray of shape (n_groups,)
        Groups from the largest value to the smallest.
    informativeness_ : ndarray of shape (n_groups,)
        I(x, z_G) in nats.
    mutual_info_rest_ : ndarray of shape (n_groups,)
        ``I(z_G, z_-G)`` in nats.
    information_ : float
        I(x, z) in nats.
    weights_ : ndarray of shape (n_groups,)
        The shares rho, which sum to 1; all 0 where every latent is collapsed.
    discretizer_ : discretizer
        The fitted bins, if `normalize`.
    n_features_in_ : int
        Number of latents.
    feature_names_in_ : ndarray of shape (n_latents,)
        Names of the latents, where Z_mean is a data frame.

    See Also
    --------
    SEPIN : The mean over the k best latents.
    WINDIN : Without what latents share given the data.

    References
    ----------
    .. [1] K. Do and T. Tran, "Theory and Evaluation Metrics for Learning Disentangled
       Representations", ICLR 2020, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import WSEPIN
    >>> level = np.array([-3.0, -1.0, 1.0, 3.0])
    >>> Z_mean = np.column_stack([np.repeat(level, 80), np.tile(level, 80)])
    >>> wsepin = WSEPIN(random_state=0).fit(Z_mean, np.full((320, 2), 0.01))
    >>> round(wsepin.value_, 4)
    1.3863
    """

    def _amounts(self, draws):
        return draws.separability


class INDIN(TopGroupMetric):
    """INDIN@k, independence and informativeness: higher is better, may be negative.

    ``INDIN@k`` is the mean of the k largest ``I(x, z_i) - I(z_i, z_-i)`` in nats. For
    posteriors with a diagonal covariance it is SEPIN@k; otherwise it lacks
    ``I(z_i, z_-i | x)``, what latents share given the data.

    Parameters
    ----------
    k : int, default=None
        How many of the largest values to average; None is all. Beyond the number of
        groups the missing ones count as 0.
    groups : list of lists of int, default=None
        Groups of latents that are taken together, which may leave latents out; None is
        each latent alone.
    normalize : bool, default=False
        Whether to divide each latent's value by its quantized H(z_i); not for groups of
        several latents. The ratio of a differential and a quantized amount is not
        bounded by 1.
    n_samples : int, default=10_000
        Number of draws from the aggregate posterior, at least 2.
    discretizer : discretizer, default=None
        Bins of H(z_i) for `normalize`; None is :class:`UniformDiscretizer`.
    n_jobs : int, default=None
        Number of jobs, over draws.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    value_ : float
        The metric.
    std_error_ : float
        Standard error of `value_` from the draws, for the rows as they are.
    latent_values_ : ndarray of shape (n_groups,)
        Value of each group, in nats unless `normalize`.
    latent_std_errors_ : ndarray of shape (n_groups,)
        Standard errors of `latent_values_`.
    ranking_ : ndarray of shape (n_groups,)
        Groups from the largest value to the smallest.
    informativeness_ : ndarray of shape (n_groups,)
        I(x, z_G) in nats.
    mutual_info_rest_ : ndarray of shape (n_groups,)
        ``I(z_G, z_-G)`` in nats.
    information_ : float
        I(x, z) in nats.
    discretizer_ : discretizer
        The fitted bins, if `normalize`.
    n_features_in_ : int
        Number of latents.
    feature_names_in_ : ndarray of shape (n_latents,)
        Names of the latents, where Z_mean is a data frame.

    See Also
    --------
    WINDIN : The mean weighted by informativeness.
    SEPIN : With what latents share given the data.

    References
    ----------
    .. [1] K. Do and T. Tran, "Theory and Evaluation Metrics for Learning Disentangled
       Representations", ICLR 2020, equation 9.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import INDIN, GaussianPosterior
    >>> mean = np.random.default_rng(0).normal(size=(500, 2))
    >>> covariance = np.array([[0.8, 0.4], [0.4, 0.8]])
    >>> posterior = GaussianPosterior(mean, covariance=covariance)
    >>> indin = INDIN(n_samples=500, random_state=0).fit(posterior)
    >>> indin.latent_values_.shape
    (2,)
    """

    def _amounts(self, draws):
        return draws.separability - draws.conditional_dependence


class WINDIN(WeightedGroupMetric):
    """INDIN weighted by informativeness: higher is better, may be negative.

    ``WINDIN = sum_i rho_i (I(x, z_i) - I(z_i, z_-i))`` in nats, where ``rho_i`` is a
    latent's share of the informativeness of all.

    Parameters
    ----------
    groups : list of lists of int, default=None
        Groups of latents that are taken together, which may leave latents out; None is
        each latent alone.
    normalize : bool, default=False
        Whether to divide each latent's value by its quantized H(z_i); not for groups of
        several latents. The ratio of a differential and a quantized amount is not
        bounded by 1.
    n_samples : int, default=10_000
        Number of draws from the aggregate posterior, at least 2.
    discretizer : discretizer, default=None
        Bins of H(z_i) for `normalize`; None is :class:`UniformDiscretizer`.
    n_jobs : int, default=None
        Number of jobs, over draws.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    value_ : float
        The metric.
    std_error_ : float
        Standard error of `value_` from the draws, for the rows as they are.
    latent_values_ : ndarray of shape (n_groups,)
        Value of each group, in nats unless `normalize`.
    latent_std_errors_ : ndarray of shape (n_groups,)
        Standard errors of `latent_values_`.
    ranking_ : ndarray of shape (n_groups,)
        Groups from the largest value to the smallest.
    informativeness_ : ndarray of shape (n_groups,)
        I(x, z_G) in nats.
    mutual_info_rest_ : ndarray of shape (n_groups,)
        ``I(z_G, z_-G)`` in nats.
    information_ : float
        I(x, z) in nats.
    weights_ : ndarray of shape (n_groups,)
        The shares rho, which sum to 1; all 0 where every latent is collapsed.
    discretizer_ : discretizer
        The fitted bins, if `normalize`.
    n_features_in_ : int
        Number of latents.
    feature_names_in_ : ndarray of shape (n_latents,)
        Names of the latents, where Z_mean is a data frame.

    See Also
    --------
    INDIN : The mean over the k best latents.
    WSEPIN : With what latents share given the data.

    References
    ----------
    .. [1] K. Do and T. Tran, "Theory and Evaluation Metrics for Learning Disentangled
       Representations", ICLR 2020, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import WINDIN
    >>> level = np.array([-3.0, -1.0, 1.0, 3.0])
    >>> Z_mean = np.column_stack([np.repeat(level, 80), np.repeat(level, 80)])
    >>> windin = WINDIN(random_state=0).fit(Z_mean, np.full((320, 2), 0.01))
    >>> abs(windin.value_) < 1e-9
    True
    """

    def _amounts(self, draws):
        return draws.separability - draws.conditional_dependence


def read_groups(groups, n_latents):
    """Return the groups of latents as a tuple of tuples; None is each one alone."""
    if groups is None:
        return tuple((latent,) for latent in range(n_latents))
    if len(groups) == 0:
        raise ValueError("groups is empty: pass None for each latent alone.")
    seen = set()
    for group in groups:
        if not _is_index_list(group) or not all(0 <= i < n_latents for i in group):
            raise ValueError(
                "groups must hold non-empty lists of latents, integers from 0 to "
                f"{n_latents - 1}, got {group!r}."
            )
        if len(set(group)) < len(group) or seen & set(group):
            raise ValueError(f"groups must not share latents, got {groups!r}.")
        seen |= set(group)
    return tuple(tuple(int(i) for i in group) for group in groups)


def _is_index_list(group):
    # bool is an Integral, but a mask is not a list of latents.
    return (
        isinstance(group, list | tuple | np.ndarray | range)
        and len(group) > 0
        and all(isinstance(i, Integral) and not isinstance(i, bool) for i in group)
    )


def _warn_of_points(sample):
    if sample.posterior._is_point:
        warn(
            "the encoder is a point encoder (no std), so information is that of the "
            "distinct rows of z: meaningful for discrete codes, and near its cap for "
            "continuous ones. Pass Z_std where the encoder has one."
        )


def _warn_near_cap(change, value, error):
    if abs(change) > max(OWN_ROW_SHARE * abs(value), error, ROUNDING):
        # Beyond it the sums over rows do not tell how large the change is.
        size = f"{change:+.2g}" if abs(change) < CUT / 2 else f"more than {CUT / 2:.0f}"
        warn(
            f"the value of {value:.3g} would change by {size} if no draw saw its own "
            "row: the rows are so far apart that they identify each other. Pass more "
            "rows, or compare models on the same rows only."
        )
