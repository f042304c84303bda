"""What each way to reduce the noise of draws gains, and whether errors are honest.

    python benchmarks/variance.py --runs 200

writes both as tables into the guide.

A gain is how many times as many plain draws would be needed for the same error, at
equal time: ratio of variances over ratio of processor times.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path
from unittest import mock

import models
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from skdisent import INDIN, SEPIN, WINDIN, WSEPIN, _aggregate
from skdisent._aggregate import DrawPlan
from skdisent._separability import read_groups
from skdisent._uncertainty import regress_out, standard_error_of_pairs
from skdisent.exceptions import DisentanglementWarning

QMC_RUNS = 32
GUIDE = Path(__file__).parents[1] / "doc" / "guide"
AMOUNTS = ["SEPIN", "WSEPIN", "I(x, z)"]


def amounts(posterior, n_draws, draw=_aggregate.draw, seed=0, exact=True, repeats=1):
    """Return the amounts of draws, and the seconds they took."""
    plan = DrawPlan(read_groups(None, posterior.shape[1]), n_draws, seed)
    limit = _aggregate.PAIRS_PER_CONTROL if exact else n_draws
    with (
        mock.patch.object(_aggregate, "draw", draw),
        mock.patch.object(_aggregate, "PAIRS_PER_CONTROL", limit),
    ):
        seconds = []
        for _ in range(repeats):
            start = time.process_time()
            result = plan.estimate(models.sample_of(posterior))
            seconds.append(time.process_time() - start)
        return result, min(seconds)


def independent(posterior, weight, n_draws, random_state):
    rng = np.random.default_rng(random_state)
    rows = rng.choice(len(weight), n_draws, p=weight)
    return rows, posterior._draw(
        rows, rng.standard_normal((n_draws, posterior.shape[1]))
    )


def sobol(posterior, weight, n_draws, random_state):
    n_samples, n_latents = posterior.shape
    points = qmc.Sobol(n_latents + 1, rng=random_state).random(n_draws)
    rows = np.minimum((points[:, 0] * n_samples).astype(int), n_samples - 1)
    return rows, posterior._draw(rows, ndtri(np.clip(points[:, 1:], 1e-12, 1 - 1e-12)))


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
    _, of_sums = amounts(posterior, n_draws, exact=False, repeats=3)
    found, of_all = amounts(posterior, n_draws, repeats=3)
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
    return [
        [name, way, *((plain[k] / error[k]) ** 2 / cost for k in AMOUNTS), cost]
        for way, (error, cost) in ways.items()
    ]


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
    return dict(zip(AMOUNTS, spread, strict=True))


def honesty(name, metrics, n_draws, n_runs):
    """Return the reported errors over the spread of runs with other seeds."""
    posterior, _ = models.load(name)
    sample = models.sample_of(posterior)
    values, errors = [], []
    for seed in range(n_runs):
        found, _ = amounts(posterior, n_draws, seed=seed)
        results = [metric._formula(sample, found) for metric in metrics.values()]
        values.append([one["value_"] for one in results])
        errors.append([one["std_error_"] for one in results])
    return np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(values, axis=0, ddof=1)


def write(name, title, rows):
    """Write a table of the guide, and print it."""
    rows = [
        [one if isinstance(one, str) else f"{one:.2f}" for one in row] for row in rows
    ]
    with open(GUIDE / name, "w", newline="") as file:
        csv.writer(file).writerows([title, *rows])
    for row in [title, *rows]:
        print("  ".join(f"{one:>20}" for one in row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DisentanglementWarning)
    write(
        "draw_gains.csv",
        ["model", "way", *AMOUNTS, "time"],
        [row for name in models.NAMES for row in gains(name, options.draws)],
    )
    metrics = {
        "SEPIN": SEPIN(),
        "SEPIN@3": SEPIN(k=3),
        "WSEPIN": WSEPIN(),
        "INDIN": INDIN(),
        "WINDIN": WINDIN(),
    }
    write(
        "draw_errors.csv",
        ["model", *metrics],
        [
            [name, *honesty(name, metrics, options.draws // 2, options.runs)]
            for name in models.NAMES
        ],
    )


if __name__ == "__main__":
    main()
