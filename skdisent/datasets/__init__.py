"""Data whose factors of variation are known."""

from skdisent.datasets._posteriors import SPRITE_MODELS, load_sprite_posteriors
from skdisent.datasets._sprites import SPRITE_FACTORS, make_sprites

__all__ = [
    "SPRITE_FACTORS",
    "SPRITE_MODELS",
    "load_sprite_posteriors",
    "make_sprites",
]
