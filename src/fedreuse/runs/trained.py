"""The trained network of a complete run as a torch module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.core.errors import RunDirectoryError
from fedreuse.learning.networks.network import networks
from fedreuse.learning.program import with_values
from fedreuse.learning.trainer import initial_network
from fedreuse.runs.facts import digest_of_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import nn

    from fedreuse.store.directory import RunDirectory

__all__ = ["trained_arrays", "trained_network"]


def trained_arrays(directory: RunDirectory) -> tuple[nn.Module, dict[str, np.ndarray]]:
    """Return the run's initial network and its trained tensors by name, tied weights under all of their names.

    Raises:
        RunDirectoryError: Frozen weights have changed, or the tensors are not those of the model that was tested.
    """
    arrays, module = directory.model(), _initial_module(directory)
    if digest_of_arrays(arrays, module) != directory.summary["model_digest"]:
        raise RunDirectoryError(
            f"{directory.path}: model.safetensors does not hold the model that was tested (its digest differs); "
            "restore the file from a copy, or run the configuration again in another `out`"
        )
    return module, _with_tied(arrays, module)


def trained_network(directory: RunDirectory) -> nn.Module:
    """Return the trained network in evaluation mode.

    Its inputs are normalised as in training: `(x - mean) / std` per column or channel.

    Raises:
        RunDirectoryError: As `trained_arrays`.
    """
    module, arrays = trained_arrays(directory)
    return with_values(module, arrays).eval()


def _initial_module(directory: RunDirectory) -> nn.Module:
    """Return the run's initial network; raise if its frozen weights are not those of the run."""
    known = directory.provenance
    network = networks.parse(directory.config["network"], "network")
    made = initial_network(network, tuple(known["input_shape"]), known["num_classes"], directory.config["seed"])
    wanted = known["digests"].get("frozen")
    if wanted is not None and made.schema.frozen != wanted:
        raise RunDirectoryError(
            f"{directory.path}: the frozen weights of its network have changed (the digest differs); restore the "
            "pretrained file that the configuration names"
        )
    return made.module


def _with_tied(arrays: Mapping[str, np.ndarray], module: nn.Module) -> dict[str, np.ndarray]:
    """Add tied weights under all of their names, as `load_state_dict` expects."""
    first = {id(weight): name for name, weight in module.named_parameters()}
    names = {name: first[id(weight)] for name, weight in module.named_parameters(remove_duplicate=False)}
    return {**arrays, **{name: arrays[known] for name, known in names.items() if known in arrays}}
