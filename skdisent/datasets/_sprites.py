"""Images of sprites, drawn from five known factors."""

from math import pi, prod
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from skdisent._sklearn import Interval, validate_params

__all__ = ["SPRITE_FACTORS", "make_sprites"]

SPRITE_FACTORS = ("shape", "scale", "orientation", "x", "y")

# In units of the image's side. No shape reaches beyond 0.8 of the side of the square
# of its area (the ellipse's tip, 0.798), so that a margin of 0.8 * 0.25 holds them all.
_LARGEST_SIDE = 0.25
_MARGIN = 0.2
_CELLS_PER_PIXEL = 10
_BATCH_SIZE = 256


# Functions that are 0 on an outline around the area 1 with its centroid at (0, 0),
# negative inside, and nearly linear across the outline.


def _square(x, y):
    return np.maximum(np.abs(x), np.abs(y)) - 0.5


def _ellipse(x, y):
    # Twice as long as wide.
    return np.hypot(x * np.sqrt(pi / 2), y * np.sqrt(2 * pi)) - 1


def _heart(x, y):
    # A square on its tip, with a half disc on each of its two upper sides.
    side = 1 / np.sqrt(1 + pi / 4)
    centroid = side / np.sqrt(2) * (pi / 8 + 1 / 6) / (1 + pi / 4)
    x, y = np.abs(x), y + centroid
    square = (x + np.abs(y)) / np.sqrt(2) - side / 2
    disc = np.hypot(x - side / np.sqrt(8), y - side / np.sqrt(8)) - side / 2
    return np.minimum(square, disc)


_SHAPES = (_square, _ellipse, _heart)


def _draw(shape, scale, angle, n_cells):
    """Return one sprite, centred and fine, as the covered part of each cell."""
    cell = 2 * _MARGIN / n_cells / (scale * _LARGEST_SIDE)
    x = (np.arange(n_cells) - (n_cells - 1) / 2) * cell
    y = -x[:, np.newaxis]
    cos, sin = np.cos(angle), np.sin(angle)
    level = _SHAPES[shape](cos * x + sin * y, cos * y - sin * x)
    # How far the outline is, in cells along the steeper axis. Along the normal the area
    # would change with the orientation, by up to 0.6 %. The floor is for the inside of
    # a shape, where the slope may vanish and only the sign of the level counts.
    slope = np.abs(np.gradient(level)).max(axis=0, initial=1e-9)
    covered = np.clip(0.5 - level / slope, 0, 1)
    # Turns that a shape's symmetry undoes differ by rounding; their images must not.
    return covered.round(6).astype(np.float32)


def _overlaps(centres, image_size, n_cells):
    """Return the length, in pixels, that each pixel shares with each cell.

    Parameters
    ----------
    centres : ndarray of shape (n_positions,)
        Where the sprite's centre lies along one axis, in units of the image's side.
    image_size : int
        Number of pixels along the axis.
    n_cells : int
        Number of cells along the axis.

    Returns
    -------
    ndarray of shape (n_positions, image_size, n_cells)
    """
    edges = np.linspace(-_MARGIN, _MARGIN, n_cells + 1)
    edges = (centres[:, np.newaxis, np.newaxis] + edges) * image_size
    # The part of each pixel that lies before each edge.
    before = np.clip(edges - np.arange(image_size)[:, np.newaxis], 0, 1)
    return np.diff(before).astype(np.float32)


def _batches(sprites):
    """Return the rows of equal sprites, in batches of bounded size."""
    order = np.argsort(sprites, kind="stable")
    changes = np.flatnonzero(np.diff(sprites[order])) + 1
    cuts = np.union1d(changes, np.arange(_BATCH_SIZE, len(order), _BATCH_SIZE))
    return np.split(order, cuts)


def _spread(low, high, n):
    return np.linspace(low, high, n) if n > 1 else np.array([(low + high) / 2])


def _levels(n_levels, max_angle):
    """Return the values that the codes of each factor stand for."""
    n_shapes, n_scales, n_angles, n_x, n_y = n_levels
    return [
        np.arange(n_shapes, dtype=float),
        _spread(0.5, 1, n_scales),
        np.arange(n_angles) * (max_angle / n_angles),
        _spread(_MARGIN, 1 - _MARGIN, n_x),
        _spread(_MARGIN, 1 - _MARGIN, n_y),
    ]


def _render(codes, levels, image_size, dtype):
    # Moving a fine sprite over coarse pixels by any amount is exact resampling by area,
    # and separable: image = rows @ sprite @ columns.T.
    n_cells = 2 * round(_MARGIN * image_size * _CELLS_PER_PIXEL)
    columns, rows = (_overlaps(c, image_size, n_cells) for c in levels[3:])
    sprites = np.ravel_multi_index(codes[:, :3].T, [len(v) for v in levels[:3]])
    X = np.empty((len(codes), image_size, image_size), dtype=dtype)
    for batch in _batches(sprites):
        shape, scale, angle, _, _ = codes[batch[0]]
        sprite = _draw(shape, levels[1][scale], levels[2][angle], n_cells)
        x_codes, x = np.unique(codes[batch, 3], return_inverse=True)
        moved = sprite @ columns[x_codes].transpose(0, 2, 1)
        images = rows[codes[batch, 4]] @ moved[x]
        np.minimum(images, 1, out=images)
        X[batch] = np.rint(255 * images) if X.dtype == np.uint8 else images
    return X.reshape(len(codes), image_size**2)


def _check_n_levels(n_levels):
    counts = tuple(n_levels)
    if len(counts) != len(SPRITE_FACTORS) or not all(
        isinstance(n, Integral) and n >= 1 for n in counts
    ):
        raise ValueError(
            f"n_levels must be {len(SPRITE_FACTORS)} integers of at least 1, one for "
            f"each of {', '.join(SPRITE_FACTORS)}; got {n_levels!r}."
        )
    if counts[0] > len(_SHAPES):
        raise ValueError(
            f"n_levels[0] must be at most {len(_SHAPES)}, the number of shapes; got "
            f"{counts[0]}."
        )
    return counts


def _grid_rows(n_samples, n_grid, random_state):
    """Return the whole grid in order, or some of its rows at random."""
    if n_samples is None:
        return np.arange(n_grid)
    if n_samples > n_grid:
        raise ValueError(
            f"n_samples={n_samples} images cannot be drawn without replacement from a "
            f"grid of {n_grid}: pass n_samples=None for all of them or raise n_levels."
        )
    return check_random_state(random_state).permutation(n_grid)[:n_samples]


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left"), None],
        "image_size": [Interval(Integral, 1, None, closed="left")],
        "n_levels": ["array-like"],
        "max_angle": [Interval(Real, 0, 2 * pi, closed="right")],
        "dtype": "no_validation",
        "return_values": ["boolean"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_sprites(
    n_samples=None,
    *,
    image_size=32,
    n_levels=(3, 6, 20, 16, 16),
    max_angle=2 * pi,
    dtype=np.float32,
    return_values=False,
    random_state=None,
):
    """Draw grayscale images of sprites from five independent factors.

    The factors are those of dSprites [1]_, in its order, every combination of their
    levels being one image. A pixel is the share of its area that the sprite covers:
    an image moves with the sprite by any part of a pixel, and its pixels sum to the
    sprite's area wherever the sprite is.

    ============= ============================================ =====================
    factor        values                                       in units of
    ============= ============================================ =====================
    shape         0 square, 1 ellipse (2 : 1), 2 heart
    scale         0.5 to 1, ends included                      a quarter of the side
    orientation   0 to `max_angle`, end excluded               radians
    x             0.2 to 0.8, ends included, left to right     the side
    y             0.2 to 0.8, ends included, top to bottom     the side
    ============= ============================================ =====================

    "Side" is the image's. All shapes of one scale have the same area, that of a square
    of `scale` quarters of the side, and lie wholly inside the image, their centroid at
    (x, y). They turn counter-clockwise from an upright heart and a lying ellipse. A
    factor with one level keeps the middle of its range (the square, angle 0).

    Parameters
    ----------
    n_samples : int, default=None
        Number of images, drawn at random from the grid of all combinations, without
        replacement. None gives the whole grid, the last factor changing fastest.
    image_size : int, default=32
        Number of pixels along each side of the image.
    n_levels : array-like of shape (5,), default=(3, 6, 20, 16, 16)
        Number of levels of shape (at most 3), scale, orientation, x and y.
    max_angle : float, default=2 * pi
        The orientations are `n_levels[2]` equal steps of this angle, in (0, 2 pi].
        See Notes.
    dtype : {numpy.float32, numpy.uint8}, default=numpy.float32
        Type of the images: float32 in [0, 1], or gray levels 0 to 255 in a quarter of
        the memory (94 MB for the default grid).
    return_values : bool, default=False
        Whether to return `values` too.
    random_state : int, RandomState instance or None, default=None
        Determines which images are drawn. Not used for the whole grid. Pass an int
        for reproducible output across multiple function calls.

    Returns
    -------
    X : ndarray of shape (n_samples, image_size ** 2)
        The images, row by row from the top: ``X[i].reshape(image_size, image_size)``.
    y : ndarray of shape (n_samples, 5)
        The code of each factor's level, from 0, in the order of `SPRITE_FACTORS`.
    values : ndarray of shape (n_samples, 5)
        What the codes stand for: shape, scale, angle in radians, x and y. Only
        returned if `return_values` is True.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or `n_samples` is more than the grid has.

    Notes
    -----
    A square looks the same after a quarter turn, an ellipse after half a turn. With
    the default full turn, as in dSprites, several orientations of these shapes are
    then one image, equal in every pixel, and not even a perfect encoder tells them
    apart: of 20 orientations a square shows 5 and an ellipse 10. With
    ``max_angle=numpy.pi / 2`` no two images of the grid are equal, and a metric that
    is normalized by the entropy of the orientation can reach its bound.

    References
    ----------
    .. [1] L. Matthey, I. Higgins, D. Hassabis and A. Lerchner, "dSprites:
       Disentanglement testing Sprites dataset", 2017.

    Examples
    --------
    >>> from skdisent.datasets import SPRITE_FACTORS, make_sprites
    >>> X, y = make_sprites(1000, random_state=0)
    >>> X.shape, y.shape
    ((1000, 1024), (1000, 5))
    >>> SPRITE_FACTORS
    ('shape', 'scale', 'orientation', 'x', 'y')

    One square in the middle of an image of 16 by 16, its side 0.75 * 16 / 4 = 3
    pixels, its edges half-way through pixels:

    >>> X, y = make_sprites(image_size=16, n_levels=(1, 1, 1, 1, 1))
    >>> X.reshape(16, 16)[6:10, 6:10].round(2)
    array([[0.25, 0.5 , 0.5 , 0.25],
           [0.5 , 1.  , 1.  , 0.5 ],
           [0.5 , 1.  , 1.  , 0.5 ],
           [0.25, 0.5 , 0.5 , 0.25]], dtype=float32)
    """
    n_levels = _check_n_levels(n_levels)
    if not any(np.dtype(allowed) == dtype for allowed in (np.float32, np.uint8)):
        raise ValueError(f"dtype must be float32 or uint8, got {dtype!r}.")
    grid_rows = _grid_rows(n_samples, prod(n_levels), random_state)
    codes = np.stack(np.unravel_index(grid_rows, n_levels), axis=1)
    levels = _levels(n_levels, max_angle)
    X = _render(codes, levels, image_size, dtype)
    if not return_values:
        return X, codes
    values = [level[code] for level, code in zip(levels, codes.T, strict=True)]
    return X, codes, np.stack(values, axis=1)
