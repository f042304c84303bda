"""Informativeness: how much a latent says about the data."""

from skdisent._base import (
    DISCRETIZER,
    N_JOBS,
    TOP_K,
    DisentanglementMetric,
    mean_of_largest,
    normalized,
    ranking,
    warn_if_collapsed,
)
from skdisent._quadrature import QuadraturePlan
from skdisent._sklearn import StrOptions
from skdisent._tables import TablePlan

__all__ = ["Informativeness"]

METHOD = {"method": [StrOptions({"quantization", "quadrature"})]}


def amounts_plan(metric, sample):
    """Return the plan of one-latent amounts by the metric's method."""
    if metric.method == "quadrature":
        return QuadraturePlan()
    return TablePlan(metric._edges(sample))


def refuse_normalized_quadrature(metric):
    """Refuse to divide differential entropies by a bound that they do not have."""
    if metric.method == "quadrature" and metric.normalize:
        raise ValueError(
            "method='quadrature' gives differential entropies, which have no upper "
            f"bound to divide {type(metric).__name__} by: pass normalize=False, or "
            "method='quantization'."
        )


class Informativeness(DisentanglementMetric):
    """Mean of the k largest I(x, z_i): higher is better, from 0 to log n_samples.

    ``I(x, z_i) = H(z_i) - H(z_i | x)`` is the mutual information in nats of the data
    and one latent of the aggregate posterior.

    Parameters
    ----------
    k : int, default=None
        How many of the most informative latents to average; None is all. Beyond the
        number of latents the missing ones count as 0.
    method : {"quantization", "quadrature"}, default="quantization"
        Exact bin masses, or differential entropies by numerical integration.
    discretizer : discretizer, default=None
        Bins of the latents, anything with ``fit`` and ``bin_edges_``; None is
        :class:`UniformDiscretizer`.
    normalize : bool, default=False
        Whether to divide each latent's value by its H(z_i); only quantized.
    n_jobs : int, default=None
        Number of jobs, over latents.

    Attributes
    ----------
    value_ : float
        The metric.
    informativeness_ : ndarray of shape (n_latents,)
        I(x, z_i) in nats, or its share of H(z_i) if `normalize`.
    latent_entropy_ : ndarray of shape (n_latents,)
        H(z_i) in nats.
    ranking_ : ndarray of shape (n_latents,)
        Latents from the most to the least informative.
    discretizer_ : discretizer
        The fitted bins, if quantized.
    n_features_in_ : int
        Number of latents.
    feature_names_in_ : ndarray of shape (n_latents,)
        Names of the latents, where Z_mean is a data frame.

    See Also
    --------
    SEPIN : What a latent says that the others do not.

    References
    ----------
    .. [1] K. Do and T. Tran, "Theory and Evaluation Metrics for Learning Disentangled
       Representations", ICLR 2020, section 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import Informativeness
    >>> Z_mean = np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> Z_std = np.array([[0.01, 1.0], [0.01, 1.0]])
    >>> Informativeness().fit(Z_mean, Z_std).informativeness_.round(4)
    array([0.6931, 0.    ])
    """

    _parameter_constraints: dict = {
        **TOP_K,
        **METHOD,
        **DISCRETIZER,
        "normalize": ["boolean"],
        **N_JOBS,
    }

    def __init__(
        self,
        k=None,
        *,
        method="quantization",
        discretizer=None,
        normalize=False,
        n_jobs=None,
    ):
        self.k = k
        self.method = method
        self.discretizer = discretizer
        self.normalize = normalize
        self.n_jobs = n_jobs

    def _parts(self):
        return [("latent", self._latent_names(), self.informativeness_)]

    def _quantizes(self):
        return self.method == "quantization"

    def _plans(self, sample):
        refuse_normalized_quadrature(self)
        return (amounts_plan(self, sample),)

    def _formula(self, sample, amounts):
        values = amounts.informativeness
        warn_if_collapsed(values)
        if self.normalize:
            values = normalized(values, amounts.latent_entropy)
        return {
            "informativeness_": values,
            "latent_entropy_": amounts.latent_entropy,
            "ranking_": ranking(values),
            "value_": mean_of_largest(values, self.k),
        }
