"""Write the tables of the guide's metric pages from the packed posteriors.

python benchmarks/sprite_posteriors/pages.py
"""

import warnings

import numpy as np
from tables import COLLAPSED, literal, write_csv

from skdisent import (
    INDIN,
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    WSEPIN,
    GaussianPosterior,
    Informativeness,
)
from skdisent.datasets import SPRITE_FACTORS, SPRITE_MODELS, load_sprite_posteriors
from skdisent.exceptions import DisentanglementWarning

# A latent is about a factor if it knows this share of it.
ABOUT = 0.1
N_DRAWS = 10_000
TURN = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)


def nats(amount):
    """Return an amount with two digits, and no minus in front of 0."""
    return f"{round(amount, 2) + 0.0:.2f}"


def with_draws(metric):
    return metric(n_samples=N_DRAWS, random_state=0)


def tied_latents(bunch):
    """Return the latents of x and y, the best of the free ones, and a collapsed one."""
    n_tied = len(SPRITE_FACTORS)
    ranking = Informativeness().fit(bunch.posterior).ranking_
    free = ranking[ranking >= n_tied]
    x, y = SPRITE_FACTORS.index("x"), SPRITE_FACTORS.index("y")
    return [x, y, int(free[0]), int(ranking[-1])]


def about(latent, rmig):
    """Return the factors of which the latent knows something."""
    shares = rmig.mutual_info_[latent] / rmig.factor_entropy_
    names = np.array(SPRITE_FACTORS)[shares >= ABOUT]
    return " and ".join(names) or "nothing"


def informativeness_rows(bunch):
    metric = Informativeness().fit(bunch.posterior)
    shares = Informativeness(normalize=True).fit(bunch.posterior).informativeness_
    rmig = RMIG().fit(bunch.posterior, bunch.target)
    return [
        [
            f"z{latent}",
            about(latent, rmig),
            f"{metric.informativeness_[latent]:.2f}",
            f"{metric.latent_entropy_[latent]:.2f}",
            f"{shares[latent]:.2f}",
            f"{bunch.data[:, latent].std():.2f}",
            f"{bunch.std[:, latent].mean():.2f}",
        ]
        for latent in tied_latents(bunch)
    ]


def misjed_rows(bunches):
    posterior = bunches["betavae_b4"].posterior
    metric = MISJED().fit(posterior)
    best, second, *_, other, collapsed = metric.ranking_
    pairs = {
        "two informative latents": (best, second),
        "an informative and a collapsed one": (best, collapsed),
        "two collapsed ones": (other, collapsed),
    }
    copies = MISJED().fit(posterior[:, [best, best]])
    tied = bunches["tied"]
    x, y, free, _ = tied_latents(tied)
    of_tied = MISJED().fit(tied.posterior).pairwise_values_
    return [
        *(
            [literal("betavae_b4"), name, f"{metric.pairwise_values_[pair]:.2f}"]
            for name, pair in pairs.items()
        ),
        [
            literal("betavae_b4"),
            "an informative one and its copy",
            f"{copies.value_:.2f}",
        ],
        [literal("tied"), "the latents of x and y", f"{of_tied[x, y]:.2f}"],
        [literal("tied"), "that of x and the free one", f"{of_tied[x, free]:.2f}"],
    ]


def sepin_rows(bunch):
    latents = tied_latents(bunch)
    sepin = with_draws(SEPIN).fit(bunch.posterior[:, latents])
    rmig = RMIG().fit(bunch.posterior, bunch.target)
    return [
        [f"z{latent}", about(latent, rmig), *map(nats, row)]
        for latent, *row in zip(
            latents,
            sepin.informativeness_,
            sepin.mutual_info_rest_,
            sepin.latent_values_,
            strict=True,
        )
    ]


def wsepin_row(model, posterior):
    informative = Informativeness().fit(posterior).informativeness_ >= COLLAPSED
    values = []
    for metric in (SEPIN, WSEPIN):
        for part in (posterior, posterior[:, informative]):
            values.append(f"{with_draws(metric).fit(part).value_:.2f}")
    return [literal(model), int(informative.sum()), *values]


def turned(posterior):
    """Return two latents turned by 45 degrees."""
    covariance = (TURN * posterior.std[:, np.newaxis] ** 2) @ TURN.T
    return GaussianPosterior(posterior.mean @ TURN.T, covariance=covariance)


def indin_rows(bunch):
    ranking = Informativeness().fit(bunch.posterior).ranking_
    pair = bunch.posterior[:, ranking[[0, -1]]]
    names = ["informative", "collapsed", "turned, first", "turned, second"]
    amounts = []
    for posterior in (pair, turned(pair)):
        sepin, indin = (with_draws(metric).fit(posterior) for metric in (SEPIN, INDIN))
        amounts += zip(
            sepin.informativeness_,
            sepin.mutual_info_rest_,
            sepin.latent_values_,
            indin.latent_values_,
            strict=True,
        )
    return [[name, *map(nats, row)] for name, row in zip(names, amounts, strict=True)]


def mutual_info_rows(model, bunch):
    informativeness = Informativeness().fit(bunch.posterior).informativeness_
    rmig = RMIG(normalize=False).fit(bunch.posterior, bunch.target)
    informative = np.flatnonzero(informativeness >= COLLAPSED)
    rows = [(f"z{latent}", rmig.mutual_info_[latent]) for latent in informative]
    rows.append(("RMIG, not normalized", rmig.factor_values_))
    return [
        [literal(model), name, *(f"{value:.2f}" for value in values)]
        for name, values in rows
    ]


def jemmig_rows(bunch):
    x = bunch.target[:, SPRITE_FACTORS.index("x")]
    factors = np.column_stack([bunch.target, x // 8])
    rmig, jemmig = (m.fit(bunch.posterior, factors) for m in (RMIG(), JEMMIG()))
    return [
        [
            name,
            f"z{best}",
            f"{jemmig.factor_entropy_[k]:.2f}",
            f"{jemmig.latent_entropy_[best]:.2f}",
            f"{jemmig.mutual_info_[best, k]:.2f}",
            f"{rmig.factor_values_[k]:.2f}",
            f"{jemmig.factor_values_[k]:.2f}",
        ]
        for k, (name, best) in enumerate(
            zip([*SPRITE_FACTORS, "half of x"], jemmig.best_latent_, strict=True)
        )
    ]


def main():
    # Some models know nothing of some factors, and have few rows for the SEPIN family.
    warnings.simplefilter("ignore", DisentanglementWarning)
    bunches = {model: load_sprite_posteriors(model) for model in SPRITE_MODELS}
    tied = bunches["tied"]
    write_csv(
        "informativeness",
        ["latent", "about", "I(x, z)", "H(z)", "share", "spread of means", "mean std"],
        informativeness_rows(tied),
    )
    write_csv("misjed", ["model", "pair", "MISJED"], misjed_rows(bunches))
    write_csv(
        "sepin",
        ["latent", "about", "informativeness", "shared", "SEPIN"],
        sepin_rows(tied),
    )
    write_csv(
        "wsepin",
        [
            "model",
            "informative latents",
            "SEPIN, all 10",
            "SEPIN, informative ones",
            "WSEPIN, all 10",
            "WSEPIN, informative ones",
        ],
        [wsepin_row(model, bunch.posterior) for model, bunch in bunches.items()],
    )
    write_csv(
        "indin",
        ["latent", "informativeness", "shared", "SEPIN", "INDIN"],
        indin_rows(bunches["betavae_b16"]),
    )
    write_csv(
        "mutual_info",
        ["model", "latent", *SPRITE_FACTORS],
        [
            row
            for model in ("tied", "betavae_b4")
            for row in mutual_info_rows(model, bunches[model])
        ],
    )
    write_csv(
        "jemmig",
        ["factor", "best latent", "H(y)", "H(z)", "I(z, y)", "RMIG", "JEMMIG"],
        jemmig_rows(tied),
    )


if __name__ == "__main__":
    main()
