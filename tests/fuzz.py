"""Random and hostile input for every metric: run ``python tests/fuzz.py``.

Each case must end in a finite score, or in a ValueError or TypeError whose message
names an argument of ours; never in another exception, in a warning of numpy, in a hang,
in an amount beyond its bounds, or with an input changed. A case is made from two
numbers, so that ``--seed 3 --case 17`` repeats one.
"""

import argparse
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, MaxAbsScaler

from skdisent import (
    INDIN,
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    WINDIN,
    WSEPIN,
    FactorPosterior,
    GaussianPosterior,
    Informativeness,
    UniformDiscretizer,
)
from skdisent.exceptions import DisentanglementWarning

METRICS = [Informativeness, MISJED, SEPIN, WSEPIN, INDIN, WINDIN, RMIG, JEMMIG]

# What a message may call the argument that it refuses.
OURS = re.compile(
    r"\b(Z_mean|Z_std|y|sample_weight|mean|std|covariance|columns|names|groups|k|method"
    r"|discretizer|factor_discretizer|n_samples|normalize|missing|random_state|n_jobs"
    r"|logvar|scale_tril|posteriors|bin_range|n_bins|transform)\b"
)
# What scikit-learn has to say on a KBinsDiscretizer, or on names of columns.
THEIRS = re.compile(
    r"Bins whose width are too small|Feature \d+ is constant|has feature names"
    r"|does not have valid feature names"
    r"|matrix subclass|LazyFrame requires"
)
SECONDS_PER_CASE = 20
ROUNDING = 1e-9

HUGE, TINY, SUBNORMAL = 1e299, 1e-300, 5e-324


class Hang(BaseException):
    """A case took longer than `SECONDS_PER_CASE`."""


class Grad:
    """What a tensor that requires grad looks like."""

    requires_grad = True
    ndim = 2
    shape = (3, 2)


class NotAnArray:
    """An object that can only be turned into an array."""

    def __init__(self, value):
        self.value = np.asarray(value)

    def __array__(self, dtype=None, copy=None):
        return self.value if dtype is None else self.value.astype(dtype)


def mostly(rng, good, bad):
    """Return one of the good options, now and then a bad one, called."""
    return pick(rng, bad if rng.random() < 0.1 else good)()


def pick(rng, options):
    """Return one of the options, which may be of any kind."""
    return options[rng.integers(len(options))]


# --------------------------------------------------------------------- plain values


def numbers(rng, shape):
    """Return floats of shape (n, m), mostly ordinary, now and then extreme."""
    values = rng.normal(size=shape)
    return pick(
        rng,
        [
            lambda: values,
            lambda: values,
            lambda: values,
            lambda: values.round(),
            lambda: np.zeros(shape),
            lambda: np.full(shape, values.flat[0] if values.size else 0.0),
            lambda: rng.integers(-2, 3, size=shape),
            lambda: values * HUGE,
            lambda: values * TINY,
            lambda: np.sign(values) * SUBNORMAL,
            lambda: values + 1e15,
            lambda: np.sign(values) * 10.0 ** rng.uniform(-300, 300, size=shape),
            lambda: np.sign(values) * np.finfo(float).max,
        ],
    )()


def deviations(rng, shape):
    """Return non-negative floats."""
    values = rng.uniform(0.01, 1, size=shape)
    return pick(
        rng,
        [
            lambda: values,
            lambda: values,
            lambda: values,
            lambda: np.ones(shape, dtype=int),
            lambda: np.full(shape, 0.1),
            lambda: np.zeros(shape),
            lambda: values * rng.integers(0, 2, size=shape),
            lambda: values * 1e-6,
            lambda: values * HUGE,
            lambda: values * TINY,
            lambda: np.full(shape, SUBNORMAL),
            lambda: 10.0 ** rng.uniform(-300, 300, size=shape),
            lambda: 10.0 ** rng.uniform(-6, 6, size=shape),
        ],
    )()


def covariances(rng, n, n_latents):
    """Return covariances, shared or one a row, now and then no valid ones."""
    factor = rng.normal(size=(n, n_latents, n_latents))
    valid = factor @ np.swapaxes(factor, 1, 2) + 0.1 * np.eye(n_latents)
    return mostly(
        rng,
        [
            lambda: valid,
            lambda: valid[0],
            lambda: valid.astype(np.float32),
            lambda: valid * HUGE,
            lambda: valid * TINY,
            lambda: np.eye(n_latents, dtype=int),
            lambda: np.zeros((n_latents, n_latents)),
            lambda: np.full((n_latents, n_latents), SUBNORMAL),
            lambda: np.ones((n, n_latents, n_latents)),
        ],
        [
            lambda: -valid,
            lambda: factor,
            lambda: np.sign(factor) * np.finfo(float).max,
            lambda: np.where(rng.random(valid.shape) < 0.1, np.nan, valid),
            lambda: valid[:, :1],
            lambda: valid.astype(str),
            lambda: valid + 1j,
        ],
    )


def labels(rng, n):
    """Return one column of labels of any kind."""
    codes = rng.integers(0, rng.integers(1, 5), size=n)
    words = np.array(["oval", "heart", "square", "", "é"])[codes]
    return pick(
        rng,
        [
            lambda: codes,
            lambda: codes.astype(np.uint8),
            lambda: codes > 0,
            lambda: words,
            lambda: words.astype(object),
            lambda: words.astype("S8"),
            lambda: words.astype(np.dtypes.StringDType()),
            lambda: np.array([1, "1", 1.5, None], dtype=object)[codes % 4],
            lambda: np.array([1, 2.5, np.nan, True], dtype=object)[codes % 4],
            lambda: tuples_and_words(codes),
            lambda: codes.astype(float),
            lambda: codes.astype(np.float16) / 2,
            lambda: np.where(codes == 2, np.nan, codes),
            lambda: codes.astype("M8[D]"),
            lambda: codes.astype("m8[s]"),
            lambda: np.where(codes == 1, np.datetime64("NaT"), codes.astype("M8[D]")),
            lambda: np.arange(n),
            lambda: numbers(rng, n),
            lambda: rng.normal(size=n).astype(np.float16),
            lambda: rng.normal(size=n).astype(np.longdouble),
            lambda: pd.Series(words, name="shape"),
            lambda: pd.Series(words, dtype="category"),
            lambda: pd.Series(codes, dtype="Int64").mask(codes == 1),
            lambda: pd.Series(codes / 3, dtype="Float64").mask(codes == 1),
            lambda: pd.Series(codes > 0, dtype="boolean").mask(codes == 1),
            lambda: pd.Series(pd.period_range("2020", periods=n, freq="D")),
            lambda: pl.Series("hue", words.tolist(), dtype=pl.Categorical),
            lambda: pl.Series("hue", [None if c == 1 else int(c) for c in codes]),
            lambda: words.tolist(),
            lambda: [[1], "a"] * (n // 2),
            lambda: codes + 1j,
        ],
    )()


def tuples_and_words(codes):
    """Return labels that cannot be sorted."""
    column = np.empty(len(codes), dtype=object)
    column[:] = [[(1, 2), "a", frozenset(), 3, b"b"][code] for code in codes]
    return column


def probabilities(rng, n):
    """Return class probabilities, now and then no valid ones."""
    table = rng.dirichlet(np.ones(rng.integers(1, 4)), size=n)
    return pick(
        rng,
        [
            lambda: table,
            lambda: table.astype(np.float32),
            lambda: table.tolist(),
            lambda: (table == table.max(axis=1, keepdims=True)).astype(int),
            lambda: pd.DataFrame(table),
            lambda: np.where(rng.random((n, 1)) < 0.2, np.nan, table),
            lambda: table.astype(object),
            lambda: 2 * table,
            lambda: -table,
            lambda: table.astype(str),
            lambda: table + 1j,
            lambda: table * np.inf,
            lambda: table[:, :0],
        ],
    )()


def one_factor(rng, n):
    """Return one column of a FactorPosterior."""
    return pick(
        rng,
        [
            lambda: labels(rng, n),
            lambda: probabilities(rng, n),
            lambda: GaussianPosterior(numbers(rng, (n, 1)), deviations(rng, (n, 1))),
            lambda: GaussianPosterior(
                rng.normal(size=(n, 1)), covariance=covariances(rng, n, 1)
            ),
            lambda: GaussianPosterior(rng.normal(size=(n, 1))),
        ],
    )()


def factors(rng, n):
    """Return y of any kind."""
    k = rng.integers(1, 4)
    codes = rng.integers(0, 3, size=(n, k))
    return pick(
        rng,
        [
            lambda: codes,
            lambda: codes,
            lambda: dressed(rng, codes),
            lambda: labels(rng, n),
            lambda: labels(rng, n),
            lambda: numbers(rng, (n, k)),
            lambda: dressed(rng, numbers(rng, (n, k))),
            lambda: frame({f"f{i}": labels(rng, n) for i in range(k)}),
            lambda: pd.DataFrame(codes, columns=[0, "a", (1, 2)][:k]),
            lambda: pl.DataFrame(codes.astype(float)),
            lambda: FactorPosterior([one_factor(rng, n) for _ in range(k)]),
            lambda: FactorPosterior([one_factor(rng, n) for _ in range(k)]),
            lambda: [np.asarray(probabilities(rng, n)) for _ in range(k)],
            lambda: probabilities(rng, n),
            lambda: np.array([[1, "a", None]] * n, dtype=object),
        ],
    )()


def frame(columns):
    """Return a data frame of those columns that have one length."""
    longest = max(map(len, columns.values()))
    same = {name: one for name, one in columns.items() if len(one) == longest}
    return pd.DataFrame(
        {
            name: one if isinstance(one, np.ndarray | pd.Series) else list(one)
            for name, one in same.items()
        }
    )


def weights(rng, n):
    """Return weights of the rows, or None."""
    values = rng.uniform(size=n)
    return mostly(
        rng,
        [
            lambda: None,
            lambda: None,
            lambda: None,
            lambda: values,
            lambda: values.tolist(),
            lambda: pd.Series(values),
            lambda: rng.integers(0, 3, size=n),
            lambda: values > 0.5,
            lambda: values * HUGE,
            lambda: values * TINY,
            lambda: np.full(n, SUBNORMAL),
            lambda: np.full(n, np.finfo(float).max),
            lambda: 10.0 ** rng.uniform(-320, 300, size=n),
            lambda: np.eye(1, n)[0],
            lambda: values.astype(np.float16),
        ],
        [
            lambda: values - 0.5,
            lambda: np.where(values < 0.1, np.nan, values),
            lambda: np.zeros(n),
            lambda: np.ones(n + 1),
            lambda: values[:, None],
            lambda: values.astype(str),
            lambda: values + 1j,
            lambda: np.arange(n).astype("m8[s]"),
            lambda: 1.0,
            lambda: "balanced",
        ],
    )


# ------------------------------------------------------------ what values come in as


def dressed(rng, array):
    """Return an array as another object with, in the main, the same values."""
    array = np.asarray(array)
    pair = np.stack([array, array], axis=-1)
    names = [f"z{i}" for i in range(array.shape[-1])] if array.ndim > 1 else ["z"]
    with np.errstate(all="ignore"):
        return pick(
            rng,
            [
                lambda: array.tolist(),
                lambda: tuple(map(tuple, array)) if array.ndim == 2 else array,
                lambda: np.asfortranarray(array),
                lambda: pair[..., 0],
                lambda: array[::-1].copy()[::-1],
                lambda: read_only(array),
                lambda: memory_mapped(array),
                lambda: array.astype(np.float16),
                lambda: array.astype(np.float32),
                lambda: array.astype(np.longdouble) * np.longdouble(10) ** 10,
                lambda: array.astype(">f8"),
                lambda: array.astype(object),
                lambda: array.astype(bool),
                lambda: abs(array).astype(np.uint8),
                lambda: array.astype(np.int64),
                lambda: pd.DataFrame(array),
                lambda: pd.DataFrame(array, columns=names if array.ndim > 1 else None),
                lambda: pd.DataFrame(array).astype("Float64"),
                lambda: pl.DataFrame(array.astype(float)),
                lambda: np.matrix(array),
                lambda: NotAnArray(array),
                lambda: torch_tensor(array),
            ],
        )()


def read_only(array):
    """Return a copy that cannot be written to."""
    array = array.copy()
    array.setflags(write=False)
    return array


def memory_mapped(array):
    """Return a copy in a file."""
    if not array.size:
        return array
    with tempfile.TemporaryFile() as file:
        file.write(np.ascontiguousarray(array).tobytes())
        file.flush()
        return np.memmap(file, dtype=array.dtype, mode="r", shape=array.shape)


def torch_tensor(array):
    """Return a tensor where torch is installed."""
    if find_spec("torch") is None:
        return array
    import torch

    return torch.tensor(array.astype(float), requires_grad=bool(array.size % 2))


def spoiled(rng, array):
    """Return what should mostly be refused."""
    array = np.asarray(array, dtype=float)
    n = len(array)
    return pick(
        rng,
        [
            lambda: with_one(rng, array, np.nan),
            lambda: with_one(rng, array, np.inf),
            lambda: with_one(rng, array, -np.inf),
            lambda: with_one(rng, array, -1.0),
            lambda: with_one(rng, array.astype(object), None),
            lambda: with_one(rng, array.astype(object), "a"),
            lambda: with_one(rng, array.astype(object), pd.NA),
            lambda: with_one(rng, array.astype(object), {}),
            lambda: with_one(rng, array.astype(object), 10**400),
            lambda: pd.DataFrame(array).astype("Float64").mask(array > 0),
            lambda: array.T,
            lambda: array[:-1],
            lambda: array[:, :-1],
            lambda: array[:, 0],
            lambda: array[0],
            lambda: array[None],
            lambda: array[..., None],
            lambda: array[:0],
            lambda: array[:, :0],
            lambda: array[:1],
            lambda: array.flat[0] if array.size else 0.0,
            lambda: np.ma.masked_array(array, mask=array > 0),
            lambda: sparse.csr_array(array),
            lambda: sparse.coo_matrix(array),
            lambda: array + 1j,
            lambda: np.nan_to_num(array, posinf=0).astype("i8").astype("M8[s]"),
            lambda: np.nan_to_num(array, posinf=0).astype("i8").astype("m8[s]"),
            lambda: array.astype(str),
            lambda: array.astype("S"),
            lambda: np.zeros(array.shape, dtype="f8,i4"),
            lambda: [[1.0, 2.0], [3.0]],
            lambda: [[1.0] * (i % 2 + 1) for i in range(n)],
            lambda: [{}] * n,
            lambda: {"a": 1},
            lambda: {1, 2},
            lambda: (row for row in array),
            lambda: "Z_mean.npy",
            lambda: 1,
            lambda: object(),
            lambda: np.ndarray,
            lambda: [],
            lambda: [[]] * n,
            lambda: Grad(),
            lambda: pd.DataFrame(array).rename(columns={0: "a"}),
            lambda: pl.DataFrame(array).lazy(),
            lambda: GaussianPosterior(array),
            lambda: FactorPosterior([array[:, 0]]),
            lambda: np.longdouble("1e4000") * array,
        ],
    )()


def with_one(rng, array, value):
    """Return a copy with one entry replaced."""
    array = array.copy()
    if array.size:
        array.flat[rng.integers(array.size)] = value
    return array


def perhaps(rng, value):
    """Return the value, or it in another dress, or spoiled."""
    change = pick(rng, [None] * 12 + [dressed] * 5 + [spoiled])
    return value if change is None else change(rng, value)


# ------------------------------------------------------------------------ the cases


def posteriors(rng, n, n_latents):
    """Return Z_mean and Z_std, in one of the ways they can be passed."""
    shape = (n, n_latents)
    mean, std = numbers(rng, shape), deviations(rng, shape)
    return pick(
        rng,
        [
            lambda: (perhaps(rng, mean), perhaps(rng, std)),
            lambda: (perhaps(rng, mean), perhaps(rng, std)),
            lambda: (perhaps(rng, mean), None),
            lambda: (GaussianPosterior(perhaps(rng, mean), perhaps(rng, std)), None),
            lambda: (
                GaussianPosterior(mean, covariance=covariances(rng, n, n_latents)),
                None,
            ),
            lambda: (
                GaussianPosterior(
                    rng.normal(size=shape), covariance=covariances(rng, n, n_latents)
                ),
                None,
            ),
            lambda: (GaussianPosterior.from_logvar(mean, perhaps(rng, mean)), None),
            lambda: (
                GaussianPosterior.from_cholesky(mean, covariances(rng, n, n_latents)),
                None,
            ),
            lambda: (GaussianPosterior(mean, std), std if n == 5 else None),
        ],
    )()


def discretizers(rng):
    """Return a discretizer, valid or not, or None."""
    quantiles = {"encode": "ordinal", "quantile_method": "averaged_inverted_cdf"}
    return pick(
        rng,
        [
            lambda: None,
            lambda: None,
            lambda: None,
            lambda: UniformDiscretizer(int(rng.integers(1, 12))),
            lambda: UniformDiscretizer(10, bin_range=(-4, 4)),
            lambda: KBinsDiscretizer(4, subsample=None, **quantiles),
            lambda: KBinsDiscretizer(4, strategy="uniform", **quantiles),
            lambda: FrozenEstimator(
                KBinsDiscretizer(3, **quantiles).fit(rng.normal(size=(9, 2)), None)
            ),
            lambda: FrozenEstimator(KBinsDiscretizer(3, **quantiles)),
            lambda: KBinsDiscretizer(1, **quantiles),
            lambda: MaxAbsScaler(),
            lambda: UniformDiscretizer(0),
            lambda: UniformDiscretizer("auto"),
            lambda: UniformDiscretizer(3, bin_range=(1, -1)),
            lambda: UniformDiscretizer(3, bin_range=(-1e308, 1e308)),
            lambda: UniformDiscretizer(3, bin_range=(0, 10**400)),
            lambda: UniformDiscretizer(3, bin_range="ab"),
            lambda: UniformDiscretizer(3, bin_range=(0, np.nan)),
            lambda: UniformDiscretizer(3, bin_range=3),
            lambda: UniformDiscretizer,
            lambda: 5,
        ],
    )()


PARAMETERS = {
    "k": [None, None, 1, 2, 3, 10, np.int64(2), 0, -1, 1.5, "all", True],
    "groups": [
        None,
        None,
        None,
        [[0]],
        [[0], [1]],
        [[0, 1], [2]],
        [(1, 0)],
        np.array([[0, 1]]),
        [],
        [[]],
        [[0], [0]],
        [[7]],
        [[-1]],
        [0, 1],
        [[0.0]],
        [[True]],
        "ab",
        [["a"]],
        {0: 1},
        [[0], None],
    ],
    "method": ["quantization"] * 4 + ["quadrature"] * 6 + ["sampling", None],
    "normalize": [False, False, False, True, True, np.True_, 1, "no"],
    "missing": ["error", "drop", "drop", "drop", None, "ignore"],
    "n_samples": [2, 3, 50, 50, 50, 200, 1, 0, -5, 10.0, None],
    "n_jobs": [None] * 8 + [1, 2, "all", 1.5],
    "random_state": [0, 0, 0, None, np.random.RandomState(0), -1, "x", 1.5],
}


def parameters(rng, metric):
    """Return parameters of the metric, most of them valid."""
    params = {}
    for name in metric().get_params(deep=False):
        options = PARAMETERS.get(name)
        # Every eighth parameter is drawn; the others are left or take a valid value.
        if "discretizer" in name:
            params[name] = discretizers(rng) if rng.random() < 0.2 else None
        elif rng.random() < 0.12:
            params[name] = pick(rng, options)
        elif name in ("n_samples", "random_state"):
            params[name] = {"n_samples": 50, "random_state": 0}[name]
        elif name == "missing":
            params[name] = "drop"
    if params.get("method") == "quadrature" and rng.random() < 0.8:
        params["normalize"] = False
    return params


def fit_by_name(rng, metric, data):
    """Call fit with all arguments by name."""
    return metric.fit(**data)


def fit_by_position(rng, metric, data):
    """Call fit with one, two or three arguments by position."""
    arguments = [data["Z_mean"], data["Z_std"], data["y"]]
    second = pick(rng, [arguments[1], arguments[2], None])
    arguments = pick(rng, [arguments, [arguments[0], second], arguments[:1]])
    return metric.fit(*arguments, sample_weight=data["sample_weight"])


def fit_and_score(rng, metric, data):
    """Call fit, then score with other data."""
    metric.fit(**data)
    other = make_data(rng)
    if rng.random() < 0.5:
        return metric, metric.score(other["Z_mean"], other["Z_std"], other["y"])
    return metric, metric.score(**pick(rng, [data, other, {"y": data["y"]}]))


def score_encoder(rng, metric, data):
    """Call the metric as a scorer."""
    encoder = FunctionTransformer(None)
    if rng.random() < 0.1:
        encoder = pick(rng, [None, object(), FunctionTransformer(lambda X: (X, X))])
    return metric, metric(
        encoder, data["Z_mean"], data["y"], sample_weight=data["sample_weight"]
    )


CALLS = [fit_by_name] * 3 + [fit_by_position, fit_and_score, score_encoder]


def make_data(rng):
    """Return the arguments of fit by name."""
    n, n_latents = pick(rng, [1, 2, 3, 5, 12, 30, 120]), rng.integers(1, 5)
    Z_mean, Z_std = posteriors(rng, n, n_latents)
    codes, y = rng.integers(0, 3, size=n), factors(rng, n)
    if rng.random() < 0.05:
        y = spoiled(rng, numbers(rng, (n, 2)))
    return {
        "Z_mean": Z_mean,
        "Z_std": Z_std,
        "y": pick(rng, [y, y, y, codes, codes, None]),
        "sample_weight": weights(rng, n) if rng.random() < 0.4 else None,
    }


# ---------------------------------------------------------------------- the verdict


def snapshot(value):
    """Return `frozen(value)`; pandas warns where it prints large numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frozen(value)


def frozen(value):
    """Return a value that tells whether an input was changed."""
    if isinstance(value, GaussianPosterior):
        return [frozen(one) for one in (value.mean, value.std, value.covariance)]
    if isinstance(value, FactorPosterior):
        return [frozen(one) for one in value.columns]
    if isinstance(value, np.ma.MaskedArray):
        return repr(value)
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OT":
        return value.dtype.str, value.shape, value.tobytes()
    if sparse.issparse(value) or isinstance(value, pl.LazyFrame):
        return None
    return repr(value)


def faults_of_score(metric, call_result, warned):
    """Return what is wrong with a score that was returned."""
    scored = isinstance(call_result, tuple)
    if scored:
        metric, score = call_result
        if not (type(score) is float and np.isfinite(score)):
            yield f"score is {score!r}"
    for name, value in vars(metric).items():
        if name.endswith("_") and not name.startswith("_"):
            yield from faults_of_attribute(metric, name, value, warned)


def faults_of_attribute(metric, name, value, warned):
    """Return what is wrong with one fitted attribute."""
    if not isinstance(value, float | np.ndarray) or np.asarray(value).dtype.kind != "f":
        return
    value = np.array(value)
    if name == "pairwise_values_":
        value = value[~np.eye(len(value), dtype=bool)]
    if name == "factor_values_" and warned:
        value = value[~np.isnan(value)]
    if not np.isfinite(value).all():
        yield f"{name} is not finite"
    low, high = bounds(metric, name)
    if (value < low - ROUNDING).any() or (value > high + ROUNDING).any():
        yield f"{name} is out of its bounds"


def bounds(metric, name):
    """Return the smallest and the largest value of an attribute, rounding aside."""
    quantized = getattr(metric, "method", None) == "quantization"
    if name in ("factor_values_", "mutual_info_") and quantized:
        unit = metric.normalize and name == "factor_values_"
        return 0.0, 1.0 if unit else np.inf
    if name in ("latent_entropy_", "joint_entropy_", "informativeness_") and quantized:
        return 0.0, np.inf
    if name in ("factor_entropy_", "weights_", "std_error_", "latent_std_errors_"):
        return 0.0, np.inf
    if name in ("pairwise_values_",) and metric.normalize:
        return -np.inf, 1.0
    return -np.inf, np.inf


def faults_of_error(error):
    """Return what is wrong with an exception."""
    if not isinstance(error, ValueError | TypeError):
        yield f"{type(error).__name__}: {error}"
    elif not OURS.search(str(error)):
        yield f"names no argument of ours: {type(error).__name__}: {error}"


def faults_of_warnings(caught):
    """Return the warnings that are not ours."""
    for one in caught:
        ours = issubclass(one.category, DisentanglementWarning)
        from_here = Path(one.filename).name == Path(__file__).name
        if not (ours or from_here or THEIRS.search(str(one.message))):
            where = f"{Path(one.filename).name}:{one.lineno}"
            yield f"{one.category.__name__}: {one.message} ({where})"


@contextmanager
def time_limit(seconds):
    """Raise `Hang` in the main thread after so many seconds."""

    def stop(signum, frame):
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def place(error):
    """Return the innermost line of the package that an exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [one for one in frames if "skdisent" in one.filename]
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"


def run_case(seed, index, verbose=False):
    """Return the outcome of one case ("score", "error" or "none") and its faults."""
    rng = np.random.default_rng([seed, index])
    metric_class = pick(rng, METRICS)
    faults = []
    with warnings.catch_warnings(record=True) as caught, time_limit(SECONDS_PER_CASE):
        warnings.simplefilter("always")
        try:
            data = make_data(rng)
            caught.clear()  # a warning of the generator itself
            metric = metric_class(**parameters(rng, metric_class))
            call = pick(rng, CALLS)
            if verbose:
                print(metric, call.__name__, *map(repr, data.items()), sep="\n")
            before = {name: snapshot(value) for name, value in data.items()}
            global_state = np.random.get_state()[1].copy()  # noqa: NPY002
            result = call(rng, metric, data)
            warned = any(w.category is DisentanglementWarning for w in caught)
            faults += faults_of_score(metric, result, warned)
            outcome = "score"
        except Hang as hang:
            return "hang", [f"takes more than {SECONDS_PER_CASE} s ({place(hang)})"]
        except Exception as error:
            if verbose:
                traceback.print_exc()
            faults += [f"{one} ({place(error)})" for one in faults_of_error(error)]
            outcome = "error"
            if "metric" not in locals():
                return "refused at construction", faults
    faults += faults_of_warnings(caught)
    if "before" in locals():
        faults += [
            f"{name} was changed"
            for name, value in data.items()
            if snapshot(value) != before[name]
        ]
        if (np.random.get_state()[1] != global_state).any():  # noqa: NPY002
            faults.append("the global random state was changed")
    return outcome, [f"{metric_class.__name__}: {one}" for one in faults]


def run(cases, seed=0, seconds=np.inf, first=0):
    """Run cases, and return the outcomes and the faults, each with its first case."""
    outcomes, faults, example = Counter(), Counter(), {}
    end = time.monotonic() + seconds
    for index in range(first, first + cases):
        if time.monotonic() > end:
            break
        outcome, found = run_case(seed, index)
        outcomes[outcome] += 1
        for one in found:
            # Numbers differ from case to case where the fault is the same.
            key = re.sub(r"-?\d+\.\d+(e[+-]?\d+)?", "#", one.replace("\n", " "))[:220]
            faults[key] += 1
            example.setdefault(key, index)
    return outcomes, {key: (n, example[key]) for key, n in faults.most_common()}


def main(arguments=None):
    """Run the cases that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="run this case only, and show it")
    options = parser.parse_args(arguments)
    if options.case is not None:
        print(*run_case(options.seed, options.case, verbose=True), sep="\n")
        return 0
    start = time.monotonic()
    outcomes, faults = run(options.cases, options.seed, options.seconds, options.first)
    spent = time.monotonic() - start
    print(f"{outcomes.total()} cases in {spent:.0f} s: {dict(outcomes)}")
    for fault, (count, example) in faults.items():
        print(f"{count} times, first in case {example}: {fault}")
    print(f"{len(faults)} kinds of fault")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
