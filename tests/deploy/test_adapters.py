"""Adapters on real nodes: each has its own texts and its own copy of the pretrained weights, which never travel."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from fedreuse.config.run_config import RunConfig
from fedreuse.deploy.flower.authority import make_authority
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.local.run import run_on
from fedreuse.learning.files.writing import at_home_task, write_clients
from fedreuse.learning.networks.network import networks
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.deploy.test_at_home import check_same, deployed
from tests.tiny import tiny

LENGTH, NUM_TOKENS = 12, 98
PLAIN = {"name": "transformer", "width": 8, "layers": 1, "heads": 2}
LORA = {"name": "lora", "rank": 2, "of": {"name": "pretrained", "path": "base.safetensors", "of": PLAIN}}
PATIENT = {"timeout_seconds": 7200.0, "wait_seconds": 7200.0}  # a busy machine is no fault
HUGGING_FACE = {"name": "lora", "rank": 2, "targets": ["q_proj"], "of": {"name": "hugging_face", "path": "tiny"}}


def texts(path: Path) -> Path:
    """Four people who say different things."""
    says = {"ann": "good morrow, ", "bo": "what news? ", "cy": "I know not. ", "di": "farewell, then; "}
    rows = [f'{who},"{words * (4 + turn)}{turn}"' for who, words in says.items() for turn in range(6)]
    path.write_text("\n".join(["who,text", *rows]))
    return path


def pretrain(folder: Path, seed: int) -> Path:
    """Weights of the plain network, as they lie on one machine."""
    torch.default_generator.manual_seed(seed)
    folder.mkdir(parents=True, exist_ok=True)
    module = networks.parse(PLAIN, "network").build((LENGTH,), NUM_TOKENS)
    save_file(module.state_dict(), folder / "base.safetensors")
    return folder


def split(folder: Path, network: dict[str, Any], method: str) -> tuple[RunConfig, RunConfig, dict[int, Path]]:
    """A simulation, the same with texts at home, and a folder for every node with its own texts alone."""
    task = {"name": "text", "path": str(texts(folder / "texts.csv")), "client_column": "who", "target": "sequence",
            "length": LENGTH, "clients": 4, "partition": {"name": "natural", "min_examples": 2}}  # fmt: skip
    parts = {"network": network, "method": {"name": method}, "rounds": {"count": 2, "cohort": 4, "evaluate_every": 1}}
    simulation = tiny(task=task, bounds="median", **parts)  # as with data at home
    written = write_clients(simulation.task, simulation.seed, folder / "all")
    home = tiny(task=at_home_task(written, simulation.task.dataset.load(None)), **parts)
    folders = {client: folder / f"texts-{client}" for client in range(4)}
    for client, place in folders.items():
        shutil.move(folder / f"all/clients/{client}", place)
    return simulation, home, folders


def check_adapters_alone(directory: RunDirectory) -> None:
    """What is trained is the model, and no message holds more than it."""
    model = directory.model()
    assert model
    assert all("lora" in name for name in model)
    assert directory.provenance["digests"]["frozen"]
    assert max(row.value_bytes for row in directory.ledger()) <= sum(array.nbytes for array in model.values())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedavg", "dg_fedreuse", "flasc"])
def test_the_bits_of_the_simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.chdir(pretrain(tmp_path, 1))
    simulation, home, folders = split(tmp_path, LORA, method)
    directory = deployed(tmp_path, home, folders)
    check_same(directory, run(simulation, tmp_path / "simulated"))
    check_adapters_alone(directory)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_bits_of_the_simulation_over_a_hugging_face_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=NUM_TOKENS, hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=16, pad_token_id=0,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    simulation, home, folders = split(tmp_path, HUGGING_FACE, "fedavg")
    directory = deployed(tmp_path, home, folders)
    check_same(directory, run(simulation, tmp_path / "simulated"))
    check_adapters_alone(directory)


@pytest.mark.deploy
def test_real_nodes_and_one_with_other_pretrained_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four nodes end in the bits of the simulation; then node 3 has weights of another training, and is refused."""
    monkeypatch.chdir(pretrain(tmp_path / "server", 1))
    simulation, home, folders = split(tmp_path, LORA, "dg_fedreuse")
    federation = LocalFederation(tmp_path / "federation", 4, make_authority(tmp_path / "authority", 4))
    federation.data = folders
    federation.homes = {node: pretrain(tmp_path / f"machine-{node}", 1) for node in range(4)}
    with federation:
        directory = run_on(federation, home, Deployment(out=str(tmp_path / "out"), **PATIENT))
        check_same(directory, run(simulation, tmp_path / "simulated"))
        check_adapters_alone(directory)
        pretrain(tmp_path / "machine-3", 2)
        other = tiny(**{**home.to_plain(), "seed": 6})  # a run that no node has in memory
        again = run_on(federation, other, Deployment(out=str(tmp_path / "again"), min_clients=3, **PATIENT))
    log = (again.path / "log.txt").read_text()
    assert "is refused: as client 3: its frozen is" in log
    assert "put the same pretrained files on every node" in log
    assert {event.outcome for event in again.events() if event.client == 3} == {"lost"}
    assert {event.outcome for event in again.events() if event.client < 3} <= {"fresh", "reused"}
