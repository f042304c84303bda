import hashlib
import json
import sys
from importlib.resources import files

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skdisent import RMIG, WSEPIN, GaussianPosterior, Informativeness
from skdisent.datasets import (
    SPRITE_FACTORS,
    SPRITE_MODELS,
    load_sprite_posteriors,
    make_sprites,
)

DATA = files("skdisent.datasets") / "data"
LATENTS = [f"z{latent}" for latent in range(10)]
# SHA-256 of means, standard deviations and factors; new data means new digests.
DIGESTS = {
    "vae": "5f8f3eaf8463fae3",
    "betavae_b4": "c66ce8c40dd73953",
    "betavae_b16": "cc05cb85c03c2bca",
    "betatcvae_b6": "1de5c36d584f116d",
    "tied": "e985fe84972020b3",
}

ignore_few_rows = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)
every_model = pytest.mark.parametrize("model", SPRITE_MODELS)


@pytest.fixture
def grid_home(tmp_path):
    """Return a data home with the cached grid of the model "vae", all of it made up."""
    folder = tmp_path / "skdisent_sprite_posteriors"
    folder.mkdir()
    mean = np.arange(92_160 * 2, dtype=np.float32).reshape(-1, 2)
    np.savez(folder / "vae.npz", mean=mean, std=np.full_like(mean, 0.5))
    (folder / "vae.json").write_text(json.dumps({"title": "made up"}))
    return tmp_path


@every_model
def test_the_bunch_holds_what_it_says(model):
    bunch = load_sprite_posteriors(model)

    assert isinstance(bunch.posterior, GaussianPosterior)
    assert bunch.posterior.shape == bunch.data.shape == bunch.std.shape == (5000, 10)
    assert bunch.data.dtype == bunch.std.dtype == np.float64
    assert_array_equal(bunch.posterior.mean, bunch.data)
    assert_array_equal(bunch.posterior.std, bunch.std)
    assert np.isfinite(bunch.data).all()
    assert (bunch.std > 0).all()
    assert bunch.target.shape == (5000, 5)
    assert np.issubdtype(bunch.target.dtype, np.integer)
    assert bunch.feature_names == LATENTS
    assert bunch.target_names == list(SPRITE_FACTORS)
    assert "frame" not in bunch


def test_the_rows_are_those_of_make_sprites():
    # Images of one pixel cost little; the codes do not depend on the size.
    _, y = make_sprites(5000, image_size=1, random_state=0)

    for model in SPRITE_MODELS:
        assert_array_equal(load_sprite_posteriors(model).target, y)


def test_return_X_y_gives_what_the_metrics_take():
    bunch = load_sprite_posteriors("vae")

    X, y = load_sprite_posteriors("vae", return_X_y=True)

    assert isinstance(X, GaussianPosterior)
    assert_array_equal(X.mean, bunch.data)
    assert_array_equal(X.std, bunch.std)
    assert_array_equal(y, bunch.target)


def test_as_frame_names_the_columns():
    pd = pytest.importorskip("pandas")
    plain = load_sprite_posteriors("tied")

    bunch = load_sprite_posteriors("tied", as_frame=True)

    assert isinstance(bunch.posterior, GaussianPosterior)
    for name, columns in (
        ("data", LATENTS),
        ("std", LATENTS),
        ("target", list(SPRITE_FACTORS)),
    ):
        assert isinstance(bunch[name], pd.DataFrame)
        assert list(bunch[name].columns) == columns
        assert_array_equal(bunch[name], plain[name])
    in_std = [f"std_{latent}" for latent in LATENTS]
    assert list(bunch.frame.columns) == [*LATENTS, *in_std, *SPRITE_FACTORS]
    assert bunch.frame.shape == (5000, 25)


def test_frames_go_into_a_metric_with_their_names():
    pytest.importorskip("pandas")
    bunch = load_sprite_posteriors("tied", as_frame=True)

    rmig = RMIG().fit(bunch.data, bunch.std, bunch.target)

    assert_array_equal(rmig.feature_names_in_, LATENTS)
    assert_array_equal(rmig.factor_names_in_, SPRITE_FACTORS)
    posterior, y = load_sprite_posteriors("tied", return_X_y=True, as_frame=True)
    assert rmig.value_ == RMIG().fit(posterior, y).value_


def test_as_frame_without_pandas_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ImportError, match="as_frame=True needs pandas"):
        load_sprite_posteriors(as_frame=True)


@every_model
def test_details_say_how_the_model_was_made(model):
    bunch = load_sprite_posteriors(model)

    details = bunch.model_details
    assert details["title"] in bunch.DESCR
    assert details["epochs"] == len(details["history"])
    assert details["losses"] == details["history"][-1]
    assert details["losses"]["reconstruction"] < details["history"][0]["reconstruction"]
    assert {"seed", "beta", "total_correlation", "tie", "torch"} <= set(details)
    assert len(details["commit"]) == 40
    assert set(details["tied_factors"]) == (
        set(SPRITE_FACTORS) if model == "tied" else set()
    )


def test_models_differ_in_their_losses_as_told():
    details = {m: load_sprite_posteriors(m).model_details for m in SPRITE_MODELS}

    assert details["vae"]["beta"] == 1
    assert details["betavae_b4"]["beta"] == 4
    assert details["betavae_b16"]["beta"] == 16
    assert details["betatcvae_b6"]["total_correlation"] == 5
    assert details["tied"]["tie"] > 0


def test_all_the_data_is_less_than_a_megabyte():
    sizes = {one.name: len(one.read_bytes()) for one in DATA.iterdir()}

    assert {f"{model}.npz.xz" for model in SPRITE_MODELS} < set(sizes)
    assert sum(sizes.values()) < 1e6


@every_model
def test_the_content_never_changes(model):
    bunch = load_sprite_posteriors(model)

    digest = hashlib.sha256()
    for array in (bunch.data, bunch.std, bunch.target.astype(np.float64)):
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    assert digest.hexdigest()[:16] == DIGESTS[model]


@pytest.mark.parametrize(
    ("model", "n_informative"),
    [("vae", 5), ("betavae_b4", 3), ("betavae_b16", 3), ("betatcvae_b6", 3)],
)
def test_latents_are_informative_or_collapsed(model, n_informative):
    posterior, _ = load_sprite_posteriors(model, return_X_y=True)

    informativeness = Informativeness().fit(posterior)

    values = informativeness.informativeness_[informativeness.ranking_]
    assert values[n_informative - 1] > 0.3
    assert values[n_informative] < 0.01
    # A collapsed latent is the prior, whatever the image.
    collapsed = informativeness.ranking_[n_informative:]
    assert np.abs(posterior.mean[:, collapsed]).mean() < 0.1
    assert np.abs(posterior.std[:, collapsed] - 1).mean() < 0.05


def test_beta_trades_reconstruction_for_the_prior():
    losses = {
        model: load_sprite_posteriors(model).model_details["losses"]
        for model in ("vae", "betavae_b4", "betavae_b16")
    }

    reconstruction = [one["reconstruction"] for one in losses.values()]
    divergence = [one["kl"] for one in losses.values()]
    assert reconstruction == sorted(reconstruction)
    assert divergence == sorted(divergence, reverse=True)


@ignore_few_rows
def test_rmig_is_best_where_latents_are_tied_then_where_beta_is_largest():
    rmig = {
        model: RMIG().fit(*load_sprite_posteriors(model, return_X_y=True))
        for model in SPRITE_MODELS
    }

    assert_array_equal(rmig["tied"].best_latent_, [0, 1, 2, 3, 4])
    best, second, *others = sorted(rmig, key=lambda model: -rmig[model].value_)
    assert (best, second) == ("tied", "betavae_b16")
    assert rmig["tied"].value_ > 0.5
    assert rmig["betavae_b16"].value_ > 1.5 * rmig[others[0]].value_


@ignore_few_rows
def test_wsepin_ranks_the_models_otherwise():
    wsepin = {
        model: WSEPIN(n_samples=300, random_state=0).fit(
            load_sprite_posteriors(model).posterior
        )
        for model in ("betavae_b4", "betavae_b16", "vae", "tied")
    }

    # Far beyond the errors of 300 draws, 0.03.
    values = [one.value_ for one in wsepin.values()]
    assert np.all(np.diff(values) < -0.2)
    # The cap that keeps "tied" low: five latents identify most of 5000 rows.
    assert np.log(5000) - 0.5 < wsepin["tied"].information_ <= np.log(5000)


def test_two_loads_share_no_memory():
    first, second = load_sprite_posteriors("vae"), load_sprite_posteriors("vae")

    first.data[:] = 0
    assert second.data.any()


def test_the_grid_is_read_from_the_data_home(grid_home):
    bunch = load_sprite_posteriors("vae", subset="grid", data_home=grid_home)

    assert bunch.posterior.shape == (92_160, 2)
    assert bunch.data.dtype == np.float64
    assert_array_equal(bunch.data[1], [2, 3])
    assert_array_equal(bunch.std[0], [0.5, 0.5])
    assert bunch.feature_names == ["z0", "z1"]
    # In the order of make_sprites(), the last factor changing fastest.
    assert_array_equal(
        bunch.target[[0, 1, -1]], [[0] * 5, [0, 0, 0, 0, 1], [2, 5, 19, 15, 15]]
    )
    assert "made up" in bunch.DESCR


def test_the_data_home_may_come_from_the_environment(grid_home, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(grid_home))

    X, y = load_sprite_posteriors("vae", subset="grid", return_X_y=True)

    assert X.shape == (92_160, 2)
    assert y.shape == (92_160, 5)


def test_a_missing_grid_says_how_to_make_it(grid_home):
    with pytest.raises(FileNotFoundError, match=r"train\.py tied` in a checkout"):
        load_sprite_posteriors("tied", subset="grid", data_home=str(grid_home))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"model": "betavae"}, "The 'model' parameter .* must be a str among .*'tied'"),
        ({"model": 4}, "The 'model' parameter of load_sprite_posteriors"),
        ({"subset": "all"}, "The 'subset' parameter .* must be a str among"),
        ({"data_home": 1}, "The 'data_home' parameter of load_sprite_posteriors"),
        ({"return_X_y": "yes"}, "The 'return_X_y' parameter of load_sprite_posteriors"),
        ({"as_frame": None}, "The 'as_frame' parameter of load_sprite_posteriors"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        load_sprite_posteriors(**params)
