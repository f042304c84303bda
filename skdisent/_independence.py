"""MISJED: pairs of latents that are independent and informative."""

from numbers import Integral

import numpy as np

from skdisent._base import (
    DISCRETIZER,
    N_JOBS,
    NOTHING,
    DisentanglementMetric,
    normalized,
    ranking,
    warn_if_collapsed,
)
from skdisent._sklearn import Interval
from skdisent._tables import MeanPairPlan, TablePlan
from skdisent.exceptions import warn

__all__ = ["MISJED"]


class MISJED(DisentanglementMetric):
    """Mutual Information Sums Joint Entropy Difference: lower is better.

    ``MISJED(z_i, z_j) = H(z_i) + H(z_j) - H(zbar_i, zbar_j)``, the entropies of the
    stochastic latents less the joint entropy of their posterior means, all in the same
    bins. It is small for two latents that are independent *and* informative, and near
    ``H(z_i) + H(z_j)`` for two noisy ones. Its bound is
    ``log n_bins_i + log n_bins_j``. Tables can make it negative; such values are
    reported as they are, with a warning.

    Parameters
    ----------
    k : int, default=None
        Take the pairs of the k most informative latents, at least 2; None is all.
        Beyond the number of latents it is all.
    discretizer : discretizer, default=None
        Bins of the latents, anything with ``fit`` and ``bin_edges_``; None is
        :class:`UniformDiscretizer`.
    normalize : bool, default=True
        Whether to divide by ``log n_bins_i + log n_bins_j``.
    n_jobs : int, default=None
        Number of jobs, over latents and pairs.

    Attributes
    ----------
    value_ : float
        The metric: the mean over the pairs.
    pairwise_values_ : ndarray of shape (n_latents, n_latents)
        Value of each pair, in nats unless `normalize`; NaN on the diagonal.
    latent_entropy_ : ndarray of shape (n_latents,)
        H(z_i) in nats.
    mean_joint_entropy_ : ndarray of shape (n_latents, n_latents)
        H(zbar_i, zbar_j) in nats; H(zbar_i) on the diagonal.
    ranking_ : ndarray of shape (n_latents,)
        Latents from the most to the least informative.
    discretizer_ : discretizer
        The fitted bins.
    n_features_in_ : int
        Number of latents.
    feature_names_in_ : ndarray of shape (n_latents,)
        Names of the latents, where Z_mean is a data frame.

    References
    ----------
    .. [1] K. Do and T. Tran, "Theory and Evaluation Metrics for Learning Disentangled
       Representations", ICLR 2020, equation 7.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import MISJED
    >>> Z_mean = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    >>> MISJED().fit(Z_mean, np.full((4, 2), 0.001)).value_ < 1e-3
    True
    """

    greater_is_better = False

    _parameter_constraints: dict = {
        "k": [Interval(Integral, 2, None, closed="left"), None],
        **DISCRETIZER,
        "normalize": ["boolean"],
        **N_JOBS,
    }

    def __init__(self, k=None, *, discretizer=None, normalize=True, n_jobs=None):
        self.k = k
        self.discretizer = discretizer
        self.normalize = normalize
        self.n_jobs = n_jobs

    def _plans(self, sample):
        n_latents = sample.posterior.shape[1]
        if n_latents < 2:
            raise ValueError(
                "Z_mean: MISJED compares pairs of latents and needs 2 latents, got "
                f"{n_latents} feature(s)."
            )
        edges = self._edges(sample)
        return TablePlan(edges), MeanPairPlan(edges)

    def _formula(self, sample, amounts, mean_joint_entropy):
        warn_if_collapsed(amounts.informativeness)
        order = ranking(amounts.informativeness)
        entropies = amounts.latent_entropy
        values = np.add.outer(entropies, entropies) - mean_joint_entropy
        np.fill_diagonal(values, np.nan)
        _warn_of_negative(values)
        if self.normalize:
            normalizer = np.add.outer(amounts.log_n_bins, amounts.log_n_bins)
            np.fill_diagonal(normalizer, np.nan)
            values = normalized(values, normalizer)
        top = order[: self.k]
        return {
            "pairwise_values_": values,
            "latent_entropy_": entropies,
            "mean_joint_entropy_": mean_joint_entropy,
            "ranking_": order,
            "value_": float(np.nanmean(values[np.ix_(top, top)])),
        }


def _warn_of_negative(values):
    """Warn of pairs below what rounding explains."""
    negative = np.argwhere(np.triu(values < -NOTHING))
    if len(negative):
        i, j = negative[0]
        warn(
            f"MISJED of latents {i} and {j} is negative ({values[i, j]:.3g} nats"
            f"{', as are others' if len(negative) > 1 else ''}): their means lie on "
            "edges of the bins or their posteriors are wider than the bins' range; "
            "choose other bins."
        )
