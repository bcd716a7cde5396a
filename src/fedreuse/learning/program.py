"""A trained network as a program of `torch.export`, which torch runs without the classes that built it."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

import torch

from fedreuse.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import nn

__all__ = ["as_program", "example_input", "with_values"]


def with_values(module: nn.Module, arrays: Mapping[str, np.ndarray]) -> nn.Module:
    """Load trained values into a module and set it to evaluation; frozen weights keep their initial values."""
    module.load_state_dict(
        {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}, strict=False, assign=True
    )
    return module.eval()


def example_input(module: nn.Module, shape: tuple[int, ...]) -> torch.Tensor:
    """Return a batch of two inputs that the module accepts: float32, or else int64 token numbers.

    Raises:
        UserError: The module accepts neither.
    """
    reason = ""
    for kind in (torch.float32, torch.int64):
        inputs = torch.zeros((2, *shape), dtype=kind)
        try:
            with torch.no_grad():
                module(inputs)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            reason = reason or str(error).splitlines()[0]
        else:
            return inputs
    raise UserError(f"the network accepts no batch of the shape {(2, *shape)} ({reason})")


def as_program(module: nn.Module, inputs: torch.Tensor) -> bytes:
    """Return the bytes of a `.pt2` file that scores batches of any size.

    Raises:
        UserError: torch cannot export the network, because its control flow depends on values.
    """
    batch = torch.export.Dim("batch", min=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch's LSTM keeps a second list of its weights
            program = torch.export.export(module, (inputs,), dynamic_shapes=({0: batch},))
    except Exception as error:  # torch raises errors of many kinds here, and the network is the user's
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"torch.export cannot export this network ({reason})") from None
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()
