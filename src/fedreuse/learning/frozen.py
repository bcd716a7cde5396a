"""Weights that are not trained: never sent, the same at both ends by their digest."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import nn

__all__ = ["frozen_digest"]


def frozen_digest(module: nn.Module) -> str:
    """SHA-256 over names, types, shapes and bytes of the parameters that are not trained; empty if there are none."""
    frozen = [(name, weight.detach()) for name, weight in module.named_parameters() if not weight.requires_grad]
    if not frozen:
        return ""
    digest = sha256()
    for name, weight in frozen:
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(weight.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
