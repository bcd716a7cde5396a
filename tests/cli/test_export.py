"""`fedreuse export`: plain torch loads the program, by the three lines that are printed, where there is no fedreuse."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from fedreuse import load, run
from fedreuse.core.allowed import allow
from fedreuse.store.directory import RunDirectory
from tests.cli.conftest import Invoke
from tests.tiny import seal_again

BARRED = """
import sys
sys.modules["fedreuse"] = None  # importing it is an error
"""
CHECK = """
from safetensors.torch import load_file
held = load_file({weights!r})
mine = network.state_dict()
assert mine.keys() >= held.keys()
assert all(torch.equal(mine[name], held[name]) for name in held)
assert scores.shape == (1, 10) and torch.equal(network(torch.zeros(3, 1, 8, 8))[:1].isfinite(), torch.ones(1, 10) > 0)
"""
OWN = """
from torch import nn

class Net(nn.Module):
    def __init__(self, num_classes, hidden=4):
        super().__init__()
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.BatchNorm1d(hidden), nn.ReLU())
        self.classifier = nn.Linear(hidden, num_classes)

    def forward(self, inputs):
        return self.classifier(self.features(inputs))
"""


def run_example(told: dict[str, Any], folder: Path) -> None:
    """The printed lines, in a process that cannot import fedreuse."""
    assert len(told["example"]) == 3
    script = BARRED + "\n".join(told["example"]) + CHECK.format(weights=told["file"])
    subprocess.run([sys.executable, "-c", script], check=True, cwd=folder)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["mlp", "{name: cnn, width: 2, hidden: 4}"])
def test_the_printed_lines_load_the_network(invoke: Invoke, tiny: Path, in_folder: Path, network: str) -> None:
    run(load(tiny, [f"network={network}", "rounds.count=1"]), in_folder / "run")
    told = json.loads(invoke("export", "run", "--json").stdout)
    assert (told["file"], told["program"]) == ("run.safetensors", "run.pt2")
    run_example(told, in_folder)
    shown = invoke("export", "run", "--to", "mine.safetensors")
    assert shown.exit_code == 0
    assert "network = torch.export.load('mine.pt2').module()" in shown.stdout
    assert (in_folder / "mine.safetensors").read_bytes() == (in_folder / "run.safetensors").read_bytes()


@pytest.mark.slow
def test_a_model_that_is_not_the_tested_one_is_refused(invoke: Invoke, complete: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(complete, tmp_path / "copy"))
    arrays = RunDirectory.open(place).model()
    name = next(name for name, array in arrays.items() if array.dtype == np.float32)
    (place / "model.safetensors").write_bytes(save({**arrays, name: arrays[name] + 1}))
    shown = invoke("export", place)
    assert shown.exit_code == 2
    assert "model.safetensors was changed" in shown.stderr
    seal_again(place)
    shown = invoke("export", place)
    assert shown.exit_code == 2
    assert "model.safetensors does not hold the model that was tested" in shown.stderr


@pytest.mark.slow
def test_a_network_that_branches_on_values_has_weights_alone(
    invoke: Invoke, tiny: Path, in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branching = OWN.replace("return self", "return inputs.sum() * 0 if inputs.sum() > 1e9 else self")
    (in_folder / "own_branching_net.py").write_text(branching)
    monkeypatch.syspath_prepend(in_folder)
    allow(["own_branching_net"])
    run(load(tiny, ["network=own_branching_net:Net", "rounds.count=1"]), in_folder / "run")
    shown = invoke("export", "run")
    assert shown.exit_code == 0
    assert "no program was written: torch.export cannot export this network" in shown.stdout
    assert "network.load_state_dict(load_file('run.safetensors'))" in shown.stdout
    assert [file.name for file in in_folder.glob("run.*")] == ["run.safetensors"]


@pytest.mark.slow
def test_ones_own_network(invoke: Invoke, tiny: Path, in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (in_folder / "own_export_net.py").write_text(OWN)
    monkeypatch.syspath_prepend(in_folder)
    allow(["own_export_net"])
    config = load(tiny, ['network={name: "own_export_net:Net", hidden: 5}', "rounds.count=1"])
    place = run(config, in_folder / "run").path
    told = json.loads(invoke("export", place, "--json").stdout)
    (in_folder / "own_export_net.py").unlink()  # the program needs the network's own code as little as ours
    run_example(told, in_folder)


@pytest.mark.slow
def test_counters_keep_their_shape(tiny: Path, tmp_path: Path) -> None:
    place = run(load(tiny, ["network={name: cnn, width: 2, hidden: 4}", "rounds.count=1"]), tmp_path / "run").path
    counters = [array for name, array in RunDirectory.open(place).model().items() if name.endswith("batches_tracked")]
    assert [array.shape for array in counters] == [(), ()]
    assert all(array.dtype == np.int64 and array > 0 for array in counters)


def test_an_incomplete_run_has_nothing_to_export(invoke: Invoke, stopped: Path, in_folder: Path) -> None:
    shown = invoke("export", stopped)
    assert shown.exit_code == 2
    assert f"{stopped} is incomplete" in shown.stderr
    assert "--resume" in shown.stderr
    assert list(in_folder.iterdir()) == []


@pytest.mark.slow
def test_not_a_run_and_not_a_place(invoke: Invoke, complete: Path, tmp_path: Path) -> None:
    assert "is not a run directory" in invoke("export", tmp_path).stderr
    assert ".safetensors" in invoke("export", complete, "--to", "mine.pt2").stderr
    shown = invoke("export", complete, "--to", tmp_path / "absent" / "x.safetensors")
    assert shown.exit_code == 2
    assert "--to" in shown.stderr
