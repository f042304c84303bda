"""Information-theoretic metrics of disentanglement as scikit-learn estimators."""

from skdisent._discretization import UniformDiscretizer
from skdisent._factors import FactorPosterior
from skdisent._independence import MISJED
from skdisent._informativeness import Informativeness
from skdisent._interpretability import JEMMIG, RMIG
from skdisent._posterior import GaussianPosterior
from skdisent._separability import INDIN, SEPIN, WINDIN, WSEPIN
from skdisent._suite import MetricSuite

__version__ = "0.1.0.dev0"

__all__ = [
    "INDIN",
    "JEMMIG",
    "MISJED",
    "RMIG",
    "SEPIN",
    "WINDIN",
    "WSEPIN",
    "FactorPosterior",
    "GaussianPosterior",
    "Informativeness",
    "MetricSuite",
    "UniformDiscretizer",
]
