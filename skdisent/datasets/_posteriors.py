"""Posteriors of encoders that were trained on the sprites."""

import io
import json
import lzma
from importlib.resources import files
from math import prod
from os import PathLike
from pathlib import Path

import numpy as np
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch, check_random_state

from skdisent._posterior import GaussianPosterior
from skdisent._sklearn import StrOptions, validate_params
from skdisent.datasets._sprites import SPRITE_FACTORS

__all__ = ["SPRITE_MODELS", "load_sprite_posteriors"]

SPRITE_MODELS = ("vae", "betavae_b4", "betavae_b16", "betatcvae_b6", "tied")

_DATA = files("skdisent.datasets") / "data"
# The default levels of `make_sprites`.
_N_LEVELS = (3, 6, 20, 16, 16)
N_SAMPLE_ROWS = 5000


def grid_folder(data_home=None):
    """Return the folder where the posteriors of the whole grid are cached."""
    return Path(get_data_home(data_home)) / "skdisent_sprite_posteriors"


def shuffled_rows():
    """Return the rows of the grid in random order; the first are in the package.

    They are those of ``make_sprites(n_samples, random_state=0)``.
    """
    return check_random_state(0).permutation(prod(_N_LEVELS))


def _unpacked(content):
    """Return means and standard deviations in float64, (n_samples, n_latents) each."""
    with np.load(io.BytesIO(lzma.decompress(content))) as planes:
        return [_joined(planes[name]).astype(np.float64) for name in ("mean", "std")]


def _joined(planes):
    """Return the float16 array whose two bytes are stored apart, latent by latent."""
    pairs = np.ascontiguousarray(np.moveaxis(planes, 0, -1))
    return pairs.view("<f2")[..., 0].T


def _read_sample(model):
    content = (_DATA / f"{model}.npz.xz").read_bytes()
    details = json.loads((_DATA / "models.json").read_text(encoding="utf-8"))
    return *_unpacked(content), details[model]


def _read_grid(model, data_home):
    folder = grid_folder(data_home)
    arrays, details = folder / f"{model}.npz", folder / f"{model}.json"
    if not arrays.exists() or not details.exists():
        raise FileNotFoundError(
            f"the posteriors of {model!r} on the whole grid are not in {folder}. They "
            "cannot be downloaded: train the model with `python "
            f"benchmarks/sprite_posteriors/train.py {model}` in a checkout of skdisent "
            "(minutes on a processor, needs the extra 'torch'), or pass "
            "subset='sample'."
        )
    with np.load(arrays) as stored:
        mean, std = (stored[name].astype(np.float64) for name in ("mean", "std"))
    return mean, std, json.loads(details.read_text(encoding="utf-8"))


def _codes(rows):
    """Return the codes of the factors at rows of the grid."""
    return np.stack(np.unravel_index(rows, _N_LEVELS), axis=1)


def _description(model, details):
    general = (_DATA / "sprite_posteriors.rst").read_text(encoding="utf-8")
    facts = [
        f":{name}: {value}" for name, value in details.items() if name != "history"
    ]
    return "\n".join([general, f"This model: {model}", "", *facts, ""])


def _add_frames(bunch):
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "load_sprite_posteriors with as_frame=True needs pandas: install it, or "
            "pass as_frame=False."
        ) from error
    bunch.data = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    bunch.std = pd.DataFrame(bunch.std, columns=bunch.feature_names)
    bunch.target = pd.DataFrame(bunch.target, columns=bunch.target_names)
    parts = [bunch.data, bunch.std.add_prefix("std_"), bunch.target]
    bunch.frame = pd.concat(parts, axis=1)


@validate_params(
    {
        "model": [StrOptions(set(SPRITE_MODELS))],
        "subset": [StrOptions({"sample", "grid"})],
        "data_home": [str, PathLike, None],
        "return_X_y": ["boolean"],
        "as_frame": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def load_sprite_posteriors(
    model="betavae_b4",
    *,
    subset="sample",
    data_home=None,
    return_X_y=False,
    as_frame=False,
):
    """Load the posteriors of an encoder that was trained on the sprites.

    Five models, from collapsed over entangled to disentangled, encoded the images of
    :func:`make_sprites`; every one has 10 latents with a diagonal posterior. The rows
    are the same for all of them.

    ================ ==================================================================
    model            trained as
    ================ ==================================================================
    "vae"            VAE, that is beta 1
    "betavae_b4"     beta-VAE, beta 4
    "betavae_b16"    beta-VAE, beta 16: over-regularised, most latents collapsed
    "betatcvae_b6"   beta-TCVAE, beta 6 on the total correlation
    "tied"           VAE, latents 0 to 4 tied to the factors by a supervised term
    ================ ==================================================================

    Parameters
    ----------
    model : {"vae", "betavae_b4", "betavae_b16", "betatcvae_b6", "tied"}, \
            default="betavae_b4"
        Name of the model, one of `SPRITE_MODELS`.
    subset : {"sample", "grid"}, default="sample"
        The 5000 rows that come with the package, rounded, or all 92,160 rows of the
        grid in its order. The grid must have been made before, see Notes.
    data_home : str or path-like, default=None
        Where the grid is cached. None is the data home of scikit-learn,
        ``~/scikit_learn_data`` or the environment variable SCIKIT_LEARN_DATA.
    return_X_y : bool, default=False
        Whether to return ``(posterior, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether means, standard deviations and factors come as data frames. `posterior`
        is a :class:`~skdisent.GaussianPosterior` in any case.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        posterior : GaussianPosterior of shape (n_samples, 10)
            What the metrics take; it holds `data` and `std`.
        data : {ndarray, DataFrame} of shape (n_samples, 10)
            Means of the latents.
        std : {ndarray, DataFrame} of shape (n_samples, 10)
            Standard deviations of the latents, in the unit of the means.
        target : {ndarray, DataFrame} of shape (n_samples, 5)
            Codes of the factors' levels, from 0.
        feature_names : list of 10 str
            Names of the latents.
        target_names : list of 5 str
            Names of the factors, those of `SPRITE_FACTORS`.
        frame : DataFrame of shape (n_samples, 25)
            Means, standard deviations and factors. Only present if `as_frame` is True.
        model_details : dict
            Title, weights of the loss, seed, epochs, losses in nats per image,
            version of PyTorch and commit.
        DESCR : str
            Description of the models and of this one.

    (posterior, target) : tuple if `return_X_y` is True
        As above.

    Raises
    ------
    FileNotFoundError
        If the grid of the model was not made; the message says how to make it.
    ImportError
        If `as_frame` is True and pandas is not installed.

    See Also
    --------
    make_sprites : The images.

    Notes
    -----
    The images of the sample are those of ``make_sprites(5000, random_state=0)``, row by
    row, and those of the grid ``make_sprites()``. The grid is made by
    ``benchmarks/sprite_posteriors/train.py`` of a checkout, which trains the models.

    Examples
    --------
    >>> from skdisent import RMIG
    >>> from skdisent.datasets import load_sprite_posteriors
    >>> sprites = load_sprite_posteriors("tied")
    >>> sprites.posterior
    GaussianPosterior(n_samples=5000, n_latents=10, std)
    >>> sprites.target_names
    ['shape', 'scale', 'orientation', 'x', 'y']
    >>> RMIG().fit(sprites.posterior, sprites.target).best_latent_
    array([0, 1, 2, 3, 4])
    """
    if subset == "sample":
        mean, std, details = _read_sample(model)
        target = _codes(shuffled_rows()[:N_SAMPLE_ROWS])
    else:
        mean, std, details = _read_grid(model, data_home)
        target = _codes(np.arange(len(mean)))
    bunch = Bunch(
        posterior=GaussianPosterior(mean, std),
        data=mean,
        std=std,
        target=target,
        feature_names=[f"z{latent}" for latent in range(mean.shape[1])],
        target_names=list(SPRITE_FACTORS),
        model_details=details,
        DESCR=_description(model, details),
    )
    if as_frame:
        _add_frames(bunch)
    return (bunch.posterior, bunch.target) if return_X_y else bunch
