import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold, train_test_split
from sklearn.utils import _safe_indexing, check_random_state

from skdisent import GaussianPosterior

RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=(6, 3))
STD = RNG.uniform(0.1, 1, (6, 3))
FACTOR = np.tril(RNG.normal(size=(6, 3, 3))) + 2 * np.eye(3)
COVARIANCE = FACTOR @ np.swapaxes(FACTOR, 1, 2)

POSTERIORS = {
    "std": GaussianPosterior(MEAN, STD),
    "per row": GaussianPosterior(MEAN, covariance=COVARIANCE),
    "shared": GaussianPosterior(MEAN, covariance=COVARIANCE[0]),
    "point": GaussianPosterior(MEAN),
}
over_kinds = pytest.mark.parametrize("kind", POSTERIORS)


def parts(posterior):
    return posterior.mean, posterior.std, posterior.covariance


def assert_same(one, two):
    for a, b in zip(parts(one), parts(two), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert_array_equal(a, b)


@over_kinds
def test_it_looks_like_a_table(kind):
    posterior = POSTERIORS[kind]

    assert posterior.shape == (6, 3)
    assert posterior.ndim == 2
    assert len(posterior) == 6
    assert posterior.dtype == np.float64


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("std", "std"),
        ("per row", "covariance"),
        ("shared", "covariance"),
        ("point", "point encoder"),
    ],
)
def test_repr_is_short(kind, word):
    assert repr(POSTERIORS[kind]) == (
        f"GaussianPosterior(n_samples=6, n_latents=3, {word})"
    )


@over_kinds
def test_pickling_and_copying(kind):
    posterior = POSTERIORS[kind]

    assert_same(pickle.loads(pickle.dumps(posterior)), posterior)
    assert_same(copy.deepcopy(posterior), posterior)


def test_lists_and_float32_are_kept_as_they_are():
    posterior = GaussianPosterior(MEAN.astype(np.float32).tolist())
    single = GaussianPosterior(MEAN.astype(np.float32), STD.astype(np.float32))

    assert posterior.shape == (6, 3)
    assert single.dtype == np.float32
    assert single[:2].std.dtype == np.float32


@over_kinds
@pytest.mark.parametrize(
    "rows",
    [
        slice(1, 4),
        slice(None, None, -2),
        [3, 0, 3],
        np.array([-1, 2]),
        np.array([True, False, True, True, False, False]),
        [],
        np.array([], dtype=int),
    ],
    ids=str,
)
def test_rows(kind, rows):
    posterior = POSTERIORS[kind]
    key = np.array(rows, dtype=int) if isinstance(rows, list) else rows

    for found in (posterior[rows], posterior[rows, ...], posterior[rows, :]):
        assert_array_equal(found.mean, MEAN[key])
        if kind == "std":
            assert_array_equal(found.std, STD[key])
        elif kind == "per row":
            assert_array_equal(found.covariance, COVARIANCE[key])
        elif kind == "shared":
            assert_array_equal(found.covariance, COVARIANCE[0])
        else:
            assert found.std is None
            assert found.covariance is None


@over_kinds
@pytest.mark.parametrize(
    "columns", [slice(1, 3), [2, 0], np.array([False, True, False])], ids=str
)
def test_columns(kind, columns):
    posterior = POSTERIORS[kind]
    chosen = np.arange(3)[columns]

    for found in (
        posterior[:, columns],
        posterior[..., columns],
        posterior[..., slice(None), columns],
    ):
        assert_array_equal(found.mean, MEAN[:, chosen])
        if kind == "std":
            assert_array_equal(found.std, STD[:, chosen])
        elif kind == "per row":
            square = np.ix_(np.arange(6), chosen, chosen)
            assert_array_equal(found.covariance, COVARIANCE[square])
        elif kind == "shared":
            square = np.ix_(chosen, chosen)
            assert_array_equal(found.covariance, COVARIANCE[0][square])


@over_kinds
def test_rows_and_columns_together(kind):
    posterior = POSTERIORS[kind]

    # As two steps: never elementwise, as numpy pairs two lists.
    assert_same(posterior[[4, 1, 1], [2, 0, 1]], posterior[[4, 1, 1]][:, [2, 0, 1]])
    assert posterior[[4, 1], [2]].shape == (2, 1)


@pytest.mark.parametrize(
    "key",
    [
        0,
        np.int64(1),
        (0, 1),
        (slice(None), 1),
        None,
        "a",
        [0.0, 1.0],
        [[0, 1]],
        (slice(None), slice(None), slice(None)),
        (..., ...),
        [True, False],
        (slice(None), [True, False]),
        9.5,
        [7],
    ],
    ids=str,
)
@over_kinds
def test_what_is_no_row_or_column(kind, key):
    with pytest.raises(IndexError):
        POSTERIORS[kind][key]


@over_kinds
def test_scikit_learn_indexes_it(kind):
    posterior = POSTERIORS[kind]

    train, test = next(KFold(3).split(posterior))
    assert_same(_safe_indexing(posterior, test), posterior[test])
    first, second = train_test_split(posterior, test_size=2, random_state=0)
    assert (len(first), len(second)) == (4, 2)
    order = check_random_state(0).permutation(6)
    assert_same(second, posterior[order[:2]])


@over_kinds
def test_it_is_not_unpacked_and_not_an_array(kind):
    posterior = POSTERIORS[kind]

    with pytest.raises(TypeError):
        mean, std = posterior[:2]
    with pytest.raises(TypeError):
        iter(posterior)
    for convert in (np.asarray, np.array, np.square):
        with pytest.raises(TypeError, match=r"\.mean"):
            convert(posterior)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": MEAN[0]}, r"mean .*\(3,\)"),
        ({"mean": MEAN[None]}, r"mean .*\(1, 6, 3\)"),
        ({"mean": MEAN, "std": STD[0]}, r"std .*\(3,\)"),
        ({"mean": MEAN, "std": STD.T}, r"std .*\(3, 6\)"),
        ({"mean": MEAN, "std": STD[:, :1]}, r"std .*\(6, 1\)"),
        ({"mean": MEAN, "std": 1.0}, r"std .*\(\)"),
        ({"mean": MEAN, "covariance": STD}, r"covariance .*\(6, 3\)"),
        ({"mean": MEAN, "covariance": COVARIANCE[:5]}, r"covariance .*\(5, 3, 3\)"),
        ({"mean": MEAN, "std": STD, "covariance": COVARIANCE}, "both"),
    ],
)
def test_shapes_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussianPosterior(**arguments)


def test_masked_arrays_are_refused():
    with pytest.raises(TypeError, match="mean is a masked array"):
        GaussianPosterior(np.ma.masked_array(MEAN, MEAN > 1))
    with pytest.raises(TypeError, match="std is a masked array"):
        GaussianPosterior(MEAN, np.ma.masked_array(STD, STD > 1))


def test_from_logvar():
    posterior = GaussianPosterior.from_logvar(MEAN, np.log(STD**2))

    assert_allclose(posterior.std, STD, rtol=1e-14)
    # In float64 also where the network computes in half precision.
    half = GaussianPosterior.from_logvar(MEAN, np.full((6, 3), -20, dtype=np.float16))
    assert_allclose(half.std, np.exp(-10.0), rtol=1e-15)
    assert np.isinf(GaussianPosterior.from_logvar(MEAN, STD * 0 + 2e4).std).all()


def test_from_cholesky():
    posterior = GaussianPosterior.from_cholesky(MEAN, FACTOR)
    shared = GaussianPosterior.from_cholesky(MEAN, FACTOR[0])

    assert_allclose(posterior.covariance, COVARIANCE, rtol=1e-14)
    assert shared.covariance.shape == (3, 3)
    assert_allclose(shared.covariance, COVARIANCE[0], rtol=1e-14)
    for wrong in (FACTOR[0, 0], FACTOR[None], FACTOR[:3]):
        with pytest.raises(ValueError, match="scale_tril|covariance"):
            GaussianPosterior.from_cholesky(MEAN, wrong)


@over_kinds
def test_concatenate_undoes_the_batches(kind):
    posterior = POSTERIORS[kind]
    batches = (posterior[start : start + 4] for start in (0, 4))

    assert_same(GaussianPosterior.concatenate(batches), posterior)


def test_concatenate_of_unequal_shared_covariances():
    one = GaussianPosterior(MEAN, covariance=COVARIANCE[0])
    two = GaussianPosterior(MEAN[:2], covariance=COVARIANCE[1])

    joined = GaussianPosterior.concatenate([one, two])

    assert joined.covariance.shape == (8, 3, 3)
    assert_array_equal(joined.covariance[5], COVARIANCE[0])
    assert_array_equal(joined.covariance[6], COVARIANCE[1])


def test_concatenate_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="empty"):
        GaussianPosterior.concatenate([])
    with pytest.raises(ValueError, match="covariance.* std|std.* covariance"):
        GaussianPosterior.concatenate([POSTERIORS["std"], POSTERIORS["shared"]])
    with pytest.raises(ValueError, match="latents"):
        GaussianPosterior.concatenate([POSTERIORS["std"], POSTERIORS["std"][:, :2]])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("std", STD),
        ("per row", np.sqrt(np.diagonal(COVARIANCE, axis1=1, axis2=2))),
        ("shared", np.tile(np.sqrt(np.diag(COVARIANCE[0])), (6, 1))),
        ("point", np.zeros((6, 3))),
    ],
)
def test_marginal_std(kind, expected):
    assert_allclose(POSTERIORS[kind].marginal_std, expected, rtol=1e-15)
    assert POSTERIORS[kind]._is_point == (kind == "point")


def test_a_std_of_zero_everywhere_is_a_point_encoder():
    assert GaussianPosterior(MEAN, np.zeros((6, 3)))._is_point
    assert not GaussianPosterior(MEAN, STD * (np.arange(3) == 1))._is_point
