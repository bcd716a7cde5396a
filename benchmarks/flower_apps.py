"""Bytes and accuracy of ordinary Flower apps with their own strategy and with `Lean` around it, for the how-to guide.

python -m benchmarks.flower_apps [APP ...] [--rounds 30] [--budget 0.05] [--out docs/bench/flower-apps.json]

The apps are in examples/quickstarts. Each runs on an unmodified SuperLink with three unmodified SuperNodes on loopback,
or with `--resident` on those of `fedreuse supernode`, which keep the client app in memory before and after. Every node
reaches the SuperLink through a relay that counts TCP payload, and the counters are read when the run has ended. The app
with `Lean` is the same folder after the replacements of `CHANGES`. Rows of other apps, rounds or forms that are in the
file stay. The app `jax` needs jax, and runs in an environment without torch.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.meter.transport_meter import TransportMeter
from fedreuse.lab.bench.results import made_now, read

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["APPS", "ARGUMENTS", "CHANGES", "change", "main", "measure"]

FOLDER = Path(__file__).parents[1] / "examples" / "quickstarts"
APPS: dict[str, tuple[str, dict[str, Any]]] = {
    "pytorch": ("pytorch", {}),
    "batchnorm": ("pytorch", {"network": "batchnorm"}),
    "huggingface": ("pytorch", {"network": "transformer", "learning-rate": 3e-4}),
    "lora": ("pytorch", {"network": "lora", "learning-rate": 2e-3}),
    "numpy": ("numpy", {}),
    "jax": ("numpy", {"framework": "jax"}),
}
"""Folder and run configuration of each app."""
ARGUMENTS = {"lora": "low_rank=True"}
"""Arguments of `Lean` beside the budget, by app."""
_NODES = 3
_PROGRAMS = {
    "resident.worker": "client app",
    "clientapp": "client app",
    "supernode": "node",
    "keeper": "node",
    "serverapp": "server app",
    "superlink": "SuperLink",
}
"""Parts of command lines, and what they run; the first that fits."""
_STRATEGY = "from flwr.serverapp.strategy import FedAvg\n"
_CLIENT = "from flwr.clientapp import ClientApp\n"
_START = "    result = strategy.start(\n"
CHANGES = {
    "server_app.py": [
        (_STRATEGY, f"{_STRATEGY}from fedreuse.deploy import Lean\n"),
        (_START, f"    strategy = Lean(strategy, budget={{budget}}, folder={{folder!r}}{{more}})\n{_START}"),
    ],
    "client_app.py": [
        (_CLIENT, f"{_CLIENT}from fedreuse.deploy import compression_mod\n"),
        ("app = ClientApp()\n", "app = ClientApp(mods=[compression_mod])\n"),
    ],
}
"""Replacements (old text, new text) by file."""


def change(app: Path, budget: float, more: str = "") -> int:
    """Put `Lean`, with more arguments, and its mod into a copy of an app, and return the number of changed lines."""
    num_lines = 0
    for name, replacements in CHANGES.items():
        for path in app.rglob(name):
            text = path.read_text()
            for old, new in replacements:
                if text.count(old) != 1:
                    raise SystemExit(f"{path}: {old!r} occurs {text.count(old)} times")
                text = text.replace(old, new.format(budget=budget, folder=str(app.parent), more=more and f", {more}"))
                num_lines += 1
            path.write_text(text)
    return num_lines


def _stay_in_memory(app: Path) -> None:
    """Make the client app of a copy a resident one."""
    (client,) = app.rglob("client_app.py")
    client.rename(client.with_name("work.py"))
    client.write_text(
        f'from fedreuse.deploy import ResidentApp\n\napp = ResidentApp("{client.parent.name}.work:app")\n'
    )


def measure(name: str, rounds: int, budget: float | None, folder: Path, is_resident: bool = False) -> dict[str, Any]:
    """Run an app, changed if there is a budget, and return its bytes, scores and seconds."""
    source, settings = APPS[name]
    app = shutil.copytree(FOLDER / source, folder / "app")
    row: dict[str, Any] = {"app": name, "rounds": rounds, "nodes": _NODES, "is_resident": is_resident, "budget": budget}
    row["program"] = "resident" if is_resident else "Flower's own"
    row["changed_lines"], row["arguments"] = 0, ""
    if budget is not None:
        row["arguments"] = ARGUMENTS.get(name, "")
        row["changed_lines"] = change(app, budget, row["arguments"])
    if is_resident:
        _stay_in_memory(app)
    result = folder / "result.json"
    began = time.monotonic()
    with _metered(folder / "federation", is_resident) as (federation, meter):
        given = {"num-server-rounds": rounds, "min-nodes": _NODES, "result-file": str(result)}
        federation.launch(app, {**settings, **given})
        row["peak_memory"] = dict.fromkeys(_PROGRAMS.values(), 0)
        while not result.exists():  # `has_ended` starts a process, and is asked rarely
            _note_memory(federation, row["peak_memory"])
            is_time = time.monotonic() > began + 60 and int(time.monotonic()) % 30 == 0
            if is_time and federation.has_ended() and not result.exists():
                raise SystemExit(f"{name}: the run failed; see {federation.folder / 'superlink.log'}")
            time.sleep(1)
        while not federation.has_ended():
            time.sleep(1)
        row["seconds"] = round(time.monotonic() - began, 1)
        row["bytes"] = {
            way: sum(meter.counters.read(node, way)["transport"] for node in range(_NODES)) for way in ("up", "down")
        }
        row["connections"] = meter.num_connections
    row["measured"] = datetime.now(UTC).isoformat(timespec="minutes")
    row["scores"] = json.loads(result.read_text())
    ledger = result.with_name("traffic.json")
    row["ledger"] = json.loads(ledger.read_text()) if ledger.exists() else None
    return row


def _note_memory(federation: LocalFederation, peak: dict[str, int]) -> None:
    """Raise the peak of resident bytes by program to that of the live processes."""
    for number in federation.processes():
        with suppress(OSError, StopIteration):  # it has ended
            command = Path(f"/proc/{number}/cmdline").read_text().replace("-", "")
            status = Path(f"/proc/{number}/status").read_text().splitlines()
            program = next(name for text, name in _PROGRAMS.items() if text in command)
            size = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
            peak[program] = max(peak[program], 1024 * size)


@contextmanager
def _metered(folder: Path, is_resident: bool) -> Iterator[tuple[LocalFederation, TransportMeter]]:
    folder.mkdir(parents=True)
    federation = LocalFederation(folder, _NODES)
    federation.is_resident, federation.is_guarded = is_resident, False
    federation.settings = {"num-partitions": _NODES}
    meter = TransportMeter("relay", ("127.0.0.1", federation.port), _NODES, folder / "counters")
    federation.line = meter
    try:
        with federation:
            yield federation, meter
    finally:
        meter.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the named apps before and after."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flower_apps", description=__doc__.partition("\n")[0])
    parser.add_argument("apps", nargs="*", default=list(APPS))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--budget", type=float, default=0.05)
    parser.add_argument("--only", choices=["before", "after"])
    parser.add_argument("--resident", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder that keeps logs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    for name in options.apps:
        for budget in [None] * (options.only != "after") + [options.budget] * (options.only != "before"):
            with tempfile.TemporaryDirectory(prefix="flower-apps-") as made:
                folder = (options.keep or Path(made)) / f"{name}-{'before' if budget is None else 'after'}"
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                rows.append(measure(name, options.rounds, budget, folder, options.resident))
            sys.stderr.write(json.dumps(rows[-1]) + "\n")
            if options.out is not None:
                _store(rows[-1], options.out)


def _store(row: dict[str, Any], path: Path) -> None:
    """Put a row into the stored results, instead of the one of the same app, rounds and form."""

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return list(APPS).index(row["app"]), row["rounds"], row.get("is_resident", False), row["budget"] is not None

    old = read(path).rows if path.exists() else []
    rows = sorted([*(other for other in old if key(other) != key(row)), row], key=key)
    made_now("flower-apps", {"nodes": _NODES}, rows).write(path)


if __name__ == "__main__":
    main()
