"""`fedreuse lab export-results`: says where the evidence lies and how large it is, or why there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.lab.evidence import export as evidence
from tests.cli.conftest import Invoke


def test_it_tells_what_it_made(invoke: Invoke, in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def export(study: Path, out: Path, *, admit_partial: bool) -> evidence.Evidence:
        asked.append((study, out, admit_partial))
        return evidence.Evidence(out, 2, 1_500_000, ("old",))

    monkeypatch.setattr(evidence, "export_results", export)
    shown = invoke("lab", "export-results", "runs/mine")
    assert asked == [(Path("runs/mine"), Path("results/mine.tar.zst"), False)]
    assert "results/mine.tar.zst: 2 runs, 1.50 MB; verify it with" in shown.stdout
    assert "unverified: old" in shown.stdout
    told = json.loads(invoke("lab", "export-results", "runs/mine", "--out", "there", "--json").stdout)
    assert told == {"path": "there", "runs": 2, "nbytes": 1_500_000, "unverified": ["old"], "absent": []}


def test_a_folder_without_a_study_is_refused(invoke: Invoke, in_folder: Path) -> None:
    shown = invoke("lab", "export-results", in_folder)
    assert shown.exit_code == 2
    assert "study.json is not the list of a study's runs" in shown.stderr
