"""RMIG and JEMMIG: latents that are about one known factor."""

import numpy as np

from skdisent._base import (
    DISCRETIZER,
    N_JOBS,
    DisentanglementMetric,
    warn_if_collapsed,
)
from skdisent._factors import FactorReader
from skdisent._informativeness import (
    METHOD,
    amounts_plan,
    refuse_normalized_quadrature,
)
from skdisent._sklearn import HasMethods, StrOptions
from skdisent.exceptions import warn

__all__ = ["JEMMIG", "RMIG"]

# Latents whose information about a factor differs by less, as a share of the factor's
# entropy, are tied: floats never tie exactly.
TIE = 1e-9


class FactorMetric(DisentanglementMetric):
    """Base of the metrics that compare latents with known factors."""

    _parameter_constraints: dict = {
        **METHOD,
        **DISCRETIZER,
        "factor_discretizer": [HasMethods("fit"), None],
        "normalize": ["boolean"],
        "missing": [StrOptions({"error", "drop"})],
        **N_JOBS,
    }

    def __init__(
        self,
        *,
        method="quantization",
        discretizer=None,
        factor_discretizer=None,
        normalize=True,
        missing="error",
        n_jobs=None,
    ):
        self.method = method
        self.discretizer = discretizer
        self.factor_discretizer = factor_discretizer
        self.normalize = normalize
        self.missing = missing
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def _parts(self):
        names = getattr(self, "factor_names_in_", range(len(self.factor_values_)))
        return [("factor", names, self.factor_values_)]

    def _quantizes(self):
        return self.method == "quantization"

    def _factor_reader(self, reset):
        if reset:
            return FactorReader(self.factor_discretizer, missing=self.missing)
        return FactorReader(
            self.factor_discretizer,
            missing=self.missing,
            fitted=self.factor_discretizers_,
            fitted_names=getattr(self, "factor_names_in_", None),
        )

    def _plans(self, sample):
        return (amounts_plan(self, sample),)

    def _formula(self, sample, amounts):
        warn_if_collapsed(amounts.informativeness)
        best, second, gap = latents_of_factors(amounts)
        if amounts.mutual_info_bias is not None:
            _warn_of_bias(amounts, best, second, gap, sample.factors.labels)
        values = self._factor_values(amounts, best, gap)
        attributes = {
            "mutual_info_": amounts.mutual_info,
            "joint_entropy_": amounts.joint_entropy,
            "latent_entropy_": amounts.latent_entropy,
            "factor_entropy_": amounts.factor_entropy,
            "factor_values_": values,
            "best_latent_": best,
            "second_latent_": second,
            "n_rows_": sample.factors.known().sum(axis=1),
            "factor_discretizers_": sample.factors.discretizers,
            "value_": _mean_over_factors(values, amounts, sample),
        }
        if sample.factors.names is not None:
            attributes["factor_names_in_"] = sample.factors.names
        return attributes


class RMIG(FactorMetric):
    """Robust Mutual Information Gap: higher is better, in [0, 1] if normalized.

    ``RMIG(y_k) = I(z_i*, y_k) - I(z_j°, y_k)``, how much more the best latent knows
    about a factor than the second best, with posteriors that count in full. In nats it
    lies in [0, H(y_k)]. The model's value is the mean over factors.

    Parameters
    ----------
    method : {"quantization", "quadrature"}, default="quantization"
        Exact bin masses, or differential entropies by numerical integration.
    discretizer : discretizer, default=None
        Bins of the latents, anything with ``fit`` and ``bin_edges_``; None is
        :class:`UniformDiscretizer`.
    factor_discretizer : discretizer, default=None
        Bins of the continuous factors; None is 10 equal-frequency bins, with a warning.
    normalize : bool, default=True
        Whether to divide by H(y_k).
    missing : {"error", "drop"}, default="error"
        Whether a missing label is an error, or each factor uses the rows where it is
        known.
    n_jobs : int, default=None
        Number of jobs, over latents.

    Attributes
    ----------
    value_ : float
        The metric.
    factor_values_ : ndarray of shape (n_factors,)
        RMIG(y_k), in nats unless `normalize`; a factor with one value is NaN there.
    mutual_info_ : ndarray of shape (n_latents, n_factors)
        I(z_i, y_k) in nats.
    joint_entropy_ : ndarray of shape (n_latents, n_factors)
        H(z_i, y_k) in nats.
    latent_entropy_ : ndarray of shape (n_latents,)
        H(z_i) in nats.
    factor_entropy_ : ndarray of shape (n_factors,)
        H(y_k) in nats.
    best_latent_ : ndarray of shape (n_factors,)
        The latent that knows most about the factor; ties go to the smallest JEMMIG.
    second_latent_ : ndarray of shape (n_factors,)
        The second best; -1 where there is one latent only.
    n_rows_ : ndarray of shape (n_factors,)
        Number of rows where the factor is known.
    factor_names_in_ : ndarray of shape (n_factors,)
        Names of the factors, where y has them.
    discretizer_ : discretizer
        The fitted bins, if quantized.
    factor_discretizers_ : list of n_factors discretizers or None
        The fitted bins of continuous factors.
    n_features_in_ : int
        Number of latents.
    feature_names_in_ : ndarray of shape (n_latents,)
        Names of the latents, where Z_mean is a data frame.

    See Also
    --------
    JEMMIG : Also asks that the best latent is about no other factor.

    References
    ----------
    .. [1] K. Do and T. Tran, "Theory and Evaluation Metrics for Learning Disentangled
       Representations", ICLR 2020, equation 10.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import RMIG
    >>> shape = np.tile(["oval", "heart"], 50)
    >>> Z_mean = np.column_stack([shape == "oval", np.zeros(100)]).astype(float)
    >>> Z_std = np.column_stack([np.full(100, 0.01), np.ones(100)])
    >>> rmig = RMIG().fit(Z_mean, Z_std, shape)
    >>> round(rmig.score(), 4)
    1.0
    >>> rmig.best_latent_
    array([0])
    """

    def _factor_values(self, amounts, best, gap):
        if not self.normalize:
            return gap
        return _share(gap, amounts.factor_entropy)


class JEMMIG(FactorMetric):
    """Joint Entropy Minus Mutual Information Gap: lower is better, 0 is perfect.

    ``JEMMIG(y_k) = H(z_i*, y_k) - I(z_i*, y_k) + I(z_j°, y_k)`` is small where the best
    latent of a factor is about that factor only and no other latent is. Quantized it
    lies in [0, H(y_k) + log n_bins], which is its normalizer. (Some reviews report one
    minus that ratio.) The model's value is the mean over factors.

    Parameters
    ----------
    method : {"quantization", "quadrature"}, default="quantization"
        Exact bin masses, or differential entropies by numerical integration, which
        have no normalizer and are unbounded below.
    discretizer : discretizer, default=None
        Bins of the latents, anything with ``fit`` and ``bin_edges_``; None is
        :class:`UniformDiscretizer`.
    factor_discretizer : discretizer, default=None
        Bins of the continuous factors; None is 10 equal-frequency bins, with a warning.
    normalize : bool, default=True
        Whether to divide by H(y_k) + log n_bins of the best latent.
    missing : {"error", "drop"}, default="error"
        Whether a missing label is an error, or each factor uses the rows where it is
        known.
    n_jobs : int, default=None
        Number of jobs, over latents.

    Attributes
    ----------
    value_ : float
        The metric; ``score`` returns its opposite.
    factor_values_ : ndarray of shape (n_factors,)
        JEMMIG(y_k), in nats unless `normalize`; a factor with one value is NaN there.
    mutual_info_ : ndarray of shape (n_latents, n_factors)
        I(z_i, y_k) in nats.
    joint_entropy_ : ndarray of shape (n_latents, n_factors)
        H(z_i, y_k) in nats.
    latent_entropy_ : ndarray of shape (n_latents,)
        H(z_i) in nats.
    factor_entropy_ : ndarray of shape (n_factors,)
        H(y_k) in nats.
    best_latent_ : ndarray of shape (n_factors,)
        The latent that knows most about the factor; ties go to the smallest JEMMIG.
    second_latent_ : ndarray of shape (n_factors,)
        The second best; -1 where there is one latent only.
    n_rows_ : ndarray of shape (n_factors,)
        Number of rows where the factor is known.
    factor_names_in_ : ndarray of shape (n_factors,)
        Names of the factors, where y has them.
    discretizer_ : discretizer
        The fitted bins, if quantized.
    factor_discretizers_ : list of n_factors discretizers or None
        The fitted bins of continuous factors.
    n_features_in_ : int
        Number of latents.
    feature_names_in_ : ndarray of shape (n_latents,)
        Names of the latents, where Z_mean is a data frame.

    See Also
    --------
    RMIG : The gap alone.

    References
    ----------
    .. [1] K. Do and T. Tran, "Theory and Evaluation Metrics for Learning Disentangled
       Representations", ICLR 2020, section 3.4 and appendix A.12.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import JEMMIG
    >>> shape = np.tile(["oval", "heart"], 50)
    >>> Z_mean = np.column_stack([shape == "oval", np.zeros(100)]).astype(float)
    >>> Z_std = np.column_stack([np.full(100, 0.01), np.ones(100)])
    >>> jemmig = JEMMIG().fit(Z_mean, Z_std, shape)
    >>> jemmig.value_ < 0.2
    True
    >>> jemmig.score() == -jemmig.value_
    True
    """

    greater_is_better = False

    def _plans(self, sample):
        refuse_normalized_quadrature(self)
        return super()._plans(sample)

    def _factor_values(self, amounts, best, gap):
        factors = np.arange(len(best))
        values = amounts.joint_entropy[best, factors] - gap
        if not self.normalize:
            return values
        of_one_value = amounts.factor_entropy == 0
        bound = amounts.factor_entropy + amounts.log_n_bins[best]
        return _share(values, np.where(of_one_value, 0.0, bound))


def latents_of_factors(amounts):
    """Return best latent, second latent and the gap of each factor, (n_factors,) each.

    Of the latents that are tied for the best, the one with the smallest JEMMIG after
    normalization, then the lowest index. One latent alone has -1 as its second, whose
    information is 0.
    """
    info, entropy = amounts.mutual_info, amounts.factor_entropy
    alone = len(info) == 1
    descending = -np.sort(-info, axis=0)
    largest = descending[0]
    next_largest = np.zeros_like(largest) if alone else descending[1]
    rest = np.where(info == largest, next_largest, largest)
    jemmig = amounts.joint_entropy - info + rest
    if amounts.log_n_bins is not None:
        bound = entropy + amounts.log_n_bins[:, None]
        jemmig = np.divide(jemmig, bound, where=bound > 0, out=jemmig)
    tied = info >= largest - TIE * entropy
    jemmig = np.where(tied, jemmig, np.inf)
    best = np.argmax(jemmig <= jemmig.min(axis=0) + TIE, axis=0)
    others = info.copy()
    others[best, np.arange(len(best))] = -np.inf
    second = np.argmax(others >= others.max(axis=0) - TIE * entropy, axis=0)
    if alone:
        second = np.full_like(best, -1)
    return best, second, largest - next_largest


def _share(values, whole):
    """Return values / whole, NaN where a factor has one value."""
    return np.divide(values, whole, where=whole > 0, out=np.full_like(values, np.nan))


def _mean_over_factors(values, amounts, sample):
    varied = amounts.factor_entropy > 0
    labels = sample.factors.labels
    if not varied.any():
        raise ValueError(
            f"y: every factor has one value in the rows used ({len(sample.weight)} "
            f"sample{'s' if len(sample.weight) > 1 else ''}), so there is nothing that "
            "a latent could know: pass rows in which a factor varies."
        )
    for k in np.flatnonzero(~varied):
        warn(f"{labels[k]} of y has one value: it is left out of the mean.")
    return float(values[varied].mean())


def _warn_of_bias(amounts, best, second, gap, labels):
    factors = np.arange(len(best))
    bias = amounts.mutual_info_bias
    of_gap = bias[best, factors] - np.where(second >= 0, bias[second, factors], 0.0)
    unsure = (abs(of_gap) > gap / 5) & (amounts.factor_entropy > 0)
    if unsure.any():
        gaps = ", ".join(
            f"{labels[k]} {of_gap[k]:+.2g} of {gap[k]:.2g}"
            for k in np.flatnonzero(unsure)
        )
        warn(
            "few rows for so many bins and classes: the gap in nats has an estimated "
            f"bias of more than a fifth for {gaps}. Use more rows or fewer bins."
        )
