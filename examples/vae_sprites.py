"""
Choose beta of a beta-VAE by cross-validated disentanglement
============================================================

A beta-VAE is wrapped as a scikit-learn estimator whose ``transform`` returns a
:class:`~skdisent.GaussianPosterior`, so that :class:`~skdisent.RMIG`,
:class:`~skdisent.JEMMIG` and :class:`~skdisent.WSEPIN` score it in
:class:`~sklearn.model_selection.GridSearchCV`, on images that it was not trained on.

It needs PyTorch, ``pip install skdisent[torch]``, and takes minutes on two cores::

    python examples/vae_sprites.py
    python examples/vae_sprites.py --skorch      # wrapped by skorch instead
"""

import argparse
import warnings

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn
from torch.nn import functional as F

from skdisent import JEMMIG, RMIG, WSEPIN, GaussianPosterior, MetricSuite
from skdisent.datasets import SPRITE_FACTORS, make_sprites
from skdisent.exceptions import DisentanglementWarning

BETAS = [1.0, 4.0, 16.0]

# %%
# The network
# -----------
# Dense layers to the mean and the log-variance of each latent, and back to the logits
# of the pixels.


class VAE(nn.Module):
    def __init__(self, n_pixels=1024, n_hidden=256, n_latents=10):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(n_pixels, n_hidden),
            nn.ReLU(),
            nn.Linear(n_hidden, 2 * n_latents),
        )
        self.decoder = nn.Sequential(
            nn.Linear(n_latents, n_hidden), nn.ReLU(), nn.Linear(n_hidden, n_pixels)
        )

    def encode(self, images):
        return self.encoder(images).chunk(2, dim=1)

    def forward(self, images):
        mean, logvar = self.encode(images)
        z = mean + torch.exp(0.5 * logvar) * torch.randn_like(mean)
        return self.decoder(z), mean, logvar


class BetaLoss(nn.Module):
    """Cross-entropy of the pixels plus beta times the KL divergence, in nats."""

    def __init__(self, beta=1.0):
        super().__init__()
        self.beta = beta

    def forward(self, output, images):
        logits, mean, logvar = output
        pixels = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
        divergence = 0.5 * (mean**2 + logvar.exp() - logvar - 1).sum()
        return (pixels + self.beta * divergence) / len(images)


# %%
# The estimator
# -------------
# ``fit`` trains, ``transform`` encodes. The labels are not used in training; they
# travel along for the metrics. ``auto_wrap_output_keys=None`` because a posterior is no
# table that ``set_output`` could turn into a data frame.


class BetaVAE(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    def __init__(
        self, beta=1.0, *, n_latents=10, n_epochs=25, batch_size=128, random_state=0
    ):
        self.beta = beta
        self.n_latents = n_latents
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.random_state = random_state

    def fit(self, X, y=None):
        images = torch.from_numpy(validate_data(self, X, dtype=np.float32))
        torch.manual_seed(self.random_state)
        self.module_ = VAE(images.shape[1], n_latents=self.n_latents)
        loss = BetaLoss(self.beta)
        optimizer = torch.optim.Adam(self.module_.parameters(), lr=2e-3)
        for _ in range(self.n_epochs):
            for rows in torch.randperm(len(images)).split(self.batch_size):
                optimizer.zero_grad()
                loss(self.module_(images[rows]), images[rows]).backward()
                optimizer.step()
        return self

    @torch.no_grad()
    def transform(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, reset=False)
        mean, logvar = self.module_.encode(torch.from_numpy(X))
        return GaussianPosterior.from_logvar(mean.numpy(), logvar.numpy())


def beta_vae():
    """Return the estimator and the name of its parameter beta."""
    return BetaVAE(), "beta"


# %%
# skorch instead
# --------------
# skorch brings the training loop, callbacks and devices. Two methods make its
# ``NeuralNet`` an encoder: the loss compares the output with the images, not with the
# labels, and ``transform`` returns the posterior.


def beta_vae_with_skorch():
    """Return the estimator and the name of its parameter beta."""
    from skorch import NeuralNet

    class SkorchVAE(NeuralNet):
        def get_loss(self, y_pred, y_true, X=None, **kwargs):
            return self.criterion_(y_pred, X)

        def transform(self, X):
            _, mean, logvar = self.forward(X)
            return GaussianPosterior.from_logvar(mean.numpy(), logvar.numpy())

    torch.manual_seed(0)
    net = SkorchVAE(
        VAE,
        BetaLoss,
        optimizer=torch.optim.Adam,
        lr=2e-3,
        max_epochs=25,
        batch_size=128,
        train_split=None,
        verbose=0,
    )
    return net, "criterion__beta"


# %%
# The search
# ----------
# The suite is one scorer that encodes once for its three metrics; a plain dict of
# metrics, ``scoring={"rmig": RMIG(), ...}``, gives the same. Greater is better for all
# of them: ``JEMMIG`` scores as the opposite of its value. The encoder is trained on two
# thirds of the images and scored on the others, 3,000 of the default 9,000, at which
# WSEPIN warns that more rows would raise it. All betas are scored on the same rows, so
# that their order stands.


def search(estimator, name_of_beta, X, y):
    suite = MetricSuite(
        {
            "rmig": RMIG(),
            "jemmig": JEMMIG(),
            "wsepin": WSEPIN(n_samples=1000, random_state=0),
        }
    )
    grid = {name_of_beta: BETAS}
    return GridSearchCV(estimator, grid, scoring=suite, refit="rmig", cv=3).fit(X, y)


def show(found, X, y):
    print(f"{'beta':6}  {'RMIG':14}  {'JEMMIG':14}  WSEPIN (nats)")
    for i, params in enumerate(found.cv_results_["params"]):
        columns = [f"{next(iter(params.values())):<6g}"]
        for metric in found.scoring.metrics:
            mean = found.cv_results_[f"mean_test_{metric}"][i]
            spread = found.cv_results_[f"std_test_{metric}"][i]
            columns.append(f"{mean:+.3f} ± {spread:.3f}")
        print("  ".join(columns))
    print(f"refitted: {found.best_params_}")
    rmig = RMIG().fit(found.best_estimator_.transform(X), y)
    for name, best, value in zip(
        SPRITE_FACTORS, rmig.best_latent_, rmig.factor_values_, strict=True
    ):
        print(f"{name:12} latent {best}  RMIG {value:.3f}")


def main():
    parser = argparse.ArgumentParser(description="Choose beta by disentanglement.")
    parser.add_argument("--skorch", action="store_true", help="wrap with skorch")
    parser.add_argument("--images", type=int, default=9_000, help="number of images")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DisentanglementWarning)
    torch.set_num_threads(2)
    X, y = make_sprites(options.images, random_state=0)
    wrap = beta_vae_with_skorch if options.skorch else beta_vae
    show(search(*wrap(), X, y), X, y)


if __name__ == "__main__":
    main()
