import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdisent import (
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    WSEPIN,
    FactorPosterior,
    GaussianPosterior,
    Informativeness,
)
from skdisent._reading import assign_arguments, read_sample
from skdisent.exceptions import DisentanglementWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

N = 12
rng = np.random.default_rng(0)
Z_MEAN = rng.normal(size=(N, 2))
Z_STD = rng.uniform(0.1, 1, size=(N, 2))
Y = np.tile([0, 1, 2], 4)
COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.5]])


def with_one(array, value, at=(3, 1)):
    """Return a copy with one entry replaced."""
    array = np.array(array, dtype=object if isinstance(value, str) else float)
    array[at] = value
    return array


def read(Z_mean=Z_MEAN, Z_std=None, y=None, sample_weight=None):
    """Return the sample as a metric without factors reads it."""
    metric = Informativeness()
    return read_sample(metric, Z_mean, Z_std, y, sample_weight, None, reset=True)


# ------------------------------------------------------- two positional arguments


def test_second_argument_after_a_posterior_is_y():
    posterior = GaussianPosterior(Z_MEAN, Z_STD)
    for metric in (RMIG(), Informativeness()):
        expected = metric.fit(Z_MEAN, Z_STD, Y).value_
        assert metric.fit(posterior, Y).value_ == expected
        assert metric.fit(posterior, y=Y).value_ == expected
        assert metric.score(posterior, Y) == expected


def test_a_posterior_refuses_a_second_std():
    posterior = GaussianPosterior(Z_MEAN, Z_STD)
    with pytest.raises(ValueError, match="std given twice.*Drop Z_std"):
        RMIG().fit(posterior, Z_STD, Y)
    with pytest.raises(ValueError, match="std given twice"):
        Informativeness().fit(posterior, Z_STD, Y)


@pytest.mark.parametrize(
    "y",
    [
        Y,
        Y.tolist(),
        Y[:, None],
        np.column_stack([Y, Y % 2]),  # of Z_mean's shape, but integers
        np.column_stack([Y, Y % 2]).astype(float),  # integer-valued
        np.column_stack([Y / 3, Y % 2]),  # of Z_mean's shape, one column integer
        np.array(["oval", "heart", "square"])[Y],
        FactorPosterior([Y, Y % 2]),
        [np.eye(3)[Y], np.eye(2)[Y % 2]],
    ],
    ids=range(9),
)
def test_second_argument_of_a_metric_that_needs_y_is_y(y):
    assert RMIG().fit(Z_MEAN, y).value_ == RMIG().fit(Z_MEAN, y=y).value_


def test_a_std_in_the_place_of_y_is_asked_back():
    with pytest.raises(ValueError, match=r"Is this Z_std\? Pass y as well"):
        RMIG().fit(Z_MEAN, Z_STD)
    with pytest.raises(ValueError, match=r"Is this Z_std\?"):
        JEMMIG().fit(Z_MEAN, pd.DataFrame(Z_STD))
    for std in (np.full(Z_MEAN.shape, 0.1), np.round(Z_STD, 1)):  # few values
        with pytest.raises(ValueError, match=r"Is this Z_std\?"):
            RMIG().fit(Z_MEAN, std)
    # What no std can be is y: negative numbers, or one column that is discrete.
    assert RMIG().fit(Z_MEAN, -Z_STD).value_ == RMIG().fit(Z_MEAN, y=-Z_STD).value_
    half = np.column_stack([Z_STD[:, 0], Y])
    assert RMIG().fit(Z_MEAN, half).value_ == RMIG().fit(Z_MEAN, y=half).value_
    assert RMIG().fit(Z_MEAN, y=Z_STD).factor_discretizers_[0] is not None


@pytest.mark.parametrize(
    "Z_std",
    [
        Z_STD,
        Z_STD.tolist(),
        pd.DataFrame(Z_STD),
        pl.DataFrame(Z_STD),
        Z_STD.astype(object),
    ],
    ids=["array", "list", "pandas", "polars", "object"],
)
def test_second_argument_of_a_metric_without_y_is_a_std_by_its_shape(Z_std):
    expected = MISJED().fit(Z_MEAN, Z_std=Z_STD).value_
    assert MISJED().fit(Z_MEAN, Z_std).value_ == expected
    assert MISJED().fit(Z_MEAN, Z_STD).score(Z_MEAN, Z_std) == -expected


def test_integers_of_the_shape_of_the_means_are_a_std():
    ones = np.ones((N, 2), dtype=int)
    expected = MISJED().fit(Z_MEAN, Z_std=ones.astype(float)).value_
    assert MISJED().fit(Z_MEAN, ones).value_ == expected


@pytest.mark.parametrize(
    "y",
    [
        Y,
        Y.tolist(),
        -Y,
        Y.astype(object),
        Z_STD[:, 0],
        pd.Series(Y),
        np.array(["oval", "heart", "square"])[Y],
        np.array([["oval", "red"]] * N),
        np.array([["oval", 1]] * N, dtype=object),
        pd.DataFrame({"shape": ["oval"] * N, "hue": Y}),
        Y.astype("M8[D]"),
        FactorPosterior([Y]),
    ],
    ids=range(12),
)
def test_second_argument_of_a_metric_without_y_is_y_where_it_cannot_be_a_std(y):
    assert MISJED().fit(Z_MEAN, y).value_ == MISJED().fit(Z_MEAN).value_


@pytest.mark.parametrize(
    ("second", "what"),
    [
        (Z_STD.T, r"shape \(2, 12\), where Z_mean has \(12, 2\)"),
        (Z_STD[:, :1], r"shape \(12, 1\)"),
        (Z_STD[0], r"shape \(2,\)"),
        (Z_STD[None], r"shape \(1, 12, 2\)"),
        (Z_STD[:-1].tolist(), r"shape \(11, 2\)"),
        (0.1, r"shape \(\)"),
        ("std.npy", r"shape \(\)"),
        (Z_STD[:-1].astype(object), r"shape \(11, 2\)"),
        (Z_STD[:, :1] + 1j, r"shape \(12, 1\)"),
        (np.log(Z_STD), r"negative values; a std from log-variances is exp"),
        ([np.eye(3)[Y], np.eye(3)[Y]], r"shape \(2, 12, 3\)"),
    ],
)
def test_a_second_argument_that_could_be_a_mistaken_std_is_never_dropped(second, what):
    with pytest.raises(
        ValueError, match=f"neither Z_std nor y: pass it by name.*{what}"
    ):
        MISJED().fit(Z_MEAN, second)


def test_missing_or_complex_std_is_a_std_and_refused_as_one():
    with pytest.raises(ValueError, match="Z_std.*contains NaN"):
        MISJED().fit(Z_MEAN, with_one(Z_STD, np.nan))
    with pytest.raises(ValueError, match="Z_std.*contains NaN"):
        MISJED().fit(Z_MEAN, with_one(Z_STD, np.nan).astype(object))
    with pytest.raises(TypeError, match="Z_std cannot be used.*NAType"):
        MISJED().fit(Z_MEAN, pd.DataFrame(Z_STD, dtype="Float64").mask(Z_STD > 0.9))
    with pytest.raises(ValueError, match="Z_std cannot be used: Complex data"):
        MISJED().fit(Z_MEAN, Z_STD + 0j)


def test_three_arguments_stay_where_they_are():
    assert assign_arguments("Z", "std", "y", True) == ("Z", "std", "y")
    assert assign_arguments("Z", "std", "y", False) == ("Z", "std", "y")
    assert assign_arguments("Z", None, "y", True) == ("Z", None, "y")
    assert assign_arguments("Z", None, None, False) == ("Z", None, None)


def test_y_is_required_by_name_of_the_metric():
    for metric in (RMIG(), JEMMIG()):
        name = type(metric).__name__
        message = f"{name} estimator requires y to be passed, but the target y is None"
        with pytest.raises(ValueError, match=message):
            metric.fit(Z_MEAN)
        with pytest.raises(ValueError, match=message):
            metric.fit(GaussianPosterior(Z_MEAN, Z_STD))


def test_a_posterior_is_no_array_of_std():
    with pytest.raises(TypeError, match="Z_std.*a GaussianPosterior is not one array"):
        MISJED().fit(Z_MEAN, GaussianPosterior(Z_MEAN))
    with pytest.raises(TypeError, match=r"y is a GaussianPosterior: wrap.*FactorPost"):
        RMIG().fit(Z_MEAN, GaussianPosterior(Z_MEAN))


# ------------------------------------------------------------------- the posterior


@pytest.mark.parametrize(
    "Z_mean",
    [
        Z_MEAN.tolist(),
        tuple(map(tuple, Z_MEAN)),
        pd.DataFrame(Z_MEAN),
        pd.DataFrame(Z_MEAN, dtype="Float64"),
        pl.DataFrame(Z_MEAN),
        np.asfortranarray(Z_MEAN),
        Z_MEAN.astype(object),
        Z_MEAN.astype(np.longdouble),
        Z_MEAN.astype(">f8"),
    ],
    ids=range(9),
)
def test_the_same_means_in_other_containers(Z_mean):
    posterior = read(Z_mean, Z_STD).posterior
    assert posterior.mean.dtype == posterior.std.dtype == np.float64
    assert_array_equal(posterior.mean, Z_MEAN)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, bool, np.float16, np.float32])
def test_any_number_is_read_as_float64(dtype):
    values = np.array([[0, 1], [1, 0]], dtype=dtype)
    assert_array_equal(read(values, values).posterior.std, [[0.0, 1.0], [1.0, 0.0]])


def test_read_only_input_is_read_and_left_as_it_is():
    mean, std, weight = Z_MEAN.copy(), Z_STD.copy(), np.ones(N)
    for one in (mean, std, weight):
        one.setflags(write=False)
    SEPIN(n_samples=20, random_state=0).fit(mean, std, sample_weight=weight)
    RMIG().fit(mean, std, Y, sample_weight=weight)
    assert_array_equal(mean, Z_MEAN)


@pytest.mark.parametrize("name", ["Z_mean", "Z_std"])
@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda a: with_one(a, np.nan), ValueError, "contains NaN"),
        (lambda a: with_one(a, np.inf), ValueError, "contains infinity"),
        (lambda a: a * np.longdouble("1e4000"), ValueError, "contains infinity"),
        (lambda a: with_one(a, "a"), ValueError, "could not convert string"),
        (lambda a: with_one(a, 1e301), ValueError, r"holds 1e\+301.*rescale it"),
        (lambda a: a.astype(str), TypeError, "must hold numbers, got dtype <U32"),
        (lambda a: Y.repeat(2).reshape(N, 2).astype("M8[D]"), TypeError, "datetime64"),
        (lambda a: np.zeros((N, 2), "f8,i4"), TypeError, "must hold numbers"),
        (lambda a: a + 0j, ValueError, "Complex data not supported"),
        (
            lambda a: np.ma.masked_array(a, mask=a > 1),
            TypeError,
            "is a masked array, whose mask would be lost: drop the masked rows",
        ),
        (sparse.csr_array, TypeError, r"is sparse.*pass {name}\.toarray\(\)"),
        (lambda a: [[1.0, 2.0], [3.0]], ValueError, "inhomogeneous shape"),
        (lambda a: {"a": 1}, TypeError, "is a dict, which numpy cannot read"),
        (lambda a: iter(a), TypeError, "which numpy cannot read"),
    ],
    ids=range(14),
)
def test_what_is_no_finite_number_is_refused_by_name(name, spoil, error, message):
    arguments = {"Z_mean": Z_MEAN, "Z_std": Z_STD, "y": Y}
    arguments[name] = spoil(arguments[name])
    with pytest.raises(error, match=f"^{name} .*{message.format(name=name)}"):
        RMIG().fit(**arguments)


def test_a_tensor_that_requires_grad_is_refused():
    class Tensor:
        requires_grad = True

    with pytest.raises(TypeError, match=r"requires grad: pass Z_mean\.detach\(\)"):
        Informativeness().fit(Tensor())


@pytest.mark.parametrize(
    ("Z_mean", "message"),
    [
        (Z_MEAN[:, 0], r"Z_mean must have shape.*got 1D array.*reshape\(-1, 1\)"),
        (Z_MEAN[None], "Z_mean must have shape.*got 3D array"),
        (1.0, "Z_mean must have shape.*got 0D array"),
        (Z_MEAN[:0], r"Z_mean: found array with 0 sample\(s\)"),
        (Z_MEAN[:, :0], r"Z_mean: found array with 0 feature\(s\)"),
        ([], "Z_mean must have shape.*got 1D array"),
    ],
)
def test_shapes_of_the_means(Z_mean, message):
    with pytest.raises(ValueError, match=message):
        Informativeness().fit(Z_mean)


@pytest.mark.parametrize(
    "Z_std", [Z_STD[0], Z_STD[:, :1], Z_STD[:1], Z_STD.T, Z_STD[:-1], 0.1]
)
def test_a_std_is_never_broadcast(Z_std):
    shape = re.escape(str(np.shape(Z_std)))
    message = rf"Z_std must have the shape of Z_mean, \(12, 2\), got shape {shape}"
    with pytest.raises(ValueError, match=message):
        RMIG().fit(Z_MEAN, Z_std, Y)


def test_negative_std_suggests_the_way_out():
    message = r"Z_std is negative \(-1e-12 in row 3\).*exp\(0.5 \* logvar\)"
    with pytest.raises(ValueError, match=message):
        RMIG().fit(Z_MEAN, with_one(Z_STD, -1e-12), Y)
    posterior = GaussianPosterior(Z_MEAN, 2 * np.log(Z_STD))
    with pytest.raises(ValueError, match=r"Z_mean\.std is negative .*from_logvar"):
        Informativeness().fit(posterior)


@pytest.mark.parametrize(
    ("covariance", "error", "message"),
    [
        (-COVARIANCE, ValueError, "has a negative variance: pass valid"),
        (np.triu(COVARIANCE), ValueError, "is not symmetric"),
        (with_one(COVARIANCE, np.nan, (0, 1)), ValueError, "contains NaN"),
        (COVARIANCE * 1e301, ValueError, r"holds 1e\+301"),
        (COVARIANCE.astype(str), TypeError, "must hold numbers"),
    ],
    ids=range(5),
)
def test_covariances_are_checked_when_read(covariance, error, message):
    posterior = GaussianPosterior(Z_MEAN, covariance=covariance)
    with pytest.raises(error, match=rf"^Z_mean\.covariance .*{message}"):
        Informativeness().fit(posterior)


def test_an_invalid_covariance_of_one_row_is_named():
    covariance = np.stack([COVARIANCE] * N)
    covariance[5, 0, 1] = 0.2
    posterior = GaussianPosterior(Z_MEAN, covariance=covariance)
    with pytest.raises(ValueError, match="is not symmetric in row 5"):
        Informativeness().fit(posterior)


def test_the_asymmetry_of_float32_is_averaged():
    lopsided = COVARIANCE + np.array([[0, 1e-7], [-1e-7, 0]])
    read_covariance = read(GaussianPosterior(Z_MEAN, covariance=lopsided)).posterior
    assert_allclose(read_covariance.covariance, COVARIANCE, rtol=1e-15)


def test_logvar_beyond_the_floats_is_refused_as_a_std():
    posterior = GaussianPosterior.from_logvar(Z_MEAN, np.full((N, 2), 2000.0))
    with pytest.raises(ValueError, match=r"Z_mean\.std.*contains infinity"):
        Informativeness().fit(posterior)
    factor = np.full((2, 2), 1e200)
    posterior = GaussianPosterior.from_cholesky(Z_MEAN, factor)
    with pytest.raises(ValueError, match=r"Z_mean\.covariance.*contains infinity"):
        Informativeness().fit(posterior)
    with pytest.raises(TypeError, match="logvar must hold numbers"):
        GaussianPosterior.from_logvar(Z_MEAN, Z_MEAN.astype(str))
    with pytest.raises(ValueError, match="scale_tril.*Complex data"):
        GaussianPosterior.from_cholesky(Z_MEAN, COVARIANCE + 0j)


def test_posteriors_of_several_widths_do_not_concatenate():
    batches = [GaussianPosterior(np.zeros((2, n))) for n in (3, 2)]
    with pytest.raises(ValueError, match=r"one number of latents, got \[2, 3\]"):
        GaussianPosterior.concatenate(batches)


# ------------------------------------------------------------------ names of columns


def test_names_of_latents_are_kept_and_compared():
    frame = pd.DataFrame(Z_MEAN, columns=["size", "hue"])
    metric = Informativeness().fit(frame, Z_STD)
    assert_array_equal(metric.feature_names_in_, ["size", "hue"])
    assert metric.n_features_in_ == 2
    with pytest.raises(ValueError, match="Z_mean cannot be used.*feature names"):
        metric.score(frame[["hue", "size"]], Z_STD)
    with pytest.raises(ValueError, match="Z_mean cannot be used: X has 1 features"):
        Informativeness().fit(Z_MEAN).score(Z_MEAN[:, :1])
    assert not hasattr(metric.fit(Z_MEAN, Z_STD), "feature_names_in_")


def test_names_that_are_not_strings():
    frame = pd.DataFrame(Z_MEAN, columns=[0, 1])
    assert not hasattr(Informativeness().fit(frame), "feature_names_in_")
    frame.columns = [0, "hue"]
    with pytest.raises(TypeError, match="Z_mean cannot be used: Feature names"):
        Informativeness().fit(frame)


def test_a_std_with_its_columns_in_another_order_is_refused():
    mean = pd.DataFrame(Z_MEAN, columns=["size", "hue"])
    std = pd.DataFrame(Z_STD, columns=["size", "hue"])
    expected = RMIG().fit(Z_MEAN, Z_STD, Y).value_
    for same in (std, std.add_prefix("std of "), Z_STD):
        assert_allclose(RMIG().fit(mean, same, Y).value_, expected, rtol=1e-12)
    message = r"Z_std has its columns in another order.*'hue'.*Z_std\[Z_mean.columns\]"
    with pytest.raises(ValueError, match=message):
        RMIG().fit(mean, std[["hue", "size"]], Y)
    with pytest.raises(ValueError, match="Z_std has its columns in another order"):
        RMIG().fit(pl.DataFrame(mean), pl.DataFrame(std[["hue", "size"]]), Y)


# ------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    "metric",
    [RMIG(), JEMMIG(), MISJED(), Informativeness(), RMIG(method="quadrature")],
    ids=str,
)
def test_a_weight_is_a_number_of_copies_and_zero_is_no_row(metric):
    copies = np.arange(N) % 4
    rows = np.repeat(np.arange(N), copies)
    expected = metric.fit(Z_MEAN[rows], Z_STD[rows], Y[rows]).value_
    kept = copies > 0
    # Sums over rows in another order differ by rounding, quadrature by its own error.
    tolerance = 1e-9
    for weight in (copies, copies * 1e-200, copies * 1e299, copies / 7, list(copies)):
        metric.fit(Z_MEAN, Z_STD, Y, sample_weight=weight)
        assert_allclose(metric.value_, expected, rtol=tolerance)
    metric.fit(Z_MEAN[kept], Z_STD[kept], Y[kept], sample_weight=copies[kept])
    assert_allclose(metric.value_, expected, rtol=tolerance)


def test_a_row_without_weight_may_hold_what_no_other_row_does():
    Z_mean, Z_std = np.vstack([Z_MEAN, [[1e200, 1.0]]]), np.vstack([Z_STD, [[0, 0]]])
    y, weight = np.append(Y, 99), np.append(np.ones(N), 0)
    metric = RMIG().fit(Z_mean, Z_std, y, sample_weight=weight)
    assert metric.value_ == RMIG().fit(Z_MEAN, Z_STD, Y).value_
    assert_array_equal(metric.n_rows_, [N])


def test_a_negligible_weight_is_no_row():
    weight = np.append(np.ones(N - 1), 5e-324)
    sample = read(sample_weight=weight)
    assert_array_equal(sample.rows, np.arange(N - 1))
    assert_allclose(sample.weight, 1 / (N - 1), rtol=1e-15)


@pytest.mark.parametrize(
    ("sample_weight", "error", "message"),
    [
        (np.zeros(N), ValueError, "is zero in every row"),
        (-np.ones(N), ValueError, "is negative in row 0.*0 leaves a row out"),
        (np.append(np.ones(N - 1), -1e-300), ValueError, "is negative in row 11"),
        (np.full(N, np.nan), ValueError, "contains NaN"),
        (np.append(np.ones(N - 1), np.inf), ValueError, "contains infinity"),
        (np.ones(N + 1), ValueError, r"shape \(12,\), one weight a row, got \(13,\)"),
        (np.ones((N, 1)), ValueError, r"got \(12, 1\)"),
        (1.0, ValueError, r"got \(\)"),
        ("balanced", TypeError, "must hold numbers"),
        (["a"] * N, TypeError, "must hold numbers"),
        (np.ones(N) + 0j, ValueError, "Complex data"),
        (np.ma.masked_array(np.ones(N)), TypeError, "is a masked array"),
    ],
    ids=range(12),
)
def test_weights_that_define_no_distribution(sample_weight, error, message):
    for metric in (RMIG(), WSEPIN(n_samples=20)):
        with pytest.raises(error, match=f"^sample_weight.*{message}"):
            metric.fit(Z_MEAN, Z_STD, Y, sample_weight=sample_weight)


# ---------------------------------------------------------------- degenerate input


def test_one_latent():
    with pytest.raises(
        ValueError, match=r"Z_mean.*needs 2 latents, got 1 feature\(s\)"
    ):
        MISJED().fit(Z_MEAN[:, :1], Z_STD[:, :1])
    metric = RMIG(normalize=False).fit(Z_MEAN[:, :1], Z_STD[:, :1], Y)
    assert metric.value_ == metric.mutual_info_[0, 0]
    assert_array_equal(metric.second_latent_, [-1])


def test_zero_and_positive_std_do_not_mix_in_draws():
    posterior = GaussianPosterior(Z_MEAN, with_one(Z_STD, 0.0))
    with pytest.raises(ValueError, match="Z_std is 0 for latent 1 in row 3"):
        SEPIN(n_samples=20).fit(posterior)
    with pytest.raises(ValueError, match="Z_std is 0 for latent 1"):
        Informativeness(method="quadrature").fit(posterior)
    assert np.isfinite(Informativeness().fit(posterior).value_)


def test_rows_of_a_message_are_those_of_the_input():
    Z_std = with_one(Z_STD, 0.0)
    weight = np.arange(N) >= 2  # two rows are left out before
    with pytest.raises(ValueError, match="Z_std is 0 for latent 1 in row 3"):
        SEPIN(n_samples=20).fit(Z_MEAN, Z_std, sample_weight=weight)


def test_collapsed_latents_have_no_information_and_a_warning():
    zeros, ones = np.zeros((N, 2)), np.ones((N, 2))
    for metric in (RMIG(), WSEPIN(n_samples=20, random_state=0), Informativeness()):
        with pytest.warns(DisentanglementWarning, match="every latent is collapsed"):
            metric.fit(zeros, ones, Y)
        assert_allclose(metric.value_, 0, atol=1e-12)


def test_score_needs_the_means_or_nothing():
    metric = RMIG().fit(Z_MEAN, Z_STD, Y)
    assert metric.score() == metric.value_
    for arguments in ({"Z_std": Z_STD}, {"y": Y}, {"sample_weight": np.ones(N)}):
        with pytest.raises(ValueError, match="Z_mean is missing: pass it with"):
            metric.score(**arguments)
