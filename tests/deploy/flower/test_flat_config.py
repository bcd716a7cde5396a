"""Flat keys and back: the same objects, so the same run."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError
from fedreuse.deploy.flower.flat_config import from_flat, to_flat
from fedreuse.deploy.flower.options import Deployment
from tests.tiny import tiny


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "fed_ef", "clag", "dg_fedreuse", "stc_updown", "docofl"])
def test_there_and_back_for_methods_with_parts_of_their_own(method: str) -> None:
    config = tiny(method={"name": method}, rounds={"count": 3, "cohort": 6})
    options = Deployment(out="1e3", timeout_seconds=2.5, min_clients=3)
    flat = to_flat(config, options)
    assert all(isinstance(value, bool | int | float | str) for value in flat.values())
    again, same = from_flat(flat)
    assert (again, again.run_id, same) == (config, config.run_id, options)


def test_what_is_no_scalar_is_yaml_text() -> None:
    listed = {"name": "listed", "entries": [{"round": 1, "client": 2, "fate": "lost"}]}
    config = tiny(faults=listed, local={"epochs": 1, "batch": 16, "clip_norm": None})
    flat = to_flat(config, Deployment())
    assert flat["task.shape"] == "[1, 8, 8]"
    assert flat["local.clip_norm"] == "null"
    assert from_flat(flat)[0] == config


def test_a_key_written_wrongly_is_refused() -> None:
    flat = to_flat(tiny(), Deployment())
    with pytest.raises(ConfigError, match="timeout_seconds"):
        from_flat({**flat, "deploy.timeout_second": 3})
    with pytest.raises(ConfigError, match="cohort"):
        from_flat({**flat, "rounds.cohrt": 3})


def test_a_node_imports_what_its_owner_allows_whatever_the_server_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flat_own.py").write_text("from torch import nn\n\ndef net(): return nn.Linear(1, 1)\n")
    monkeypatch.chdir(tmp_path)
    flat = to_flat(tiny(), Deployment())
    served = {**flat, "network.name": "flat_own:net"}
    served = {key: value for key, value in served.items() if not key.startswith("network.") or key == "network.name"}
    for wider in ({}, {"FEDREUSE_ALLOW": "flat_own"}, {"deploy.allow": "flat_own"}, {"allow": "flat_own"}):
        with pytest.raises(ConfigError, match=r"refused|unknown key"):
            from_flat({**served, **wider})
    allow(["flat_own"])
    assert from_flat(served)[0].to_plain()["network"] == {"name": "flat_own:net"}
