"""Serialized envelopes in both directions, those of evaluation by clients included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedreuse.accounting.boundaries.boundary import boundaries
from fedreuse.accounting.boundaries.messages import Messages

__all__ = ["WithEvaluation"]


@boundaries.register("with_evaluation")
@dataclass(frozen=True)
class WithEvaluation(Messages):
    """Serialized envelopes in both directions, with evaluation by clients; only for runs that have such evaluations.

    Clients evaluate the model that will be deployed, which is sent without loss, so dense FedAvg would send the same
    bytes for evaluation.
    """

    meaning: ClassVar[str] = "serialized envelopes in both directions, with evaluation by clients"
    place: ClassVar[int] = 45
    counts_every_message: ClassVar[bool] = False
    counts_evaluation: ClassVar[bool] = True
