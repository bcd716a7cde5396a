"""Tables of published results: every document shows what its export says; a failing run stops the build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.site import results
from tests.report.runs import write_run

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*(ROOT / "docs" / "results").glob("*.md"), ROOT / "README.md"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_show_what_the_results_say(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert results.filled(text) == text, f"{document.name} differs from results/; write its tables with `make tables`"


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "STORED", tmp_path)
    entries = []
    for variant, gain in (("a", 0.0), ("b", 0.125)):
        for seed in (1, 2):
            name = f"{variant}-{seed}"
            write_run(tmp_path / "small" / name, seed=seed, test_score=0.5 + gain)
            entries.append({"folder": name, "variant": variant, "labels": {"method": variant, "seed": f"seed {seed}"}})
    (tmp_path / "small" / "study.json").write_text(json.dumps({"study": "small", "runs": entries}))
    return tmp_path / "small"


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("kind", "shown"),
    [("comparison", "62.50"), ("paired", "12.5"), ("runs", "| b-2 |"), ("frontier", "12.50 (12.50 to 12.50)")],
)
def test_a_marked_place_gets_its_table_and_keeps_it(kind: str, shown: str) -> None:
    text = results.filled(f"before\n<!-- results: small {kind} -->\nold\n<!-- end -->\nafter")
    assert shown in text
    assert "old" not in text
    assert results.filled(text) == text


def test_what_crossed_is_compared_with_the_measured_first_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clients, two rounds: 20 and 1 kB each way and round; messages are 110 B down and 30 B up, three times."""
    monkeypatch.setattr(results, "STORED", tmp_path)
    entries = []
    for variant, crossing in (("dense", 20_000), ("lean", 1_000)):
        write_run(tmp_path / "nodes" / variant, crossing=crossing)
        entries.append({"folder": variant, "variant": variant, "labels": {"method": variant}})
    (tmp_path / "nodes" / "study.json").write_text(json.dumps({"study": "nodes", "runs": entries}))
    text = results.tables("nodes", "transport")
    assert "| dense | 50.00 | 0.00 | 0.00 | 0.04 | 0.04 | 0.00 | 0.00 | 0.00 | 10.0 | 9.9 | 2 |" in text
    assert "| lean | 50.00 | 0.00 | 0.00 | 0.00 | 0.00 | 95.00 | 95.00 | 95.00 | 0.5 | 0.4 | 2 |" in text


@pytest.mark.usefixtures("stored")
def test_a_table_of_measured_bytes_needs_a_meter() -> None:
    with pytest.raises(ValueError, match="a: a number is missing"):
        results.tables("small", "transport")


def test_probes_of_a_gate_have_tables() -> None:
    assert "**Reliability of the gate's score**" in results.tables("gate", "gate")


def test_a_run_that_fails_is_in_no_document(stored: Path) -> None:
    (stored / "a-1" / "test-opened.json").write_text(json.dumps({"result": {"score": 0.1}}))
    with pytest.raises(ValueError, match="results/small: left out: a, seed 1"):
        results.tables("small", "runs")
