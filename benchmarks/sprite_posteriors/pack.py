"""Round a sample of the cached posteriors and put it into the package.

    python benchmarks/sprite_posteriors/pack.py

Reads what `train.py` cached in the data home and writes skdisent/datasets/data, and for
the guide how far rounding moves each metric, and how WSEPIN grows with the rows.
"""

import argparse
import io
import json
import lzma
import warnings
from pathlib import Path

import numpy as np
from tables import METRICS, fitted, literal, shown, write_csv

from skdisent import WSEPIN, GaussianPosterior
from skdisent.datasets import SPRITE_MODELS, load_sprite_posteriors
from skdisent.datasets._posteriors import N_SAMPLE_ROWS, shuffled_rows
from skdisent.exceptions import DisentanglementWarning

DATA = Path(__file__).parents[2] / "skdisent" / "datasets" / "data"
N_ROWS = [5_000, 20_000, 92_160]
N_DRAWS = 2_000
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


def growth(posterior):
    """Return WSEPIN of the first rows, for several numbers of rows."""
    wsepin = WSEPIN(n_samples=N_DRAWS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisentanglementWarning)
        return [shown(wsepin.fit(posterior[:n])) for n in N_ROWS]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-home", help="data home of scikit-learn")
    options = parser.parse_args()
    rows = shuffled_rows()
    details, effects, growths = {}, [], []
    for model in SPRITE_MODELS:
        bunch = load_sprite_posteriors(
            model, subset="grid", data_home=options.data_home
        )
        shuffled = bunch.posterior[rows]
        exact, target = shuffled[:N_SAMPLE_ROWS], bunch.target[rows[:N_SAMPLE_ROWS]]
        mean, std = rounded(exact.mean, exact.std)
        content = packed(mean, std)
        (DATA / f"{model}.npz.xz").write_bytes(content)
        details[model] = bunch.model_details
        effects.append(rounding_effect(exact, mean, std, target))
        print(model, f"{len(content):,} bytes", np.round(effects[-1], 5), flush=True)
        growths.append([literal(model), *growth(shuffled)])
    text = json.dumps(details, indent=1)
    (DATA / "models.json").write_text(text + "\n", encoding="utf-8")
    write_csv(
        "rounding",
        ["model", *METRICS],
        [
            [literal(model), *(f"{value:+.5f}" for value in effect)]
            for model, effect in zip(SPRITE_MODELS, effects, strict=True)
        ],
    )
    write_csv("rows", ["model", *(f"{n:,} rows" for n in N_ROWS)], growths)


if __name__ == "__main__":
    main()
