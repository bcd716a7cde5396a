"""The work for other simulators: the file, the clients, and the network in both forms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fedreuse.lab.bench.peer_work import PeerWork
from fedreuse.learning.networks.cnn import CnnModule

TRAINING = {"epochs": 2, "batch": 4, "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0, "width": 4, "hidden": 8}


@pytest.fixture
def work() -> PeerWork:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 255, (10, 1, 8, 8), np.uint8), np.arange(10, dtype=np.uint8)
    cohorts = np.array([[0, 1], [1, 2]])
    offsets, indices = np.array([0, 5, 8, 10]), np.arange(10)[::-1].copy()
    return PeerWork(images, labels, offsets, indices, cohorts, np.array([0.5]), np.array([0.25]), TRAINING)


def test_the_file_holds_everything(work: PeerWork, tmp_path: Path) -> None:
    work.save(tmp_path / "work.npz")
    again = PeerWork.load(tmp_path / "work.npz")
    assert again.training == work.training
    assert (again.inputs == work.inputs).all()
    assert (again.cohorts == work.cohorts).all()


def test_a_client_has_its_normalised_examples(work: PeerWork) -> None:
    images, labels = work.client(1, is_tuned=False)
    assert labels.tolist() == [4, 3, 2]
    wanted = (work.inputs[4] / 255 - 0.5) / 0.25
    assert np.allclose(images[0].numpy(), wanted, atol=1e-6)
    assert work.examples(work.cohorts[1]) == 2 * (3 + 2)


def test_both_forms_are_one_function_and_ours(work: PeerWork) -> None:
    plain, tuned = work.network(is_tuned=False), work.network(is_tuned=True)
    ours = CnnModule((1, 8, 8), 10, 4, 8)
    shapes = {name: tensor.shape for name, tensor in ours.state_dict().items()}
    assert {name: tensor.shape for name, tensor in plain.state_dict().items()} == shapes
    images, _ = work.client(0, is_tuned=False)
    for network in (plain, tuned, ours):
        network.eval()
    ours.load_state_dict(plain.state_dict())
    with torch.inference_mode():
        assert torch.allclose(plain(images), tuned(images), atol=1e-5)
        assert torch.allclose(plain(images), ours(images), atol=1e-5)


def test_training_moves_the_network(work: PeerWork) -> None:
    network = work.network(is_tuned=True)
    before = network.classifier[0].weight.detach().clone()
    work.train(network, work.client(0, is_tuned=True))
    assert not torch.equal(before, network.classifier[0].weight)


def test_vectors_have_a_linear_classifier(work: PeerWork) -> None:
    flat = replace(work, inputs=work.inputs.reshape(10, 64).astype(np.float32))
    inputs, labels = flat.client(1, is_tuned=False)
    assert (inputs.numpy() == flat.inputs[[4, 3, 2]]).all()
    network = flat.network(is_tuned=False)
    before = network.weight.clone()
    assert network(inputs).shape == (3, 10)
    flat.train(network, (inputs, labels))
    assert not torch.equal(network.weight, before)
