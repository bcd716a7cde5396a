"""Links to all nodes for models of one layout, and arithmetic on such models."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.model import Model, apply
from fedreuse.core.tensors import pick, to_dense, zeros

if TYPE_CHECKING:
    from flwr.app import ArrayRecord

    from fedreuse.config.recipe import Recipe
    from fedreuse.core.tensors import Tensors
    from fedreuse.deploy.existing_app.agreement import Agreement
    from fedreuse.deploy.existing_app.node_link import NodeLink
    from fedreuse.deploy.existing_app.run_state import RunState

__all__ = ["ModelChannel", "as_first_sent", "model_digest", "plus"]


@dataclass
class ModelChannel:
    """Links to all nodes for arrays of one layout."""

    agreement: Agreement
    run: str
    packed: bytes
    nodes: dict[int, NodeLink]
    version: int = 0
    digest: bytes = b""
    model: Model | None = None
    record: ArrayRecord | None = None
    initial: Model | None = None
    state: RunState | None = None

    @classmethod
    def make(cls, agreement: Agreement, run: str, state: RunState | None) -> ModelChannel:
        """Return a channel without nodes."""
        return cls(agreement, run, zlib.compress(agreement.to_bytes(), 9), {}, state=state)

    def write(self, clients: dict[int, int], model: Model | None = None) -> None:
        """Store the run, if it has a folder."""
        if self.state is not None:
            text = self.agreement.to_bytes().decode()
            self.state.write(text, self.run, self.version, clients, model)


def model_digest(model: Model) -> bytes:
    """Return a digest of the values of a model."""
    digest = blake2b(digest_size=16)
    for part in (model.weights, model.buffers, model.counters):
        digest.update(np.ascontiguousarray(part.values).data)
    return digest.digest()


def plus(model: Model, groups: Mapping[str, Tensors]) -> Model:
    """Return the tensors of the model that an answer changed, with the changes added."""
    parts = {"update": model.weights, "buffers": model.buffers, "counters": model.counters}
    before, change = [], []
    for group, part in parts.items():
        tensors = groups.get(group)
        names = [] if tensors is None else [spec.name for spec in tensors.schema]
        before.append(pick(part, names) if names else zeros(part.schema.subset([])))
        change.append(zeros(part.schema.subset([])) if tensors is None else to_dense(tensors))
    return apply(Model(*before), Model(*change))[0]


def as_first_sent(recipe: Recipe, model: Model) -> Model:
    """Return the model that a first contact delivers."""
    whole = getattr(recipe.downlink.get("model"), "whole", None)
    if whole is None:
        return model
    part = model.weights.schema
    parcel = whole.encode(model.weights, part, np.random.default_rng(0))
    return replace(model, weights=to_dense(parcel.decode(part)))
