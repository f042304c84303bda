"""What each way to reduce the noise of draws gains, and whether errors are honest.

    python benchmarks/variance.py            the gains, in minutes
    python benchmarks/variance.py --runs 200 also 200 runs for the errors

A gain is how many times as many plain draws would be needed for the same error, at
equal time: ratio of variances over ratio of processor times.
"""

import argparse
import time
import warnings

import models
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from skdisent import INDIN, SEPIN, WINDIN, WSEPIN
from skdisent._aggregate import (
    DrawAmounts,
    draw,
    others_tasks,
    regress_out,
    standard_error_of_pairs,
)
from skdisent._densities import HALF_LOG_2PI, LatentSets
from skdisent._plan import run
from skdisent._quadrature import integral_tasks
from skdisent._reading import Sample
from skdisent._separability import read_groups
from skdisent._tables import design_matrix
from skdisent.exceptions import DisentanglementWarning

QMC_RUNS = 32


def sample_of(posterior):
    n = len(posterior)
    return Sample(posterior, np.full(n, 1 / n), None, np.arange(n))


def amounts_at(posterior, rows, z, marginal):
    """Return the amounts of given draws."""
    n_samples, n_latents = posterior.shape
    weight = np.full(n_samples, 1 / n_samples)
    sets = LatentSets(read_groups(None, n_latents), n_latents)
    own = posterior.densities(rows, sets).own(z)
    others = np.hstack(list(run(others_tasks(posterior, weight, rows, z, sets))))
    sizes = np.array([len(latents) for latents in sets.members])
    entropies = posterior.log_volumes(sets) @ weight + (0.5 + HALF_LOG_2PI) * sizes
    return DrawAmounts(own, others, weight[rows], entropies, marginal)


def marginal_entropies(posterior):
    weight = np.full(len(posterior), 1 / len(posterior))
    design = design_matrix(weight)
    return np.ravel(
        list(run(integral_tasks(posterior.mean, posterior.std, design, [])))
    )


def influence(terms, n_groups):
    """Return the per-draw values of SEPIN, WSEPIN and I(x, z)."""
    info, separate = terms[1 : n_groups + 1], terms[n_groups + 1 :]
    mean, total = separate.mean(axis=1), info.mean(axis=1).sum()
    shares = info.mean(axis=1) / total
    weighted = shares @ separate + ((mean - shares @ mean) / total) @ info
    return {"SEPIN": separate.mean(axis=0), "WSEPIN": weighted, "I(x, z)": terms[0]}


def timed(function, *args):
    start = time.process_time()
    result = function(*args)
    return result, time.process_time() - start


def gains(name, n_draws):
    posterior, _ = models.load(name)
    n_samples, n_latents = posterior.shape
    weight = np.full(n_samples, 1 / n_samples)
    marginal, of_quadrature = timed(marginal_entropies, posterior)
    (rows, z), _ = timed(draw, posterior, weight, n_draws, 0)
    amounts, of_draws = timed(amounts_at, posterior, rows, z, marginal)
    terms, time_of_terms = timed(lambda: amounts._terms)
    of_draws += time_of_terms
    own = amounts.own + amounts.entropies[:, None]
    single = amounts._mixture[1 : n_latents + 1] + marginal[:, None]
    rng = np.random.default_rng(0)
    free_rows = rng.choice(n_samples, n_draws)
    free_z = posterior.draw(free_rows, rng.standard_normal(z.shape))
    free = amounts_at(posterior, free_rows, free_z, marginal)._terms
    plain = {
        key: value.std(ddof=1) / np.sqrt(n_draws)
        for key, value in influence(free, n_latents).items()
    }

    def errors(values):
        return {
            key: standard_error_of_pairs(one)
            for key, one in influence(values, n_latents).items()
        }

    fitted, of_fit = timed(regress_out, terms, np.vstack([own, single]))
    ways = {
        "pairs of rows": (errors(terms), 1.0),
        "+ log q(z_A | x)": (errors(regress_out(terms, own)[0]), 1 + of_fit / of_draws),
        "+ log q(z_i)": (errors(fitted[0]), 1 + (of_fit + of_quadrature) / of_draws),
        "Sobol rows and noise": (quasi_random(posterior, n_draws), 1.0),
    }
    for way, (error, cost) in ways.items():
        figures = "  ".join(
            f"{(plain[key] / error[key]) ** 2 / cost:8.2f}" for key in plain
        )
        print(f"{name:12} {way:22} {figures}   time x {cost:.2f}")


def quasi_random(posterior, n_draws):
    """Return the errors of scrambled Sobol draws, from independent scramblings."""
    size = 1 << int(np.log2(n_draws / 4))
    n_samples, n_latents = posterior.shape
    values = []
    for seed in range(QMC_RUNS):
        points = qmc.Sobol(n_latents + 1, rng=seed).random(size)
        rows = np.minimum((points[:, 0] * n_samples).astype(int), n_samples - 1)
        z = posterior.draw(rows, ndtri(np.clip(points[:, 1:], 1e-12, 1 - 1e-12)))
        terms = amounts_at(posterior, rows, z, np.full(n_latents, np.nan))._terms
        info, separate = terms[1 : n_latents + 1], terms[n_latents + 1 :]
        shares = info.mean(axis=1) / info.mean(axis=1).sum()
        means = separate.mean(axis=1)
        values.append([means.mean(), shares @ means, terms[0].mean()])
    spread = np.std(values, axis=0, ddof=1) * np.sqrt(size / n_draws)
    return dict(zip(["SEPIN", "WSEPIN", "I(x, z)"], spread, strict=True))


def honesty(name, n_draws, n_runs):
    """Print the reported errors over the spread of runs with other seeds."""
    posterior, _ = models.load(name)
    sample = sample_of(posterior)
    metrics = [SEPIN(), SEPIN(k=3), WSEPIN(), INDIN(), WINDIN()]
    marginal = marginal_entropies(posterior)
    values, errors = [], []
    for seed in range(n_runs):
        rows, z = draw(posterior, sample.weight, n_draws, seed)
        amounts = amounts_at(posterior, rows, z, marginal)
        results = [metric._formula(sample, amounts) for metric in metrics]
        values.append([one["value_"] for one in results])
        errors.append([one["std_error_"] for one in results])
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(values, axis=0, ddof=1)
    labels = ["SEPIN", "SEPIN@3", "WSEPIN", "INDIN", "WINDIN"]
    text = "  ".join(f"{k} {r:.3f}" for k, r in zip(labels, ratio, strict=True))
    print(f"{name:12} {text}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DisentanglementWarning)
    print(f"gain at equal time, {options.draws} draws: SEPIN, WSEPIN, I(x, z)")
    for name in models.NAMES:
        gains(name, options.draws)
    if options.runs:
        print(f"reported error / spread of {options.runs} runs")
        for name in models.NAMES:
            honesty(name, 1000, options.runs)


if __name__ == "__main__":
    main()
