"""Run the app before and after the change on a real federation on this machine, and print the traffic of both.

    python examples/flower_app/run.py [--rounds 5] [--nodes 4] [--app before|after]

One SuperLink and its SuperNodes, loopback only. Each node reaches the SuperLink through a relay that counts TCP
payload; a grid that counts stands in front of the strategy. Neither app is changed for it.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.meter.transport_meter import TransportMeter

HERE = Path(__file__).parent
MEASURED = '''"""The app's server, behind a grid that counts."""

import json
from pathlib import Path

from digits_app.server_app import app as measured
from fedreuse.deploy.flower.counting_grid import CountingGrid
from flwr.serverapp import ServerApp

app = ServerApp()


@app.main()
def main(grid, context):
    counting, report = CountingGrid(grid), Path(context.run_config["report-file"])
    error = ""
    try:
        measured(counting, context)
    except BaseException as failure:
        error = f"{type(failure).__name__}: {failure}"
        raise
    finally:
        counts = {f"{kind} {way}": size for (kind, way), size in counting.num_bytes.items()}
        report.with_suffix(".part").write_text(json.dumps({"bytes": counts, "error": error}))
        report.with_suffix(".part").replace(report)
'''


def run(name, num_rounds, num_nodes, folder):
    """One app to its end: bytes of records and of TCP payload, and the accuracy of its final model."""
    app = shutil.copytree(HERE / name, folder / "app")
    (app / "digits_app" / "measured.py").write_text(MEASURED)
    project = (app / "pyproject.toml").read_text()
    project = project.replace("digits_app.server_app:app", "digits_app.measured:app")
    (app / "pyproject.toml").write_text(project + f'report-file = "{folder / "report.json"}"\n')
    with metered(folder / "federation", num_nodes) as federation:
        federation.launch(
            app, {"num-rounds": num_rounds, "num-clients": num_nodes, "model-file": str(folder / "model.npz")}
        )
        report = wait(folder / "report.json", federation, 300 + 300 * num_rounds)
        counters = federation.line.counters
        nodes = range(num_nodes)
        payload = {way: sum(counters.read(node, way)["transport"] for node in nodes) for way in ("down", "up")}
    if report["error"]:
        raise SystemExit(f"{name}: the server app failed: {report['error']}")
    records = {way: sum(n for key, n in report["bytes"].items() if key.endswith(way)) for way in ("down", "up")}
    return {"records": records, "TCP payload": payload, "accuracy": accuracy(folder / "model.npz")}


@contextmanager
def metered(folder, num_nodes):
    """A federation that is up, every node behind a relay of its own."""
    folder.mkdir(parents=True)
    federation = LocalFederation(folder, num_nodes)
    federation.line = TransportMeter("relay", ("127.0.0.1", federation.port), num_nodes, folder / "counters")
    try:
        with federation:
            yield federation
    finally:
        federation.line.close()


def wait(path, federation, seconds):
    """The report of the server app."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        federation.check()
        if time.monotonic() > deadline:
            raise SystemExit(f"no end within {seconds} s; see {federation.folder / 'superlink.log'}")
        time.sleep(0.5)
    return json.loads(path.read_text())


def accuracy(path):
    """The final model on the examples that nobody trained on."""
    sys.path.insert(0, str(HERE / "before"))
    import torch
    from digits_app.task import Net, load_test_data, test

    net = Net()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in np.load(path).items()})
    return test(net, load_test_data())[1]


def main():
    """Both apps, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--app", choices=["before", "after"], action="append")
    parser.add_argument("--json", action="store_true", help="print numbers for a program")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # whoever stops us stops the federation too
    found = {}
    for name in options.app or ["before", "after"]:
        with tempfile.TemporaryDirectory(prefix="flower-app-") as folder:
            found[name] = run(name, options.rounds, options.nodes, Path(folder))
    if options.json:
        print(json.dumps(found))
        return
    print(f"{options.rounds} rounds, {options.nodes} clients, all bytes of the whole run\n")
    print(f"{'':8}{'records down':>16}{'records up':>16}{'TCP down':>16}{'TCP up':>16}{'accuracy':>10}")
    for name, row in found.items():
        sizes = [row[level][way] for level in ("records", "TCP payload") for way in ("down", "up")]
        print(f"{name:8}" + "".join(f"{size:16,}" for size in sizes) + f"{row['accuracy']:10.4f}")


if __name__ == "__main__":
    main()
