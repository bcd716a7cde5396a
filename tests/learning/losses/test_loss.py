"""Losses by name: one's own, and names that are none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError
from fedreuse.learning.losses.loss import losses

OWN = """
import torch

def squares(outputs, labels, factor=1.0):
    wanted = torch.nn.functional.one_hot(labels, outputs.shape[1])
    return factor * ((outputs - wanted) ** 2).mean()
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's."""
    (tmp_path / "own_losses.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    allow(["own_losses"])
    return "own_losses"


def test_ones_own_loss(own: str) -> None:
    scores, labels = torch.tensor([[0.0, 1.0, 3.0]]), torch.tensor([1])
    loss = losses.parse({"name": f"{own}:squares", "factor": 2.0}, "task.loss")
    # squares of (0, 0, 3): 9 / 3 = 3, twice
    assert float(loss(scores, labels)) == 6.0
    assert float(losses.parse(f"{own}:squares", "task.loss")(scores, labels)) == 3.0


def test_unknown_names_are_refused_with_a_way_out(own: str) -> None:
    with pytest.raises(ConfigError, match=r"task\.loss: 'cros_entropy' is not one of the losses; .*'cross_entropy'\?"):
        losses.parse("cros_entropy", "task.loss")
    with pytest.raises(ConfigError, match=r"task\.loss\.name: 'own_losses' has no 'square'; .*'squares'\?"):
        losses.parse(f"{own}:square", "task.loss")
