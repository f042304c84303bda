import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdisent.datasets import SPRITE_FACTORS, make_sprites

# A sprite is drawn on cells of a tenth of a pixel, their coverage rounded to 6 digits
# (5e-7); a pixel is then two float32 sums of some 10 cells: 2 * 10 * 6e-8.
PIXEL_TOLERANCE = 2e-6

# Straight edges are covered exactly except next to a corner, where the slope that a
# cell reads from its neighbours mixes two edges: at most 9 cells at each of 4 corners.
# A curved edge is off by its bend across a cell, in all by at most sqrt(2) times the
# turning 2 pi of the outline, 9 cells. So the area is right within 36 cells, in pixels:
AREA_TOLERANCE = 36 * 0.1**2


def images_of(X):
    image_size = round(X.shape[1] ** 0.5)
    return X.reshape(-1, image_size, image_size)


def one_sprite(shape, angle_code=0, n_angles=4, image_size=32, **params):
    """Return the image of the shape at the centre, at a middle scale."""
    X, y = make_sprites(
        image_size=image_size, n_levels=(3, 1, n_angles, 1, 1), **params
    )
    (row,) = np.flatnonzero((y[:, 0] == shape) & (y[:, 2] == angle_code))
    return images_of(X)[row]


def test_a_square_covers_pixels_by_their_area():
    X, y = make_sprites(image_size=8, n_levels=(1, 2, 1, 2, 1))

    assert_array_equal(y[:, [1, 3]], [[0, 0], [0, 1], [1, 0], [1, 1]])
    # Sides of 1 and 2 pixels, centres at x = 0.2 * 8 = 1.6 or 6.4 and y = 4.
    expected = np.zeros((4, 8, 8))
    expected[0, 3:5, 1:3] = 0.45, 0.05
    expected[1, 3:5, 5:7] = 0.05, 0.45
    expected[2, 3:5, 0:3] = 0.4, 1, 0.6
    expected[3, 3:5, 5:8] = 0.6, 1, 0.4
    assert_allclose(images_of(X), expected, atol=PIXEL_TOLERANCE)


@pytest.mark.parametrize("image_size", [32, 48])
def test_pixels_sum_to_the_closed_form_of_the_area(image_size):
    n_levels = (3, 3, 8, 3, 3)
    X, _, values = make_sprites(
        image_size=image_size, n_levels=n_levels, return_values=True
    )

    side = values[:, 1] * image_size / 4
    square = side**2
    ellipse = np.pi * (side * np.sqrt(2 / np.pi)) * (side * np.sqrt(1 / (2 * np.pi)))
    heart_square = side / np.sqrt(1 + np.pi / 4)
    heart = heart_square**2 + 2 * (np.pi * (heart_square / 2) ** 2 / 2)
    area = np.choose(values[:, 0].astype(int), [square, ellipse, heart])
    total = X.sum(axis=1, dtype=float)
    assert_allclose(total, area, rtol=0, atol=AREA_TOLERANCE)


def test_long_oblique_edges_lose_no_area():
    # An error at every cell of the outline, 2250 of them here, would add up.
    X, _ = make_sprites(image_size=300, n_levels=(1, 1, 8, 1, 1))

    total = X.sum(axis=1, dtype=float)
    assert_allclose(total, (0.75 * 300 / 4) ** 2, rtol=0, atol=AREA_TOLERANCE)


def test_the_area_is_the_same_at_every_position_up_to_the_margins():
    X, _ = make_sprites(n_levels=(3, 2, 5, 7, 7))

    total = X.sum(axis=1, dtype=float).reshape(-1, 7 * 7)
    # A sprite meets at most 14 by 14 pixels: it is no longer than 2 * 0.2 * 32 = 12.8.
    assert np.ptp(total, axis=1).max() <= 2 * 14**2 * PIXEL_TOLERANCE


def test_the_centroid_lies_at_the_position():
    n_levels = (3, 2, 5, 2, 2)
    X, _, values = make_sprites(image_size=96, n_levels=n_levels, return_values=True)

    centre = np.arange(96) + 0.5
    images = images_of(X)
    total = images.sum(axis=(1, 2), dtype=float)
    x = images.sum(axis=1, dtype=float) @ centre / total
    y = images.sum(axis=2, dtype=float) @ centre / total
    # Moving the mass of a pixel to its centre moves a chord's mean by at most 1/8 pixel
    # over its length, a heart has at most two chords on a line, and a sprite is at most
    # 1.6 sides high: 2 * 1.6 * side / 8 / area. Misdrawn area counts by its distance
    # from the centre, at most 0.8 sides.
    side = values[:, 1] * 96 / 4
    tolerance = 0.4 / side + AREA_TOLERANCE * 0.8 * side / side**2
    assert np.all(np.abs(x - 96 * values[:, 3]) <= tolerance)
    assert np.all(np.abs(y - 96 * values[:, 4]) <= tolerance)


@pytest.mark.parametrize("axis", ["x", "y"])
def test_half_a_pixel_changes_the_image_and_a_whole_one_shifts_it(axis):
    # 25 levels from 0.2 to 0.8 of 20 pixels are half a pixel apart.
    n_levels = (3, 1, 3, 25, 1) if axis == "x" else (3, 1, 3, 1, 25)
    X, _ = make_sprites(image_size=20, n_levels=n_levels)

    moved = images_of(X).reshape(9, 25, 20, 20)
    if axis == "y":
        moved = moved.transpose(0, 1, 3, 2)
    assert_allclose(
        moved[:, 2:, :, 1:], moved[:, :-2, :, :-1], atol=2 * PIXEL_TOLERANCE
    )
    # Two sprites share less the further they are apart, until they are disjoint: for
    # 5 steps all of them overlap, the ellipse being 0.8 * 3.75 = 3 pixels thick.
    distance = np.abs(moved[:, :6] - moved[:, :1]).sum(axis=(2, 3), dtype=float)
    assert np.all(np.diff(distance, axis=1) > 0.5)


@pytest.mark.parametrize("shape", [0, 1, 2])
def test_orientation_turns_counter_clockwise(shape):
    upright, *turned = (one_sprite(shape, code) for code in range(4))

    for quarter_turns, image in enumerate(turned, start=1):
        expected = np.rot90(upright, quarter_turns)
        assert_allclose(image, expected, atol=2 * PIXEL_TOLERANCE)


def test_an_ellipse_lies_and_an_eighth_of_a_turn_points_it_up_and_right():
    lying = one_sprite(1)
    assert_array_equal(np.flatnonzero(lying.sum(axis=0)), np.arange(11, 21))
    assert_array_equal(np.flatnonzero(lying.sum(axis=1)), np.arange(13, 19))

    oblique = one_sprite(1, 1, n_angles=8)
    assert oblique[:16, 16:].sum() > 2 * oblique[:16, :16].sum()


def test_a_heart_stands_on_its_tip():
    heart = one_sprite(2, image_size=64)

    assert_allclose(heart, heart[:, ::-1], atol=2 * PIXEL_TOLERANCE)
    covered = heart > 0.5
    first_row = covered.argmax(axis=0)
    last_row = 63 - covered[::-1].argmax(axis=0)
    # Side of the square on its tip: 12 / sqrt(1 + pi / 4) = 8.98. From the notch up to
    # the tops of the half discs: 8.98 * (0.5 - 1 / sqrt(8)) = 1.3; down to the tip:
    # 8.98 * sqrt(2) = 12.7. Each is known here to within a pixel at both ends.
    assert 1 <= first_row[32] - first_row[28] <= 3
    assert 11 <= last_row[32] - first_row[32] <= 14
    assert last_row[32] == last_row[covered.any(axis=0)].max()


def test_the_grid_holds_every_combination_in_order():
    X, y = make_sprites(image_size=16, n_levels=(2, 1, 2, 1, 2))

    assert X.shape == (8, 256)
    assert X.dtype == np.float32
    assert X.min() == 0
    assert X.max() == 1
    expected = [
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 0, 1, 0, 0],
        [0, 0, 1, 0, 1],
        [1, 0, 0, 0, 0],
        [1, 0, 0, 0, 1],
        [1, 0, 1, 0, 0],
        [1, 0, 1, 0, 1],
    ]
    assert_array_equal(y, expected)
    assert np.issubdtype(y.dtype, np.integer)


def test_the_default_grid_is_that_of_the_documentation():
    _, y = make_sprites(500, image_size=4, random_state=0)

    assert SPRITE_FACTORS == ("shape", "scale", "orientation", "x", "y")
    assert_array_equal(y.max(axis=0), [2, 5, 19, 15, 15])
    with pytest.raises(ValueError, match="n_samples=92161 .* grid of 92160"):
        make_sprites(92_161)


def test_a_random_part_is_rows_of_the_grid():
    n_levels = (3, 2, 4, 3, 5)
    X, y = make_sprites(n_levels=n_levels)
    X_part, y_part = make_sprites(100, n_levels=n_levels, random_state=0)

    rows = np.ravel_multi_index(y_part.T, n_levels)
    assert len(np.unique(rows)) == 100
    assert np.any(np.diff(rows) < 0)
    assert_array_equal(X_part, X[rows])
    assert_array_equal(y_part, y[rows])


def test_the_random_state_decides_which_part():
    X, y = make_sprites(50, random_state=0)
    X_same, y_same = make_sprites(50, random_state=np.random.RandomState(0))
    _, y_other = make_sprites(50, random_state=1)

    assert_array_equal(X, X_same)
    assert_array_equal(y, y_same)
    assert not np.array_equal(y, y_other)


def test_more_positions_than_a_batch_holds():
    X, y = make_sprites(image_size=10, n_levels=(1, 1, 1, 20, 20))

    # Turning the image of a square over the diagonal exchanges its x and y.
    images = images_of(X).reshape(20, 20, 10, 10)
    assert_allclose(images, images.transpose(1, 0, 3, 2), atol=2 * PIXEL_TOLERANCE)
    assert len(np.unique(X, axis=0)) == 400


def test_values_are_what_the_codes_stand_for():
    _, y, values = make_sprites(
        image_size=4, n_levels=(3, 3, 4, 4, 1), return_values=True
    )

    expected = [
        [0.0, 1.0, 2.0],
        [0.5, 0.75, 1.0],
        [0.0, np.pi / 2, np.pi, 3 * np.pi / 2],
        [0.2, 0.4, 0.6, 0.8],
        [0.5],
    ]
    for codes, column, levels in zip(y.T, values.T, expected, strict=True):
        assert_allclose(column, np.array(levels)[codes], rtol=1e-15)


def test_a_full_turn_repeats_symmetric_shapes_and_a_quarter_turn_nothing():
    n_levels = (3, 6, 12, 1, 1)
    X, _ = make_sprites(n_levels=n_levels)
    distinct = [len(np.unique(part, axis=0)) for part in np.split(X, 3)]
    assert distinct == [6 * 3, 6 * 6, 6 * 12]

    X, _ = make_sprites(n_levels=n_levels, max_angle=np.pi / 2)
    assert len(np.unique(X, axis=0)) == len(X)


def test_uint8_images_are_gray_levels():
    X, y = make_sprites(200, random_state=0)
    X_gray, y_gray = make_sprites(200, dtype=np.uint8, random_state=0)

    assert X_gray.dtype == np.uint8
    assert_array_equal(X_gray, np.rint(255 * X))
    assert_array_equal(y_gray, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_samples": 0}, "The 'n_samples' parameter of make_sprites must be"),
        ({"n_samples": 13, "n_levels": (3, 1, 4, 1, 1)}, "n_samples=13 .* grid of 12"),
        ({"image_size": 0}, "The 'image_size' parameter of make_sprites must be"),
        ({"image_size": 8.0}, "The 'image_size' parameter of make_sprites must be"),
        ({"n_levels": 3}, "The 'n_levels' parameter of make_sprites must be"),
        ({"n_levels": (3, 6, 20, 16)}, "n_levels must be 5 integers of at least 1"),
        ({"n_levels": (3, 6, 0, 16, 16)}, "one for each of shape, scale, orientation"),
        ({"n_levels": (3, 6, 2.0, 16, 16)}, "n_levels must be 5 integers"),
        ({"n_levels": (4, 6, 20, 16, 16)}, r"n_levels\[0\] must be at most 3"),
        ({"max_angle": 0}, "The 'max_angle' parameter of make_sprites must be"),
        ({"max_angle": 360}, "The 'max_angle' parameter of make_sprites must be"),
        ({"dtype": np.float64}, "dtype must be float32 or uint8, got .*float64"),
        ({"dtype": "gray"}, "dtype must be float32 or uint8, got 'gray'"),
        ({"dtype": None}, "dtype must be float32 or uint8, got None"),
        ({"return_values": "yes"}, "The 'return_values' parameter of make_sprites"),
        ({"random_state": "0"}, "The 'random_state' parameter of make_sprites must be"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        make_sprites(**params)
