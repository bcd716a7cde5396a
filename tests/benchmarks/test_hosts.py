"""Ray over isolated hosts: the same bits as the serial executor, with a host cut off and the head restarted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks.hosts import digests, played, requested, study
from fedreuse.deploy.meter.namespaces import why_not
from fedreuse.runs.launch import run


def missing() -> str | None:
    programs = [name for name in ("ip", "tc", "unshare", "nsenter", "ray") if not shutil.which(name, path=_path())]
    return f"no {', '.join(programs)}" if programs else why_not()


def _path() -> str:
    return f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"


def test_digests_tell_runs_apart_and_requests_are_those_of_the_ledgers(tmp_path: Path) -> None:
    plain = {**study(2, 4, 2)["base"], "executor": "serial"}
    run(plain, tmp_path / "a" / "first")
    run(plain, tmp_path / "b" / "again")
    run({**plain, "seed": 7}, tmp_path / "c" / "other")
    first, again, other = (list(digests(tmp_path / name).values()) for name in "abc")
    assert first == again != other
    weights = 64 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10
    assert 4 * 4 * weights < requested(tmp_path / "a") < 4 * 4 * weights + 4_000  # four requests of float32


@pytest.mark.long
@pytest.mark.skipif(bool(missing()), reason=str(missing()))
@pytest.mark.parametrize("case", ["whole", "cut", "restarted"])
def test_two_hosts_give_the_bits_of_the_serial_executor(case: str, tmp_path: Path) -> None:
    plain = study(4, 8, 4)
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(plain))
    command = [Path(sys.executable).parent / "fedreuse", "compare", "study.yaml", "executor=serial", "--out", "serial"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    place = tmp_path / "hosts"
    place.mkdir()
    row = played(case, 2, plain, place)
    assert row["digests"] == digests(tmp_path / "serial")
    if case == "whole":
        assert row["requests"] > 0
