"""The formulas written straight in NumPy, as a careful user would."""

import numpy as np
from scipy.special import entr, ndtr


def tables(posterior, y):
    """Return I(x, z_i) and I(z_i, y_k) of quantized latents."""
    informativeness, shared = [], []
    one_hot = [np.eye(column.max() + 1)[column] for column in y.T]
    for mean, std in zip(posterior.mean.T, posterior.std.T, strict=True):
        reach = 4 * np.sqrt(np.var(mean) + np.mean(std**2))
        edges = np.linspace(mean.mean() - reach, mean.mean() + reach, 102)
        edges[[0, -1]] = -np.inf, np.inf
        masses = np.diff(ndtr((edges - mean[:, None]) / std[:, None]), axis=1)
        marginal = masses.mean(axis=0)
        informativeness.append(entr(marginal).sum() - entr(masses).sum(axis=1).mean())
        for classes in one_hot:
            joint = classes.T @ masses / len(mean)
            entropies = entr(marginal).sum() + entr(joint.sum(axis=1)).sum()
            shared.append(entropies - entr(joint).sum())
    return np.array(informativeness), np.array(shared)


def pairs(cells):
    """Return H(zbar_i, zbar_j) of every two latents, from the bins of their means."""
    n_bins = cells.max() + 1
    entropies = []
    for i, first in enumerate(cells):
        for second in cells[:i]:
            joint = np.zeros((n_bins, n_bins))
            np.add.at(joint, (first, second), 1 / len(first))
            entropies.append(entr(joint).sum())
    return np.array(entropies)


def draws(posterior, n_draws):
    """Return I(x, z_i | z_-i) of each latent, in float64, in blocks of draws."""
    rng = np.random.default_rng(0)
    mean, std = posterior.mean, posterior.std
    rows = rng.integers(len(mean), size=n_draws)
    z = mean[rows] + std[rows] * rng.standard_normal((n_draws, mean.shape[1]))
    constant = np.log(std) + 0.5 * np.log(2 * np.pi)
    total = np.zeros(mean.shape[1])
    for block in np.array_split(np.arange(n_draws), n_draws // 20):
        terms = -0.5 * ((z[block, None] - mean) / std) ** 2 - constant
        everyone = terms.sum(axis=2)
        at = np.arange(len(block))
        own = terms[at, rows[block]]
        for latent in range(mean.shape[1]):
            rest = everyone - terms[:, :, latent]
            total[latent] += np.sum(
                own[:, latent] - _log_mean_exp(everyone) + _log_mean_exp(rest)
            )
    return total / n_draws


def full_draws(posterior, n_draws):
    """Return the same for posteriors with one covariance a row, or one for all."""
    rng = np.random.default_rng(0)
    mean, n_latents = posterior.mean, posterior.shape[1]
    covariance = np.broadcast_to(posterior.covariance, (len(mean), *[n_latents] * 2))
    rows = rng.integers(len(mean), size=n_draws)
    noise = rng.standard_normal((n_draws, n_latents, 1))
    z = mean[rows] + (np.linalg.cholesky(covariance[rows]) @ noise)[:, :, 0]
    everyone = np.arange(n_latents)
    sets = [everyone, *(np.delete(everyone, latent) for latent in everyone)]
    values = []
    for some in sets:
        factor = np.linalg.cholesky(covariance[:, some[:, None], some])
        constant = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        constant += 0.5 * len(some) * np.log(2 * np.pi)
        whitener = np.linalg.inv(factor)
        difference = np.empty(n_draws)
        for block in np.array_split(np.arange(n_draws), n_draws // 20):
            distance = z[block][:, some].T[None] - mean[:, some, None]
            terms = -0.5 * ((whitener @ distance) ** 2).sum(axis=1) - constant[:, None]
            at = np.arange(len(block))
            difference[block] = terms[rows[block], at] - _log_mean_exp(terms.T)
        values.append(difference.mean())
    return values[0] - np.array(values[1:])


def _log_mean_exp(values):
    largest = values.max(axis=1, keepdims=True)
    return np.log(np.exp(values - largest).mean(axis=1)) + largest[:, 0]
