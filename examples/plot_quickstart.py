"""
Quickstart: three encoders of sprites
=====================================

Small images are drawn from five known factors: the shape of a sprite, its scale, its
orientation and its position x and y. Three encoders turn an image into latents:

- **factor analysis** and **probabilistic PCA**, two linear models that know nothing
  about factors,
- **moments**, made by hand: the sprite's mass, and its centre along x and along y.

All three give a posterior, a mean and a standard deviation for each latent. The
metrics tell what the latents know, and RMIG and JEMMIG say which latent knows which
factor. All amounts are in nats.
"""

# %%
# The data
# --------
# Every pixel has a little noise, as from a camera.

import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import FunctionTransformer

from skdisent import (
    INDIN,
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    WINDIN,
    WSEPIN,
    GaussianPosterior,
    Informativeness,
    MetricSuite,
)
from skdisent.datasets import SPRITE_FACTORS, load_sprite_posteriors, make_sprites
from skdisent.encoders import FactorAnalysisEncoder
from skdisent.exceptions import DisentanglementWarning

SIZE = 8
PIXEL_NOISE = 0.02

X, y = make_sprites(
    2_000,
    image_size=SIZE,
    n_levels=(3, 4, 4, 8, 8),
    max_angle=np.pi / 2,
    random_state=0,
)
X = X + PIXEL_NOISE * np.random.default_rng(0).normal(size=X.shape)

# %%
# The encoders
# ------------
# An encoder is any estimator whose ``transform`` returns a
# :class:`~skdisent.GaussianPosterior`. A function becomes one by scikit-learn's
# ``FunctionTransformer``.
#
# Probabilistic PCA has a posterior in closed form. Along a component whose variance is
# ``lam``, where the noise has the variance ``noise``, it is a Gaussian with the
# variance ``noise / lam``.

pca = PCA(n_components=3, random_state=0).fit(X)


def ppca_posterior(X):
    lam, noise = pca.explained_variance_, pca.noise_variance_
    mean = pca.transform(X) * np.sqrt(lam - noise) / lam
    return GaussianPosterior(mean, np.broadcast_to(np.sqrt(noise / lam), mean.shape))


# %%
# The moments are sums over pixels, or ratios of two sums. Their standard deviations
# follow, to first order, from the noise of the pixels.


def moments_posterior(X):
    row, column = np.indices((SIZE, SIZE)).reshape(2, -1)
    mass = X.sum(axis=1, keepdims=True)
    mean, std = [mass], [np.full_like(mass, PIXEL_NOISE * SIZE)]
    for position in (column, row):
        center = X @ position[:, np.newaxis] / mass
        reach = np.sqrt(((position - center) ** 2).sum(axis=1, keepdims=True))
        mean.append(center)
        std.append(PIXEL_NOISE * reach / mass)
    return GaussianPosterior(np.hstack(mean), np.hstack(std))


encoders = {
    "factor analysis": FactorAnalysisEncoder(n_components=3, random_state=0).fit(X),
    "PPCA": FunctionTransformer(ppca_posterior),
    "moments": FunctionTransformer(moments_posterior),
}

# %%
# All metrics of all encoders
# ---------------------------
# A metric is fitted on a posterior and the factors. It warns where a number needs a
# second look; the warnings are kept here, to be read below.

draws = {"n_samples": 1_000, "random_state": 0}
fitted, caught = {}, {}
for name, encoder in encoders.items():
    posterior = encoder.transform(X)
    metrics = [
        RMIG(),
        JEMMIG(),
        MISJED(),
        Informativeness(),
        SEPIN(**draws),
        WSEPIN(**draws),
        INDIN(**draws),
        WINDIN(**draws),
    ]
    with warnings.catch_warnings(record=True) as caught[name]:
        warnings.simplefilter("always", DisentanglementWarning)
        fitted[name] = {type(m).__name__: m.fit(posterior, y) for m in metrics}

print(f"{'':16}{'better':8}", *(f"{name:>16}" for name in encoders))
for metric in fitted["PPCA"]:
    of_encoders = [fitted[name][metric] for name in encoders]
    better = "higher" if of_encoders[0].greater_is_better else "lower"
    print(f"{metric:16}{better:8}", *(f"{m.value_:16.3f}" for m in of_encoders))

# %%
# The first three are normalized, the others are in nats. Informativeness and the SEPIN
# family know nothing about factors. They ask whether the latents are informative, and
# whether each of them says what the others do not.
#
# The posteriors of all three encoders are diagonal, or for factor analysis nearly so:
# INDIN is SEPIN then. They differ for a full covariance.
#
# What RMIG and JEMMIG found
# --------------------------
# The values follow from attributes that are kept: the best latent of each factor, the
# second best, and the information that each of them has about it.

for name in encoders:
    rmig, jemmig = fitted[name]["RMIG"], fitted[name]["JEMMIG"]
    print(f"\n{name}")
    for k, factor in enumerate(SPRITE_FACTORS):
        best, second = rmig.best_latent_[k], rmig.second_latent_[k]
        info = rmig.mutual_info_[:, k]
        print(
            f"  {factor}: of {rmig.factor_entropy_[k]:.2f} nats, latent {best} knows "
            f"{info[best]:.2f} and latent {second} {info[second]:.2f}, a gap of "
            f"{info[best] - info[second]:.2f} (RMIG {rmig.factor_values_[k]:.2f}). "
            f"JEMMIG {jemmig.factor_values_[k]:.2f}: latent {best} has an entropy of "
            f"{jemmig.latent_entropy_[best]:.2f}."
        )

# %%
# The linear encoders spread every factor over several latents, so that their gaps are
# small. Each of the moments is about one factor. None of the encoders has a latent for
# the shape or for the orientation.
#
# What the library warned about
# -----------------------------
# A gap is a difference of two estimates, which are biased as the rows are few for so
# many bins. Where a factor has no latent of its own, its gap is no larger than that:
# read it as 0. RMIG and JEMMIG use the same gap and warn alike, so a message is shown
# once.

for name in encoders:
    print(f"\n{name}")
    for message in dict.fromkeys(str(one.message) for one in caught[name]):
        print(f"  {message}")

# %%
# Posteriors of trained VAEs
# --------------------------
# The package ships the posteriors of five VAEs that were trained on such sprites, so
# that informative, entangled and collapsed latents can be looked at without a deep
# learning library. A suite computes several metrics at once, each estimate once.

for model in ("betavae_b16", "tied"):
    sprites = load_sprite_posteriors(model)
    suite = MetricSuite(
        {
            "RMIG": RMIG(),
            "JEMMIG": JEMMIG(),
            "Informativeness": Informativeness(),
            "SEPIN": SEPIN(**draws),
        }
    )
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always", DisentanglementWarning)
        suite.fit(sprites.posterior, sprites.target)
    print(f"\n{model}: {sprites.model_details['title']}\n{suite.report()}")
    for message in dict.fromkeys(str(one.message) for one in messages):
        print(f"  {message}")

# %%
# The over-regularised beta-VAE has collapsed latents: no information, nothing to add.
# The VAE whose first five latents were tied to the factors in training has one latent
# each for scale, x and y, and RMIG and JEMMIG say so. SEPIN is low for it, and warns
# why: its latents together nearly identify a row among these few, so that each one adds
# little.
