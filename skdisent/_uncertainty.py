"""Standard errors of draws that come in pairs, and what makes them smaller."""

import numpy as np


def pairs(n_draws):
    """Return the first draw and the number of draws of each pair.

    The last one has three draws where their number is odd.
    """
    first = np.arange(0, n_draws - 1, 2)
    return first, np.diff(np.append(first, n_draws))


def regress_out(values, controls):
    """Return values less their regression on controls whose mean is known to be 0.

    The coefficients are fitted on the differences within pairs of draws, which is the
    noise that is left in the mean. They are one linear map for all values, so what
    holds between amounts holds between their estimates too.

    Parameters
    ----------
    values : ndarray of shape (n_values, n_draws)
        One amount a row.
    controls : ndarray of shape (n_controls, n_draws)
        Control variates; some may depend on others.

    Returns
    -------
    residuals : ndarray of shape (n_values, n_draws)
        Values with the same means, of less noise.
    rank : int
        Number of independent controls.
    """
    noise = [_within_pairs(one).T for one in (controls, values)]
    coefficients, _, rank, _ = np.linalg.lstsq(*noise)
    return values - coefficients.T @ controls, rank


def _within_pairs(values):
    """Return values less the mean of their pair of draws."""
    first, size = pairs(values.shape[-1])
    means = np.add.reduceat(values, first, axis=-1) / size
    return values - np.repeat(means, size, axis=-1)


def standard_error_of_pairs(values):
    """Return the standard error of the mean of draws that came in pairs.

    Parameters
    ----------
    values : ndarray of shape (..., n_draws)
        One value a draw.

    Returns
    -------
    ndarray of shape (...)
    """
    first, size = pairs(values.shape[-1])
    squares = np.add.reduceat(_within_pairs(values) ** 2, first, axis=-1)
    variance = squares / (size - 1)
    return np.sqrt((size * variance).sum(axis=-1)) / values.shape[-1]
