"""Losses by name: one's own, and names that are none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError
from fedreuse.learning.losses.loss import OwnLoss, losses

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


def test_a_function_that_returns_no_loss_is_named() -> None:
    scores, labels = torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])
    with pytest.raises(ConfigError, match=r"mine:word returns str; a tensor"):
        OwnLoss(lambda outputs, labels: "low", "mine:word")(scores, labels)
    with pytest.raises(ConfigError, match=r"mine:all returns 12 numbers .* mean\(\)"):
        OwnLoss(lambda outputs, labels: outputs, "mine:all")(scores, labels)


def test_the_mean_of_the_terms_is_the_loss() -> None:
    scores, tokens = torch.linspace(-2, 3, 20).view(5, 4).sin(), torch.tensor([[1, -100, 0], [3, 3, -100]])
    cases = [
        (
            losses.parse({"name": "cross_entropy", "label_smoothing": 0.1}, "loss"),
            scores,
            torch.tensor([0, 3, 1, 1, 2]),
            5,
        ),
        (
            losses.parse("cross_entropy", "loss"),
            torch.linspace(-3, 2, 24).view(2, 3, 4).cos(),
            tokens,
            4,
        ),  # two tokens do not count
        (losses.parse("squared_error", "loss"), scores, scores.square(), 20),
        (losses.parse("binary_cross_entropy", "loss"), scores, scores > 0.2, 20),
    ]
    for loss, outputs, labels, count in cases:
        assert loss.terms(outputs, labels).shape == labels.shape
        torch.testing.assert_close(loss.terms(outputs, labels).sum() / count, loss(outputs, labels))
