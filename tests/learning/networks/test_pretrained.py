"""Weights from a file: the same network again, and files that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.learning.networks.mlp import Mlp
from fedreuse.learning.networks.network import networks
from fedreuse.learning.networks.transformer import Transformer


def built(path: Path, of: object, shape: tuple[int, ...] = (4,), classes: int = 20) -> nn.Module:
    return networks.parse({"name": "pretrained", "of": of, "path": str(path)}, "network").build(shape, classes)


def test_weights_come_back_tied_or_not(tmp_path: Path) -> None:
    for tied in (False, True):
        base = Transformer(8, 1, 2, tied=tied).build((4,), 20)
        weights = {name: weight.detach().clone() for name, weight in base.named_parameters()}
        save_file(weights, tmp_path / "base.safetensors")
        spec = {"name": "transformer", "width": 8, "layers": 1, "heads": 2, "tied": tied}
        found = built(tmp_path / "base.safetensors", spec)
        tokens = torch.tensor([[3, 5, 4, 1]])
        assert found(tokens).equal(base(tokens))


def test_files_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"network\.path: .*m\.pt holds pickled weights, which run code .*safetensors"
    ):
        built(tmp_path / "m.pt", "mlp")
    with pytest.raises(ConfigError, match=r"network\.path: .*none\.safetensors cannot be read as safetensors"):
        built(tmp_path / "none.safetensors", "mlp")
    whole = tmp_path / "whole.safetensors"
    save_file(Mlp((6,)).build((4,), 20).state_dict(), whole)
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(whole.read_bytes()[:-9])
    with pytest.raises(ConfigError, match=r"cut\.safetensors cannot be read as safetensors"):
        built(cut, "mlp")
    with pytest.raises(ConfigError, match=r"has fc\.weight of shape \(20, 6\), but network\.of makes \(20, 7\)"):
        built(whole, {"name": "mlp", "hidden": [7]})
    with pytest.raises(
        ConfigError, match=r"of another network than network\.of: hidden2\.weight is missing from it, and so is 1 oth"
    ):
        built(whole, {"name": "mlp", "hidden": [6, 6]})
