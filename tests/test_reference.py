"""Four real models against what other programs computed on them.

Where the numbers come from, and how well each is to be trusted: data/README.md.
"""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdisent import (
    JEMMIG,
    MISJED,
    RMIG,
    WSEPIN,
    GaussianPosterior,
    Informativeness,
    UniformDiscretizer,
)
from skdisent._densities import LatentSets

# Real models are collapsed in places, and have few rows for so many cells.
pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

MODELS = ["betavae_b4", "betavae_b16", "pca_10", "fa_8"]
over_models = pytest.mark.parametrize("model", MODELS)

# Stored as float32 (up to 2.4e-7 at 7 nats), computed from float32 inputs that were
# rounded for storage (data/README.md: 1.7e-7).
EXACT = 1e-6


@pytest.fixture(scope="module")
def quantized(load_reference):
    """Return all quantized amounts of a model on the paper's grid, by their names."""

    @cache
    def compute(model):
        data = load_reference(model)
        bins = UniformDiscretizer(100, bin_range=(-4, 4))
        posterior = data.mean, data.std
        rmig = RMIG(discretizer=bins).fit(*posterior, data.y)
        rmig_nats = RMIG(discretizer=bins, normalize=False).fit(*posterior, data.y)
        jemmig = JEMMIG(discretizer=bins).fit(*posterior, data.y)
        jemmig_nats = JEMMIG(discretizer=bins, normalize=False).fit(*posterior, data.y)
        misjed = MISJED(discretizer=bins, normalize=False).fit(*posterior)
        informativeness = Informativeness(discretizer=bins).fit(*posterior)
        return {
            "MI_z_x": informativeness.informativeness_,
            "MI_z_y": rmig.mutual_info_,
            "H_z": rmig.latent_entropy_,
            "H_z_y": rmig.joint_entropy_,
            "H_y": rmig.factor_entropy_,
            "RMIG": rmig_nats.factor_values_,
            "RMIG_norm": rmig.factor_values_,
            "JEMMIG": jemmig_nats.factor_values_,
            "JEMMIG_norm": jemmig.factor_values_,
            "MISJED": pairs(misjed.pairwise_values_),
            "H_z1z2_mean_mat": pairs(misjed.mean_joint_entropy_),
            "scores": [one.score() for one in (rmig, jemmig, misjed, informativeness)],
        }

    return compute


def pairs(matrix):
    """Return the entries above the diagonal."""
    return matrix[np.triu_indices(len(matrix), 1)]


AMOUNTS = ["MI_z_x", "MI_z_y", "H_z", "H_z_y", "H_y", "RMIG", "RMIG_norm"]
AMOUNTS += ["JEMMIG", "JEMMIG_norm", "MISJED", "H_z1z2_mean_mat"]
PAIRED = {"MISJED", "H_z1z2_mean_mat"}


@over_models
@pytest.mark.parametrize("amount", AMOUNTS)
def test_exact_bin_masses(model, amount, load_reference, quantized):
    expected = load_reference(model).values[f"q6k_f64cdf/{amount}"]
    expected = pairs(expected) if amount in PAIRED else expected

    assert_allclose(quantized(model)[amount], expected, rtol=0, atol=EXACT)


@over_models
@pytest.mark.parametrize("amount", [one for one in AMOUNTS if one != "MI_z_x"])
def test_the_authors_quantization(model, amount, load_reference, quantized):
    # They take the density at the centre of a bin for its mass.
    name = "MI_z1z2_mean_mat" if amount == "MISJED" else amount
    expected = load_reference(model).values[f"q6k/{name}"]
    expected = pairs(expected) if amount in PAIRED else expected

    assert_allclose(quantized(model)[amount], expected, rtol=0, atol=0.01)


@over_models
def test_the_authors_informativeness_is_too_high_by_up_to_a_tenth(
    model, load_reference, quantized
):
    excess = load_reference(model).values["q6k/MI_z_x"] - quantized(model)["MI_z_x"]

    # Never too low by more than the rounding of their float32 sums over 6,000 rows.
    assert excess.min() > -1e-3
    assert excess.max() < 0.1


@over_models
def test_scores_are_means_of_the_reference(model, load_reference, quantized):
    values = load_reference(model).values
    of = {name: values[f"q6k_f64cdf/{name}"] for name in AMOUNTS}

    expected = [
        of["RMIG_norm"].mean(),
        -of["JEMMIG_norm"].mean(),
        -pairs(of["MISJED"]).mean(),
        of["MI_z_x"].mean(),
    ]
    assert_allclose(quantized(model)["scores"], expected, rtol=0, atol=EXACT)


@over_models
@pytest.mark.parametrize("fast", [False, True])
def test_log_densities_at_the_authors_draws(model, fast, load_reference):
    data = load_reference(model)
    n, n_latents = data.mean.shape
    rng = np.random.RandomState(0)
    rows = rng.choice(n, 2000, replace=True, p=np.full(n, 1 / n, dtype=np.float32))
    noise = rng.randn(2000, n_latents)
    posterior = GaussianPosterior(data.mean.astype(float), data.std.astype(float))
    sets = LatentSets(tuple((latent,) for latent in range(n_latents)), n_latents)

    z = posterior._draw(rows, noise)
    own = posterior._densities(rows, sets).own(z)
    # The fast way is for large sets: single latents have a quadrature.
    single, rest = slice(1, n_latents + 1), slice(n_latents + 1, None)
    every = np.arange(len(sets))
    wanted = np.append(0, every[rest]) if fast else every
    others = np.zeros(own.shape)
    others[wanted] = posterior._log_sums(
        np.full(n, -np.log(n)), rows, z, own - np.log(n), sets, wanted, fast=fast
    )

    entropy = -np.logaddexp(others, own - np.log(n)).mean(axis=1)
    given_x = -own.mean(axis=1)
    informativeness = entropy - given_x
    found = {
        "H_z": entropy[0],
        "H_zi": entropy[single],
        "H_z_not_i": entropy[rest],
        "H_z_cond_x": given_x[0],
        "H_zi_cond_x": given_x[single],
        "H_z_not_i_cond_x": given_x[rest],
        "MI_z_x": informativeness[0],
        "MI_zi_x": informativeness[single],
        "MI_z_not_i_x": informativeness[rest],
        "SEPIN_zi": informativeness[0] - informativeness[rest],
        "SEP_zi": entropy[single] + entropy[rest] - entropy[0],
    }
    if fast:
        for name in ("H_zi", "MI_zi_x", "SEP_zi"):
            del found[name]
    for name, value in found.items():
        expected = data.values[f"s6k_f64/{name}"]
        assert_allclose(value, expected, rtol=0, atol=1e-4, err_msg=name)


N_DRAWS = 600
# The reference drew 2,000 times. Pairs and control variates only lower our error, so it
# is at most theirs times sqrt(2,000 / N_DRAWS), and for the difference of both:
COMBINED = np.sqrt(1 + 2000 / N_DRAWS)


@over_models
def test_our_own_draws(model, load_reference):
    data = load_reference(model)
    of = {name.removeprefix("s6k_f64/"): value for name, value in data.values.items()}

    wsepin = WSEPIN(n_samples=N_DRAWS, random_state=0, n_jobs=2)
    wsepin.fit(data.mean, data.std)

    combined = np.hypot(wsepin.latent_std_errors_, of["se_SEPIN_zi"])
    assert (abs(wsepin.latent_values_ - of["SEPIN_zi"]) < 4 * combined).all()
    for found, expected, error in [
        (wsepin.informativeness_, of["MI_zi_x"], of["se_MI_zi_x"]),
        (wsepin.mutual_info_rest_, of["SEP_zi"], of["se_SEP_zi"]),
        (wsepin.information_, of["MI_z_x"], of["se_MI_z_x"]),
    ]:
        assert (abs(found - expected) < 4 * COMBINED * error).all()
    # The error of a sum is at most the sum of the errors.
    theirs = wsepin.weights_ @ of["se_SEPIN_zi"]
    value_error = np.hypot(wsepin.std_error_, theirs)
    assert abs(wsepin.value_ - of["WSEPIN"]) < 4 * value_error

    # I(x, z_i | z_-i) of a diagonal posterior is between 0 and I(x, z_i).
    collapsed = of["MI_zi_x"] < 0.01
    assert collapsed.sum() == {"betavae_b4": 6, "betavae_b16": 7}.get(model, 0)
    value, error = wsepin.latent_values_, wsepin.latent_std_errors_
    most = data.values["q6k_f64cdf/MI_z_x"]
    assert (value > -3 * error)[collapsed].all()
    assert (value < most + 3 * error)[collapsed].all()
    assert (error < 0.002)[collapsed].all()


@over_models
def test_quadrature_is_what_sampling_estimates(model, load_reference):
    data = load_reference(model)
    of = {name.removeprefix("s6k_f64/"): value for name, value in data.values.items()}

    rmig = RMIG(method="quadrature", normalize=False, n_jobs=2)
    rmig.fit(data.mean, data.std, data.y)

    z_score = (rmig.mutual_info_ - of["MI_zi_yk"]) / of["se_MI_zi_yk"]
    # 4.5 rather than 4 standard errors: there are 190 amounts.
    assert abs(z_score).max() < 4.5
    # Quantized latents are functions of the latents: data processing. The reference is
    # float32, and quadrature is right to 1e-9.
    assert (data.values["q6k_f64cdf/MI_z_y"] < rmig.mutual_info_ + EXACT).all()
