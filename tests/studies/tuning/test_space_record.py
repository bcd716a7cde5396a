"""The record of a space: whole, with its time, and refused where it differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.core.checked import with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.studies.tuning.space import load_space
from fedreuse.studies.tuning.space_record import SPACE_FILE, read_space, register

TWINS = Path(__file__).parents[3] / "configs" / "tune" / "digits"


def test_what_is_read_is_the_space_that_was_written(tmp_path: Path) -> None:
    space = load_space(TWINS / "gate.yaml")
    register(space, tmp_path)
    written = (tmp_path / SPACE_FILE).read_bytes()
    record = read_space(tmp_path)
    assert record.registered is not None
    again = record.space()
    assert (again.digest, again.rule, again.dimensions, again.seeds) == (
        space.digest, space.rule, space.dimensions, space.seeds,
    )  # fmt: skip
    register(space, tmp_path)
    assert (tmp_path / SPACE_FILE).read_bytes() == written, "the time of the first trial stays"
    with pytest.raises(RunDirectoryError, match="was begun with another space or rule"):
        register(load_space(TWINS / "gate.yaml", ["tune.trials=9"]), tmp_path)


def test_another_definition_than_the_digest_says_is_refused(tmp_path: Path) -> None:
    register(load_space(TWINS / "fedprox.yaml"), tmp_path)
    content = json.loads((tmp_path / SPACE_FILE).read_text())
    content["space"]["rule"] = {"name": "pareto"}
    (tmp_path / SPACE_FILE).write_text(json.dumps(content))
    with pytest.raises(RunDirectoryError, match="its checksum does not fit"):
        read_space(tmp_path)
    (tmp_path / SPACE_FILE).write_text(json.dumps(with_check(content)))
    with pytest.raises(RunDirectoryError, match="does not match its digest"):
        read_space(tmp_path).space()
