import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import norm
from sklearn.base import clone

from skdisent import (
    JEMMIG,
    MISJED,
    RMIG,
    FactorPosterior,
    GaussianPosterior,
    Informativeness,
    UniformDiscretizer,
    _tables,
)
from skdisent._tables import (
    BATCH_ROWS,
    design_matrix,
    entropy,
    latent_table,
    mutual_information,
    pair_entropy,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdisent.exceptions.DisentanglementWarning"
)

INNER = np.linspace(-4, 4, 41)[1:-1]


def dense_masses(mean, std):
    """Return the bin masses by differences of the distribution function."""
    ends = np.concatenate([[-np.inf], INNER, [np.inf]])
    return np.diff(norm.cdf(ends, mean[:, None], std[:, None]), axis=1)


def one_hot(codes, n_classes):
    return np.eye(n_classes)[codes]


def entropy_of(p):
    p = p[p > 0]
    return -(p * np.log(p)).sum()


@pytest.fixture
def rows():
    """Return posteriors of one latent, weights, and two factors side by side."""
    rng = np.random.default_rng(0)
    n = 2 * BATCH_ROWS + 77  # three batches, the last one short
    soft = rng.dirichlet([1.0, 2.0, 0.5], size=n)
    hard = one_hot(rng.integers(0, 4, n), 4)
    factors = sparse.csr_array(np.hstack([hard, soft]))
    weight = rng.uniform(0.5, 2.0, n)
    mean, std = rng.normal(size=n), rng.uniform(0.01, 1.0, n)
    return mean, std, weight / weight.sum(), factors


def table_of(mean, std, weight, factors, groups=None):
    design = design_matrix(weight, factors, groups)
    n_groups = 1 if groups is None else groups.max() + 1
    return latent_table(mean, std, INNER, design, n_groups)


def test_a_table_is_weights_times_factors_times_masses(rows):
    mean, std, weight, factors = rows

    table = table_of(*rows)

    masses = dense_masses(mean, std)
    design = weight[:, None] * np.hstack([np.ones((len(mean), 1)), factors.toarray()])
    assert_allclose(table.mass[0], design.T @ masses, rtol=0, atol=1e-14)
    assert_allclose(table.squares[0], (design**2).T @ masses**2, rtol=0, atol=1e-14)
    expected = sum(w * entropy_of(p) for w, p in zip(weight, masses, strict=True))
    # norm.cdf cancels right of the mean: x log x at x near 1e-16.
    assert_allclose(table.row_entropy, [expected], rtol=0, atol=1e-12)


def test_tables_of_shards_add_up(rows):
    parts = [slice(0, 100), slice(100, 101), slice(101, None)]

    whole = table_of(*rows)
    first, second, third = (table_of(*(one[part] for one in rows)) for part in parts)
    added = first + second + third

    # Sums of up to a thousand positive terms that add up to 1.
    for name in ("mass", "squares", "row_entropy"):
        assert_allclose(getattr(added, name), getattr(whole, name), atol=1e-14, rtol=0)


def test_groups_of_rows_sum_to_the_whole(rows):
    mean, std, weight, factors = rows
    groups = np.random.default_rng(1).integers(0, 5, len(mean))

    whole, grouped = table_of(*rows), table_of(*rows, groups=groups)

    assert grouped.mass.shape == (5, *whole.mass.shape[1:])
    for name in ("mass", "squares", "row_entropy"):
        summed = getattr(grouped, name).sum(axis=0)
        assert_allclose(summed, getattr(whole, name)[0], atol=1e-14, rtol=0)
    for group in range(5):
        some = groups == group
        alone = table_of(mean[some], std[some], weight[some], factors[some])
        assert_allclose(grouped.mass[group], alone.mass[0], atol=1e-14, rtol=0)


def test_a_missing_label_is_an_empty_row_of_its_block(rows):
    mean, std, weight, factors = rows
    dense = factors.toarray()
    dense[:50, :4] = 0

    table = table_of(mean, std, weight, sparse.csr_array(dense))

    known = table_of(mean[50:], std[50:], weight[50:], factors[50:])
    assert_allclose(table.mass[0, 1:5], known.mass[0, 1:5], atol=1e-14, rtol=0)
    whole = table_of(*rows)
    assert_array_equal(table.mass[0, 0], whole.mass[0, 0])
    assert_array_equal(table.mass[0, 5:], whole.mass[0, 5:])


def test_entropy_of_masses_of_any_sum():
    assert entropy(np.array([2.0, 2.0, 0.0, 4.0])) == pytest.approx(1.5 * np.log(2))
    assert entropy(np.array([0.0, 7.0])) == 0


def test_mutual_information_of_small_tables():
    # H(a) + H(b) - H(a, b) by hand.
    joint = np.array([[4.0, 1.0], [1.0, 2.0]])
    expected = (
        entropy_of(np.array([5, 3]) / 8)
        + entropy_of(np.array([5, 3]) / 8)
        - entropy_of(np.array([4, 1, 1, 2]) / 8)
    )
    assert mutual_information(joint) == pytest.approx(expected, rel=1e-14)
    assert mutual_information(np.diag([1.0, 2.0, 1.0])) == pytest.approx(
        1.5 * np.log(2)
    )
    assert mutual_information(np.array([[1.0, 2.0, 0.0]])) == 0
    assert mutual_information(np.array([[0.1, 0.2], [0.0, 0.0]])) == 0


@pytest.mark.parametrize("seed", range(20))
def test_one_class_has_no_information_at_all(seed):
    # Exactly 0, not -1e-16.
    joint = np.random.default_rng(seed).uniform(size=(1, 30))

    assert mutual_information(joint) == 0


def test_mutual_information_of_independent_axes():
    rng = np.random.default_rng(0)
    for _ in range(50):
        joint = np.outer(rng.uniform(size=5), rng.uniform(size=7))
        # 35 terms p log(1 + few eps).
        assert abs(mutual_information(joint)) < 35 * np.finfo(float).eps


def test_pair_entropy_is_that_of_the_occupied_cells():
    first = np.array([0, 0, 3, 3, 1])
    second = np.array([2, 2, 0, 1, 2])
    weight = np.array([1.0, 2.0, 3.0, 1.0, 1.0])

    expected = entropy_of(np.array([3.0, 3.0, 1.0, 1.0]) / 8)
    assert pair_entropy(first, second, weight) == pytest.approx(expected, rel=1e-14)
    assert pair_entropy(second, first, weight) == pytest.approx(expected, rel=1e-14)


# The metrics on tables.


def brute_force(mean, std, weight, factor, bins):
    """Return H(z), H(z, y), I(z, y) and I(x, z) of one latent from dense tables."""
    weight = weight / weight.sum()
    ends = np.concatenate([[-np.inf], bins[1:-1], [np.inf]])
    masses = np.diff(norm.cdf(ends, mean[:, None], std[:, None]), axis=1)
    joint = (weight[:, None] * factor).T @ masses
    h_z, h_y = entropy_of(joint.sum(axis=0)), entropy_of(joint.sum(axis=1))
    h_zy = entropy_of(joint.ravel())
    given_x = sum(w * entropy_of(p) for w, p in zip(weight, masses, strict=True))
    return h_z, h_zy, h_z + h_y - h_zy, h_z - given_x


@pytest.mark.parametrize("n", [7, 60, 700])
def test_amounts_from_the_definition(n, generic, paper_bins):
    mean, std, y = generic(n=n)
    weight = np.random.default_rng(1).uniform(0.5, 2, n)
    soft = np.random.default_rng(2).dirichlet([1.0, 1.0, 3.0], size=n)

    metric = RMIG(discretizer=paper_bins)
    metric.fit(mean, std, FactorPosterior([y[:, 0], soft]), sample_weight=weight)
    information = Informativeness(discretizer=paper_bins)
    information.fit(mean, std, sample_weight=weight)

    edges = np.linspace(-4, 4, 101)
    for k, factor in enumerate([one_hot(y[:, 0], 3), soft]):
        for i in range(3):
            h_z, h_zy, i_zy, i_xz = brute_force(
                mean[:, i], std[:, i], weight, factor, edges
            )
            found = (
                metric.latent_entropy_[i],
                metric.joint_entropy_[i, k],
                metric.mutual_info_[i, k],
                information.informativeness_[i],
            )
            # The brute force cancels in tails and in H + H - H.
            assert_allclose(found, (h_z, h_zy, i_zy, i_xz), rtol=0, atol=1e-12)


METRICS = [
    RMIG(),
    JEMMIG(),
    RMIG(normalize=False),
    JEMMIG(normalize=False),
    MISJED(),
    Informativeness(),
    RMIG(method="quadrature"),
    JEMMIG(method="quadrature", normalize=False),
    Informativeness(method="quadrature"),
]
over_metrics = pytest.mark.parametrize("metric", METRICS, ids=str, indirect=True)


@pytest.fixture
def metric(request):
    return clone(request.param)


@over_metrics
def test_weights_are_adjacent_copies(metric, generic):
    mean, std, y = generic(n=80)
    weight = np.random.default_rng(0).integers(1, 5, 80)
    copies = np.repeat(np.arange(80), weight)

    weighted = metric.fit(mean, std, y, sample_weight=weight).value_
    copied = metric.fit(mean[copies], std[copies], y[copies]).value_

    assert_allclose(weighted, copied, rtol=0, atol=1e-12)


@over_metrics
def test_a_weight_of_zero_is_no_row(metric, generic):
    mean, std, y = generic(n=80)
    weight = np.random.default_rng(0).integers(0, 3, 80).astype(float)
    # A class of its own and a far place, without weight.
    y[weight == 0] = 9
    mean[weight == 0] = 1e6
    some = weight > 0

    weighted = metric.fit(mean, std, y, sample_weight=weight).value_
    alone = metric.fit(mean[some], std[some], y[some], sample_weight=weight[some])

    assert weighted == alone.value_


@over_metrics
def test_only_shares_of_weights_count(metric, generic):
    mean, std, y = generic()
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)

    values = [
        metric.fit(mean, std, y, sample_weight=scale * weight).value_
        for scale in (1, 10, 1e-200, 1e200)
    ]

    assert_allclose(values, values[0], rtol=0, atol=1e-12)


@over_metrics
def test_jobs_do_not_change_a_value(metric, generic):
    mean, std, y = generic(n=600)

    values = {
        metric.set_params(n_jobs=n_jobs).fit(mean, std, y).value_
        for n_jobs in (None, 2, 3, -1)
    }

    assert len(values) == 1


@over_metrics
def test_order_of_rows_latents_and_factors(metric, generic):
    mean, std, y = generic()
    rows = np.random.default_rng(0).permutation(60)
    latents = [2, 0, 1]

    value = metric.fit(mean, std, y).value_

    for moved in [
        (mean[rows], std[rows], y[rows]),
        (mean[:, latents], std[:, latents], y),
        (mean, std, y[:, ::-1]),
    ]:
        assert_allclose(metric.fit(*moved).value_, value, rtol=0, atol=1e-12)


@over_metrics
def test_relabelling_of_factors(metric, generic):
    mean, std, y = generic()

    value = metric.fit(mean, std, y).value_
    codes = metric.fit(mean, std, np.column_stack([(7 - y[:, 0]) * 3, 1 - y[:, 1]]))
    names = np.array([["c", "a", "b"], ["yes", "no", ""]], dtype=object)
    named = np.column_stack([names[0][y[:, 0]], names[1][y[:, 1]]])

    assert_allclose(codes.value_, value, rtol=0, atol=1e-12)
    assert_allclose(metric.fit(mean, std, named).value_, value, rtol=0, atol=1e-12)


@over_metrics
@pytest.mark.parametrize("scale", [3.7, 1e-5, 2e4])
def test_affine_maps_of_latents(metric, scale, generic):
    mean, std, y = generic()
    scales = scale * np.array([1.0, 2.5, 0.3])
    if isinstance(metric, JEMMIG) and metric.method == "quadrature":
        pytest.skip("a differential entropy moves by log scale")

    value = metric.fit(mean, std, y).value_
    moved = metric.fit(scales * mean + scale * np.array([3.0, -1, 0]), scales * std, y)

    # Edges and means are rounded in relation to the range: in relation to a std, 40
    # times smaller, that is 40 eps, and the mass of a bin changes by as much.
    assert_allclose(moved.value_, value, rtol=0, atol=1e-11)


@over_metrics
def test_mirrored_latents(metric, generic):
    mean, std, y = generic()

    value = metric.fit(mean, std, y).value_

    mirrored = metric.fit(mean * [-1.0, 1, -1], std, y).value_
    assert_allclose(mirrored, value, rtol=0, atol=1e-12)


def test_differential_jemmig_moves_by_the_log_of_the_scale(generic):
    mean, std, y = generic()
    metric = JEMMIG(method="quadrature", normalize=False)

    value = metric.fit(mean, std, y).value_
    scaled = metric.fit(8 * mean, 8 * std, y).value_

    assert_allclose(scaled, value + np.log(8), rtol=0, atol=1e-12)


@over_metrics
def test_soft_one_hot_is_hard(metric, generic):
    mean, std, y = generic()
    soft = FactorPosterior([one_hot(y[:, 0], 3), one_hot(y[:, 1], 2)])
    tables = [one_hot(y[:, 0], 3), one_hot(y[:, 1], 2)]

    hard = metric.fit(mean, std, y).value_

    assert_allclose(metric.fit(mean, std, soft).value_, hard, rtol=0, atol=1e-12)
    assert_allclose(metric.fit(mean, std, tables).value_, hard, rtol=0, atol=1e-12)


def test_soft_labels_are_rows_of_pairs(generic):
    # A supervised encoder: one row per (x, y) pair, weighted by p(x, y).
    mean, std, _ = generic(n=40)
    soft = np.random.default_rng(0).dirichlet([1.0, 2.0], size=40)
    both = np.repeat(np.arange(40), 2)

    for method in ("quantization", "quadrature"):
        metric = RMIG(method=method)
        one = metric.fit(mean, std, FactorPosterior([soft])).mutual_info_
        pairs = metric.fit(
            mean[both], std[both], np.tile([0, 1], 40), sample_weight=soft.ravel()
        )
        assert_allclose(pairs.mutual_info_, one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["quantization", "quadrature"])
def test_each_factor_uses_the_rows_where_it_is_known(method, generic):
    mean, std, y = generic()
    y = y.astype(float)
    y[:10, 0] = np.nan
    fixed = UniformDiscretizer(51, bin_range=(-4, 4))
    metric = RMIG(method=method, missing="drop", discretizer=fixed)

    dropped = metric.fit(mean, std, y)
    found = dropped.mutual_info_, dropped.joint_entropy_, dropped.n_rows_
    known = metric.fit(mean[10:], std[10:], y[10:, 0])

    assert_allclose(found[0][:, [0]], known.mutual_info_, rtol=0, atol=1e-12)
    assert_allclose(found[1][:, [0]], known.joint_entropy_, rtol=0, atol=1e-12)
    assert_array_equal(found[2], [50, 60])


@over_metrics
def test_a_full_covariance_counts_by_its_diagonal(metric, generic, covariances):
    mean, _, y = generic(n=60)
    covariance = covariances(60, 3)
    std = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))

    full = GaussianPosterior(mean, covariance=covariance)
    value = metric.fit(full, None, y).value_
    assert_allclose(metric.fit(mean, std, y).value_, value, rtol=0, atol=1e-12)


# First-order bias, what the warnings of RMIG and JEMMIG are about.


def estimated_bias(mean, std, y, weight=None):
    """Return the bias of I(z_i, y_k) that the library estimates."""
    from skdisent._factors import FactorReader
    from skdisent._reading import read_sample
    from skdisent._tables import TablePlan

    metric = RMIG()
    sample = read_sample(metric, mean, std, y, weight, FactorReader(), reset=True)
    edges = tuple(tuple(INNER.tolist()) for _ in range(mean.shape[1]))
    return TablePlan(edges).estimate(sample).mutual_info_bias


def test_bias_of_hard_rows_is_the_textbook_formula():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 50)
    mean = rng.normal(size=(50, 1)) + y[:, None]

    bias = estimated_bias(mean, np.zeros((50, 1)), y)

    bins = np.searchsorted(INNER, mean[:, 0], side="right")
    cells = len({*zip(bins.tolist(), y.tolist(), strict=True)})
    expected = (cells - len(set(bins.tolist())) - 3 + 1) / (2 * 50)
    assert_allclose(bias, [[expected]], rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_bias_of_soft_rows(weighted):
    rng = np.random.default_rng(0)
    n = 90
    mean, std = rng.normal(size=n), rng.uniform(0.1, 1, n)
    soft = rng.dirichlet([1.0, 0.5, 1.0], size=n)
    weight = rng.uniform(0.2, 3, n) if weighted else np.ones(n)

    given = weight if weighted else None
    bias = estimated_bias(
        mean[:, None], std[:, None], FactorPosterior([soft]), weight=given
    )

    masses = dense_masses(mean, std)
    w, w2 = weight / weight.sum(), weight**2 / (weight**2).sum()
    size = weight.sum() ** 2 / (weight**2).sum()
    p_zy = np.einsum("n,nb,nc->bc", w, masses, soft)
    eff_zy = (np.einsum("n,nb,nc->bc", w2, masses**2, soft**2) / p_zy).sum()
    eff_z = (w2 @ masses**2 / p_zy.sum(axis=1)).sum()
    eff_y = (w2 @ soft**2 / p_zy.sum(axis=0)).sum()
    expected = (eff_zy - eff_z - eff_y + 1) / (2 * size)
    # Bins far from every row divide masses of 1e-17 by each other in the brute force.
    assert_allclose(bias, [[expected]], rtol=0, atol=1e-10)


def test_estimated_bias_is_that_of_many_small_samples():
    # Hard labels without any information, in 200 samples of 60 rows each: the mean of
    # the plug-in information *is* its bias.
    rng = np.random.default_rng(0)
    found, estimated = [], []
    for _ in range(200):
        mean, std = rng.normal(size=(60, 1)), np.full((60, 1), 0.5)
        y = rng.integers(0, 2, 60)
        bins = UniformDiscretizer(40, bin_range=(-4, 4))
        found.append(RMIG(discretizer=bins).fit(mean, std, y).mutual_info_[0, 0])
        estimated.append(estimated_bias(mean, std, y)[0, 0])
    found, estimated = np.array(found), np.array(estimated)

    # 4 standard errors, and the second order: a 60th of the first, times the number of
    # filled cells, here below 10.
    error = (found - estimated).std() / np.sqrt(200)
    assert abs(found.mean() - estimated.mean()) < 4 * error + found.mean() * 10 / 60
    # The textbook formula for hard rows, 39 / 120, is far off.
    assert found.mean() < 39 / 120 / 3


SMOOTH = {
    "collapsed": (0.02, 0.97, 0.03),
    "one posterior for all rows": (0.0, 1.0, 0.0),
    "wider than the bins": (0.5, 10.0, 0.05),
    "a few rows far off": (0.02, 0.97, 0.03),
    "sharp": (1.0, 0.05, 0.3),
    "far from 0": (0.02, 0.97, 0.03),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("n", [_tables.SMOOTH_ROWS, 3 * _tables.SMOOTH_ROWS + 5])
def test_series_of_rows_that_hardly_differ(name, n, monkeypatch):
    spread, width, log_spread = SMOOTH[name]
    rng = np.random.default_rng(0)
    mean = spread * rng.normal(size=n)
    std = width * np.exp(log_spread * rng.normal(size=n))
    if name == "a few rows far off":
        mean[:3], std[3] = [5.0, -5.0, 1e3], 1e-3
    codes = rng.integers(0, 4, n)
    factors = sparse.csr_array((np.ones(n), (np.arange(n), codes)), shape=(n, 4))
    design = design_matrix(rng.dirichlet(np.ones(n)), factors)
    inner = np.linspace(-4, 4, 102)[1:-1]
    if name == "far from 0":
        mean, inner = mean + 2**20, inner + 2**20

    fast = latent_table(mean, std, inner, design)
    monkeypatch.setattr(_tables, "SMOOTH_ROWS", n + 1)
    plain = latent_table(mean, std, inner, design)

    # A series leaves out terms of less than 1e-15 a mass, a few of each degree;
    # entropies change by that times the log of the mass, at most log 1e9, in each of
    # 101 bins.
    assert_allclose(fast.mass, plain.mass, rtol=0, atol=1e-14)
    assert_allclose(fast.squares, plain.squares, rtol=0, atol=1e-14)
    assert_allclose(fast.row_entropy, plain.row_entropy, rtol=0, atol=21 * 101 * 1e-15)
    assert (fast.mass >= 0).all()


def test_series_stand_for_the_rows_of_a_collapsed_latent():
    rng = np.random.default_rng(0)
    mean, std = 0.01 * rng.normal(size=5000), np.exp(0.01 * rng.normal(size=5000))
    inner = np.linspace(-4, 4, 102)[1:-1]
    rows = slice(0, _tables.SMOOTH_ROWS)
    assert _tables.SmoothTerms.of(mean[rows], std[rows], inner) is not None
    # Too few rows, a point, a rectangle that is too large, bins that are almost empty.
    assert _tables.SmoothTerms.of(mean[:100], std[:100], inner) is None
    assert _tables.SmoothTerms.of(mean[rows], 0 * std[rows], inner) is None
    assert _tables.SmoothTerms.of(50 * mean[rows], std[rows], inner) is None
    assert _tables.SmoothTerms.of(mean[rows], std[rows], 3 * inner) is None
