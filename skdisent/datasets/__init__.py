"""Data whose factors of variation are known."""

from skdisent.datasets._sprites import SPRITE_FACTORS, make_sprites

__all__ = ["SPRITE_FACTORS", "make_sprites"]
