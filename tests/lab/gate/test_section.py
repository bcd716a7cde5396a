"""Gate section with the tables of a gate study."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.config.run_config import load
from fedreuse.lab.gate.probe import Probe
from fedreuse.lab.gate.section import gate_with_study
from fedreuse.lab.gate.study import write_probes
from fedreuse.report.page.gate import gate
from fedreuse.report.page.shown import Shown
from tests.lab.evidence.test_audit_gate import CLEAN
from tests.lab.gate.test_probe import PROBE
from tests.lab.gate.test_study import SMALL

pytestmark = pytest.mark.slow  # the runs behind it


def test_a_gate_study_beside_the_runs_adds_its_tables(shown: Shown, tmp_path: Path) -> None:
    assert gate_with_study(shown).tables == list(gate(shown).tables)
    write_probes(tmp_path, load(SMALL), [Probe(**PROBE)], CLEAN)
    section = gate_with_study(Shown((tmp_path,), shown.results))
    assert section.key == "gate"
    assert len(section.tables) > len(gate(shown).tables)
