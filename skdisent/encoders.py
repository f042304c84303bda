"""Encoders: estimators whose ``transform`` returns a posterior."""

import numpy as np
from sklearn.decomposition import FactorAnalysis

from skdisent._posterior import GaussianPosterior

__all__ = ["FactorAnalysisEncoder"]


def _posterior_covariance(components, noise_variance):
    """Return (I + W Psi^-1 W')^-1, symmetric and positive definite in floats too."""
    u, s, _ = np.linalg.svd(components / np.sqrt(noise_variance), full_matrices=False)
    # From W Psi^-1/2 = u s v'. An inverse of the sum, whose condition number is up to
    # that of s squared, loses the small variances where a noise variance is near 0.
    root = u / np.hypot(1, s)
    return root @ root.T


class FactorAnalysisEncoder(FactorAnalysis, auto_wrap_output_keys=None):
    """Factor analysis whose ``transform`` returns the posterior of its latents.

    Factor analysis is the model z ~ N(0, I), x | z ~ N(mean + z W, Psi), W being
    `components_` and Psi the diagonal matrix of `noise_variance_`. The posterior of
    its latents is a Gaussian in closed form,

        z | x ~ N(C W Psi^-1 (x - mean), C),  C = (I + W Psi^-1 W')^-1,

    which makes it a probabilistic encoder that needs no training loop. Its means are
    what :class:`~sklearn.decomposition.FactorAnalysis` itself returns. C does not
    depend on x; it is always given as the full matrix. Without a rotation it comes out
    diagonal once the fit has converged, after a rotation it does not.

    Parameters
    ----------
    n_components : int, default=None
        Number of latents. None takes as many as there are features.
    tol : float, default=1e-2
        Stopping tolerance for the increase of the log-likelihood.
    copy : bool, default=True
        Whether to copy X. If False, X is overwritten during fitting.
    max_iter : int, default=1000
        Maximum number of iterations.
    noise_variance_init : array-like of shape (n_features,), default=None
        First guess of the noise variances. None takes ones.
    svd_method : {'lapack', 'randomized'}, default='randomized'
        Which singular value decomposition to use while fitting.
    iterated_power : int, default=3
        Number of iterations of the power method of ``svd_method='randomized'``.
    rotation : {'varimax', 'quartimax'}, default=None
        Rotation of the latents after the fit. None leaves them as they are.
    random_state : int or RandomState instance, default=0
        Only used by ``svd_method='randomized'``.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The loadings W.
    loglike_ : list of shape (n_iterations,)
        The log-likelihood at each iteration.
    noise_variance_ : ndarray of shape (n_features,)
        The diagonal of Psi.
    n_iter_ : int
        Number of iterations run.
    mean_ : ndarray of shape (n_features,)
        Mean of each feature over the training set.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen during `fit`, if X has names that are all strings.

    See Also
    --------
    sklearn.decomposition.FactorAnalysis : The same model, with the means alone.

    References
    ----------
    .. [1] C. M. Bishop, "Pattern Recognition and Machine Learning", 2006, Chapter
       12.2.4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdisent.encoders import FactorAnalysisEncoder
    >>> X, _ = load_iris(return_X_y=True)
    >>> posterior = FactorAnalysisEncoder(n_components=2).fit_transform(X)
    >>> posterior.mean.shape, posterior.covariance.shape
    ((150, 2), (2, 2))
    """

    def transform(self, X):
        """Return the posterior of the latents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data to encode.

        Returns
        -------
        GaussianPosterior
            Means of shape (n_samples, n_components), and one covariance of shape
            (n_components, n_components) shared by all rows.
        """
        mean = super().transform(X)
        covariance = _posterior_covariance(self.components_, self.noise_variance_)
        return GaussianPosterior(mean, covariance=covariance)

    def set_output(self, *, transform=None):
        """Return the encoder unchanged: a posterior is no table to be wrapped.

        A ``Pipeline`` passes its ``set_output`` on to every step and refuses steps
        that have none.

        Parameters
        ----------
        transform : {'default', 'pandas', 'polars'}, default=None
            Ignored.

        Returns
        -------
        FactorAnalysisEncoder
            The encoder itself.
        """
        return self
