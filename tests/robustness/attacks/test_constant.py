"""Constants in place of an update and of running statistics; counters stay."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.message import Message
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.robustness.attacks.constant import Constant


class Half:
    def answer(self, request: Message, state: None, trainer: None) -> tuple[Message, None]:
        del request, state, trainer
        return Message("update", {"update": numbers(1, 2), "buffers": numbers(3, 4)}), None


def numbers(*values: float) -> Tensors:
    return Tensors(Schema((TensorSpec("w", (2,)),)), np.array(values, np.float32))


@pytest.mark.parametrize(
    ("attack", "expected"),
    [
        (Constant(), {"update": [1, 1], "buffers": [3, 4]}),
        (Constant(update=None, statistics=1000), {"update": [1, 2], "buffers": [1000, 1000]}),
    ],
)
def test_the_named_numbers_are_replaced(attack: Constant, expected: dict[str, list[float]]) -> None:
    reply, _ = attack.answer(Half(), Message("train"), None, None)  # type: ignore[arg-type]
    assert {group: tensors.values.tolist() for group, tensors in reply.groups.items()} == expected
