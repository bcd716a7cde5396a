"""A user's own function: what it is called with, and what is no function."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.own_function import OwnFunction


def test_it_is_called_with_its_options() -> None:
    own = OwnFunction(lambda outputs, labels, factor: factor * (outputs + labels), "mine:f", {"factor": 3})
    assert own(torch.tensor(1), torch.tensor(2)).item() == 9
    assert own.to_plain() == {"factor": 3}


@pytest.mark.parametrize("target", [int, 5])
def test_what_is_no_function_is_refused(target: Any) -> None:
    with pytest.raises(ConfigError, match=r"^mine:x must be a function of \(outputs, labels\), or a frozen dataclass"):
        OwnFunction(target, "mine:x")
