"""The suite of links: each check fails for a link that breaks the rule it is there for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.tensors import Tensors, add, scale, zeros
from fedreuse.core.values import value
from fedreuse.testing.conformance.links import LINK_CHECKS, check_link


@value
class Remembered:
    """What a broken link remembers."""

    tensors: Tensors


@dataclass(frozen=True)
class BrokenLink(Link):
    """A dense link with one of these faults."""

    fault: str
    has_memory: ClassVar[bool] = True

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        if self.fault == "shy" and state is None:
            return None, Remembered(tensors)
        if self.fault == "random":
            tensors = scale(tensors, float(np.random.default_rng().random()))
        if self.fault == "inventive":
            whole = zeros(context.schema)
            tensors = Tensors(context.schema, to_full(tensors, whole))
        return Dense().encode(tensors, context.schema, context.rng), Remembered(tensors)

    def receive(self, parcel: Parcel | None, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
        if parcel is None:
            return zeros(context.schema), None
        received = parcel.decode(context.schema)
        if self.fault == "drifting" and state is not None:
            received = add(received, state.tensors)
        return received, Remembered(received)

    def delivered(self, parcel: Parcel | None, state: Any, context: LinkContext) -> Tensors:
        return zeros(context.schema) if parcel is None else parcel.decode(context.schema)


def to_full(tensors: Tensors, whole: Tensors) -> np.ndarray:
    flat = whole.values.copy()
    for spec, start in zip(whole.schema, whole.schema.offsets, strict=False):
        if spec.name in tensors.schema.positions:
            flat[start : start + spec.size] = tensors[spec.name].reshape(-1)
    return flat


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        ("sender and receiver agree", "shy"),
        ("sender and receiver agree", "drifting"),
        ("a link is a function", "random"),
        ("absent tensors are left alone", "inventive"),
        ("silence before the first parcel is refused", "none"),
    ],
)
def test_broken_links_are_caught(check: str, fault: str) -> None:
    with pytest.raises(AssertionError):
        LINK_CHECKS[check](BrokenLink(fault))


def test_an_honest_link_passes_everything() -> None:
    check_link(Plain())
