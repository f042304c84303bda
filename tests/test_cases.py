"""24 cases from public bug reports of people who compute such scores.

Each comes with its source. The grid is the paper's, 100 bins on [-4, 4]; -3, -1, 1 and
3 are centres of its bins, 2,000 widths of 1e-3 apart, so that quantized amounts are
exact to rounding. Rows are the population: no correction for small samples.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import KFold, cross_val_score

from skdisent import (
    INDIN,
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    WINDIN,
    WSEPIN,
    GaussianPosterior,
    Informativeness,
    UniformDiscretizer,
)
from skdisent.exceptions import DisentanglementWarning

# What a case warns of is tested where the warning is made.
pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

LOG2, LOG3, LOG4, LOG16, LOG100, LOG200 = np.log([2, 3, 4, 16, 100, 200])
LEVELS = np.array([-3.0, -1.0, 1.0, 3.0])
QUANTIZED = 1e-9
N_DRAWS = 1000
DRAWN = 0.05


def narrow(mean, std=1e-3):
    return np.full(np.shape(mean), std)


def grid():
    return UniformDiscretizer(100, bin_range=(-4, 4))


def entropy(*p):
    p = np.array(p)
    return -(p * np.log(p)).sum()


def amounts(mean, std, y=None, sample_weight=None):
    """Return every quantized amount by its name in the formulas."""

    def fit(metric, *factors):
        metric.set_params(discretizer=grid())
        return metric.fit(mean, std, *factors, sample_weight=sample_weight)

    information = fit(Informativeness())
    found = {"h_z": information.latent_entropy_, "mi_zx": information.informativeness_}
    if np.shape(mean)[1] > 1:
        found["misjed"] = fit(MISJED(normalize=False)).pairwise_values_
        found["misjed_norm"] = fit(MISJED()).pairwise_values_
    if y is not None:
        rmig = fit(RMIG(), y)
        found |= {
            "h_y": rmig.factor_entropy_,
            "mi_zy": rmig.mutual_info_,
            "rmig_norm": rmig.factor_values_,
            "rmig": fit(RMIG(normalize=False), y).factor_values_,
            "jemmig": fit(JEMMIG(normalize=False), y).factor_values_,
            "jemmig_ratio": fit(JEMMIG(), y).factor_values_,
        }
    return found


def differential(mean, std, y, sample_weight=None):
    """Return what quadrature gives, which has no jemmig of quantized latents."""
    params = {"method": "quadrature"}
    rmig = RMIG(**params).fit(mean, std, y, sample_weight=sample_weight)
    of_rows = Informativeness(**params).fit(mean, std, sample_weight=sample_weight)
    return {
        "h_y": rmig.factor_entropy_,
        "mi_zy": rmig.mutual_info_,
        "mi_zx": of_rows.informativeness_,
        "rmig_norm": rmig.factor_values_,
    }


def drawn(mean, std, sample_weight=None, n_samples=N_DRAWS):
    """Return the amounts of the SEPIN family."""
    wsepin, windin = (
        metric(n_samples=n_samples, random_state=0).fit(
            mean, std, sample_weight=sample_weight
        )
        for metric in (WSEPIN, WINDIN)
    )
    return {
        "sepin": wsepin.latent_values_,
        "indin": windin.latent_values_,
        "mi_z_rest": wsepin.mutual_info_rest_,
        "mi_zx": wsepin.informativeness_,
        "wsepin": wsepin.value_,
        "windin": windin.value_,
    }


def check(found, tolerance, **expected):
    for name, value in expected.items():
        assert_allclose(found[name], value, rtol=0, atol=tolerance, err_msg=name)


def same(found, expected, tolerance):
    assert found.keys() == expected.keys()
    check(found, tolerance, **expected)


def one_to_one(repeats, n_levels=4):
    """Return a latent with a level for each class, and a constant one."""
    codes = np.tile(np.arange(n_levels), repeats)
    mean = np.column_stack([LEVELS[codes], np.ones(len(codes))])
    return mean, narrow(mean), codes[:, None]


def grid_of_two():
    a, b = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
    mean = np.column_stack([LEVELS[a], LEVELS[b]])
    return mean, narrow(mean), np.column_stack([a, b])


# Values.


def test_c01_one_to_one_latent_and_factor():
    # https://github.com/gregversteeg/NPEET/issues/16
    # https://github.com/paulbrodersen/entropy_estimators/issues/11
    mean, std, y = one_to_one(25)
    expected = {"h_y": [LOG4], "mi_zy": [[LOG4], [0]], "mi_zx": [LOG4, 0]}

    found = amounts(mean, std, y)

    check(found, QUANTIZED, **expected, rmig=[LOG4], rmig_norm=[1], jemmig=[0])
    check(found, QUANTIZED, jemmig_ratio=[0])
    check(differential(mean, std, y), QUANTIZED, **expected, rmig_norm=[1])
    check(drawn(mean, std, n_samples=400), DRAWN, sepin=[LOG4, 0], wsepin=LOG4)


def test_c02_duplicated_latent():
    # https://github.com/danielhomola/mifs/issues/31
    codes = np.tile(np.arange(4), 25)
    mean = np.column_stack([LEVELS[codes], LEVELS[codes]])
    of_pair = LOG4 / (2 * LOG100)
    nan = np.nan

    found = amounts(mean, narrow(mean), codes[:, None])

    check(
        found,
        QUANTIZED,
        mi_zy=[[LOG4], [LOG4]],
        rmig=[0],
        rmig_norm=[0],
        jemmig=[LOG4],
        jemmig_ratio=[LOG4 / (LOG4 + LOG100)],
        misjed=[[nan, LOG4], [LOG4, nan]],
        misjed_norm=[[nan, of_pair], [of_pair, nan]],
    )
    shared = {"sepin": [0, 0], "indin": [0, 0], "wsepin": 0, "windin": 0}
    shared["mi_z_rest"] = [LOG4, LOG4]
    check(drawn(mean, narrow(mean)), DRAWN, **shared)
    check(drawn(mean, None), 1e-12, **shared)  # the limit of a point encoder


def test_c03_rows_are_not_a_full_grid_of_factors():
    # https://github.com/YannDubs/disentangling-vae/issues/63
    codes = np.repeat([0, 1, 2], [6, 3, 1])
    mean = np.column_stack([LEVELS[codes], np.where(codes == 0, -1.0, 1.0)])
    h_y, first_or_not = entropy(0.6, 0.3, 0.1), entropy(0.6, 0.4)
    gap = h_y - first_or_not

    found = amounts(mean, narrow(mean), codes[:, None])

    expected = {"h_y": [h_y], "mi_zy": [[h_y], [first_or_not]]}
    expected["rmig_norm"] = [gap / h_y]
    check(found, QUANTIZED, **expected, rmig=[gap], jemmig=[first_or_not])
    check(differential(mean, narrow(mean), codes), QUANTIZED, **expected)


def test_c04_the_std_counts():
    # https://github.com/YannDubs/disentangling-vae/issues/64
    codes = np.tile([0, 1], 50)
    mean = np.column_stack([2.0 * codes - 1, np.zeros(100)])
    capacity = 0.33683082028  # the binary-input Gaussian channel at 0 dB
    expected = {"h_y": [LOG2], "mi_zy": [[capacity], [0]], "mi_zx": [capacity, 0]}
    expected["rmig_norm"] = [capacity / LOG2]

    check(amounts(mean, narrow(mean, 1.0), codes), 3e-3, **expected)
    check(differential(mean, narrow(mean, 1.0), codes), QUANTIZED, **expected)
    check(drawn(mean, narrow(mean, 1.0)), 0.03, sepin=[capacity, 0])


def test_c05_independent_latents():
    # https://github.com/YannDubs/disentangling-vae/issues/54
    # https://github.com/YannDubs/disentangling-vae/issues/60
    mean, std, y = grid_of_two()

    found = amounts(mean, std, y)

    check(found, QUANTIZED, mi_zy=[[LOG4, 0], [0, LOG4]], mi_zx=[LOG4, LOG4])
    check(found, QUANTIZED, rmig_norm=[1, 1], jemmig=[0, 0])
    check(found, QUANTIZED, misjed=[[np.nan, 0], [0, np.nan]])
    expected = {
        "mi_z_rest": [0, 0],
        "sepin": [LOG4, LOG4],
        "indin": [LOG4, LOG4],
        "wsepin": LOG4,
        "windin": LOG4,
    }
    check(drawn(mean, std), DRAWN, **expected)
    check(drawn(mean, None), 1e-12, **expected)
    for k in (1, 2):
        sepin = SEPIN(k, n_samples=N_DRAWS, random_state=0).fit(mean, std)
        assert sepin.value_ == pytest.approx(LOG4, abs=DRAWN)


def test_c06_fewer_rows_than_bins_and_every_class_once():
    # https://github.com/scikit-learn/scikit-learn/issues/25179
    # https://github.com/scikit-learn/scikit-learn/issues/10585
    mean, std, y = one_to_one(1, n_levels=3)
    expected = {"h_y": [LOG3], "mi_zy": [[LOG3], [0]], "rmig_norm": [1]}

    check(amounts(mean, std, y), QUANTIZED, **expected, jemmig=[0])
    check(differential(mean, std, y), QUANTIZED, **expected)


def test_c07_means_on_the_outer_edges():
    # https://github.com/scikit-learn/scikit-learn/issues/14874
    # https://github.com/numpy/numpy/issues/9208
    codes = np.tile(np.arange(3), 10)
    mean = np.column_stack([np.array([-4.0, 0, 4])[codes], np.ones(30)])
    expected = {"h_y": [LOG3], "mi_zy": [[LOG3], [0]], "rmig_norm": [1]}

    for std in (narrow(mean), None):
        found = amounts(mean, std, codes[:, None])
        check(found, QUANTIZED, **expected)
        # Open end bins: only the mean at 0 has its mass in two bins.
        split = 0 if std is None else LOG2 / 3
        check(found, QUANTIZED, h_z=[LOG3 + split, 0])


def test_c08_one_unit_throughout():
    # https://github.com/Craigacp/MIToolbox/issues/9
    # https://github.com/polsys/ennemi/issues/109
    # https://github.com/scikit-learn/scikit-learn/issues/18288
    mean, std, y = one_to_one(10)

    found = amounts(mean, std, y > 1)

    check(found, QUANTIZED, h_y=[LOG2], mi_zy=[[LOG2], [0]], rmig_norm=[1])
    check(found, QUANTIZED, jemmig=[LOG2], jemmig_ratio=[LOG2 / (LOG2 + LOG100)])


class Lookup(TransformerMixin, BaseEstimator):
    """An encoder without predict: rows hold means and stds side by side."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return GaussianPosterior(X[:, :2], X[:, 2:])


def test_c09_scorer_inside_cross_validation():
    # https://github.com/scikit-learn/scikit-learn/issues/22969
    # https://github.com/skorch-dev/skorch/issues/633
    # https://github.com/scikit-learn/scikit-learn/issues/7859
    mean, std, y = one_to_one(20)

    scores = cross_val_score(
        Lookup(),
        np.hstack([mean, std]),
        y,
        scoring=RMIG(discretizer=grid()),
        cv=KFold(4),
        error_score="raise",
    )

    assert_allclose(scores, [1, 1, 1, 1], rtol=0, atol=QUANTIZED)


def test_c10_as_many_classes_as_rows():
    # https://github.com/scikit-learn/scikit-learn/issues/16399
    mean, std, _ = one_to_one(50)
    log50 = np.log(50)

    found = amounts(mean, std, np.arange(200)[:, None])

    expected = {"h_y": [LOG200], "mi_zy": [[LOG4], [0]]}
    expected["rmig_norm"] = [LOG4 / LOG200]
    check(found, QUANTIZED, **expected, rmig=[LOG4], jemmig=[log50])
    check(found, QUANTIZED, jemmig_ratio=[log50 / (LOG200 + LOG100)])
    check(differential(mean, std, np.arange(200)), QUANTIZED, **expected)


def test_c11_density_or_probability():
    # https://github.com/YannDubs/disentangling-vae/issues/59
    mean, std = np.zeros((40, 2)), np.ones((40, 2))
    y = np.tile([0, 1], 20)
    h_z = 0.5 * np.log(2 * np.pi * np.e)

    found = amounts(mean, std, y)

    check(found, 2e-3, h_z=[h_z - np.log(0.08)] * 2)
    check(found, QUANTIZED, mi_zx=[0, 0], mi_zy=[[0], [0]], rmig=[0])
    exact = Informativeness(method="quadrature").fit(mean, std)
    assert_allclose(exact.latent_entropy_, [h_z, h_z], rtol=0, atol=QUANTIZED)
    check(drawn(mean, std), 1e-9, sepin=[0, 0], mi_zx=[0, 0], wsepin=0, windin=0)


# Invariants.


def test_c12_factor_with_a_single_value():
    # https://github.com/scikit-learn/scikit-learn/issues/16355
    mean, std, y = one_to_one(10)
    alone = amounts(mean, std, y)
    beside = np.column_stack([y, np.full(40, 7)])

    found = amounts(mean, std, beside)

    check(found, QUANTIZED, h_y=[LOG4, 0], rmig=[LOG4, 0], rmig_norm=[1, np.nan])
    assert found["mi_zy"][0, 1] == found["mi_zy"][1, 1] == 0
    for name in ("rmig", "rmig_norm", "jemmig", "jemmig_ratio"):
        assert found[name][0] == alone[name][0]
    with pytest.warns(DisentanglementWarning, match="factor 1"):
        metric = RMIG(discretizer=grid()).fit(mean, std, beside)
    assert metric.value_ == pytest.approx(1, abs=QUANTIZED)


MOVED_13 = {
    "latents permuted": ([2, 0, 1], [1, 1, 1], [0, 1], False),
    "latents mirrored": ([0, 1, 2], [-1, 1, -1], [0, 1], False),
    "factors permuted": ([0, 1, 2], [1, 1, 1], [1, 0], False),
    "rows permuted": ([0, 1, 2], [1, 1, 1], [0, 1], True),
}


@pytest.mark.parametrize("label", MOVED_13)
def test_c13_permutations_and_mirrors(label, generic):
    # https://github.com/google-research/disentanglement_lib/issues/33
    # https://github.com/matplotlib/matplotlib/issues/5367
    mean, std, y = generic(seed=13)
    latents, signs, factors, shuffle = MOVED_13[label]
    rows = np.random.default_rng(1).permutation(60) if shuffle else np.arange(60)

    def moved(array):
        return array[rows][:, latents]

    base = amounts(mean, std, y)
    found = amounts(moved(mean) * signs, moved(std), y[rows][:, factors])

    for name in ("h_z", "mi_zx"):
        base[name] = base[name][latents]
    for name in ("misjed", "misjed_norm"):
        base[name] = base[name][np.ix_(latents, latents)]
    base["mi_zy"] = base["mi_zy"][np.ix_(latents, factors)]
    for name in ("h_y", "rmig", "rmig_norm", "jemmig", "jemmig_ratio"):
        base[name] = base[name][factors]
    same(found, base, QUANTIZED)

    base = drawn(mean, std, n_samples=2000)
    found = drawn(moved(mean) * signs, moved(std), n_samples=2000)
    for name in ("sepin", "indin", "mi_z_rest", "mi_zx"):
        base[name] = base[name][latents]
    same(found, base, 0.06)


def test_c13_bounds(generic):
    mean, std, y = generic(seed=13)

    found = amounts(mean, std, y)

    most = np.minimum.outer(found["mi_zx"], found["h_y"])
    assert (found["mi_zy"] > 0).all()
    assert (found["mi_zy"] <= most).all()
    gap = -np.diff(-np.sort(-found["mi_zy"], axis=0), axis=0)[0]
    assert_allclose(found["rmig"], gap, rtol=0, atol=QUANTIZED)
    for name in ("rmig_norm", "jemmig_ratio"):
        assert (found[name] >= 0).all()
        assert (found[name] <= 1).all()


def test_c14_every_row_three_times(generic):
    # https://github.com/scikit-learn/scikit-learn/issues/16457
    mean, std, y = generic(seed=14, n=30)
    thrice = [np.tile(one, (3, 1)) for one in (mean, std, y)]

    same(amounts(*thrice), amounts(mean, std, y), QUANTIZED)
    same(differential(*thrice), differential(mean, std, y), QUANTIZED)
    expected = drawn(mean, std, n_samples=2000)
    same(drawn(*thrice[:2], n_samples=2000), expected, 0.06)


STRINGS_15 = {
    "unicode array": lambda names: names[:, None],
    "unicode column": lambda names: names,
    "object array": lambda names: names.astype(object)[:, None],
    "list": lambda names: names.tolist(),
    "list of lists": lambda names: names[:, None].tolist(),
    "pandas object": lambda names: pd.DataFrame({"shape": names.astype(object)}),
    "pandas string": lambda names: pd.DataFrame({"shape": pd.array(names)}),
    "pandas category": lambda names: pd.DataFrame({"shape": pd.Categorical(names)}),
    "pandas series": lambda names: pd.Series(names, name="shape"),
    "pandas ordered": lambda names: pd.DataFrame(
        {"shape": pd.Categorical(names, ["square", "oval", "heart", "none"], True)}
    ),
}


@pytest.mark.parametrize("label", STRINGS_15)
def test_c15_string_factors(label):
    # https://github.com/danielhomola/mifs/issues/11
    # https://github.com/scikit-learn/scikit-learn/issues/15534
    mean, std, y = one_to_one(12, n_levels=3)
    names = np.array(["oval", "square", "heart"])[y[:, 0]]

    found = amounts(mean, std, STRINGS_15[label](names))

    check(found, QUANTIZED, h_y=[LOG3], mi_zy=[[LOG3], [0]], rmig_norm=[1])
    same(found, amounts(mean, std, y), QUANTIZED)
    if label.startswith("pandas"):
        rmig = RMIG(discretizer=grid()).fit(mean, std, STRINGS_15[label](names))
        assert rmig.factor_names_in_.tolist() == ["shape"]


NUMBERS_15 = {
    "pandas nullable": lambda y: pd.DataFrame({"k": pd.array(y[:, 0], "Int64")}),
    "pandas booleans": lambda y: pd.DataFrame({"k": pd.array(y[:, 0] > 1, "boolean")}),
    "floats": lambda y: y.astype(float),
    "unsigned": lambda y: y.astype(np.uint8),
    "booleans": lambda y: y > 1,
    "pandas latents": lambda y: y,
}


@pytest.mark.parametrize("label", NUMBERS_15)
def test_c15_kinds_of_numbers(label, generic):
    mean, std, _ = generic(seed=15)
    y = np.random.default_rng(0).integers(0, 4, (60, 1))
    factor = NUMBERS_15[label](y)
    expected = amounts(mean, std, y > 1 if "booleans" in label else y)
    if label == "pandas latents":
        names = ["a", "b", "c"]
        mean, std = pd.DataFrame(mean, columns=names), pd.DataFrame(std, columns=names)

    same(amounts(mean, std, factor), expected, QUANTIZED)


def wide(array):
    """Return the array as every third column of a wider one."""
    table = np.full((len(array), 7), np.nan)
    table[:, ::3] = array
    return table[:, ::3]


def backwards(array):
    return array[::-1].copy()[::-1]


LAYOUTS_16 = {
    "Fortran order": lambda m, s, y: tuple(map(np.asfortranarray, (m, s, y))),
    "mixed order": lambda m, s, y: (np.asfortranarray(m), s, y),
    "strided view": lambda m, s, y: (wide(m), s, y),
    "negative strides": lambda m, s, y: tuple(map(backwards, (m, s, y))),
    "read-only": lambda m, s, y: tuple(
        np.broadcast_to(one, one.shape) for one in (m, s, y)
    ),
    "big endian": lambda m, s, y: (m.astype(">f8"), s.astype(">f8"), y.astype(">i8")),
}


@pytest.mark.parametrize("label", LAYOUTS_16)
def test_c16_memory_layout(label, generic):
    # https://github.com/scikit-learn/scikit-learn/issues/26493
    # https://github.com/nmslib/nmslib/issues/230
    arrays = generic(seed=16)
    variant = LAYOUTS_16[label](*arrays)

    same(amounts(*variant), amounts(*arrays), QUANTIZED)
    same(differential(*variant), differential(*arrays), QUANTIZED)
    expected = drawn(*arrays[:2], n_samples=300)
    same(drawn(*variant[:2], n_samples=300), expected, 1e-9)


TYPES_17 = {
    "int64": (np.int64, np.int64),
    "int32 mean": (np.int32, float),
    "uint8 std": (float, np.uint8),
    "int8 mean, bool std": (np.int8, bool),
    "float32": (np.float32, np.float32),
    "float16": (np.float16, np.float16),
    "object": (object, object),
    "lists": (None, None),
}


@pytest.mark.parametrize("label", TYPES_17)
def test_c17_integer_arrays(label):
    # https://github.com/scikit-learn/scikit-learn/issues/26696
    codes = np.tile(np.arange(4), 10)
    mean = np.column_stack([LEVELS[codes], np.where(codes < 2, -1.0, 2.0)])
    std, y = np.ones_like(mean), codes[:, None]
    of_mean, of_std = TYPES_17[label]
    variant = (
        (mean.tolist(), std.tolist())
        if of_mean is None
        else (mean.astype(of_mean), std.astype(of_std))
    )

    same(amounts(*variant, y), amounts(mean, std, y), QUANTIZED)
    same(differential(*variant, y), differential(mean, std, y), QUANTIZED)
    expected = drawn(mean, std, n_samples=300)
    same(drawn(*variant, n_samples=300), expected, 1e-9)


def weighted_18(label):
    """Return (levels, weights, classes) of a spelling of shares 1, 2, 3, 2 of 8."""
    levels, weight = np.arange(4), np.array([1.0, 2, 3, 2])
    return {
        "weights": (levels, weight, levels),
        "rows repeated": (np.repeat(levels, [1, 2, 3, 2]), None, None),
        "times ten": (levels, 10 * weight, levels),
        "float32 shares": (levels, (weight / 8).astype(np.float32), levels),
        "integers": (levels, weight.astype(int), levels),
        "pandas": (levels, pd.Series(weight), levels),
        "row of weight 0": (
            np.append(levels, 0),
            np.append(weight, 0),
            [0, 1, 2, 3, 9],
        ),
    }[label]


@pytest.mark.parametrize(
    "label",
    [
        "weights",
        "rows repeated",
        "times ten",
        "float32 shares",
        "integers",
        "pandas",
        "row of weight 0",
    ],
)
def test_c18_weights_are_copies(label):
    # https://github.com/scikit-learn/scikit-learn/issues/11316
    # https://github.com/scipy/scipy/issues/4702
    # https://github.com/numpy/numpy/issues/6123
    levels, weight, classes = weighted_18(label)
    classes = levels if classes is None else np.array(classes)
    mean = np.column_stack([LEVELS[levels], np.ones(len(levels))])
    h_y = entropy(1 / 8, 2 / 8, 3 / 8, 2 / 8)
    expected = {
        "h_y": [h_y],
        "mi_zy": [[h_y], [0]],
        "rmig_norm": [1],
        "mi_zx": [h_y, 0],
    }

    # Shares in float32 are right to 1e-7.
    tolerance = 1e-6 if label == "float32 shares" else QUANTIZED
    check(amounts(mean, narrow(mean), classes, weight), tolerance, **expected)
    check(differential(mean, narrow(mean), classes, weight), tolerance, **expected)
    found = drawn(mean, narrow(mean), weight, n_samples=2000)
    check(found, DRAWN, sepin=[h_y, 0], mi_zx=[h_y, 0], wsepin=h_y, windin=h_y)
    check(drawn(mean, None, weight), tolerance, sepin=[h_y, 0], wsepin=h_y)


def test_c19_dead_latents_appended():
    # https://github.com/google-research/disentanglement_lib/issues/29
    mean, std, y = grid_of_two()
    dead = np.hstack([mean, np.zeros((16, 3))]), np.hstack([std, np.ones((16, 3))])

    base, found = amounts(mean, std, y), amounts(*dead, y)
    for name in ("h_y", "rmig", "rmig_norm", "jemmig", "jemmig_ratio"):
        check(found, QUANTIZED, **{name: base[name]})
    check(found, QUANTIZED, rmig_norm=[1, 1])
    check(drawn(*dead), DRAWN, wsepin=LOG4, windin=LOG4, sepin=[LOG4] * 2 + [0] * 3)
    for k, expected in [(1, LOG4), (2, LOG4), (5, 2 * LOG4 / 5)]:
        for metric in (SEPIN(k), INDIN(k)):
            value = (
                clone(metric)
                .set_params(n_samples=N_DRAWS, random_state=0)
                .fit(*dead)
                .value_
            )
            assert value == pytest.approx(expected, abs=DRAWN)
            value = (
                clone(metric)
                .set_params(n_samples=N_DRAWS, random_state=0)
                .fit(mean, std)
                .value_
            )
            assert value == pytest.approx(expected, abs=DRAWN)


# Errors, in every metric. The message names the argument.

METRICS = [
    RMIG(),
    JEMMIG(),
    RMIG(method="quadrature"),
    MISJED(),
    Informativeness(),
    SEPIN(),
    WSEPIN(),
    INDIN(),
    WINDIN(),
]
over_metrics = pytest.mark.parametrize("metric", METRICS, ids=str)
needs_y = pytest.mark.parametrize("metric", METRICS[:3], ids=str)


def refuse(metric, match, mean, std, y, sample_weight=None):
    metric = clone(metric)
    with pytest.raises(ValueError, match=match):
        metric.fit(mean, std, y, sample_weight=sample_weight)
    assert not hasattr(metric, "value_")


@over_metrics
@pytest.mark.parametrize("label", ["log-variances", "one tiny entry"])
def test_c20_negative_std(metric, label, generic):
    # https://github.com/AntixK/PyTorch-VAE/issues/15
    # https://github.com/alecGraves/BVAE-tf/issues/4
    mean, std, y = generic(seed=20, n=20)
    if label == "log-variances":
        std = 2 * np.log(std)
    else:
        std[3, 1] = -1e-12

    refuse(metric, r"Z_std .*negative.*exp\(0\.5 \* logvar\)", mean, std, y)


@over_metrics
@pytest.mark.parametrize("argument", ["Z_mean", "Z_std"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_c21_not_finite(metric, argument, value, generic):
    # https://github.com/vanderschaarlab/synthcity/issues/331
    # https://github.com/numpy/numpy/issues/10601
    mean, std, y = generic(seed=21, n=20)
    {"Z_mean": mean, "Z_std": std}[argument][5, 2] = value

    refuse(metric, rf"{argument}.*(NaN|infinity|negative)", mean, std, y)


@over_metrics
def test_c21_std_that_overflowed(metric, generic):
    mean, _, y = generic(seed=21, n=20)
    with np.errstate(over="ignore"):
        std = np.exp(0.5 * np.full((20, 3), 2000.0))

    refuse(metric, "Z_std.*infinity", mean, std, y)
    refuse(
        metric,
        "infinity",
        GaussianPosterior.from_logvar(mean, 2000 + 0 * mean),
        None,
        y,
    )


@needs_y
@pytest.mark.parametrize("label", ["related", "unrelated"])
def test_c22_continuous_factor(metric, label):
    # https://github.com/google-research/disentanglement_lib/issues/25
    # https://github.com/scikit-learn/scikit-learn/issues/17892
    rng = np.random.default_rng(22)
    z = rng.normal(size=60)
    mean = np.column_stack([z, rng.normal(size=60)])
    related = z + 0.1 * rng.normal(size=60)
    y = {"related": related, "unrelated": rng.normal(size=60)}[label]

    with pytest.warns(DisentanglementWarning, match="continuous.* bins"):
        metric = clone(metric).fit(mean, narrow(mean, 0.1), y[:, None])

    # Not 60 classes.
    assert_allclose(metric.factor_entropy_, [np.log(10)], rtol=1e-12)


@needs_y
def test_c22_integer_valued_floats_are_labels(metric, generic):
    mean, std, _ = generic(seed=22)
    y = np.arange(60) % 40

    floats = clone(metric).fit(mean, std, y.astype(float)).value_

    assert floats == clone(metric).fit(mean, std, y).value_


SHAPES_23 = {
    "Z_std of shape (L,)": lambda m, s, y: (m, s[0], y),
    "Z_std of shape (n,)": lambda m, s, y: (m, s[:, 0], y),
    "Z_std of shape (n, 1)": lambda m, s, y: (m, s[:, :1], y),
    "Z_std of shape (1, L)": lambda m, s, y: (m, s[:1], y),
    "Z_std of shape ()": lambda m, s, y: (m, 0.5, y),
    "Z_std transposed": lambda m, s, y: (m, s.T, y),
    "Z_std 3-d": lambda m, s, y: (m, s[None], y),
    "Z_mean 1-d": lambda m, s, y: (m[:, 0], s, y),
    "Z_mean 3-d": lambda m, s, y: (m[None], s, y),
    "no rows": lambda m, s, y: (m[:0], s[:0], y[:0]),
    "no latents": lambda m, s, y: (m[:, :0], s[:, :0], y),
}
SHAPES_OF_Y_23 = {
    "y too short": lambda m, s, y: (m, s, y[:-1]),
    "y too long": lambda m, s, y: (m, s, np.vstack([y, y[:1]])),
    "y 3-d": lambda m, s, y: (m, s, y[:, :, None]),
    "no factors": lambda m, s, y: (m, s, y[:, :0]),
}
WORDS_23 = "shape|inconsistent|dim|sample|feature|2D array|0 columns"


@over_metrics
@pytest.mark.parametrize("label", SHAPES_23)
def test_c23_shapes(metric, label, generic):
    # https://github.com/gregversteeg/NPEET/issues/24
    arrays = generic(seed=23, n=20)

    refuse(metric, WORDS_23, *SHAPES_23[label](*arrays))


@needs_y
@pytest.mark.parametrize("label", SHAPES_OF_Y_23)
def test_c23_shapes_of_y(metric, label, generic):
    arrays = generic(seed=23, n=20)

    refuse(metric, WORDS_23, *SHAPES_OF_Y_23[label](*arrays))


WEIGHTS_24 = {
    "all zero": lambda w: 0 * w,
    "all negative": lambda w: -w,
    "one negative": lambda w: np.where(np.arange(20) == 0, -1.0, w),
    "NaN": lambda w: np.where(np.arange(20) == 0, np.nan, w),
    "infinite": lambda w: np.where(np.arange(20) == 0, np.inf, w),
    "too few": lambda w: w[:-1],
    "2-d": lambda w: w[:, None],
    "one number": lambda w: 1.0,
}


@over_metrics
@pytest.mark.parametrize("label", WEIGHTS_24)
def test_c24_weights_that_define_no_distribution(metric, label, generic):
    # https://github.com/scikit-learn/scikit-learn/issues/32277
    mean, std, y = generic(seed=24, n=20)
    weight = np.ones(20)

    refuse(metric, "sample_weight", mean, std, y, WEIGHTS_24[label](weight))


@over_metrics
def test_c24_weights_of_one_are_no_weights(metric, generic):
    mean, std, y = generic(seed=24, n=20)
    metric = clone(metric)
    if hasattr(metric, "n_samples"):
        metric.set_params(n_samples=200, random_state=0)

    value = metric.fit(mean, std, y).value_

    assert metric.fit(mean, std, y, sample_weight=np.ones(20)).value_ == value
