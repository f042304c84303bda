"""
Model selection: how many latents, and which rotation?
======================================================

A metric is a scorer, so that scikit-learn's searches choose an encoder by it. Here one
search over a factor analysis asks for the number of latents and their rotation, and
three metrics answer: WSEPIN, RMIG and JEMMIG. They do not agree, and all three are
right: each asks for something else.
"""

# %%
# The data
# --------
# A square of four sizes moves over an image, to eight places along x and four along y.
# Every image is taken twelve times, with other noise in every pixel.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

from skdisent import JEMMIG, RMIG, WSEPIN, MetricSuite
from skdisent.datasets import make_sprites
from skdisent.encoders import FactorAnalysisEncoder
from skdisent.exceptions import DisentanglementWarning

FACTORS = ["scale", "x", "y"]
SIZE = 8

X, y = make_sprites(None, image_size=SIZE, n_levels=(1, 4, 1, 8, 8), random_state=0)
in_the_middle = (y[:, 4] >= 2) & (y[:, 4] <= 5)
X, y = X[in_the_middle], y[in_the_middle][:, [1, 3, 4]]
X, y = np.tile(X, (12, 1)), np.tile(y, (12, 1))
X = X + 0.1 * np.random.default_rng(0).normal(size=X.shape)
print(f"{len(X)} images of {X.shape[1]} pixels")

# %%
# The search
# ----------
# A :class:`~skdisent.MetricSuite` is one scorer for several metrics: each fold is
# encoded once, and metrics share what they need. The folds are shuffled, for those of
# sorted rows would lack classes. WSEPIN is given a seed, so that all candidates are
# compared on equal draws.
#
# The search has no ``refit``: which metric should decide is what we want to see. The
# warnings that are left out tell of gaps so near 0 that their bias counts.

warnings.simplefilter("ignore", DisentanglementWarning)

suite = MetricSuite(
    {
        "WSEPIN": WSEPIN(n_samples=1_000, random_state=0),
        "RMIG": RMIG(),
        "JEMMIG": JEMMIG(),
    }
)
search = GridSearchCV(
    FactorAnalysisEncoder(svd_method="lapack"),
    {"n_components": [2, 3, 4, 6], "rotation": [None, "varimax"]},
    scoring=suite,
    refit=False,
    cv=KFold(2, shuffle=True, random_state=0),
).fit(X, y)

results, winners = search.cv_results_, {}
print(f"{'latents':>7} {'rotation':9}", *(f"{name:>16}" for name in suite.metrics))
for i, params in enumerate(results["params"]):
    cells = []
    for name in suite.metrics:
        mean, std = results[f"mean_test_{name}"][i], results[f"std_test_{name}"][i]
        best = results[f"rank_test_{name}"][i] == 1
        if best:
            winners[name] = params
        cells.append(f"{mean:8.3f} +- {std:.3f}{'*' if best else ' '}")
    rotation = params["rotation"] or "none"
    print(f"{params['n_components']:7} {rotation:9}", *cells)

# %%
# Scores are such that greater is better, so that JEMMIG's is the opposite of its value.
# A star marks the best of each column, and there is one in three different rows.
#
# The spread over the folds says how far to trust a star. On the rotation RMIG and
# JEMMIG leave no doubt: they want none, whatever the number of latents. Nor is there a
# doubt that WSEPIN falls as latents are added, though from 2 to 3 by less than the
# spread. Between 4 and 6 latents without rotation, RMIG and JEMMIG see little
# difference, and they take opposite sides.
#
# What is behind a number is kept by the metrics: we fit each winner to all rows, and
# look.

fitted = {}
for name, params in winners.items():
    encoder = FactorAnalysisEncoder(svd_method="lapack", **params)
    fitted[name] = suite.fit(encoder.fit_transform(X), y).metrics_

# %%
# Why WSEPIN chose as it did
# --------------------------
# WSEPIN does not know the factors. It asks what a latent says about the image that all
# others do not: its informativeness, less what it shares with the rest.

print(f"{'winner of':10}{'informative':>12}{'shared':>8}{'WSEPIN':>8}   in nats")
for name, metrics in fitted.items():
    one = metrics["WSEPIN"]
    weights = one.weights_
    print(
        f"{name:10}{weights @ one.informativeness_:12.2f}"
        f"{weights @ one.mutual_info_rest_:8.2f}{one.value_:8.2f}"
    )

# %%
# A latent among six says as much as one among four, but more of that is known from the
# others, so that less is its own. A rotation leaves what all latents say together as it
# is and deals it out anew: after varimax each says less, and shares less.
#
# Why RMIG chose as it did
# ------------------------
# RMIG asks that one latent knows a factor and no other does. This is what each latent
# knows about each factor:

figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained", sharey=True)
for axis, (name, metrics) in zip(axes, fitted.items(), strict=True):
    of_latents = metrics["RMIG"].mutual_info_
    image = axis.imshow(of_latents.T, vmin=0, vmax=1.2, aspect="auto", cmap="viridis")
    axis.set(
        title=f"winner of {name}",
        xlabel="latent",
        xticks=range(len(of_latents)),
        yticks=range(len(FACTORS)),
        yticklabels=FACTORS,
    )
figure.colorbar(image, ax=axes, label="I(z, y) in nats")

print(f"{'winner of':10}{'factor':8}{'best':>6}{'second':>8}{'gap':>6}   in nats")
for name, metrics in fitted.items():
    rmig = metrics["RMIG"]
    for k, factor in enumerate(FACTORS):
        best = rmig.mutual_info_[rmig.best_latent_[k], k]
        second = rmig.mutual_info_[rmig.second_latent_[k], k]
        print(f"{name:10}{factor:8}{best:6.2f}{second:8.2f}{best - second:6.2f}")

# %%
# Without a rotation the latents are waves over the image: one along y and, among four
# or six of them, two along x. Both of these tell x, and among six nearly as well, so
# that the gap of x is smaller. Varimax has turned two waves into two corners of the
# image. Each sees the square come and go along x and along y: they know the same about
# every factor, and all gaps are nearly 0.
#
# Why JEMMIG chose as it did
# --------------------------
# JEMMIG takes the same gap, and subtracts it from the joint entropy of the factor and
# its best latent, which is small if the latent holds nothing but the factor.

print(f"{'winner of':10}{'factor':8}{'gap':>6}{'H(z*, y)':>10}{'JEMMIG':>8}")
for name, metrics in fitted.items():
    jemmig = metrics["JEMMIG"]
    for k, factor in enumerate(FACTORS):
        best, second = jemmig.best_latent_[k], jemmig.second_latent_[k]
        gap = jemmig.mutual_info_[best, k] - jemmig.mutual_info_[second, k]
        joint = jemmig.joint_entropy_[best, k]
        print(f"{name:10}{factor:8}{gap:6.2f}{joint:10.2f}{joint - gap:8.2f}")

# %%
# The best of six latents hold a little less besides their factor than the best of four.
# Over the three factors that outweighs the smaller gap of x, if only just.
#
# Which one to take
# -----------------
# Take WSEPIN where factors are not known, or where every latent should say something
# of its own. Take RMIG where a factor should be found in one latent and no other, and
# JEMMIG where that latent should be about nothing else. A table such as the first one
# costs no more than the search by one of them, so look at all before you decide.
