"""Stored studies: what documents claim of them holds, and a study is kept and shown without its runs."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from docs.site import studies
from fedreuse.accounting.privacy import epsilon
from tests.report.runs import write_run

ROBUST = studies.stored("robust-digits")


def score(attack: str, rule: str) -> float:
    return fmean(run.test_score for run in ROBUST if (run.labels["attack"], run.labels["rule"]) == (attack, rule))


def test_one_rule_stays_within_three_points_of_the_clean_run_and_costs_it_at_most_one() -> None:
    clean, rule = score("no attack", "mean"), "centred clipping, capped"
    assert score("no attack", rule) >= clean - 0.01
    fifth = {run.labels["attack"] for run in ROBUST if run.labels["attack"].endswith(", 20 %")}
    assert len(fifth) == 10
    assert min(score(attack, rule) for attack in fifth) >= clean - 0.03
    below_own = [attack for attack in fifth if score(attack, rule) < score("no attack", rule) - 0.03]
    assert below_own == ["false counts, 20 %"]
    assert score("false counts, 20 %", "centred clipping") < 0.2  # the cap is needed
    rules = {run.labels["rule"] for run in ROBUST}
    third = {run.labels["attack"] for run in ROBUST if run.labels["attack"].endswith(", 30 %")}
    assert all(min(score(attack, each) for attack in third) < clean - 0.03 for each in rules)


def test_a_study_is_kept_and_crossed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "STORED", tmp_path)
    labels = [{"attack": attack, "rule": rule} for attack in ("none", "flip") for rule in ("mean", "median")]
    runs = [write_run(tmp_path / "small" / f"run{number}", test_score=0.1 * number) for number in range(4)]
    entries = [
        {"folder": run.path.name, "variant": "v", "labels": label} for run, label in zip(runs, labels, strict=True)
    ]
    (tmp_path / "small" / "study.json").write_text(studies.json.dumps({"study": "small", "runs": entries}))
    assert studies.store(tmp_path / "small") == tmp_path / "small.json"
    text = studies.filled("before\n<!-- study: small -->\nold\n<!-- end -->\nafter")
    assert "| none | 0.0 | 10.0 |" in text
    assert "| flip | 20.0 | 30.0 |" in text
    assert "old" not in text
    assert studies.filled(text) == text


def test_what_the_privacy_table_shows() -> None:
    runs = {run.variant: run for run in studies.stored("private-digits")}
    spent = {name: run.epsilon for name, run in runs.items()}
    assert spent.pop("FedAvg") is None
    assert spent["private, noise 8"] < spent["private, noise 4"] < spent["private, noise 2"]
    # who is reused by age is public, so decayed releases count less; who is reused by score is not
    assert spent["noise 4, reuse by age"] < spent["private, noise 4"] == spent["noise 4, reuse by proxy"]
    assert spent["private, noise 4"] == epsilon(4.0, 15, 1e-5)
