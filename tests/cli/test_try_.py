"""`fedreuse try`: sentences, table and places; JSON; errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.studies import schedule
from tests.cli.conftest import Invoke
from tests.studies.hospital import hospital_table


def test_one_command_answers(invoke: Invoke, in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "_ROUNDS", 5)
    monkeypatch.setattr(schedule, "_SEARCH_ROUNDS", (2, 2))
    hospital_table(in_folder / "visits.csv", 200)
    words = ["try", "visits.csv", "--label", "readmitted", "--client", "hospital", "--seeds", "2"]
    shown = invoke(*words)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("lean sends ")
    for text in ("dense FedAvg", "report: runs/try/report.html", "preparation.json", "deploy runs/try/lean.yaml"):
        assert text in shown.stdout
    assert "visit_id: an identifier" in shown.stderr
    again = invoke(*words, "--json")
    assert json.loads(again.stdout)["answers"][0]["seeds"] == 2
    other = invoke(*words, "--budget", "0.5")
    assert other.exit_code == 2
    assert "another setting of budget; choose another --out" in other.stderr


def test_user_errors(invoke: Invoke, in_folder: Path) -> None:
    hospital_table(in_folder / "visits.csv", 60)
    missing = invoke("try", "visit.csv", "--label", "readmitted")
    assert missing.exit_code == 2
    assert "did you mean 'visits.csv'" in missing.stderr
    wrong = invoke("try", "visits.csv", "--label", "readmited", "--client", "hospital")
    assert "did you mean 'readmitted'" in wrong.stderr
    unnamed = invoke("try", "visits.csv", "--client", "hospital")
    assert "no column 'label', the default; name the label (--label), one of: " in unnamed.stderr
    assert invoke("try", "visits.csv", "--minutes", "0").exit_code == 2
