"""Any torch Dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from fedreuse.core.errors import DataError
from fedreuse.learning.files.torch_dataset import TorchSource


def test_pairs_and_triples() -> None:
    inputs = torch.arange(8.0).reshape(4, 2)
    source = TorchSource("mine", TensorDataset(inputs, torch.tensor([1, 0, 1, 0])))
    assert source.form() == ((2,), np.float32)
    assert source.facts().labels.codes.tolist() == [1, 0, 1, 0]
    assert source.facts().clients is None
    assert np.array_equal(np.concatenate(list(source.chunks())), inputs.numpy())
    owned = TorchSource("mine", [(Image.new("RGB", (3, 2)), "a", "ann"), (Image.new("RGB", (3, 2)), "b", "bo")])
    assert owned.form() == ((3, 2, 3), np.uint8)
    clients = owned.facts().clients
    assert clients is not None
    assert clients.values.tolist() == ["ann", "bo"]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "the dataset is empty"),
        ([torch.zeros(2)], "item 0 is Tensor; "),
        (iter([]), "a dataset with a length"),
        ([(np.zeros(2), 0), (np.zeros(3), 0)], r"item 1 has the shape \(3,\), item 0 \(2,\)"),
    ],
)
def test_what_is_no_dataset(items: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"mine: {message}"):
        list(TorchSource("mine", items).chunks())
