"""A round that is played again is that of the stored run, or refused with what differs and why it may."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedreuse.accounting.ledger import EventRow
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.model import Model
from fedreuse.core.tensors import from_arrays
from fedreuse.lab.gate.recorded import Recorded
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.lab.evidence.audited import change
from tests.tiny import tiny

CONFIG = tiny(rounds={"count": 2}, keep={"models": [1]})
SCHEMA = assemble(CONFIG).schema


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return run(CONFIG, tmp_path_factory.mktemp("stored") / "run")


def last(stored: RunDirectory) -> tuple[Sequence[EventRow], Model]:
    """Events and model of the last round."""
    parts = (SCHEMA.weights, SCHEMA.buffers, SCHEMA.counters)
    model = Model(*(from_arrays(part, stored.model()) for part in parts))
    return [event for event in stored.events() if event.round_number == 2], model


def test_the_same_round_passes_and_one_that_was_not_stored_is_not_compared(stored: RunDirectory) -> None:
    recorded = Recorded(stored, SCHEMA)
    recorded.compare(2, *last(stored))
    recorded.compare(3, *last(stored))
    assert recorded.rounds == 2


def test_another_kept_model_is_refused(stored: RunDirectory) -> None:
    _, model = last(stored)
    first = [event for event in stored.events() if event.round_number == 1]
    with pytest.raises(RunDirectoryError, match=r"round 1 .*: its model is"):
        Recorded(stored, SCHEMA).compare(1, first, model)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"score": 0.5}, "was fresh there and was fresh with score 0.5 here"),
        ({"outcome": "lost", "reason": "late"}, r"was fresh there and was lost \(late\) here"),
        ({"client": 77}, "was fresh there and was not selected here"),
    ],
)
def test_another_decision_is_refused(stored: RunDirectory, changes: dict[str, Any], said: str) -> None:
    (first, *others), model = last(stored)
    with pytest.raises(RunDirectoryError, match=rf"client {first.client} {said}"):
        Recorded(stored, SCHEMA).compare(2, [replace(first, **changes), *others], model)


def test_what_may_be_the_reason_is_told(stored: RunDirectory, tmp_path: Path) -> None:
    place = Path(shutil.copytree(stored.path, tmp_path / "run"))
    change(place / "provenance.json", fedreuse="0.0.1", cpu={"model": "abacus", "instruction_set": ["beads"]})
    with pytest.raises(RunDirectoryError, match=r"fedreuse was 0\.0\.1 and is .*cpu was model abacus and is "):
        Recorded(RunDirectory(place), SCHEMA).compare(2, [], last(stored)[1])


def test_a_kept_model_that_cannot_be_read_is_named(stored: RunDirectory, tmp_path: Path) -> None:
    place = Path(shutil.copytree(stored.path, tmp_path / "run"))
    (place / "models" / "round-00001.safetensors").write_bytes(b"nonsense")
    with pytest.raises(RunDirectoryError, match=r"round-00001.safetensors cannot be read"):
        Recorded(RunDirectory(place), SCHEMA)
