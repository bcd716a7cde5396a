"""The check of a device: equal bits on the CPU, a host treated as a device, and bfloat16 within the tolerance."""

from __future__ import annotations

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.trainer import Trainer
from fedreuse.runs.device_check import TOLERANCE, check_device


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
def test_the_host_is_its_own_equal(device: str) -> None:
    # cpu:0 is another device to torch: everything is copied to it and back
    found = check_device(device)
    assert (found.distance, found.is_good) == (0.0, True)
    assert found.scores[0] == found.scores[1]


@pytest.mark.slow
def test_rounding_as_a_device_does_is_within_the_tolerance_and_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Trainer.precision

    def rounded(trainer: Trainer) -> object:
        is_host = trainer.network.vector.device.index is None and trainer.local.device == "cpu"
        return exact(trainer) if is_host else torch.autocast("cpu", torch.bfloat16)

    monkeypatch.setattr(Trainer, "precision", rounded)
    found = check_device("cpu:0")
    assert 0.001 < found.distance < TOLERANCE


def test_devices_that_are_not_here_or_nowhere() -> None:
    with pytest.raises(ConfigError, match=r"local\.device is 'gpu', which torch does not know; set cpu, cuda, or"):
        check_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(
            ConfigError, match=r"local\.device is cuda, but torch finds no CUDA device here .*set local"
        ):
            check_device("cuda")
