"""The posterior of an encoder: one Gaussian a row, in the place of X."""

import numpy as np

from skdisent._densities import (
    DiagonalDensities,
    FullDensities,
    cholesky,
    log_diagonal,
)
from skdisent._kernels import fast_log_sums, plain_log_sums
from skdisent._validation import (
    as_array,
    as_float_array,
    as_float_matrix,
    as_std,
    refuse_beyond_largest,
)

__all__ = ["GaussianPosterior"]

# Rounding of a covariance that was inverted in float32.
ASYMMETRY = 1e-5


class GaussianPosterior:
    """Gaussian posteriors q(z | x) of n_samples data points, as one table.

    It travels in the place of ``X``: scikit-learn's splitters, searches and
    pipelines index it by rows and hand it on. Shapes are checked here, values when
    a metric reads them.

    Parameters
    ----------
    mean : array-like of shape (n_samples, n_latents)
        Means of the latents.
    std : array-like of shape (n_samples, n_latents), default=None
        Standard deviations of a diagonal posterior. An encoder that gives
        log-variances: use :meth:`from_logvar`.
    covariance : array-like of shape (n_samples, n_latents, n_latents) or \
            (n_latents, n_latents), default=None
        Covariance matrices of a full posterior, one a row or one for all rows.
        With neither `std` nor `covariance` the encoder is a point encoder.

    Attributes
    ----------
    mean : ndarray of shape (n_samples, n_latents)
        The means.
    std : ndarray of shape (n_samples, n_latents) or None
        The standard deviations of a diagonal posterior.
    covariance : ndarray of shape (n_samples, n_latents, n_latents) or \
            (n_latents, n_latents) or None
        The covariance matrices of a full posterior.

    Raises
    ------
    ValueError
        If shapes do not fit each other, or `std` and `covariance` are both given.

    Examples
    --------
    >>> import numpy as np
    >>> from skdisent import GaussianPosterior
    >>> posterior = GaussianPosterior(np.zeros((5, 3)), np.ones((5, 3)))
    >>> posterior
    GaussianPosterior(n_samples=5, n_latents=3, std)
    >>> posterior[:2, [0, 2]].shape
    (2, 2)
    """

    # __len__ and __getitem__ alone would make two rows unpack as mean and std.
    __iter__ = None
    ndim = 2

    def __init__(self, mean, std=None, *, covariance=None):
        if std is not None and covariance is not None:
            raise ValueError("std and covariance were both passed: pass one of them.")
        self.mean = as_array(mean, "mean")
        if self.mean.ndim != 2:
            raise ValueError(
                "mean must have shape (n_samples, n_latents), "
                f"got shape {self.mean.shape}."
            )
        self.std = _of_shape(std, "std", [self.mean.shape])
        n_samples, n_latents = self.mean.shape
        matrix = (n_latents, n_latents)
        self.covariance = _of_shape(
            covariance, "covariance", [(n_samples, *matrix), matrix]
        )

    @classmethod
    def from_logvar(cls, mean, logvar):
        """Return the diagonal posterior of an encoder that gives log-variances.

        Parameters
        ----------
        mean : array-like of shape (n_samples, n_latents)
            Means of the latents.
        logvar : array-like of shape (n_samples, n_latents)
            Natural logarithms of the variances.

        Returns
        -------
        GaussianPosterior
            With ``std = exp(0.5 * logvar)``, computed in float64.
        """
        logvar = as_float_array(logvar, "logvar", finite=False)
        # A variance beyond the floats becomes infinite, which the metrics refuse.
        with np.errstate(over="ignore"):
            std = np.exp(0.5 * logvar)
        return cls(mean, std)

    @classmethod
    def from_cholesky(cls, mean, scale_tril):
        """Return the full posterior of an encoder that gives Cholesky factors.

        Parameters
        ----------
        mean : array-like of shape (n_samples, n_latents)
            Means of the latents.
        scale_tril : array-like of shape (n_samples, n_latents, n_latents) or \
                (n_latents, n_latents)
            Lower triangular factors, one a row or one for all rows.

        Returns
        -------
        GaussianPosterior
            With ``covariance = scale_tril @ scale_tril.T``.
        """
        factor = as_float_array(scale_tril, "scale_tril", finite=False)
        if factor.ndim not in (2, 3):
            raise ValueError(
                "scale_tril must have shape (n_samples, n_latents, n_latents) or "
                f"(n_latents, n_latents), got shape {factor.shape}."
            )
        # A covariance beyond the floats is not finite, which the metrics refuse.
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = factor @ np.swapaxes(factor, -1, -2)
        return cls(mean, covariance=covariance)

    @classmethod
    def concatenate(cls, posteriors):
        """Return the rows of several posteriors, such as the batches of a loader.

        Parameters
        ----------
        posteriors : iterable of GaussianPosterior
            All with `std`, all with `covariance`, or all point encoders, of the same
            number of latents.

        Returns
        -------
        GaussianPosterior
            A covariance shared by all of them stays shared.
        """
        posteriors = list(posteriors)
        if not posteriors:
            raise ValueError("posteriors is empty: there is nothing to concatenate.")
        widths = {p.shape[1] for p in posteriors}
        if len(widths) > 1:
            raise ValueError(
                f"posteriors must have one number of latents, got {sorted(widths)}."
            )
        if not all(isinstance(one, GaussianPosterior) for one in posteriors):
            raise TypeError(
                "posteriors must be GaussianPosterior objects, got "
                f"{', '.join(sorted({type(one).__name__ for one in posteriors}))}."
            )
        kinds = sorted({p._kind() for p in posteriors})
        if len(kinds) > 1:
            raise ValueError(
                "posteriors must be of one kind to be concatenated, got "
                f"{' and '.join(kinds)}."
            )
        mean = np.concatenate([p.mean for p in posteriors])
        if kinds == ["std"]:
            return cls(mean, np.concatenate([p.std for p in posteriors]))
        if kinds == ["covariance"]:
            return cls(mean, covariance=_joined_covariance(posteriors))
        return cls(mean)

    @property
    def shape(self):
        """Number of rows and of latents."""
        return self.mean.shape

    @property
    def dtype(self):
        """Type of the means."""
        return self.mean.dtype

    def __len__(self):
        return len(self.mean)

    def __repr__(self):
        n_samples, n_latents = self.shape
        return (
            f"GaussianPosterior(n_samples={n_samples}, n_latents={n_latents}, "
            f"{self._kind()})"
        )

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "a GaussianPosterior is not one array, and its means alone would lose the "
            "std: use .mean (and .std) where the means are wanted. In a Pipeline no "
            "array step may stand between the encoder and a metric."
        )

    def __getitem__(self, key):
        rows, columns = _row_and_column_keys(key, self.shape)
        std, covariance = self.std, self.covariance
        if std is not None:
            std = std[rows][:, columns]
        if covariance is not None:
            per_row = covariance[rows] if covariance.ndim == 3 else covariance
            covariance = per_row[..., columns, :][..., columns]
        return GaussianPosterior(
            self.mean[rows][:, columns], std, covariance=covariance
        )

    def _kind(self):
        if self.std is not None:
            return "std"
        return "covariance" if self.covariance is not None else "point encoder"

    @property
    def marginal_std(self):
        """Standard deviations of the single latents, (n_samples, n_latents)."""
        if self.covariance is None:
            return np.zeros(self.shape) if self.std is None else self.std
        variance = np.diagonal(self.covariance, axis1=-2, axis2=-1)
        return np.broadcast_to(np.sqrt(variance), self.shape)

    @property
    def _is_point(self):
        """Whether every row is a point, without noise."""
        return not self.marginal_std.any()

    def _draw(self, rows, noise):
        """Return one draw from the posterior of each of the rows.

        Parameters
        ----------
        rows : ndarray of int of shape (n_draws,)
            Rows, which may repeat.
        noise : ndarray of shape (n_draws, n_latents)
            Standard normal numbers.

        Returns
        -------
        ndarray of shape (n_draws, n_latents)
        """
        if self.covariance is None:
            return self.mean[rows] + self.std[rows] * noise
        factor = np.linalg.cholesky(self._covariance_of(rows))
        return self.mean[rows] + (factor @ noise[:, :, None])[:, :, 0]

    def _densities(self, rows, sets):
        """Return the log-densities of some rows, for sets of latents.

        Parameters
        ----------
        rows : slice or ndarray of int
            The rows x.
        sets : LatentSets
            The sets A.

        Returns
        -------
        DiagonalDensities or FullDensities
            log q(z_A | x) as functions of z.
        """
        if self.covariance is None:
            return DiagonalDensities(self.mean[rows], self.std[rows], sets)
        return FullDensities(self.mean[rows], self._covariance_of(rows), sets)

    def _log_sums(self, log_weight, rows, z, own, sets, wanted, *, fast=False):
        """Return log of sum_n w_n q(z_A | x_n) over all rows but each draw's own.

        Parameters
        ----------
        log_weight : ndarray of shape (n_samples,)
            Log-weights of the rows.
        rows : ndarray of int of shape (n_draws,)
            Row of each draw.
        z : ndarray of shape (n_draws, n_latents)
            The draws.
        own : ndarray of shape (n_sets, n_draws)
            Weighted log-density of each draw's own row.
        sets : LatentSets
            The sets A.
        wanted : ndarray of int of shape (n_wanted,)
            The sets that are wanted.
        fast : bool
            Whether errors of up to 1e-3 in single terms, of either sign, are fine.

        Returns
        -------
        ndarray of shape (n_wanted, n_draws)
        """
        if fast:
            return fast_log_sums(self, log_weight, rows, z, own, sets, wanted)
        return plain_log_sums(self, log_weight, rows, z, sets, wanted)

    def _log_volumes(self, sets, rows=None):
        """Return half the log-determinant of each row's covariance of z_A.

        Parameters
        ----------
        sets : LatentSets
            The sets A.
        rows : ndarray of int of shape (n_samples,), default=None
            What an error calls the rows.

        Returns
        -------
        ndarray of shape (n_sets, n_samples)
        """
        if self.covariance is None:
            return sets.sums(np.log(self.std).T)
        covariance = self._covariance_of(slice(None))
        return np.stack(
            [
                np.broadcast_to(
                    log_diagonal(cholesky(covariance, latents, rows)), len(self)
                )
                for latents in sets.members
            ]
        )

    def _covariance_of(self, rows):
        """Return the rows' covariances, or the one they share, on three axes."""
        if self.covariance.ndim == 2:
            return self.covariance[None]
        return self.covariance[rows]


def checked_posterior(posterior, name):
    """Return the posterior in float64, its values checked.

    Raises
    ------
    ValueError, TypeError
        If it is empty, holds what is no finite number, or has no valid std or
        covariance; `name` is what the message calls it.
    """
    mean = as_float_matrix(posterior.mean, f"{name}.mean")
    if posterior.std is not None:
        return GaussianPosterior(mean, as_std(posterior.std, f"{name}.std"))
    if posterior.covariance is None:
        return GaussianPosterior(mean)
    covariance = _checked_covariance(posterior.covariance, f"{name}.covariance")
    return GaussianPosterior(mean, covariance=covariance)


def _checked_covariance(covariance, name):
    covariance = as_float_array(covariance, name)
    refuse_beyond_largest(covariance, name)
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    _refuse_rows((variance < 0).any(axis=-1), f"{name} has a negative variance")
    std = np.sqrt(variance)
    allowed = ASYMMETRY * std[..., :, None] * std[..., None, :]
    difference = np.swapaxes(covariance, -1, -2) - covariance
    lopsided = (abs(difference) > allowed).any(axis=(-1, -2))
    _refuse_rows(lopsided, f"{name} is not symmetric")
    return covariance + difference / 2


def _refuse_rows(bad, what):
    if bad.any():
        where = f" in row {np.argmax(bad)}" if bad.ndim else ""
        raise ValueError(f"{what}{where}: pass valid covariance matrices.")


def _of_shape(value, name, shapes):
    """Return `value` as an array of one of the shapes, None as None."""
    if value is None:
        return None
    array = as_array(value, name)
    if array.shape not in shapes:
        expected = " or ".join(str(shape) for shape in shapes)
        raise ValueError(
            f"{name} must have shape {expected} to go with mean, got {array.shape}."
        )
    return array


def _joined_covariance(posteriors):
    first = posteriors[0].covariance
    if all(p.covariance.ndim == 2 for p in posteriors) and all(
        np.array_equal(p.covariance, first) for p in posteriors
    ):
        return first
    return np.concatenate(
        [
            np.broadcast_to(p.covariance, (len(p), *p.covariance.shape[-2:]))
            for p in posteriors
        ]
    )


def _row_and_column_keys(key, shape):
    """Return the two keys of ``posterior[key]``, an Ellipsis spelled out."""
    keys = list(key) if isinstance(key, tuple) else [key]
    ellipses = [i for i, one in enumerate(keys) if one is Ellipsis]
    if len(ellipses) == 1 and len(keys) <= 3:
        at = ellipses[0]
        keys[at : at + 1] = [slice(None)] * (3 - len(keys))
    elif not ellipses and len(keys) <= 2:
        keys += [slice(None)] * (2 - len(keys))
    else:
        raise IndexError(f"a GaussianPosterior has two axes, got the key {key!r}.")
    return [axis_key(one, n) for one, n in zip(keys, shape, strict=True)]


def axis_key(key, length):
    """Return one axis' key as a slice or a 1-D array, which keep the axis."""
    if isinstance(key, slice):
        return key
    array = np.asarray(key)
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.intp)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise IndexError(
            "rows and columns are chosen by a slice, a mask or a 1-D array of "
            f"integers, got {key!r}."
        )
    if array.dtype.kind == "b" and len(array) != length:
        raise IndexError(f"the mask has {len(array)} entries for an axis of {length}.")
    return array
