"""Round a sample of the cached posteriors and put it into the package.

    python benchmarks/sprite_posteriors/pack.py

Reads what `train.py` cached in the data home, writes skdisent/datasets/data, and writes
how far rounding moves each metric into doc/guide/sprite_posteriors_rounding.csv.
"""

import argparse
import io
import json
import lzma
from pathlib import Path

import numpy as np
from tables import METRICS, fitted, write_csv

from skdisent import GaussianPosterior
from skdisent.datasets import SPRITE_MODELS, load_sprite_posteriors
from skdisent.datasets._posteriors import sample_rows

DATA = Path(__file__).parents[2] / "skdisent" / "datasets" / "data"
MEAN_STEP = 2.0**-10
STD_BITS = 7


def rounded(mean, std):
    """Return means and standard deviations as float16 of few significant bits."""
    fraction, exponent = np.frexp(std)
    std = np.ldexp(np.rint(fraction * 2**STD_BITS) / 2**STD_BITS, exponent)
    mean = np.rint(mean / MEAN_STEP) * MEAN_STEP
    return mean.astype("<f2"), std.astype("<f2")


def packed(mean, std):
    """Return the arrays as few bytes.

    The two bytes of each float16 are stored apart, latent by latent, as the high ones
    hardly vary.
    """
    buffer = io.BytesIO()
    np.savez(buffer, mean=byte_planes(mean), std=byte_planes(std))
    return lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def byte_planes(array):
    """Return the bytes of (n_samples, n_latents) as (2, n_latents, n_samples)."""
    latents = np.ascontiguousarray(array.T)[..., np.newaxis]
    return np.moveaxis(latents.view(np.uint8), -1, 0)


def rounding_effect(exact, mean, std, target):
    """Return how far rounding moves each metric."""
    stored = GaussianPosterior(mean.astype(float), std.astype(float))
    before, after = fitted(exact, target), fitted(stored, target)
    return [after[name].value_ - before[name].value_ for name in METRICS]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-home", help="data home of scikit-learn")
    options = parser.parse_args()
    rows = sample_rows()
    details, effects = {}, []
    for model in SPRITE_MODELS:
        bunch = load_sprite_posteriors(
            model, subset="grid", data_home=options.data_home
        )
        exact = bunch.posterior[rows]
        mean, std = rounded(exact.mean, exact.std)
        content = packed(mean, std)
        (DATA / f"{model}.npz.xz").write_bytes(content)
        details[model] = bunch.model_details
        effects.append(rounding_effect(exact, mean, std, bunch.target[rows]))
        print(model, f"{len(content):,} bytes", np.round(effects[-1], 5), flush=True)
    text = json.dumps(details, indent=1)
    (DATA / "models.json").write_text(text + "\n", encoding="utf-8")
    write_csv(
        "rounding",
        ["model", *METRICS],
        [
            [model, *(f"{value:+.5f}" for value in effect)]
            for model, effect in zip(SPRITE_MODELS, effects, strict=True)
        ],
    )


if __name__ == "__main__":
    main()
