"""What each way to reduce the noise of draws gains, and whether errors are honest.

    python benchmarks/variance.py            the gains, in minutes
    python benchmarks/variance.py --runs 200 also 200 runs for the errors

A gain is how many times as many plain draws would be needed for the same error, at
equal time: ratio of variances over ratio of processor times.
"""

import argparse
import time
import warnings
from unittest import mock

import models
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from skdisent import INDIN, SEPIN, WINDIN, WSEPIN, _aggregate
from skdisent._aggregate import DrawPlan
from skdisent._reading import Sample
from skdisent._separability import read_groups
from skdisent._uncertainty import regress_out, standard_error_of_pairs
from skdisent.exceptions import DisentanglementWarning

QMC_RUNS = 32


def sample_of(posterior):
    n = len(posterior)
    return Sample(posterior, np.full(n, 1 / n), None, np.arange(n))


def amounts(posterior, n_draws, draw=_aggregate.draw, seed=0, exact=True):
    """Return the amounts of draws, and the seconds they took."""
    plan = DrawPlan(read_groups(None, posterior.shape[1]), n_draws, seed)
    limit = _aggregate.PAIRS_PER_CONTROL if exact else n_draws
    with (
        mock.patch.object(_aggregate, "draw", draw),
        mock.patch.object(_aggregate, "PAIRS_PER_CONTROL", limit),
    ):
        start = time.process_time()
        result = plan.estimate(sample_of(posterior))
        return result, time.process_time() - start


def independent(posterior, weight, n_draws, random_state):
    rng = np.random.default_rng(random_state)
    rows = rng.choice(len(weight), n_draws, p=weight)
    return rows, posterior.draw(
        rows, rng.standard_normal((n_draws, posterior.shape[1]))
    )


def sobol(posterior, weight, n_draws, random_state):
    n_samples, n_latents = posterior.shape
    points = qmc.Sobol(n_latents + 1, rng=random_state).random(n_draws)
    rows = np.minimum((points[:, 0] * n_samples).astype(int), n_samples - 1)
    return rows, posterior.draw(rows, ndtri(np.clip(points[:, 1:], 1e-12, 1 - 1e-12)))


def influence(terms, n_groups):
    """Return the per-draw values of SEPIN, WSEPIN and I(x, z)."""
    info, separate = terms[1 : n_groups + 1], terms[n_groups + 1 :]
    mean, total = separate.mean(axis=1), info.mean(axis=1).sum()
    shares = info.mean(axis=1) / total
    weighted = shares @ separate + ((mean - shares @ mean) / total) @ info
    return {"SEPIN": separate.mean(axis=0), "WSEPIN": weighted, "I(x, z)": terms[0]}


def gains(name, n_draws):
    posterior, _ = models.load(name)
    n = posterior.shape[1]
    free = influence(amounts(posterior, n_draws, independent)[0]._terms, n)
    plain = {k: v.std(ddof=1) / np.sqrt(n_draws) for k, v in free.items()}
    _, of_sums = amounts(posterior, n_draws, exact=False)
    found, of_all = amounts(posterior, n_draws)
    own = found.own + found.entropies[:, None]
    single = found.mixture[1 : n + 1] + found.marginal_entropies[:, None]
    start = time.process_time()
    adjusted = regress_out(found._terms, np.vstack([own, single]))[0]
    of_fit = time.process_time() - start

    def errors(values):
        return {k: standard_error_of_pairs(v) for k, v in influence(values, n).items()}

    ways = {
        "pairs of rows": (errors(found._terms), 1.0),
        "+ log q(z_A | x)": (
            errors(regress_out(found._terms, own)[0]),
            1 + of_fit / of_sums,
        ),
        "+ log q(z_i)": (errors(adjusted), (of_all + of_fit) / of_sums),
        "Sobol rows and noise": (quasi_random(posterior, n_draws), 1.0),
    }
    for way, (error, cost) in ways.items():
        figures = "  ".join(f"{(plain[k] / error[k]) ** 2 / cost:8.2f}" for k in plain)
        print(f"{name:12} {way:22} {figures}   time x {cost:.2f}", flush=True)


def quasi_random(posterior, n_draws):
    """Return the errors of scrambled Sobol draws, from independent scramblings.

    A scrambling tells nothing of its own error, so a user would run four.
    """
    size = 1 << int(np.log2(n_draws / 4))
    n = posterior.shape[1]
    values = []
    for seed in range(QMC_RUNS):
        terms = amounts(posterior, size, sobol, seed, exact=False)[0]._terms
        info, separate = terms[1 : n + 1].mean(axis=1), terms[n + 1 :].mean(axis=1)
        values.append([separate.mean(), info @ separate / info.sum(), terms[0].mean()])
    spread = np.std(values, axis=0, ddof=1) * np.sqrt(size / n_draws)
    return dict(zip(["SEPIN", "WSEPIN", "I(x, z)"], spread, strict=True))


def honesty(name, n_draws, n_runs):
    """Print the reported errors over the spread of runs with other seeds."""
    posterior, _ = models.load(name)
    sample = sample_of(posterior)
    metrics = [SEPIN(), SEPIN(k=3), WSEPIN(), INDIN(), WINDIN()]
    values, errors = [], []
    for seed in range(n_runs):
        found, _ = amounts(posterior, n_draws, seed=seed)
        results = [metric._formula(sample, found) for metric in metrics]
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
