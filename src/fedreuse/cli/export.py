"""`fedreuse export`: write the trained network as files that plain torch loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.app import Allow, AsJson, app
from fedreuse.cli.output import counted, show_json, show_lines
from fedreuse.core.errors import RunDirectoryError, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import nn

__all__ = ["export_command"]

_PROGRAM = ".pt2"


@app.command("export", epilog="Example: fedreuse export runs/mine --to digits.safetensors")
def export_command(
    run: Annotated[Path, typer.Argument(help="A complete run directory.", show_default=False)],
    to: Annotated[
        Path | None, typer.Option("--to", help="The file of weights (default: the run's name, in this folder).")
    ] = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Write the trained network for plain torch.

    Two files are written. The program of torch.export (.pt2) holds the network and its weights, frozen ones too, and
    runs without fedreuse; the lines that load it are printed. The safetensors file holds the trained tensors by name,
    for code that builds the network itself.
    """
    from fedreuse.runs.trained import trained_arrays
    from fedreuse.store.directory import RunDirectory

    target = to or Path(f"{run.resolve().name}.safetensors")
    if target.suffix == _PROGRAM:
        raise UserError(
            f"--to {target} is the file of weights, with the program beside it; end its name with .safetensors"
        )
    directory = RunDirectory.open(run)
    if not directory.is_complete:
        raise RunDirectoryError(
            f"{run} is incomplete, so there is no trained network yet; continue with the same `fedreuse run`, "
            f"--out {run} and --resume"
        )
    directory.verify()
    module, arrays = trained_arrays(directory)
    _write(target, _weights(arrays))
    program = _write_program(target, arrays, module, tuple(directory.provenance["input_shape"]))
    if as_json:
        show_json({"file": str(target), "tensors": len(arrays), **program})
        return
    show_lines(f"{target}: {counted(len(arrays), 'tensor')}")
    if program["program"] is None:
        show_lines(f"no program was written: {program['reason']}; build the network in your code, then")
    else:
        show_lines(f"{program['program']}: network and weights. In Python:")
    show_lines("", *(f"    {line}" for line in program["example"]))


def _write_program(
    weights: Path, arrays: Mapping[str, np.ndarray], module: nn.Module, shape: tuple[int, ...]
) -> dict[str, Any]:
    """Write the program; return its path and the lines that load it.

    If torch.export does not support the network, return the reason and the lines that load the weights.
    """
    from fedreuse.learning.program import as_program, example_input, with_values

    try:
        inputs = example_input(with_values(module, arrays), shape)
        content = as_program(module, inputs)
    except UserError as error:
        example = ["from safetensors.torch import load_file", f"network.load_state_dict(load_file({str(weights)!r}))"]
        return {"program": None, "reason": str(error), "example": example}
    file = weights.with_suffix(_PROGRAM)
    _write(file, content)
    kind = "" if inputs.is_floating_point() else ", dtype=torch.int64"
    example = [
        "import torch",
        f"network = torch.export.load({str(file)!r}).module()",
        f"scores = network(torch.zeros({(1, *shape)}{kind}))  # a batch of any size",
    ]
    return {"program": str(file), "example": example}


def _weights(arrays: dict[str, Any]) -> bytes:
    from safetensors.numpy import save

    content: bytes = save(arrays)
    return content


def _write(target: Path, content: bytes) -> None:
    from fedreuse.core.files import write_whole

    try:
        write_whole(target, content)
    except OSError as error:
        raise UserError(f"{target} cannot be written ({error}); choose another file with --to") from None
