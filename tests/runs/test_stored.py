"""Run directories of an older version: today's code reads them, goes on with them and repeats them, bit for bit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

from fedreuse.cli.app import app
from fedreuse.engine.cpu import cpu
from fedreuse.runs.config import RunConfig, load
from fedreuse.runs.directory import RunDirectory
from fedreuse.runs.launch import run

STORED = Path(__file__).parent / "stored"
FACTS: dict[str, Any] = json.loads((STORED / "facts.json").read_text(encoding="utf-8"))
KILLED = [name for name in FACTS if name.startswith("killed-")]
COMPLETE = [name for name in FACTS if name not in KILLED]
LABELS = ("directory", "variant")
"""What `show` says of a run that is no result: where it lies, and a name made up for tables."""


@pytest.fixture
def copy(tmp_path: Path, request: pytest.FixtureRequest) -> RunDirectory:
    """A stored run where it may be written: a look into a journal already writes beside it."""
    return RunDirectory.open(shutil.copytree(STORED / request.param, tmp_path / request.param))


def every(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("copy", names, indirect=True)


def call(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


def config_of(directory: RunDirectory, **changes: Any) -> RunConfig:
    return load({**directory.config, **changes})


def assert_shown(found: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Every fact is what it was; there may be more of them today."""
    for key in stored.keys() - set(LABELS):
        if isinstance(stored[key], Mapping):
            assert_shown(found[key], stored[key])
        else:
            assert found[key] == stored[key], key


def assert_repeated(found: RunDirectory, name: str) -> None:
    """The model, the bytes and the events of a run made today are those of the stored one.

    Equal bits are claimed for equal CPUs; on another one, tensors are close.
    """
    whole = FACTS[name]["whole"]
    assert found.summary["run_id"] == whole["run_id"]
    stored_cpu = json.loads((STORED / name / "provenance.json").read_text(encoding="utf-8"))["cpu"]
    if cpu() == stored_cpu:
        shown = {key: fact for key, fact in whole["show"].items() if key != "memory_bytes"}
        assert_shown(call("show", str(found.path)), shown)
        assert found.summary["model_digest"] == whole["model_digest"]
        assert digests(found.model()) == whole["tensors"]
    elif name in COMPLETE:
        for key, tensor in RunDirectory.open(STORED / name).model().items():
            np.testing.assert_allclose(found.model()[key], tensor, rtol=1e-3, atol=1e-4)


def digests(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    return {name: sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}


def test_every_folder_has_facts_and_the_killed_ones_hold_every_state_of_their_time() -> None:
    assert {path.name for path in STORED.iterdir() if path.is_dir()} == set(FACTS)
    assert (len(COMPLETE), len(KILLED)) == (10, 12)
    named = {
        found.decode()
        for path in STORED.glob("killed-*/**/*")
        if path.is_file()
        for found in re.findall(rb'"class": "fedreuse\.([\w.]+)"', path.read_bytes())
    }
    assert len(named) == 26


@pytest.mark.slow
@every(COMPLETE)
def test_a_complete_run_is_shown_and_exported_as_it_was(copy: RunDirectory) -> None:
    whole = FACTS[copy.path.name]["whole"]
    assert_shown(call("show", str(copy.path)), whole["show"])
    assert copy.summary["model_digest"] == whole["model_digest"]
    target = copy.path / "exported.safetensors"
    assert call("export", str(copy.path), "--to", str(target))["tensors"] == len(whole["tensors"])
    assert digests(load_file(target)) == whole["tensors"]
    assert run(config_of(copy), copy.path, resume=True).summary == copy.summary


@pytest.mark.slow
@every(KILLED)
def test_an_interrupted_run_is_shown_as_it_was_and_goes_on_to_the_same_bits(copy: RunDirectory) -> None:
    name, stored = copy.path.name, FACTS[copy.path.name]["stored"]
    assert_shown(call("show", str(copy.path)), stored["show"])
    done = len(copy.metrics())
    assert 0 < done < config_of(copy).rounds.count
    seconds = [row["seconds"] for row in copy.metrics()]
    resumed = run(config_of(copy), copy.path, resume=True)
    assert [row["seconds"] for row in resumed.metrics()][:done] == seconds  # these rounds were not run again
    assert_repeated(resumed, name)


@pytest.mark.slow
@every(list(FACTS))
def test_the_same_configuration_has_the_same_run_id_and_ends_in_the_same_bits(
    copy: RunDirectory, tmp_path: Path
) -> None:
    config = config_of(copy, executor="serial")
    assert config.run_id == FACTS[copy.path.name]["whole"]["run_id"]
    assert_repeated(run(config, tmp_path / "again"), copy.path.name)
