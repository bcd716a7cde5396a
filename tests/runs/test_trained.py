"""The trained network of a run: its weights are the stored ones, and another file is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from fedreuse.core.errors import RunDirectoryError
from fedreuse.runs.launch import run
from fedreuse.runs.trained import trained_arrays, trained_network
from tests.tiny import seal_again, tiny


@pytest.mark.slow
def test_the_network_has_the_stored_weights_and_no_others(tmp_path: Path) -> None:
    directory = run(tiny("rounds.count=1", "rounds.evaluate_every=1"), tmp_path / "run")
    network, arrays = trained_network(directory), directory.model()
    assert not network.training
    for name, tensor in network.state_dict().items():
        assert np.array_equal(tensor.numpy(), arrays[name]), name
    assert trained_arrays(directory)[1].keys() == arrays.keys()
    first = next(iter(arrays))
    changed = np.asarray(arrays[first] + 1)  # the sum of a counter is no array
    save_file({**arrays, first: changed}, tmp_path / "run" / "model.safetensors")
    seal_again(tmp_path / "run")
    with pytest.raises(RunDirectoryError, match="does not hold the model that was tested"):
        trained_network(directory)
