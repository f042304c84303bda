"""Train the encoders of `load_sprite_posteriors` and cache their posteriors.

    python benchmarks/sprite_posteriors/train.py                 all models
    python benchmarks/sprite_posteriors/train.py betavae_b16     one of them

Each model is trained on the whole grid of `make_sprites()`, 92,160 images of 32 by 32
pixels, and its posteriors of all of them are cached in the data home of scikit-learn
(`~/scikit_learn_data`, or SCIKIT_LEARN_DATA), from where
`load_sprite_posteriors(model, subset="grid")` reads them. Needs the extra `torch`.

Two runs on one machine give the same bytes: seeds and the number of threads are fixed
and PyTorch is kept to its deterministic algorithms. Another processor or another
version of PyTorch sums in another order and gives other models of the same kind.
"""

import argparse
import json
import math
import platform
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from skdisent.datasets import SPRITE_FACTORS, make_sprites
from skdisent.datasets._posteriors import grid_folder

N_PIXELS = 32 * 32
N_LATENTS = 10
BATCH_SIZE = 256
LARGEST_LEARNING_RATE = 2e-3
N_THREADS = 1
LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Recipe:
    """What one model minimizes, by the weights of its terms.

    loss = reconstruction + beta * KL + total_correlation * TC + tie * tie distance
    """

    title: str
    beta: float = 1.0
    total_correlation: float = 0.0
    tie: float = 0.0
    epochs: int = 12
    seed: int = 0


RECIPES = {
    "vae": Recipe("VAE"),
    "betavae_b4": Recipe("beta-VAE, beta 4", beta=4.0),
    "betavae_b16": Recipe("beta-VAE, beta 16", beta=16.0),
    "betatcvae_b6": Recipe("beta-TCVAE, beta 6", total_correlation=5.0),
    "tied": Recipe("VAE with latents tied to the factors", tie=100.0),
}


def dense(*widths):
    """Return linear layers of the widths, with ReLU between them."""
    layers = []
    for n_in, n_out in zip(widths[:-1], widths[1:], strict=True):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class VAE(nn.Module):
    """Dense layers to a Gaussian posterior, and back to the logits of the pixels."""

    def __init__(self):
        super().__init__()
        self.encoder = dense(N_PIXELS, 400, 200, 2 * N_LATENTS)
        self.decoder = dense(N_LATENTS, 200, 400, N_PIXELS)

    def encode(self, images):
        """Return means and log-variances, (batch, N_LATENTS) each."""
        return self.encoder(images).chunk(2, dim=1)

    def forward(self, images):
        """Return the logits of the pixels, one draw z, means and log-variances."""
        mean, logvar = self.encode(images)
        z = mean + torch.exp(0.5 * logvar) * torch.randn_like(mean)
        return self.decoder(z), z, mean, logvar


def as_images(gray):
    """Return gray levels as images in [0, 1]."""
    return gray.float() / 255


def standardized(codes):
    """Return the codes with mean 0 and variance 1 over the grid, by factor."""
    codes = codes.astype(np.float64)
    return (codes - codes.mean(axis=0)) / codes.std(axis=0)


def kl_of_prior(mean, logvar):
    """Return the KL divergence from N(0, 1) of each latent, (batch, N_LATENTS)."""
    return 0.5 * (mean**2 + logvar.exp() - logvar - 1)


def total_correlation(z, mean, logvar):
    """Return KL(q(z) || prod_i q(z_i)), q being the mixture of the batch, in nats."""
    difference = z[:, None] - mean
    log_density = -0.5 * (difference**2 / logvar.exp() + logvar + LOG_2PI)
    log_count = math.log(len(z))
    joint = log_density.sum(dim=2).logsumexp(dim=1) - log_count
    marginals = log_density.logsumexp(dim=1) - log_count
    return (joint - marginals.sum(dim=1)).mean()


def loss_terms(model, images, targets, recipe):
    """Return the terms of the loss by name, in nats per image (tie: no nats)."""
    logits, z, mean, logvar = model(images)
    pixels = F.binary_cross_entropy_with_logits(logits, images, reduction="none")
    terms = {
        "reconstruction": pixels.sum(dim=1).mean(),
        "kl": kl_of_prior(mean, logvar).sum(dim=1).mean(),
    }
    if recipe.total_correlation:
        terms["total_correlation"] = total_correlation(z, mean, logvar)
    if recipe.tie:
        # The expected distance of z: the mean alone could be right and z all noise.
        n_factors = targets.shape[1]
        distance = (mean[:, :n_factors] - targets) ** 2 + logvar[:, :n_factors].exp()
        terms["tie"] = distance.sum(dim=1).mean()
    return terms


def weighted(terms, recipe):
    weights = {
        "reconstruction": 1.0,
        "kl": recipe.beta,
        "total_correlation": recipe.total_correlation,
        "tie": recipe.tie,
    }
    return sum(weights[name] * term for name, term in terms.items())


def train(recipe, gray, targets, report):
    """Return the trained model and the mean loss terms of each epoch."""
    torch.manual_seed(recipe.seed)
    model = VAE()
    n_rows = len(gray)
    n_batches = n_rows // BATCH_SIZE
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LARGEST_LEARNING_RATE, total_steps=recipe.epochs * n_batches
    )
    history = []
    for epoch in range(recipe.epochs):
        sums = {}
        for batch in torch.randperm(n_rows)[: n_batches * BATCH_SIZE].split(BATCH_SIZE):
            images = as_images(gray[batch])
            terms = loss_terms(model, images, targets[batch], recipe)
            optimizer.zero_grad(set_to_none=True)
            weighted(terms, recipe).backward()
            optimizer.step()
            schedule.step()
            for name, term in terms.items():
                sums[name] = sums.get(name, 0.0) + term.item()
        history.append({name: total / n_batches for name, total in sums.items()})
        report(epoch, history[-1])
    return model, history


@torch.no_grad()
def posteriors(model, gray):
    """Return means and standard deviations of all rows, (n_rows, N_LATENTS) each."""
    batches = [model.encode(as_images(part)) for part in gray.split(1024)]
    mean, logvar = (torch.cat(parts) for parts in zip(*batches, strict=True))
    return mean.numpy(), torch.exp(0.5 * logvar).numpy()


def commit():
    """Return the commit of the checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() or "unknown"


def details(recipe, history):
    """Return what is known of a trained model, as plain values."""
    return {
        **asdict(recipe),
        "tied_factors": list(SPRITE_FACTORS) if recipe.tie else [],
        "batch_size": BATCH_SIZE,
        "largest_learning_rate": LARGEST_LEARNING_RATE,
        "n_threads": N_THREADS,
        "losses": history[-1],
        "history": history,
        "torch": torch.__version__,
        "processor": platform.machine(),
        "commit": commit(),
    }


def train_and_cache(name, gray, targets, folder):
    """Train one model and write its posteriors and details into the folder."""
    recipe, start = RECIPES[name], time.time()

    def report(epoch, terms):
        shown = "  ".join(f"{key} {value:.3f}" for key, value in terms.items())
        print(f"{name} {epoch} {time.time() - start:.0f} s  {shown}", flush=True)

    model, history = train(recipe, gray, targets, report)
    mean, std = posteriors(model, gray)
    np.savez(folder / f"{name}.npz", mean=mean, std=std)
    text = json.dumps(details(recipe, history), indent=1)
    (folder / f"{name}.json").write_text(text + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(RECIPES))
    parser.add_argument("--data-home", help="data home of scikit-learn")
    options = parser.parse_args()
    unknown = sorted(set(options.models) - set(RECIPES))
    if unknown:
        parser.error(f"no such models: {unknown}; there are {list(RECIPES)}.")
    torch.set_num_threads(N_THREADS)
    torch.use_deterministic_algorithms(True)
    folder = grid_folder(options.data_home)
    folder.mkdir(parents=True, exist_ok=True)
    gray, codes = make_sprites(dtype=np.uint8)
    gray = torch.from_numpy(gray)
    targets = torch.from_numpy(standardized(codes).astype(np.float32))
    for name in options.models or RECIPES:
        train_and_cache(name, gray, targets, folder)


if __name__ == "__main__":
    main()
