"""Audits of searches: the rule before the runs, trials and choice as the runs give them; red for what was changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.checked import with_check
from fedreuse.lab.evidence.audit_search import check_search, runs_of_search
from fedreuse.store.consistency import Check
from tests.lab.evidence.audited import change


def checks(place: Path) -> dict[str, Check]:
    return {check.name: check for check in check_search(place)}


def edit(path: Path, spoil: Callable[[Any], object]) -> None:
    """Change a JSON file in place, with a checksum that fits if it had one."""
    content = json.loads(path.read_text())
    spoil(content)
    path.write_text(json.dumps(with_check(content) if "check" in content else content))


@pytest.mark.slow
def test_a_search_says_what_it_is(search: Path) -> None:
    found = checks(search)
    assert {check.verdict for check in found.values()} == {"ok"}, found
    assert found["space"].said == "2 trials (grid), seeds 1"
    assert found["rule"].said.startswith("best (")
    assert "registered 2" in found["rule"].said
    assert found["trials"].said == "2 complete"
    assert '"local.optimizer.lr": 0.' in found["choice"].said
    assert len(runs_of_search(search)) == 2


SPOILERS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "another rule in both files": (
        "space", "it was changed",
        lambda place: [
            edit(place / "space.json", lambda one: one["rule"].update(share=0.5)),
            edit(place / "space.json", lambda one: one["space"]["rule"].update(share=0.5)),
            edit(place / "outcome.json", lambda one: one["rule"].update(share=0.5)),
        ],
    ),
    "another rule in the outcome": (
        "rule", "rule is ", lambda place: edit(place / "outcome.json", lambda one: one["rule"].update(name="pareto")),
    ),
    "a rule that came later": (
        "rule", "before the rule was registered",
        lambda place: change(place / "space.json", registered="2999-01-01T00:00:00+00:00"),
    ),
    "the record itself": (
        "outcome", "its checksum does not fit",
        lambda place: (place / "space.json").write_text((place / "space.json").read_text().replace("best", "pareto")),
    ),
    "a better score": (
        "trials", "values of trial 0",
        lambda place: edit(place / "outcome.json", lambda one: one["trials"][0].update(values=[0.999])),
    ),
    "other settings": (
        "trials", "settings of trial 1",
        lambda place: edit(
            place / "outcome.json", lambda one: one["trials"][1].update(params={"local.optimizer.lr": 0.2})
        ),
    ),
    "runs that belong to another trial": (
        "trials", "lr is ",
        lambda place: edit(
            place / "outcome.json", lambda one: one["trials"][0].update(runs=one["trials"][1]["runs"])
        ),
    ),
    "a trial that is not told": ("trials", "the list of trials", lambda place: edit(
        place / "outcome.json", lambda one: one["trials"].pop()
    )),
    "a run": ("trials", "is missing or incomplete", lambda place: shutil.rmtree(runs_of_search(place)[0])),
    "another choice": (
        "choice", "the choice is ",
        lambda place: edit(place / "outcome.json", lambda one: one.update(chosen=[1 - one["chosen"][0]])),
    ),
    "the frozen configuration": (
        "choice", "chosen.yaml",
        lambda place: (place / "chosen.yaml").write_text(
            (place / "chosen.yaml").read_text().replace("seed: 401", "seed: 402")
        ),
    ),
    "no outcome": ("outcome", "has no outcome.json yet", lambda place: (place / "outcome.json").unlink()),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", SPOILERS)
def test_a_search_that_was_spoilt_is_red(search: Path, tmp_path: Path, what: str) -> None:
    name, words, spoil = SPOILERS[what]
    place = Path(shutil.copytree(search, tmp_path / "out"))
    spoil(place)
    found = checks(place)[name]
    assert (found.verdict, words in found.said) == ("failed", True), found


def test_a_search_without_the_time_of_its_rule(search: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(search, tmp_path / "out"))
    content = json.loads((place / "space.json").read_text())
    del content["registered"]
    (place / "space.json").write_text(json.dumps(with_check(content)))
    found = checks(place)
    assert found["rule"].verdict == "recorded"
    assert "no time was written" in found["rule"].said
    assert {found[name].verdict for name in ("space", "trials", "choice", "code")} == {"ok"}
