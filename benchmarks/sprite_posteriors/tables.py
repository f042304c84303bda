"""Write the tables of doc/guide/sprite_posteriors.rst from the packed posteriors.

python benchmarks/sprite_posteriors/tables.py
"""

import csv
import warnings
from pathlib import Path

import numpy as np

from skdisent import INDIN, JEMMIG, MISJED, RMIG, SEPIN, WINDIN, WSEPIN, MetricSuite
from skdisent.datasets import SPRITE_FACTORS, SPRITE_MODELS, load_sprite_posteriors
from skdisent.exceptions import DisentanglementWarning

GUIDE = Path(__file__).parents[2] / "doc" / "guide"
# Below it a latent counts as collapsed, in nats.
COLLAPSED = 0.05

METRICS = {
    "RMIG": RMIG(),
    "JEMMIG": JEMMIG(),
    "MISJED": MISJED(),
    "SEPIN@4": SEPIN(k=4, random_state=0),
    "WSEPIN": WSEPIN(random_state=0),
    "INDIN@4": INDIN(k=4, random_state=0),
    "WINDIN": WINDIN(random_state=0),
}
LOSSES = ["reconstruction", "kl", "total_correlation", "tie"]


def fitted(posterior, target):
    """Return each metric fitted, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisentanglementWarning)
        return MetricSuite(METRICS).fit(posterior, None, target).metrics_


def write_csv(name, header, rows):
    path = GUIDE / f"sprite_posteriors_{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def literal(model):
    return f"``{model}``"


def loss_row(model, details):
    losses = [details["losses"].get(name) for name in LOSSES]
    weights = [details[name] for name in ("beta", "total_correlation", "tie")]
    return [
        literal(model),
        *(f"{weight:g}" for weight in weights),
        details["epochs"],
        details["seed"],
        *("" if loss is None else f"{loss:.2f}" for loss in losses),
    ]


def shown(metric):
    """Return the value, and the standard error of the draws where there is one."""
    error = getattr(metric, "std_error_", None)
    return f"{metric.value_:.3f}" + ("" if error is None else f" ± {error:.3f}")


def ranking_row(name, metrics):
    """Return the models from best to worst by one metric."""
    scores = [metrics[model][name].score() for model in SPRITE_MODELS]
    return [name, *(literal(SPRITE_MODELS[i]) for i in np.argsort(scores)[::-1])]


def latent_row(model, metrics):
    """Return how much each latent says about x, sorted, and all of them together."""
    wsepin = metrics["WSEPIN"]
    each = np.sort(wsepin.informativeness_)[::-1]
    return [
        literal(model),
        int((each >= COLLAPSED).sum()),
        f"{wsepin.information_:.2f}",
        *(f"{value:.2f}" for value in each),
    ]


def factor_row(model, metrics):
    """Return the normalized RMIG of each factor and its best latent."""
    rmig = metrics["RMIG"]
    pairs = zip(rmig.factor_values_, rmig.best_latent_, strict=True)
    return [literal(model), *(f"{value:.3f} (z{best})" for value, best in pairs)]


def main():
    bunches = {model: load_sprite_posteriors(model) for model in SPRITE_MODELS}
    metrics = {
        model: fitted(bunch.posterior, bunch.target) for model, bunch in bunches.items()
    }
    header = ["model", "beta", "TC weight", "tie weight", "epochs", "seed", *LOSSES]
    rows = [loss_row(model, bunch.model_details) for model, bunch in bunches.items()]
    write_csv("losses", header, rows)
    n_latents = len(bunches[SPRITE_MODELS[0]].feature_names)
    order = [f"#{rank}" for rank in range(1, n_latents + 1)]
    rows = [latent_row(model, metrics[model]) for model in SPRITE_MODELS]
    write_csv("latents", ["model", "informative", "I(x, z)", *order], rows)
    rows = [
        [literal(model), *(shown(metric) for metric in metrics[model].values())]
        for model in SPRITE_MODELS
    ]
    write_csv("metrics", ["model", *METRICS], rows)
    rows = [factor_row(model, metrics[model]) for model in SPRITE_MODELS]
    write_csv("factors", ["model", *SPRITE_FACTORS], rows)
    rows = [ranking_row(name, metrics) for name in METRICS]
    write_csv("ranking", ["metric", "best", "2nd", "3rd", "4th", "worst"], rows)


if __name__ == "__main__":
    main()
