"""`fedreuse export`: the trained network as a file that plain torch loads."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.app import Allow, AsJson, app
from fedreuse.cli.output import show_json, show_lines
from fedreuse.core.errors import RunDirectoryError, UserError
from fedreuse.core.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import nn

    from fedreuse.runs.directory import RunDirectory

__all__ = ["example_of", "export_command"]


@app.command("export", epilog="Example: fedreuse export runs/mine --to digits.safetensors")
def export_command(
    run: Annotated[Path, typer.Argument(help="A complete run directory.", show_default=False)],
    to: Annotated[Path | None, typer.Option("--to", help="The file to write (default: the run's name, here).")] = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Write the trained network as safetensors, and show the three lines of torch that load it."""
    from fedreuse.runs.directory import RunDirectory

    directory = RunDirectory.open(run)
    if not directory.is_complete:
        raise RunDirectoryError(
            f"{run} is incomplete, so there is no trained network yet; go on with the same `fedreuse run`, "
            f"--out {run} and --resume"
        )
    directory.verify()
    arrays = directory.model()
    module = _built(directory)
    _check_model(arrays, module, directory)
    arrays = _with_tied(arrays, module)
    target = to or Path(f"{run.resolve().name}.safetensors")
    example = example_of(directory.config["network"], directory.provenance, target)
    _write(arrays, target)
    if as_json:
        show_json({"file": str(target), "tensors": len(arrays), "example": example})
    else:
        show_lines(f"{target}: {len(arrays)} tensors. In Python:", "", *(f"    {line}" for line in example))


def _built(directory: RunDirectory) -> nn.Module:
    from fedreuse.learning.networks.network import networks

    known = directory.provenance
    network = networks.parse(directory.config["network"], "network")
    return network.build(tuple(known["input_shape"]), known["num_classes"])


def _with_tied(arrays: Mapping[str, np.ndarray], module: nn.Module) -> dict[str, np.ndarray]:
    """A tied weight under all of its names, as torch wants it."""
    first = {id(weight): name for name, weight in module.named_parameters()}
    names = {name: first[id(weight)] for name, weight in module.named_parameters(remove_duplicate=False)}
    return {**arrays, **{name: arrays[known] for name, known in names.items() if known in arrays}}


def _check_model(arrays: Mapping[str, np.ndarray], module: nn.Module, directory: RunDirectory) -> None:
    """Refuse tensors that are not those of the model that was tested; older runs have this one digest alone."""
    from fedreuse.runs.facts import digest_of_arrays

    if digest_of_arrays(arrays, module) != directory.summary["model_digest"]:
        raise RunDirectoryError(
            f"{directory.path}: model.safetensors does not hold the model that was tested (its digest is another one); "
            "bring the file back from a copy, or run the configuration again in another `out`"
        )


def example_of(network: dict[str, Any], provenance: dict[str, Any], file: Path) -> list[str]:
    """Three lines that load the file into the run's network: imports, network, weights."""
    from fedreuse.learning.networks.network import OwnNetwork, networks

    built = networks.parse(network, "network")
    shape, num_classes = tuple(provenance["input_shape"]), provenance["num_classes"]
    if isinstance(built, OwnNetwork):
        module, _, name = built.name.partition(":")
        accepted = inspect.signature(built.target).parameters
        known = {"shape": shape, "num_classes": num_classes}
        taken = {key: given for key, given in known.items() if key in accepted} | built.options
        made = f"{name}({', '.join(f'{key}={given!r}' for key, given in taken.items())})"
    elif hasattr(built, "of"):  # a network around another one; what is frozen is not in the file
        module, name = "fedreuse.learning.networks.network", "networks"
        made = f"networks.parse({network!r}, 'network').build({shape}, {num_classes})"
    else:
        module, name = type(built).__module__, type(built).__qualname__
        made = f"{built!r}.build({shape}, {num_classes})"
    return [
        f"from safetensors.torch import load_file; from {module} import {name}",
        f"network = {made}",
        f"network.load_state_dict(load_file({str(file)!r}){', strict=False' if hasattr(built, 'of') else ''})",
    ]


def _write(arrays: dict[str, Any], target: Path) -> None:
    from safetensors.numpy import save

    try:
        write_whole(target, save(arrays))
    except OSError as error:
        raise UserError(f"{target} cannot be written ({error}); choose another place with --to") from None
