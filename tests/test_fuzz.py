"""A short run of fuzz.py; ``make fuzz`` is the long one."""

import runpy
from pathlib import Path

import numpy as np

from skdisent import _aggregate

fuzz = runpy.run_path(str(Path(__file__).with_name("fuzz.py")))


def test_random_and_hostile_input_ends_in_a_score_or_in_a_named_error():
    outcomes, faults = fuzz["run"](cases=400, seed=20)
    assert faults == {}
    assert outcomes["score"] > 100
    assert outcomes["error"] > 100


def test_the_same_with_fast_sums_for_all_sizes(monkeypatch):
    monkeypatch.setattr(_aggregate, "EXACT_VALUES", -1)
    outcomes, faults = fuzz["run"](cases=400, seed=202)
    assert faults == {}
    assert outcomes["score"] > 100


def test_a_case_can_be_repeated():
    assert fuzz["run_case"](3, 17) == fuzz["run_case"](3, 17)


def test_what_would_be_a_fault():
    assert [*fuzz["faults_of_error"](ValueError("Z_std is negative"))] == []
    assert [*fuzz["faults_of_error"](ValueError("operands could not be broadcast"))]
    assert [*fuzz["faults_of_error"](IndexError("y"))]
    metric = fuzz["RMIG"]()
    metric.value_ = np.nan
    assert [*fuzz["faults_of_score"](metric, metric, warned=False)]
