"""A network with weights from a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError, and_others
from fedreuse.core.registry import part
from fedreuse.learning.networks.network import Network, networks

if TYPE_CHECKING:
    import torch
    from torch import nn

__all__ = ["Pretrained", "read_weights"]


@networks.register("pretrained")
@dataclass(frozen=True)
class Pretrained(Network):
    """Another network with initial weights from a safetensors file, such as `fedreuse export` writes.

    Args:
        of: The network.
        path: The safetensors file; pickled weights (.bin, .pt, .pth) are refused.

    Raises:
        ConfigError: The file is missing, not safetensors, or of another network.

    Example: `network: {name: pretrained, of: transformer, path: base.safetensors}`.
    """

    of: Network = part(networks)
    path: str = "model.safetensors"

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the network and load the weights of the file."""
        module = self.of.build(shape, num_classes)
        known = module.state_dict()
        weights = read_weights(Path(self.path), "network.path")
        for name, tensor in weights.items():
            if name in known and known[name].shape != tensor.shape:
                raise ConfigError(
                    f"network.path: {self.path} has {name} of shape {tuple(tensor.shape)}, but network.of makes "
                    f"{tuple(known[name].shape)}; give network.of the settings it was trained with"
                )
        missing, unknown = module.load_state_dict(weights, strict=False)
        # a file may hold tied weights once, under any of their names
        tied = {id(weight): name for name, weight in module.named_parameters(remove_duplicate=False) if name in weights}
        alias = {name for name, weight in module.named_parameters(remove_duplicate=False) if id(weight) in tied}
        if lacking := [name for name in missing if name not in alias] or list(unknown):
            raise ConfigError(
                f"network.path: {self.path} is of another network than network.of: {lacking[0]} "
                f"{'is missing from it' if lacking[0] in missing else 'is only in the file'}"
                f"{and_others(len(lacking) - 1, 'is', 'are')}; name a file and a network that belong together"
            )
        return module


def read_weights(path: Path, where: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a safetensors file; pickles are refused, because reading them runs code.

    Raises:
        ConfigError: The file is missing, a pickle, or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if path.suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt"):
        raise ConfigError(
            f"{where}: {path} holds pickled weights, which run code when they are read; convert it to safetensors "
            "(safetensors.torch.save_file) where you trust it"
        )
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{where}: {path} cannot be read as safetensors ({error}); name another file") from None
