"""
Pipelines: encoders and metrics as steps
========================================

An encoder is a step like any other, a metric a last step like any other. Here are the
ways to put them together: an encoder that is trained, one that was trained elsewhere, a
metric at the end, and a search over the encoders themselves.
"""

# %%
# The data
# --------

import warnings

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdisent import JEMMIG, RMIG, GaussianPosterior, Informativeness, MetricSuite
from skdisent.datasets import SPRITE_FACTORS, make_sprites
from skdisent.encoders import FactorAnalysisEncoder
from skdisent.exceptions import DisentanglementWarning

# Gaps near 0 are told of by warnings; they are not what this example is about.
warnings.simplefilter("ignore", DisentanglementWarning)

SIZE = 8
PIXEL_NOISE = 0.02

X, y = make_sprites(2_000, image_size=SIZE, n_levels=(3, 4, 4, 8, 8), random_state=0)
X = X + PIXEL_NOISE * np.random.default_rng(0).normal(size=X.shape)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# A metric as the last step
# -------------------------
# ``fit`` trains the encoder and fits the bins of the metric. ``score`` encodes other
# rows and scores them in the same bins.

pipeline = make_pipeline(
    StandardScaler(), FactorAnalysisEncoder(n_components=3, random_state=0), RMIG()
)
pipeline.fit(X_train, y_train)
print(f"RMIG of the training rows {pipeline.score(X_train, y_train):.3f}")
print(f"RMIG of the test rows     {pipeline.score(X_test, y_test):.3f}")

# %%
# In a notebook it looks like this:

pipeline

# %%
# The encoder hands a :class:`~skdisent.GaussianPosterior` to the metric. No step for
# arrays may stand between them: a scaler would take the means and lose the standard
# deviations. It is refused.

try:
    make_pipeline(FactorAnalysisEncoder(3), StandardScaler(), RMIG()).fit(X, y)
except TypeError as error:
    print(error)

# %%
# Encoders that were trained elsewhere
# ------------------------------------
# A function that returns a posterior becomes an encoder by ``FunctionTransformer``:
# the encoder of a variational autoencoder, say. This one takes the place of one; it
# gives the centre of the sprite along x and along y, with the error that the noise of
# the pixels makes.


def centre(X):
    row, column = np.indices((SIZE, SIZE)).reshape(2, -1)
    mass = X.sum(axis=1, keepdims=True)
    mean, std = [], []
    for position in (column, row):
        mean.append(X @ position[:, np.newaxis] / mass)
        reach = np.sqrt(((position - mean[-1]) ** 2).sum(axis=1, keepdims=True))
        std.append(PIXEL_NOISE * reach / mass)
    return GaussianPosterior(np.hstack(mean), np.hstack(std))


# %%
# A fitted estimator goes into a ``FrozenEstimator``, so that no search fits it again.

pretrained = FrozenEstimator(
    FactorAnalysisEncoder(n_components=3, random_state=0).fit(X_train)
)

# %%
# A search over the encoders
# --------------------------
# The encoder is a parameter of the pipeline, like any step. One
# :class:`~skdisent.MetricSuite` scores all candidates, and ``refit`` names the metric
# that decides.

search = GridSearchCV(
    Pipeline([("encoder", FactorAnalysisEncoder())]),
    {
        "encoder": [
            FactorAnalysisEncoder(n_components=2, random_state=0),
            FactorAnalysisEncoder(n_components=3, random_state=0),
            pretrained,
            FunctionTransformer(centre),
        ]
    },
    scoring=MetricSuite(
        {"rmig": RMIG(), "jemmig": JEMMIG(), "informativeness": Informativeness()}
    ),
    refit="rmig",
    cv=KFold(3, shuffle=True, random_state=0),
).fit(X_train, y_train)

results = search.cv_results_
names = ["2 factors", "3 factors", "3 factors, frozen", "centre"]
print(f"{'':18}{'rmig':>8}{'jemmig':>8}{'informativeness':>17}")
for i, name in enumerate(names):
    print(
        f"{name:18}{results['mean_test_rmig'][i]:8.3f}"
        f"{results['mean_test_jemmig'][i]:8.3f}"
        f"{results['mean_test_informativeness'][i]:17.3f}"
    )
print(f"\nchosen: {names[search.best_index_]}")

# %%
# The search is an encoder itself, by the one that it chose. What it makes of the test
# rows goes into a suite for a report of each factor and each latent.

report = MetricSuite({"rmig": RMIG(), "informativeness": Informativeness()})
report.fit(search.transform(X_test), y_test)
print(report.report())
print("factors:", *(f"{k} {name}" for k, name in enumerate(SPRITE_FACTORS)))

# %%
# Of x and y each has a latent of its own. The gaps of the other factors are nearly 0,
# as the centre does not tell them; they are why the mean over all five is low.
