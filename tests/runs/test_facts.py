"""What a run rests on: written once, compared when it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.engine.schedule import Schedule
from fedreuse.runs.facts import digest_of_model, write_facts
from fedreuse.runs.federation import assemble
from fedreuse.store.directory import RunDirectory
from tests.tiny import tiny


def test_the_digest_follows_the_seed() -> None:
    first, again, other = (digest_of_model(assemble(tiny(seed=seed)).initial) for seed in (5, 5, 6))
    assert first == again != other


def test_facts_are_written_once_and_then_compared(tmp_path: Path) -> None:
    config = tiny()
    federation, directory = assemble(config), RunDirectory(tmp_path)
    schedule = Schedule.draw(6, 4, 3, config.rounds.availability, config.seed)
    write_facts(federation, schedule, directory)
    written = (tmp_path / "provenance.json").read_bytes()
    assert json.loads(written)["digests"]["schedule"] == schedule.digest
    write_facts(federation, schedule, directory)
    assert (tmp_path / "provenance.json").read_bytes() == written
    other = Schedule.draw(6, 4, 2, config.rounds.availability, config.seed)
    with pytest.raises(RunDirectoryError, match="the schedule is not what this run began with"):
        write_facts(federation, other, directory)
