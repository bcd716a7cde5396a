"""Audits of gate studies: green with a checksum and a commit, red once changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedreuse import load
from fedreuse.lab.evidence.audit import Audit, audit
from fedreuse.lab.gate.probe import PROBES_FILE, Probe
from fedreuse.lab.gate.study import write_probes
from tests.lab.evidence.audited import change
from tests.lab.gate.test_probe import PROBE
from tests.lab.gate.test_study import SMALL

ROOT = Path(__file__).parents[3]
CLEAN = {"fedreuse": "0.1", "code": {"commit": "0123456789abcdef", "is_modified": False}}


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    write_probes(tmp_path / "gate", load(SMALL), [Probe(**PROBE)], CLEAN)
    return tmp_path / "gate"


def judged(place: Path) -> tuple[str, dict[str, str]]:
    (found,) = audit(place)
    assert isinstance(found, Audit)
    assert found.kind == "gate study"
    return found.verdict, {check.name: check.said for check in found.checks if check.verdict != "ok"}


def test_a_gate_study_as_it_was_written_is_green(gate: Path) -> None:
    assert judged(gate) == ("green", {})


def test_the_stored_gate_studies_are_green() -> None:
    found = audit(ROOT / "results" / "gate.tar.zst")
    assert [one.verdict for one in found if isinstance(one, Audit)] == ["green"] * 3


def _more_harm(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "probes": [{**one, "harm": 2 * one["harm"]} for one in content["probes"]]}


def _without(key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda content: {name: part for name, part in content.items() if name != key}


@pytest.mark.parametrize("spoil", [_more_harm, _without("check"), _without("provenance"), _without("probes")])
def test_a_changed_one_is_red(gate: Path, spoil: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    content = json.loads((gate / PROBES_FILE).read_text())
    (gate / PROBES_FILE).write_text(json.dumps(spoil(content)))
    verdict, said = judged(gate)
    assert verdict == "red"
    assert "is not a gate study, or was changed" in said["probes"]


def test_a_careful_forger_is_found_by_the_run_id(gate: Path) -> None:
    change(gate / PROBES_FILE, config=load(SMALL, ["method.gate.tau_start=0.5"]).to_plain())
    verdict, said = judged(gate)
    assert verdict == "red"
    assert "its configuration has run id" in said["configuration"]
    change(gate / PROBES_FILE, config={})
    assert judged(gate)[0] == "red"


def test_code_that_no_commit_holds_is_unverified(gate: Path) -> None:
    change(gate / PROBES_FILE, provenance={**CLEAN, "code": {"commit": "abc", "is_modified": True}})
    verdict, said = judged(gate)
    assert verdict == "unverified"
    assert "with changes that no commit holds" in said["code"]


def test_one_beside_others_is_judged_with_them(gate: Path) -> None:
    write_probes(gate / "inner", load(SMALL), [], CLEAN)
    assert [(one.path, one.verdict) for one in audit(gate.parent)] == [(gate, "green"), (gate / "inner", "green")]
