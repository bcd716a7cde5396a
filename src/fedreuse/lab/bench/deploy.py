"""What a message to a deployed client costs: an empty Flower app, a process that loads everything, the resident worker.

One federation of real nodes plays the same rounds of DG-FedReuse each way, in turn; the empty app is given the same
messages and says nothing. All in one run, because times of two runs on a busy machine do not compare.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from fedreuse.config.run_config import load
from fedreuse.config.shipped import find_config
from fedreuse.core.errors import RunError
from fedreuse.deploy.flower.app_folder import PACKAGE, write_app
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.lab.bench.deploy_client import ALONE, EMPTY, RESIDENT
from fedreuse.lab.bench.deploy_server import ANCESTOR, RESULT_FILE
from fedreuse.lab.bench.timing import ratios, shown
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.lab.bench.results import Row

__all__ = ["bench_app", "run", "tables"]

_WAYS = (EMPTY, ALONE, RESIDENT)
_KINDS = ("hello", "train", "score", "evaluate")
_POLL_SECONDS = 0.5
_WAIT_SECONDS = 600.0


def run(num_nodes: int, rounds: int, tell: Callable[[str], object] = str) -> list[Row]:
    """A row per exchange, round and process that stays."""
    changes = [f"task.clients={num_nodes}", f"rounds={{count: {rounds}, cohort: {num_nodes}}}"]
    config = load(find_config("digits"), changes)
    with tempfile.TemporaryDirectory(prefix="fedreuse-bench-") as place:
        out = Path(place) / "out"
        out.mkdir()
        app = bench_app(config, Deployment(out=str(out), timeout_seconds=_WAIT_SECONDS), Path(place) / "app")
        os.environ[ANCESTOR] = str(os.getpid())
        with LocalFederation(Path(place) / "federation", num_nodes) as federation:
            tell(f"{num_nodes} nodes are up; {rounds} rounds, each way in turn")
            federation.launch(app)
            return _wait(federation, out / RESULT_FILE, tell)


def bench_app(config: RunConfig, options: Deployment, folder: Path) -> Path:
    """The Flower app of a deployment, with the bench's own ends."""
    app = write_app(config, options, folder)
    for end in ("server", "client"):
        text = (
            f'from fedreuse.lab.bench.deploy_{end} import app\n\n__all__ = ["app"]\n'  # Flower looks for the name there
        )
        (app / PACKAGE / f"{end}.py").write_text(text)
    return app


def _wait(federation: LocalFederation, result: Path, tell: Callable[[str], object]) -> list[Row]:
    """All rows, once the server app has written the last; each exchange is told when its row comes."""
    looked, told = time.monotonic(), 0
    while True:
        rows, is_complete = _measured(result)
        for row in rows[told:]:
            if "exchange_seconds" in row:
                place = f"round {row['round']}" if row["kind"] == "round" else row["kind"]
                tell(f"{row['way']}, {place}: {row['exchange_seconds']:.1f} s")
        told = len(rows)
        if is_complete:
            return rows
        federation.check()
        if time.monotonic() - looked > 60 * _POLL_SECONDS:
            if federation.has_ended() and not _measured(result)[1]:
                log = (federation.folder / "superlink.log").read_text(errors="replace")
                raise RunError(f"the bench's server app failed:\n{log[-2000:]}")
            looked = time.monotonic()
        time.sleep(_POLL_SECONDS)


def _measured(result: Path) -> tuple[list[Row], bool]:
    if not result.exists():
        return [], False
    found = json.loads(result.read_text())
    return found["rows"], found["is_complete"]


def tables(rows: Sequence[Row]) -> list[Table]:
    """Messages by kind, whole rounds, and memory."""
    return [_messages(rows), _rounds(rows), _memory(rows)]


def _of(rows: Sequence[Row], way: str, kind: str) -> list[Row]:
    return [row for row in rows if row["way"] == way and row["kind"] == kind]


def _all(rows: Sequence[Row], key: str) -> list[float]:
    """A number of every message; of an exchange, its share for one message."""
    found = [row[key] for row in rows]
    return [one for value in found for one in (value if isinstance(value, list) else [value])]


def _messages(rows: Sequence[Row]) -> Table:
    headers = (
        "message", "answered by", "seconds, request to reply", "seconds of its process", "over the empty app",
        "processor seconds",
    )  # fmt: skip
    cells = []
    for kind in _KINDS:
        floor = _all(_of(rows, EMPTY, kind), "process_seconds")
        for way in _WAYS:
            found = _of(rows, way, kind)
            lived = _all(found, "process_seconds")
            if lived and floor:
                cells.append(
                    (
                        kind, way, shown(_all(found, "seconds")), shown(lived),
                        "-" if way == EMPTY else f"{median(lived) - median(floor):.2f}",
                        shown(_all(found, "cpu_seconds")),
                    )
                )  # fmt: skip
    legend = (
        "All nodes are asked at once: median over messages, with the range. Request to reply contains Flower's own "
        "pauses, in which a node asks for work every three seconds. Seconds of its process: from the start of the "
        "process of the message to its reply. Over the empty app: the difference of the medians of that. Processor "
        "seconds: of all processes of the federation, per message. A client that is reused answers a score message."
    )
    return Table("Messages", headers, tuple(cells), legend)


def _rounds(rows: Sequence[Row]) -> Table:
    headers = ("answered by", "seconds a round", "processor seconds", "seconds, ratio", "processor seconds, ratio")
    keys = ("exchange_seconds", "exchange_cpu_seconds")
    today = {key: _all(_of(rows, ALONE, "round"), key) for key in keys}
    cells = []
    for way in _WAYS:
        found = {key: _all(_of(rows, way, "round"), key) for key in keys}
        of_today = (shown(ratios(found[key], today[key])) for key in keys)
        cells.append((way, *(shown(found[key]) for key in keys), *of_today))
    legend = (
        "The exchanges of a round, evaluation and hello left out: median over rounds, with the range. Ratios to a "
        "process per message, within the round."
    )
    return Table("Rounds", headers, tuple(cells), legend)


def _memory(rows: Sequence[Row]) -> Table:
    headers = ("process", "lives", "memory (MB)", "of it its own (MB)")
    staying = list(dict.fromkeys(row["way"] for row in rows if row["kind"] == "memory"))
    cells = []
    for name in staying:
        found = _of(rows, name, "memory")
        cells.append((name, "stays", *(shown([row[key] / 1e6 for row in found], 0) for key in ("bytes", "shared"))))
    for way in _WAYS:
        peaks = [peak / 1e6 for kind in _KINDS for peak in _all(_of(rows, way, kind), "peak_bytes")]
        cells.append((f"app process: {way}", "one message", shown(peaks, 0), "-"))
    legend = (
        "Resident memory: of the processes that stay at the end, of the process of a message at its peak. Its own: "
        "pages that several processes share are divided among them."
    )
    return Table("Memory", headers, tuple(cells), legend)
