"""Published numbers: tables and values of documents are those of the stored results; a failing run stops the build."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from docs.site import marks, results, stored, study_tables
from docs.site.other_tables import age_alone, expected_fresh
from fedreuse.accounting.ledger import EventRow
from fedreuse.robustness.privacy_accountant import epsilon
from fedreuse.store.directory import RunDirectory
from tests.report.runs import write_run
from tests.tiny import seal_again

ROOT = Path(__file__).parents[2]
FINDINGS = sorted((ROOT / "docs" / "findings").glob("*.md"))
DOCUMENTS = [
    path
    for path in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md")
    if re.search(r"^<!-- results: |<!--v:", path.read_text(encoding="utf-8"), re.MULTILINE)
]
SMALL = {
    "lean_mnist",
    "six_nodes",
    "gate",
    "narrow_lines",
    "lean-coding",
    "wire-fashion_mnist",
    "clock",
    "last-models",
    "pace",
    "private-digits",
    "flower-apps",
}
"""Studies that are read in no time: ordinary tests compare their tables and values, the long tests compare all."""


def names(documents: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in documents]


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_a_sample_of_published_numbers_is_what_the_results_say(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    tables = [one for one in marks.blocks(text, "results") if one[0][0] in SMALL and len(one[0]) < 4]
    values = [one for one in marks.values(text) if one[0].split("/")[0] in SMALL]
    assert [" ".join(given) for given, shown in tables if results.tables(*given) != shown] == []
    assert [path for path, shown in values if results.value(path) != shown] == []


@pytest.mark.long
@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_published_numbers_are_what_the_results_say(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert results.filled(text) == text, f"{document.name} differs from results/; write it with `make tables`"


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_marks_are_whole_and_never_begin_a_line(document: Path) -> None:
    """Markdown takes a line that begins with a comment for HTML, and shows its text unformatted."""
    text = document.read_text(encoding="utf-8")
    assert text.count("<!--v:") == text.count("<!--/-->") == len(marks.values(text))
    assert re.findall(r"(?m)^\s*(?:[*-] |\d+\. )?<!--v:.*$", text) == []


def test_the_findings_stay_short() -> None:
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in FINDINGS) <= 13_000


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stored, "STORED", tmp_path)
    entries = []
    for variant, gain in (("a", 0.0), ("b", 0.125)):
        for seed in (1, 2):
            name = f"{variant}-{seed}"
            write_run(tmp_path / "small" / name, seed=seed, test_score=0.5 + gain)
            entries.append({"folder": name, "variant": variant, "labels": {"method": variant, "seed": f"seed {seed}"}})
    (tmp_path / "small" / "study.json").write_text(json.dumps({"study": "small", "runs": entries}))
    return tmp_path / "small"


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("frontier", "| b | 62.50 | 12.50 (12.50 to 12.50) |"),
        ("seeds", "| b | 62.50 | 62.50 |"),
        ("costs", "| b | 62.5 | 0.00 | 0.00 |"),
        ("development", "| b | 60.00 | 50.00 | +0.00 |"),
    ],
)
def test_a_marked_place_gets_its_table_and_keeps_it(kind: str, shown: str) -> None:
    text = results.filled(f"before\n<!-- results: small {kind} -->\nold\n<!-- end -->\nafter")
    assert shown in text
    assert "old" not in text
    assert results.filled(text) == text


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_marked_value_is_a_cell_of_its_table() -> None:
    text = "| gain | <!--v:small/frontier/b/diff-->?<!--/--> |, <!--v:small/seeds/a/1-->?<!--/--> %"
    gain, first = "12.50 (12.50 to 12.50)", "50.00"
    assert results.filled(text) == text.replace("?", gain, 1).replace("?", first)
    assert results.value("small/frontier/b/d#2") == results.value("small/frontier/b/down")
    with pytest.raises(ValueError, match="small/frontier/c/down: 0 cells"):
        results.value("small/frontier/c/down")
    with pytest.raises(ValueError, match="small/frontier/b/d: 2 cells"):
        results.value("small/frontier/b/d")


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_new_boundary_changes_no_published_table(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = stored.runs_of("small")
    before = [study_tables.frontier("small"), study_tables.costs("small")]
    more = [replace(run, savings={**run.savings, "new": run.savings["messages"]}) for run in runs]
    monkeypatch.setattr(study_tables, "runs_of", lambda _: more)
    assert [study_tables.frontier("small"), study_tables.costs("small")] == before


def test_measured_bytes_are_compared_with_the_first_variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clients, two rounds: 20 and 1 kB each way and round; messages are 110 B down and 30 B up, three times."""
    monkeypatch.setattr(stored, "STORED", tmp_path)
    entries = []
    for variant, crossing in (("dense", 20_000), ("lean", 1_000)):
        write_run(tmp_path / "nodes" / variant, crossing=crossing)
        entries.append({"folder": variant, "variant": variant, "labels": {"method": variant}})
    (tmp_path / "nodes" / "study.json").write_text(json.dumps({"study": "nodes", "runs": entries}))
    there = results.tables("nodes", "target", "0.6")
    assert "| dense | 2 | 3 | 0.00 | 0.00 | 0.04 | 0.04 | - | - | - | 1.5 |" in there
    assert "| lean | not reached | - | - | - | - | - | - | - | - | 1.5 |" in results.tables("nodes", "target", "0.7")
    text = results.tables("nodes", "transport")
    assert "| dense | 50.00 | 0.00 | 0.00 | 0.04 | 0.04 | 0.00 | 0.00 | 0.00 | 10.0 | 9.9 | 99.8 | 99.2 |" in text
    assert "| lean | 50.00 | 0.00 | 0.00 | 0.00 | 0.00 | 95.00 | 95.00 | 95.00 | 0.5 | 0.4 | 95.5 | 83.5 |" in text


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_table_of_measured_bytes_needs_a_meter() -> None:
    with pytest.raises(ValueError, match="a: a number is missing"):
        results.tables("small", "transport")


@pytest.mark.slow
def test_a_run_that_fails_is_in_no_document(small: Path) -> None:
    (small / "a-1" / "test-opened.json").write_text(json.dumps({"result": {"score": 0.1}}))
    with pytest.raises(ValueError, match="results/small: left out: a, seed 1"):
        results.tables("small", "frontier")


@pytest.mark.slow
def test_the_two_axes_of_a_study_are_crossed(small: Path) -> None:
    content = json.loads((small / "study.json").read_text())
    for entry, (attack, rule) in zip(content["runs"], [(a, r) for a in "xy" for r in "uv"], strict=True):
        entry["labels"] = {"attack": attack, "rule": rule}
    (small / "study.json").write_text(json.dumps(content))
    assert "| x | 50.0 | 50.0 |\n| y | 62.5 | 62.5 |" in results.tables("small", "crossed")


@pytest.mark.slow
def test_tables_with_test_scores_count_the_evaluations_of_the_test_set(small: Path) -> None:
    for run in sorted(small.glob("*-*")):
        score = json.loads((run / "summary.json").read_text())["test_score"]
        opened = {"digest": "of the split", "model": run.name, "opened": "then", "result": {"score": score}}
        (run / "test-opened.json").write_text(json.dumps(opened))
        seal_again(run)
    assert results.tables("small", "frontier").count("Test sets evaluated: digits 4 times (1 configuration).") == 1
    assert "evaluated:" not in results.tables("small", "development")


@pytest.mark.slow
def test_a_study_that_lacks_runs_says_so_below_its_tables(small: Path) -> None:
    shutil.rmtree(small / "b-2")
    assert results.tables("small", "frontier").endswith(
        "Partial: 3 of 4 runs of small are complete. Absent: b, seed 2."
    )


def test_scores_without_runs_are_called_that() -> None:
    text = results.tables("private-digits", "costs")
    assert text.endswith("without runs that could be audited.")
    assert "| private, noise 4 | 4.22 | 91.5 | 43.34 | 43.34 |" in text


def test_stored_epsilons_are_those_of_the_accountant() -> None:
    spent = {run.variant: run.epsilon for run in stored.scores_alone("private-digits")}
    assert spent["private, noise 4"] == epsilon(4.0, 15, 1e-5)
    assert spent["noise 4, reuse by age"] < spent["private, noise 4"] == spent["noise 4, reuse by proxy"]


def test_age_alone_trains_at_first_contact_and_at_the_limit() -> None:
    events = [EventRow(number, client, "", "", None, None) for client, numbers in {1: (1, 2, 4, 5), 2: (3, 6)}.items()
              for number in numbers]  # fmt: skip
    assert age_alone(events, 3) == 4  # client 1 in rounds 1 and 4, client 2 in rounds 3 and 6
    assert age_alone(events, 9) == 2


def test_the_expected_share_of_age_alone() -> None:
    assert expected_fresh(0.2, 4, 1) == 1
    assert expected_fresh(1.0, 4, 8) == 0.25
    assert expected_fresh(1.0, 1, 8) == 1
    assert expected_fresh(0.2, 4, 100_000) == pytest.approx(1 / (0.2 * (3 + 1 / 0.2)), rel=1e-3)


@pytest.mark.long
def test_age_alone_on_recorded_cohorts_is_what_runs_with_age_alone_did() -> None:
    runs = [run for run in stored.runs_of("reuse") if run.variant == "age alone"]
    assert len(runs) == 5
    for run in runs:
        assert age_alone(RunDirectory.open(run.directory).events(), 4) == run.events["fresh"]
