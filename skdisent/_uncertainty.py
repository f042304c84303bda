"""Standard errors of draws that come in pairs, and what makes them smaller."""

import numpy as np

# Of the components of control variates: the least scale relative to the largest, and
# the largest mean in standard errors, which chance exceeds once in two million.
LEAST_SCALE = 1e-4
LARGEST_OFFSET = 5.0


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

    The regression is on principal components of the controls. One that hardly varies,
    or whose mean is far from 0 for its own noise, is left out: it is about rare events
    that these draws have not seen, and would be given a coefficient without bound.

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
        Number of components used.
    """
    directions, scales, noise = np.linalg.svd(
        _within_pairs(controls), full_matrices=False
    )
    components = directions.T @ controls
    errors = standard_error_of_pairs(components)
    used = (scales > LEAST_SCALE * scales.max(initial=0.0)) & (
        abs(components.mean(axis=1)) <= LARGEST_OFFSET * errors
    )
    coefficients = _within_pairs(values) @ (noise[used] / scales[used, None]).T
    return values - coefficients @ components[used], used.sum()


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
