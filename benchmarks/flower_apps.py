"""Bytes and accuracy of ordinary Flower apps with their own strategy and with `Lean` around it, for the how-to guide.

python -m benchmarks.flower_apps [APP ...] [--rounds 30] [--budget 0.05] [--out docs/bench/flower-apps.json]

The apps are in examples/quickstarts. Each runs on an unmodified SuperLink with three unmodified SuperNodes on loopback;
every node reaches the SuperLink through a relay that counts TCP payload, and the counters are read when the run has
ended. The app with `Lean` is the same folder after the replacements of `CHANGES`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.meter.transport_meter import TransportMeter
from fedreuse.lab.bench.results import made_now

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CHANGES", "change", "main", "measure"]

APPS = Path(__file__).parents[1] / "examples" / "quickstarts"
_NODES = 3
_STRATEGY = "from flwr.serverapp.strategy import FedAvg\n"
_CLIENT = "from flwr.clientapp import ClientApp\n"
_START = "    result = strategy.start(\n"
CHANGES = {
    "server_app.py": [
        (_STRATEGY, f"{_STRATEGY}from fedreuse.deploy import Lean\n"),
        (_START, f"    strategy = Lean(strategy, budget={{budget}}, folder={{folder!r}})\n{_START}"),
    ],
    "client_app.py": [
        (_CLIENT, f"{_CLIENT}from fedreuse.deploy import compression_mod\n"),
        ("app = ClientApp()\n", "app = ClientApp(mods=[compression_mod])\n"),
    ],
}
"""Replacements (old text, new text) by file."""


def change(app: Path, budget: float) -> int:
    """Put `Lean` and its mod into a copy of an app, and return the number of changed lines."""
    num_lines = 0
    for name, replacements in CHANGES.items():
        for path in app.rglob(name):
            text = path.read_text()
            for old, new in replacements:
                if text.count(old) != 1:
                    raise SystemExit(f"{path}: {old!r} occurs {text.count(old)} times")
                text = text.replace(old, new.format(budget=budget, folder=str(app.parent)))
                num_lines += 1
            path.write_text(text)
    return num_lines


def measure(name: str, rounds: int, budget: float | None, folder: Path) -> dict[str, Any]:
    """Run an app, changed if there is a budget, and return its bytes, scores and seconds."""
    app = shutil.copytree(APPS / name, folder / "app")
    row: dict[str, Any] = {"app": name, "rounds": rounds, "nodes": _NODES, "budget": budget}
    row["changed_lines"] = 0 if budget is None else change(app, budget)
    result = folder / "result.json"
    began = time.monotonic()
    with _metered(folder / "federation") as (federation, meter):
        federation.launch(app, {"num-server-rounds": rounds, "min-nodes": _NODES, "result-file": str(result)})
        while not result.exists():  # `has_ended` starts a process, and is asked rarely
            if time.monotonic() > began + 60 and int(time.monotonic()) % 30 == 0 and federation.has_ended():
                raise SystemExit(f"{name}: the run failed; see {federation.folder / 'superlink.log'}")
            time.sleep(1)
        while not federation.has_ended():
            time.sleep(1)
        row["seconds"] = round(time.monotonic() - began, 1)
        row["bytes"] = {
            way: sum(meter.counters.read(node, way)["transport"] for node in range(_NODES)) for way in ("up", "down")
        }
        row["connections"] = meter.num_connections
    row["scores"] = json.loads(result.read_text())
    ledger = result.with_name("traffic.json")
    row["ledger"] = json.loads(ledger.read_text()) if ledger.exists() else None
    return row


@contextmanager
def _metered(folder: Path) -> Iterator[tuple[LocalFederation, TransportMeter]]:
    folder.mkdir(parents=True)
    federation = LocalFederation(folder, _NODES)
    federation.is_resident, federation.is_guarded = False, False
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
    parser.add_argument("apps", nargs="*", default=sorted(path.name for path in APPS.iterdir()))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--budget", type=float, default=0.05)
    parser.add_argument("--only", choices=["before", "after"])
    parser.add_argument("--keep", type=Path, help="folder that keeps logs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    rows = []
    for name in options.apps:
        for budget in [None] * (options.only != "after") + [options.budget] * (options.only != "before"):
            with tempfile.TemporaryDirectory(prefix="flower-apps-") as made:
                folder = (options.keep or Path(made)) / f"{name}-{'before' if budget is None else 'after'}"
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                rows.append(measure(name, options.rounds, budget, folder))
            sys.stderr.write(json.dumps(rows[-1]) + "\n")
    if options.out is not None:
        made_now("flower-apps", {"nodes": _NODES}, rows).write(options.out)


if __name__ == "__main__":
    main()
