"""The tutorial on hospitals: its commands run in order, in one shell, in an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "hospitals.md"
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE_SECONDS = 1800


def processes(mark: str) -> list[int]:
    """Return the processes that have a text in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.deploy
def test_a_federation_from_zero(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    mark = f"FEDREUSE_WALK={tmp_path}"
    environment = {**os.environ, "PATH": path, "FEDREUSE_WALK": str(tmp_path)}
    script, log = "\n".join(BLOCK.findall(TUTORIAL.read_text(encoding="utf-8"))), tmp_path / "script.log"
    try:
        with log.open("w") as file:
            done = subprocess.run(
                ["bash", "-euc", script],
                cwd=tmp_path,
                env=environment,
                stdout=file,
                stderr=file,
                timeout=PATIENCE_SECONDS,
            )
    finally:
        while left := processes(mark):
            for number in left:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
    shown = log.read_text()
    assert done.returncode == 0, shown
    assert "rounds               5 of 5" in shown
    assert "accepts connections" in shown
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "run" / "events.jsonl").read_text().count('"event": "round"') == 5
