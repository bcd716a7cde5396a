"""Guards raise exactly when a word is broken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.corrections import Correction
from fedreuse.core.local_trainer import BatchPlan
from fedreuse.core.message import Message
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.needs import Needs
from fedreuse.core.tensors import Tensors, scale
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.testing.guards import NothingElse, digest, guarded, mirrored, named, unchanged
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import build, top_k

FEDERATION = QuadraticFederation.draw(3)


def force(array: np.ndarray) -> None:
    """Write to an array although it is frozen, through what lies under it."""
    base = array if array.base is None else array.base
    base.flags.writeable = True
    base[...] = 0


def test_the_digest_sees_every_array() -> None:
    one, other = np.zeros(3), np.ones(3)
    assert digest({"a": one}) == digest(one)
    assert digest(one) != digest(other)
    assert digest(one, other) != digest(other, one)
    assert digest(np.zeros(3, np.float32)) != digest(one)


def test_arrays_that_could_be_written_to_are_noticed() -> None:
    with (
        pytest.raises(AssertionError, match="x was given a writable array"),
        unchanged("x", np.zeros(2)),
    ):
        pass


def test_a_change_is_noticed() -> None:
    tensors = Tensors(FEDERATION.schema.weights, np.ones(12))
    with pytest.raises(AssertionError, match="x changed its input"), unchanged("x", tensors):
        force(tensors.values)


def test_an_honest_method_passes() -> None:
    Session(FEDERATION, guarded(build("dg_fedreuse", top_k(0.3))), Setting()).advance(4)


def test_requests_that_name_their_answers_pass_and_others_do_not() -> None:
    method = named(build("dg_fedreuse", top_k(0.3)))
    Session(FEDERATION, method, Setting()).advance(3)

    class Mute(AveragingServer):
        def round(self, state: Any, cohort: Any) -> Any:
            yield dict.fromkeys(cohort.clients, Message("train"))

    with pytest.raises(AssertionError, match=r"requests \['train'\] do not name their answers"):
        Session(FEDERATION, named(replace(method, server=Mute())), Setting()).advance(1)


def test_a_client_that_changes_the_model_is_caught() -> None:
    @dataclass(frozen=True)
    class Vandal(TrainingClient):
        def answer(self, request: Message, state: None, trainer: Any) -> tuple[Message, None]:
            answer = super().answer(request, state, trainer)
            force(request.groups["model"].values)
            return answer

    method = guarded(replace(build("fedavg"), client=Vandal()))
    with pytest.raises(AssertionError, match="the client's answer changed its input"):
        Session(QuadraticFederation.draw(3), method, Setting()).advance(1)


@dataclass(frozen=True)
class Liar(Link):
    """A link whose receiver decodes something else than the sender believes."""

    has_memory: ClassVar[bool] = False

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel, Any]:
        return Dense().encode(tensors, context.schema, context.rng), None

    def receive(self, parcel: Parcel, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
        return scale(parcel.decode(context.schema), 2.0), None

    def delivered(self, parcel: Parcel, state: Any, context: LinkContext) -> Tensors:
        return parcel.decode(context.schema)


def test_two_ends_that_disagree_are_caught() -> None:
    Session(FEDERATION, mirrored(build("fedavg", top_k(0.3)), ("model", "update")), Setting()).advance(2)
    method = replace(build("fedavg"), uplink={"update": Liar()})
    with pytest.raises(AssertionError, match="the two ends of Liar"):
        Session(FEDERATION, mirrored(method, ("update",)), Setting()).advance(1)


def test_a_bench_that_grants_what_was_said_and_nothing_else() -> None:
    trainer = NothingElse(FEDERATION.trainer(0, 1), Needs())
    assert trainer.train(FEDERATION.initial).steps == FEDERATION.steps[0]
    assert trainer.work.training_steps == FEDERATION.steps[0]
    assert trainer.evaluate(FEDERATION.initial).examples == FEDERATION.examples[0]
    assert trainer.rng("x").random() == FEDERATION.trainer(0, 1).rng("x").random()
    with pytest.raises(AssertionError, match=r"Needs\(gradients=True\)"):
        trainer.gradient(FEDERATION.initial, (), BatchPlan(), "p")
    with pytest.raises(AssertionError, match=r"Needs\(corrections=True\)"):
        trainer.train(FEDERATION.initial, Correction())
    with pytest.raises(AssertionError, match=r"Needs\(steps=True\)"):
        trainer.train(FEDERATION.initial, steps=1)
    free = NothingElse(FEDERATION.trainer(0, 1), Needs(gradients=True, corrections=True, steps=True))
    assert free.train(FEDERATION.initial, Correction(), 1).steps == 1
    assert free.gradient(FEDERATION.initial, ("fc.bias",), BatchPlan(1), "p").schema.size == 2
