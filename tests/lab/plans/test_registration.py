"""Plans are checked against their study, and registered once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.lab.plans.record import read_plan
from fedreuse.lab.plans.registration import plan_of, register_plan
from fedreuse.studies.study import expand
from tests.studies.test_study import BASE, METHODS

CONTRAST = {"of": "Top-K", "against": "dense FedAvg", "test": "equivalence", "margin": 0.01}
AXES = {"method": METHODS, "seed": [1, 2, 3, 4, 5]}


def test_a_study_without_a_plan_registers_nothing(tmp_path: Path) -> None:
    study = expand({"base": BASE, "axes": AXES}, "s")
    register_plan(study, tmp_path / "out")
    assert plan_of(study) is None
    assert not (tmp_path / "out").exists()


def test_a_registered_plan_is_read_back_and_another_one_is_refused(tmp_path: Path) -> None:
    study = expand({"base": BASE, "axes": AXES, "plan": {"contrasts": [CONTRAST]}}, "s")
    register_plan(study, tmp_path)
    record = read_plan(tmp_path)
    assert record is not None
    assert record.current.plan == plan_of(study)
    other = expand({"base": BASE, "axes": AXES, "plan": {"contrasts": [{**CONTRAST, "margin": 0.02}]}}, "s")
    with pytest.raises(RunDirectoryError):
        register_plan(other, tmp_path)
    register_plan(other, tmp_path, amend=True)
    amended = read_plan(tmp_path)
    assert amended is not None
    assert len(amended.entries) == 2


def test_an_unknown_key_or_label_is_refused() -> None:
    for plan in ({"contrasts": [CONTRAST], "margins": 1}, {"contrasts": [{**CONTRAST, "of": "nothing"}]}):
        with pytest.raises(ConfigError, match="study s, plan"):
            plan_of(expand({"base": BASE, "axes": AXES, "plan": plan}, "s"))


@pytest.mark.parametrize("metric", ["accuracy", "auc", "macro_f1", "micro_f1"])
def test_a_plan_in_percent_is_refused_where_the_score_is_a_share(metric: str) -> None:
    base = {**BASE, "task": {**BASE["task"], "metric": metric}}
    axes = {"method": METHODS, "seed": [1, 2, 3, 4, 5]}
    contrast = {"of": "Top-K", "against": "dense FedAvg", "test": "equivalence", "margin": 0.01}
    plan_of(expand({"base": base, "axes": axes, "plan": {"contrasts": [contrast], "targets": [0.85]}}, "s"))
    for plan, said in (
        ({"contrasts": [{**contrast, "margin": 1}]}, "study s, plan: 'Top-K - dense FedAvg: .*margin is a share"),
        ({"contrasts": [contrast], "targets": [85]}, "study s, plan: targets are shares"),
    ):
        with pytest.raises(ConfigError, match=said):
            plan_of(expand({"base": base, "axes": axes, "plan": plan}, "s"))


@pytest.mark.parametrize("metric", ["r2", "log_likelihood"])
def test_a_score_without_bounds_takes_any_margin_and_target(metric: str) -> None:
    base = {**BASE, "task": {**BASE["task"], "metric": metric}}
    contrast = {"of": "Top-K", "against": "dense FedAvg", "test": "equivalence", "margin": 2}
    axes = {"method": METHODS, "seed": [1, 2, 3, 4, 5]}
    assert plan_of(expand({"base": base, "axes": axes, "plan": {"contrasts": [contrast], "targets": [-3]}}, "s"))
