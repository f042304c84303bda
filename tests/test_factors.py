import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import xlogy
from scipy.stats import norm
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer

from skdisent import (
    JEMMIG,
    RMIG,
    FactorPosterior,
    GaussianPosterior,
    UniformDiscretizer,
)
from skdisent._factors import FactorReader
from skdisent.exceptions import DisentanglementWarning

# Few rows: the metrics warn of bias.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*estimated bias:skdisent.exceptions.DisentanglementWarning"
)

EPS = np.finfo(np.float64).eps
CODES = np.array([0, 1, 2, 0, 1, 2, 0, 0, 1, 2, 1, 0])
N = len(CODES)
WORDS = np.array(["oval", "heart", "square"])[CODES]
rng = np.random.default_rng(0)
Z_MEAN = np.column_stack([CODES + rng.normal(scale=0.3, size=N), rng.normal(size=N)])
Z_STD = rng.uniform(0.1, 0.5, size=(N, 2))
SOFT = rng.dirichlet(np.ones(3), size=N)
MEASURED = rng.normal(size=N)


def of_objects(values):
    """Return an array of objects that numpy would take apart."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def read(y, n_samples=N, sample_weight=None, **options):
    """Return the factors of y, all rows with a weight."""
    rows = np.arange(n_samples)
    return FactorReader(**options).read(y, n_samples, rows, sample_weight)


def partition(matrix):
    """Return rows of zeros and ones, in an order that names of classes do not tell."""
    return sorted(map(tuple, np.asarray(matrix.todense()).T))


def brute_force(masses, given_x, weight):
    """Return (I(z, y), H(z, y)) in nats of the table summed row by row."""
    table = sum(
        w * np.outer(p, q) for w, p, q in zip(weight, masses, given_x, strict=True)
    )
    table /= table.sum()
    entropies = [-xlogy(one, one).sum() for one in (table, table.sum(0), table.sum(1))]
    return entropies[1] + entropies[2] - entropies[0], entropies[0]


def masses_of(mean, std, inner):
    """Return the bin masses under N(mean, std**2), as differences of its cdf."""
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    return np.diff(norm.cdf(edges, mean[:, None], std[:, None]), axis=1)


# --------------------------------------------------------------------- plain labels


@pytest.mark.parametrize(
    "labels",
    [
        CODES,
        CODES.tolist(),
        CODES.astype(np.uint8),
        CODES.astype(float),
        CODES.astype(np.float16),
        CODES / 3,
        CODES.astype(object),
        WORDS,
        WORDS.tolist(),
        WORDS.astype(object),
        WORDS.astype("S6"),
        WORDS.astype(np.dtypes.StringDType()),
        np.array([1, "1", 1.5], dtype=object)[CODES],
        of_objects([["a", 2, (3, 4)][code] for code in CODES]),
        CODES.astype("M8[D]"),
        CODES.astype("m8[s]"),
        pd.Series(WORDS),
        pd.Series(WORDS, dtype="category"),
        pd.Series(WORDS, dtype="string"),
        pd.Series(CODES, dtype="Int64"),
        pd.Series(CODES, dtype="Float64"),
        pd.Series(pd.to_datetime(CODES, unit="D")),
        pd.Series(pd.to_datetime(CODES, unit="D")).dt.to_period("D"),
        pl.Series(WORDS),
        pl.Series(WORDS, dtype=pl.Categorical),
        pl.Series(CODES),
        CODES[:, None],
        pd.DataFrame({"shape": WORDS}),
        pl.DataFrame({"shape": WORDS}),
        FactorPosterior([WORDS]),
    ],
    ids=range(30),
)
def test_labels_of_any_kind_are_one_factor(labels):
    factors = read(labels if not isinstance(labels, list) else list(labels))
    assert partition(factors.matrix) == partition(read(CODES).matrix)
    assert_array_equal(factors.offsets, [0, 3])
    assert factors.discretizers == [None]


@pytest.mark.parametrize(
    "labels",
    [CODES > 0, pd.Series(CODES > 0, dtype="boolean"), pl.Series(CODES > 0)],
    ids=["numpy", "pandas", "polars"],
)
def test_booleans_are_two_classes(labels):
    assert partition(read(labels).matrix) == partition(read(CODES > 0).matrix)
    assert read(labels).matrix.shape == (N, 2)


def test_numbers_and_strings_are_different_labels():
    assert read(np.array([1, "1"] * 6, dtype=object)).matrix.shape == (N, 2)
    assert read([1, "1"] * 6).matrix.shape == (N, 2)
    assert read([(1, "a"), ("1", "a")] * 6).offsets.tolist() == [0, 2, 3]


def test_columns_of_a_table_keep_their_own_types():
    table = {"shape": WORDS, "hue": CODES, "size": MEASURED, "on": CODES > 0}
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        with pytest.warns(
            DisentanglementWarning, match=r"factor 2 \(size\) of y is con"
        ):
            factors = read(frame)
        assert_array_equal(factors.offsets, [0, 3, 6, 16, 18])
        assert_array_equal(factors.names, ["shape", "hue", "size", "on"])
        assert factors.labels[0] == "factor 0 (shape)"
        assert [one is None for one in factors.discretizers] == [1, 1, 0, 1]


def test_the_matrix_is_row_stochastic_in_each_block():
    with pytest.warns(DisentanglementWarning, match="factor 2 of y is continuous"):
        factors = read(FactorPosterior([WORDS, SOFT, MEASURED]))
    for block in factors.blocks():
        sums = factors.matrix[:, block].sum(axis=1)
        assert_allclose(sums, 1, rtol=0, atol=4 * EPS)
    assert factors.known().all()


def test_names_of_other_kinds():
    frame = pd.DataFrame({0: CODES, 1: WORDS})
    assert read(frame).names is None
    frame.columns = pd.MultiIndex.from_tuples([("a", 0), ("a", 1)])
    assert read(frame).names is None
    frame.columns = [0, "shape"]
    with pytest.raises(TypeError, match="y cannot be used: Feature names are only"):
        read(frame)
    assert_array_equal(read(pd.Series(WORDS, name="shape")).names, ["shape"])
    assert_array_equal(read(pl.Series("shape", WORDS)).names, ["shape"])
    assert read(pd.Series(WORDS, name=3)).names is None
    assert read(pl.Series(WORDS)).names is None


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (CODES + 1j, TypeError, "factor 0 has dtype complex128, which is not a label"),
        (np.zeros(N, "f8,i4"), TypeError, "which is not a label"),
        (of_objects([[1], "a"] * 6), TypeError, "y .factor 0. cannot be .*unhashable"),
        ([[1], "a"] * 6, ValueError, "y cannot be used: .*inhomogeneous"),
        (
            CODES[:, None, None],
            ValueError,
            r"y must have shape.*got shape \(12, 1, 1\)",
        ),
        (3, ValueError, r"y must have shape.*got shape \(\)"),
        ({"shape": CODES}, TypeError, "y is a dict, which numpy cannot read"),
        (np.zeros((N, 0)), ValueError, "y has no factors: 0 columns"),
        (pd.DataFrame(index=range(N)), ValueError, "y has no factors: 0 columns"),
        (sparse.csr_array(np.eye(N)), TypeError, r"y is sparse.*y\.toarray\(\)"),
        (np.ma.masked_array(CODES, CODES > 1), TypeError, "y is a masked array"),
        ([[1, 2], [3]], ValueError, "y.*inhomogeneous"),
        (CODES[:-1], ValueError, "Z_mean and y have inconsistent.*: 12 and 11"),
        ([], ValueError, "Z_mean and y have inconsistent.*: 12 and 0"),
        (np.where(CODES == 1, np.inf, 0.5), ValueError, "factor 0 holds infinity"),
        (
            np.array([1, np.inf, 1.5], dtype=object)[CODES],
            ValueError,
            r"y \(factor 0\) cannot be used: Input .* infinity",
        ),
        (
            np.append(MEASURED[1:], 1e301),
            ValueError,
            r"y \(factor 0\) holds 1e\+301.*rescale it",
        ),
    ],
    ids=range(17),
)
def test_what_is_no_factor_is_refused_by_name(y, error, message):
    with pytest.raises(error, match=message):
        read(y)


# ------------------------------------------------------------------ continuous labels


@pytest.mark.parametrize(
    ("column", "continuous"),
    [
        ([0.5, 1.5, 2.5, 3.5], True),
        ([0.5, 1.5, 1.5, 2.5], True),  # 3 of 4 are distinct
        ([0.5, 1.5, 1.5, 0.5], False),  # half of them
        ([0.0, 1.0, 2.0, 3.0], False),  # integers
        ([0.0, 1.0, 2.0, 3.5], True),
        ([0, 1, 2, 3], False),
        (["0.5", "1.5", "2.5", "3.5"], False),
    ],
)
def test_floats_are_continuous_when_most_of_them_are_distinct(column, continuous):
    reader = FactorReader(discretizer=UniformDiscretizer(3))
    for one in (np.array(column), np.array(column, dtype=object), pd.Series(column)):
        factors = reader.read(one, 4, np.arange(4), None)
        assert (factors.discretizers[0] is not None) == continuous


def test_continuous_factors_have_ten_equal_bins_and_a_warning():
    values = np.random.default_rng(1).normal(size=200)
    message = "factor 0 of y is continuous.*pass factor_discretizer"
    with pytest.warns(DisentanglementWarning, match=message):
        factors = read(values, 200)
    assert_array_equal(factors.matrix.sum(axis=0), np.full(10, 20))
    # Each row lies in the bin that its rank tells.
    bins = np.asarray(factors.matrix.todense()).argmax(axis=1)
    assert_array_equal(bins, values.argsort().argsort() // 20)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, object])
def test_the_type_of_continuous_labels_does_not_matter(dtype):
    values = np.random.default_rng(1).normal(size=40).astype(np.float16)
    bins = UniformDiscretizer(5)
    expected = read(values.astype(float), 40, discretizer=bins).matrix
    actual = read(values.astype(dtype), 40, discretizer=bins).matrix
    assert_array_equal(actual.todense(), expected.todense())


def test_factor_discretizer_is_used_and_kept_for_score():
    metric = RMIG(factor_discretizer=UniformDiscretizer(2, bin_range=(-1, 1)))
    metric.fit(Z_MEAN, Z_STD, MEASURED)
    assert_allclose(
        metric.value_, RMIG().fit(Z_MEAN, Z_STD, MEASURED >= 0).value_, rtol=1e-12
    )
    # All of the new rows are in one bin of the old ones.
    with pytest.raises(ValueError, match="y: every factor has one value"):
        metric.score(Z_MEAN, Z_STD, abs(MEASURED))
    # A few rows may repeat: the factor stays what it was in fit.
    halves = np.where(CODES > 0, 0.5, -0.5)
    assert_allclose(
        metric.score(Z_MEAN, Z_STD, halves),
        RMIG(discretizer=metric.discretizer_).fit(Z_MEAN, Z_STD, CODES > 0).value_,
        rtol=1e-12,
    )
    with pytest.raises(TypeError, match=r"y \(factor 0\) must hold numbers"):
        metric.score(Z_MEAN, Z_STD, WORDS)
    with pytest.raises(ValueError, match=r"y \(factor 0\) cannot be used: could not"):
        metric.score(Z_MEAN, Z_STD, WORDS.astype(object))


def test_labels_of_fit_are_labels_in_score_however_few_the_rows():
    scales = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])[np.arange(N) % 6]
    metric = RMIG().fit(Z_MEAN, Z_STD, scales)
    few = slice(0, 7)  # 6 of 7 are distinct
    assert np.isfinite(metric.score(Z_MEAN[few], Z_STD[few], scales[few]))


@pytest.mark.parametrize(
    ("discretizer", "error", "message"),
    [
        (KBinsDiscretizer(1), ValueError, "n_bins"),
        (FunctionTransformer(), TypeError, "must have bin_edges_ once it is fitted"),
        (UniformDiscretizer(3, bin_range=(1, 0)), ValueError, "bin_range"),
    ],
    ids=range(3),
)
def test_a_factor_discretizer_that_does_not_fit_is_named(discretizer, error, message):
    with pytest.raises(error, match=f"^factor_discretizer.*{message}"):
        read(MEASURED, discretizer=discretizer)


# ------------------------------------------------------- soft labels and posteriors


def test_soft_labels_against_brute_force():
    weight = rng.uniform(size=N)
    weight /= weight.sum()
    metric = JEMMIG().fit(Z_MEAN, Z_STD, FactorPosterior([SOFT]), sample_weight=weight)
    for latent, edges in enumerate(metric.discretizer_.bin_edges_):
        masses = masses_of(Z_MEAN[:, latent], Z_STD[:, latent], edges[1:-1])
        info, joint = brute_force(masses, SOFT, weight)
        # Sums of 101 * 3 cells of 12 rows, each entropy of a few nats.
        assert_allclose(metric.mutual_info_[latent, 0], info, atol=1e-13)
        assert_allclose(metric.joint_entropy_[latent, 0], joint, atol=1e-13)


def test_one_hot_probabilities_are_labels():
    expected = RMIG().fit(Z_MEAN, Z_STD, np.column_stack([CODES, CODES > 1])).value_
    tables = [np.eye(3)[CODES], np.eye(2, dtype=int)[(CODES > 1).astype(int)]]
    for y in (tables, tuple(tables), FactorPosterior(tables)):
        assert_allclose(RMIG().fit(Z_MEAN, Z_STD, y).value_, expected, rtol=1e-13)
    frames = [pd.DataFrame(one) for one in tables]
    assert_allclose(RMIG().fit(Z_MEAN, Z_STD, frames).value_, expected, rtol=1e-13)


def test_float32_probabilities_sum_to_one_up_to_their_rounding():
    factors = read(FactorPosterior([SOFT.astype(np.float32)]))
    assert_allclose(factors.matrix.sum(axis=1), 1, rtol=0, atol=4 * EPS)
    assert_allclose(factors.matrix.todense(), SOFT, rtol=3e-7)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (-SOFT, ValueError, r"values outside \[0, 1\]: pass softmax"),
        (2 * np.eye(3)[CODES], ValueError, r"values outside \[0, 1\]"),
        (SOFT * np.float64(1e308), ValueError, r"values outside \[0, 1\]"),
        (SOFT * 0.99, ValueError, "sum to 1 in each row, got 0.99 in row 0"),
        (SOFT[:, :0], ValueError, "sum to 1 in each row, got 0 in row 0"),
        (np.where(SOFT > 0.5, np.inf, SOFT), ValueError, "contains infinity"),
        (SOFT.astype(str), TypeError, "must hold numbers"),
        (SOFT + 0j, ValueError, "Complex data"),
        (np.full((N, 3), np.nan), ValueError, "has no known value"),
    ],
    ids=range(9),
)
def test_what_are_no_probabilities(table, error, message):
    with pytest.raises(error, match=f"^y.*factor 0.*{message}"):
        read(FactorPosterior([table]))


def test_bare_probabilities_are_asked_back():
    message = r"y is a float table whose rows sum to 1.*pass FactorPosterior\(\[y\]\)"
    for y in (SOFT, SOFT.tolist(), pd.DataFrame(SOFT), pl.DataFrame(SOFT)):
        with pytest.raises(ValueError, match=message):
            read(y)
    assert read(np.eye(3, dtype=int)[CODES]).matrix.shape == (N, 6)
    assert read(np.eye(3)[CODES][:, :1]).matrix.shape == (N, 2)


@pytest.mark.parametrize("kind", ["std", "covariance", "shared", "point"])
def test_stochastic_continuous_factors_against_brute_force(kind):
    mean = MEASURED[:, None]
    std = np.full((N, 1), 0.4) if kind == "shared" else rng.uniform(0.1, 1, (N, 1))
    column = {
        "std": lambda: GaussianPosterior(mean, std),
        "covariance": lambda: GaussianPosterior(mean, covariance=std[:, :, None] ** 2),
        "shared": lambda: GaussianPosterior(mean, covariance=std[:1] ** 2),
        "point": lambda: GaussianPosterior(mean),
    }[kind]()
    bins = UniformDiscretizer(6)
    metric = RMIG(factor_discretizer=bins, normalize=False)
    metric.fit(Z_MEAN, Z_STD, FactorPosterior([column]))
    (fitted,) = metric.factor_discretizers_
    inner = fitted.bin_edges_[0][1:-1]
    given_x = masses_of(MEASURED, std[:, 0], inner)
    if kind == "point":
        given_x = np.eye(6)[np.searchsorted(inner, MEASURED, side="right")]
    for latent, edges in enumerate(metric.discretizer_.bin_edges_):
        masses = masses_of(Z_MEAN[:, latent], Z_STD[:, latent], edges[1:-1])
        info, _ = brute_force(masses, given_x, np.full(N, 1 / N))
        assert_allclose(metric.mutual_info_[latent, 0], info, atol=1e-13)


def test_a_stochastic_factor_is_checked_as_a_posterior_is():
    def refused(error, message, *args, **kwargs):
        with pytest.raises(error, match=message):
            read(FactorPosterior([GaussianPosterior(*args, **kwargs)]))

    mean = MEASURED[:, None]
    refused(ValueError, r"y \(factor 0\)\.std is negative .*logvar", mean, -abs(mean))
    refused(ValueError, r"y \(factor 0\)\.mean.*contains NaN", mean * np.nan)
    refused(
        ValueError,
        r"y \(factor 0\)\.covariance has a negative variance",
        mean,
        covariance=np.array([[-1.0]]),
    )


def test_a_supervised_encoder_is_one_row_for_each_pair_of_x_and_y():
    # q(z | x, y) for 4 points x and 3 classes y, p(x, y) = p(x) p(y | x).
    p_xy = rng.dirichlet(np.ones(12)).reshape(4, 3)
    mean, std = rng.normal(size=(4, 3, 2)), rng.uniform(0.1, 1, size=(4, 3, 2))
    y = np.tile(np.arange(3), 4)
    metric = JEMMIG().fit(
        mean.reshape(12, 2), std.reshape(12, 2), y, sample_weight=p_xy.ravel()
    )
    for latent, edges in enumerate(metric.discretizer_.bin_edges_):
        table = np.zeros((len(edges) - 1, 3))  # q(z, y) = sum_x p(x, y) q(z | x, y)
        for x in range(4):
            for k in range(3):
                masses = masses_of(
                    mean[x, k, [latent]], std[x, k, [latent]], edges[1:-1]
                )
                table[:, k] += p_xy[x, k] * masses[0]
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        info = xlogy(table, table / independent).sum()
        assert_allclose(metric.mutual_info_[latent, 0], info, atol=1e-13)
        joint = -xlogy(table, table).sum()
        assert_allclose(metric.joint_entropy_[latent, 0], joint, atol=1e-13)


# ------------------------------------------------------------------- missing values


MISSING = {
    "float": np.where(CODES == 1, np.nan, CODES),
    "object": np.where(CODES == 1, None, WORDS.astype(object)),
    "datetime": np.where(CODES == 1, np.datetime64("NaT"), CODES.astype("M8[D]")),
    "pandas Int64": pd.Series(CODES, dtype="Int64").mask(CODES == 1),
    "pandas string": pd.Series(WORDS, dtype="string").mask(CODES == 1),
    "pandas category": pd.Series(WORDS, dtype="category").mask(CODES == 1),
    "polars": pl.Series([None if one == 1 else int(one) for one in CODES]),
    "polars String": pl.Series([None if c == 1 else w for c, w in zip(CODES, WORDS)]),  # noqa: B905
    "list": [None if one == 1 else int(one) for one in CODES],
    "soft": FactorPosterior(
        [np.where(CODES[:, None] == 1, np.nan, np.eye(3)[CODES][:, [0, 2]])]
    ),
}
over_missing = pytest.mark.parametrize("y", MISSING.values(), ids=MISSING)


@over_missing
def test_a_missing_value_is_an_error_that_counts_and_finds_it(y):
    message = r"y: factor 0.* has 4 missing values.*first in row 1: .*missing='drop'"
    with pytest.raises(ValueError, match=message):
        RMIG().fit(Z_MEAN, Z_STD, y)


@over_missing
def test_dropped_values_leave_their_rows_out_of_the_factor(y):
    rows = CODES != 1
    metric = RMIG(missing="drop").fit(Z_MEAN, Z_STD, y)
    assert_array_equal(metric.n_rows_, [8])
    # The same bins, as those are fitted on all rows.
    few = RMIG(discretizer=metric.discretizer_, normalize=False)
    few.discretizer = UniformDiscretizer(101, bin_range=(-3, 5))
    metric.set_params(discretizer=few.discretizer, normalize=False)
    expected = few.fit(Z_MEAN[rows], Z_STD[rows], CODES[rows]).value_
    assert_allclose(metric.fit(Z_MEAN, Z_STD, y).value_, expected, rtol=1e-12)


def test_each_factor_has_the_rows_where_it_is_known():
    y = pd.DataFrame(
        {
            "shape": pd.Series(WORDS).mask(CODES == 1),
            "hue": CODES,
            "size": np.where(np.arange(N) < 2, np.nan, MEASURED),
        }
    )
    bins = UniformDiscretizer(101, bin_range=(-3, 5))
    options = {"discretizer": bins, "factor_discretizer": UniformDiscretizer(4)}
    metric = RMIG(missing="drop", **options).fit(Z_MEAN, Z_STD, y)
    assert_array_equal(metric.n_rows_, [8, 12, 10])
    for k, name in enumerate(y):
        rows = y[name].notna().to_numpy()
        alone = RMIG(**options).fit(Z_MEAN[rows], Z_STD[rows], y.loc[rows, name])
        assert_allclose(metric.factor_values_[k], alone.value_, rtol=1e-12)
        assert_allclose(metric.factor_entropy_[k], alone.factor_entropy_[0], rtol=1e-13)


def test_rows_of_a_message_count_those_without_weight():
    weight = np.arange(N) >= 3
    y = np.where(np.arange(N) == 5, np.nan, CODES)
    with pytest.raises(ValueError, match="has 1 missing values.*first in row 5"):
        RMIG().fit(Z_MEAN, Z_STD, y, sample_weight=weight)
    RMIG().fit(Z_MEAN, Z_STD, y, sample_weight=np.arange(N) != 5)
    soft = np.where(np.arange(N)[:, None] == 7, 0.2, SOFT)
    with pytest.raises(ValueError, match="sum to 1 in each row, got 0.6 in row 7"):
        RMIG().fit(Z_MEAN, Z_STD, FactorPosterior([soft]), sample_weight=weight)


def test_a_factor_known_nowhere_is_an_error():
    y = np.column_stack([CODES, np.full(N, np.nan)])
    for missing in ("drop", "error"):
        with pytest.raises(ValueError, match="factor 1 has no known value in any row"):
            RMIG(missing=missing).fit(Z_MEAN, Z_STD, y)


# ----------------------------------------------------------------- one value, names


def test_a_factor_with_one_value_is_left_out_with_a_warning():
    y = np.column_stack([CODES, np.full(N, 7)])
    alone = RMIG().fit(Z_MEAN, Z_STD, CODES)
    with pytest.warns(DisentanglementWarning, match="factor 1 of y has one value"):
        metric = RMIG().fit(Z_MEAN, Z_STD, y)
    assert metric.value_ == alone.value_
    assert_array_equal(np.isnan(metric.factor_values_), [False, True])
    assert metric.factor_entropy_[1] == 0
    with pytest.warns(DisentanglementWarning, match="factor 1 of y has one value"):
        metric.set_params(normalize=False).fit(Z_MEAN, Z_STD, y)
    assert metric.factor_values_[1] == 0


@pytest.mark.filterwarnings("ignore:every latent is collapsed")
def test_only_factors_with_one_value_are_an_error():
    with pytest.raises(ValueError, match=r"y: every factor has one value.*12 samples"):
        JEMMIG().fit(Z_MEAN, Z_STD, np.zeros(N, dtype=int))
    with pytest.raises(ValueError, match=r"1 sample\)"):
        RMIG().fit(Z_MEAN[:1], Z_STD[:1], CODES[:1])


def test_names_of_factors_are_kept_and_compared():
    y = pd.DataFrame({"shape": WORDS, "hue": np.arange(N) % 2})
    metric = RMIG().fit(Z_MEAN, Z_STD, y)
    assert_array_equal(metric.factor_names_in_, ["shape", "hue"])
    assert metric.score(Z_MEAN, Z_STD, y.to_numpy()) == metric.value_
    message = "y has the factors hue, shape, but the metric was fitted with shape, hue"
    with pytest.raises(ValueError, match=message):
        metric.score(Z_MEAN, Z_STD, y[["hue", "shape"]])
    with pytest.raises(ValueError, match="y has 1 factors, but .* fitted with 2"):
        metric.score(Z_MEAN, Z_STD, y[["shape"]])
    named = FactorPosterior([WORDS, np.arange(N) % 2], names=["shape", "hue"])
    assert_array_equal(metric.fit(Z_MEAN, Z_STD, named).factor_names_in_, y.columns)
    assert not hasattr(metric.fit(Z_MEAN, Z_STD, CODES), "factor_names_in_")


# ------------------------------------------------------------------ FactorPosterior


def test_rows_of_a_factor_posterior():
    column = GaussianPosterior(MEASURED[:, None], np.ones((N, 1)))
    y = FactorPosterior([WORDS, SOFT, column], names=["shape", "expert", "size"])
    assert (y.shape, y.ndim, len(y)) == ((N, 3), 2, N)
    for key in (slice(2, 5), [2, 3, 4], np.isin(np.arange(N), [2, 3, 4])):
        for some in (y[key], y[key, ...]):
            assert some.names == y.names
            assert_array_equal(some.columns[0], WORDS[2:5])
            assert_array_equal(some.columns[1], SOFT[2:5])
            assert_array_equal(some.columns[2].mean[:, 0], MEASURED[2:5])
    assert len(y[...]) == N
    assert_array_equal(pickle.loads(pickle.dumps(y)).columns[1], SOFT)
    for key in (3, (0, 1), "shape", None, ([0], [1]), np.ones(3, dtype=bool)):
        with pytest.raises(IndexError):
            y[key]
    with pytest.raises(TypeError, match="not iterable"):
        iter(y)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "columns must be a non-empty list"),
        (SOFT, "columns must be a non-empty list.*got ndarray"),
        ([CODES, CODES[:-1]], r"columns must have one length, got \[11, 12\] rows"),
        ([CODES, SOFT[None]], r"columns\[1\] must be labels of shape.*got shape"),
        ([3], r"columns\[0\] must be labels .*got shape \(\)"),
        ([GaussianPosterior(SOFT)], r"columns\[0\] is a posterior of 3 latents"),
    ],
    ids=range(6),
)
def test_columns_that_are_no_factors(columns, message):
    with pytest.raises(ValueError, match=message):
        FactorPosterior(columns)


def test_columns_that_are_no_arrays():
    with pytest.raises(TypeError, match=r"columns\[0\] is sparse"):
        FactorPosterior([sparse.csr_array(SOFT)])
    with pytest.raises(TypeError, match=r"columns\[0\] is a masked array"):
        FactorPosterior([np.ma.masked_array(CODES)])
    with pytest.raises(ValueError, match="names has 1 entries for 2 columns"):
        FactorPosterior([CODES, CODES], names=["shape"])


def test_splitters_index_a_factor_posterior_by_rows():
    posterior = GaussianPosterior(Z_MEAN, Z_STD)
    y = FactorPosterior([CODES, np.eye(2)[CODES // 2]])
    labels = np.column_stack([CODES, CODES // 2])
    scores = [
        cross_val_score(RMIG(), posterior, one, cv=KFold(3)) for one in (y, labels)
    ]
    assert_allclose(*scores, rtol=1e-12)
    with pytest.raises(TypeError, match=r"pass cv=KFold\(...\)"):
        cross_val_score(RMIG(), posterior, y, cv=StratifiedKFold(3))


# --------------------------------------------------------------------- many classes


@pytest.mark.parametrize(
    "labels",
    [np.arange(10_000), np.arange(10_000).astype("U8"), list(map(str, range(10_000)))],
    ids=["integers", "strings", "objects"],
)
def test_ten_thousand_classes_are_never_a_dense_matrix(labels):
    tracemalloc.start()
    factors = read(labels, 10_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert factors.matrix.shape == (10_000, 10_000)
    assert factors.matrix.nnz == 10_000
    assert peak < 10e6  # a dense one has 800 MB


def test_ten_thousand_classes_in_a_metric():
    n = 10_000
    Z_mean = np.column_stack([np.arange(n) / n, np.zeros(n)])
    tracemalloc.start()
    metric = RMIG().fit(Z_mean, np.full((n, 2), 1e-9), np.arange(n))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert_allclose(metric.factor_entropy_, np.log(n), rtol=1e-12)
    # y tells the row, so the information is all that the quantized latent has.
    assert_allclose(metric.mutual_info_[0], metric.latent_entropy_[0], rtol=1e-9)
    # Tables (1 + 10,000 classes) x 101 bins are 8 MB each, a dozen of them at a time.
    assert peak < 150e6
