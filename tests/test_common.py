"""scikit-learn's checks over every public estimator."""

import pytest
from sklearn.utils.estimator_checks import (
    check_param_validation,
    parametrize_with_checks,
)

from skdisent import (
    INDIN,
    JEMMIG,
    MISJED,
    RMIG,
    SEPIN,
    WINDIN,
    WSEPIN,
    Informativeness,
    UniformDiscretizer,
)

METRICS = [
    Informativeness(),
    Informativeness(method="quantization", normalize=True, k=2),
    MISJED(),
    RMIG(),
    JEMMIG(),
    SEPIN(n_samples=50),
    INDIN(n_samples=50, normalize=True),
    WSEPIN(n_samples=50),
    WINDIN(n_samples=50),
]


def expected_failures(estimator):
    if isinstance(estimator, UniformDiscretizer):
        return {}
    return {
        "check_fit_score_takes_y": "asks that the second parameter is named y, where "
        "it is Z_std; a y in its place is understood"
    }


@pytest.mark.filterwarnings("ignore::skdisent.exceptions.DisentanglementWarning")
@parametrize_with_checks(
    [*METRICS, UniformDiscretizer()], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator", [*METRICS, UniformDiscretizer()], ids=lambda e: repr(e)
)
def test_param_validation(estimator):
    check_param_validation(type(estimator).__name__, estimator)
