"""Benchmark of messages to deployed clients: an empty Flower app, one process per message, the resident worker.

One federation of real nodes runs the same rounds of DG-FedReuse each way, in turn; the empty app receives the same
messages and replies with none. All in one run, because times of two runs on a shared machine are not comparable.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from fedreuse.config.run_config import load
from fedreuse.config.shipped import find_config
from fedreuse.core.bounded import read_json
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
    """Return one row per exchange, round and resident process."""
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
    """Write the Flower app of a deployment with the server and client of this benchmark."""
    app = write_app(config, options, folder)
    for end in ("server", "client"):
        text = f'from fedreuse.lab.bench.deploy_{end} import app\n\n__all__ = ["app"]\n'  # Flower imports this name
        (app / PACKAGE / f"{end}.py").write_text(text)
    return app


def _wait(federation: LocalFederation, result: Path, tell: Callable[[str], object]) -> list[Row]:
    """Return all rows when the server app has written the last; report each exchange when its row appears."""
    checked, reported = time.monotonic(), 0
    while True:
        rows, is_complete = _measured(result)
        for row in rows[reported:]:
            if "exchange_seconds" in row:
                kind = f"round {row['round']}" if row["kind"] == "round" else row["kind"]
                tell(f"{row['way']}, {kind}: {row['exchange_seconds']:.1f} s")
        reported = len(rows)
        if is_complete:
            return rows
        federation.check()
        if time.monotonic() - checked > 60 * _POLL_SECONDS:
            if federation.has_ended() and not _measured(result)[1]:
                log = (federation.folder / "superlink.log").read_text(errors="replace")
                raise RunError(f"the server app of the benchmark failed:\n{log[-2000:]}")
            checked = time.monotonic()
        time.sleep(_POLL_SECONDS)


def _measured(result: Path) -> tuple[list[Row], bool]:
    if not result.exists():
        return [], False
    content = read_json(result)
    return content["rows"], content["is_complete"]


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return tables of messages by kind, whole rounds, and memory."""
    return [_messages(rows), _rounds(rows), _memory(rows)]


def _of(rows: Sequence[Row], way: str, kind: str) -> list[Row]:
    return [row for row in rows if row["way"] == way and row["kind"] == kind]


def _all(rows: Sequence[Row], key: str) -> list[float]:
    """Return a number of every message; rows of exchanges have one number per exchange."""
    values = [row[key] for row in rows]
    return [number for value in values for number in (value if isinstance(value, list) else [value])]


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
        "All nodes are asked at once: median over messages, with the range. Request to reply includes Flower's "
        "polling: a node asks for work every three seconds. Seconds of its process: from the start of the process of "
        "the message to its reply. Over the empty app: the difference of these medians. Processor seconds: of all "
        "processes of the federation, per message. A client that is reused answers a score message."
    )
    return Table("Messages", headers, tuple(cells), legend)


def _rounds(rows: Sequence[Row]) -> Table:
    headers = ("answered by", "seconds a round", "processor seconds", "seconds, ratio", "processor seconds, ratio")
    keys = ("exchange_seconds", "exchange_cpu_seconds")
    baseline = {key: _all(_of(rows, ALONE, "round"), key) for key in keys}
    cells = []
    for way in _WAYS:
        found = {key: _all(_of(rows, way, "round"), key) for key in keys}
        relative = (shown(ratios(found[key], baseline[key])) for key in keys)
        cells.append((way, *(shown(found[key]) for key in keys), *relative))
    legend = (
        "The exchanges of a round, without evaluation and hello: median over rounds, with the range. Ratios to one "
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
        "Resident memory: of long-lived processes at the end, of the process of a message at its peak. Its own: pages "
        "shared by several processes are divided among them."
    )
    return Table("Memory", headers, tuple(cells), legend)
