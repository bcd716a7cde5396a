"""A worker's jobs: the same replies as in this process, memories held from one to the next, errors that travel."""

import numpy as np

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import RunError
from fedreuse.core.message import Message
from fedreuse.core.model import to_groups
from fedreuse.engine.executors.shared_memory import lay_out_envelopes
from fedreuse.engine.executors.worker import ClientsJob, EvaluateJob, Failure, OneClient, Worker
from fedreuse.engine.ports import ServerPort, client_answer
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ClientRecord, ServerRecord
from fedreuse.engine.state.state_file import read_state, write_state
from fedreuse.testing.quadratic import QuadraticFederation
from tests.federation import build, top_k

FEDERATION = QuadraticFederation.draw(4)
METHOD = build("fedavg", {"name": "error_feedback", "codec": top_k(0.3)})


def request(ack: int = 0) -> Envelope:
    port = ServerPort(METHOD, ServerRecord(None, exchange=ack), 1, FEDERATION.schema, 7)
    packed = port.pack({2: Message("train", to_groups(FEDERATION.initial, "model"))})[2]
    return Envelope(packed.kind, 1, packed.exchange, ack, 0, packed.keep, packed.parcels, packed.values)


def job(envelope: Envelope, record: bytes | None = None, client: int = 2, **parts) -> tuple[ClientsJob, np.ndarray]:
    layout, (place,) = lay_out_envelopes([envelope])
    return ClientsJob(1, (OneClient(client, place, record),), **parts), layout.to_array()


def played(worker: Worker, *parts):
    (answer,) = worker.do(*parts)
    return answer


def test_the_reply_is_what_the_client_function_says_and_memories_are_held():
    worker, store = Worker(FEDERATION.site(METHOD)), MemoryStore()
    for envelope in (request(), request(ack=1)):  # the second builds on the first
        wanted, record = client_answer(METHOD, envelope, store.load(2), FEDERATION.trainer(2, 1), 2)
        store.save(2, record)
        answer = played(worker, *job(envelope))
        assert answer.reply.open() == wanted.to_bytes()
        proposed = read_state(answer.record.open(), FEDERATION.schema, "here")
        assert list(proposed.memories) == [envelope.exchange]
        one, other = (ClientRecord({2: found.memories[envelope.exchange]}) for found in (proposed, record))
        assert write_state(one, FEDERATION.schema) == write_state(other, FEDERATION.schema)


def test_a_record_that_comes_with_the_job_counts_and_a_forgotten_one_does_not():
    worker = Worker(FEDERATION.site(METHOD))
    first = played(worker, *job(request()))
    other = Worker(FEDERATION.site(METHOD))
    sent = played(other, *job(request(ack=1), record=first.record))
    held = played(worker, *job(request(ack=1)))
    assert sent.reply.open() == held.reply.open()
    gone = Envelope.from_bytes(played(worker, *job(request(ack=1), forgotten=(2,))).reply.open(), FEDERATION.schema)
    assert gone.kind == "forgot"


def test_a_look_is_the_evaluation_of_a_part():
    layout, (place,) = lay_out_envelopes([request()])
    found = Worker(FEDERATION.site(METHOD)).do(EvaluateJob(1, 3, place), layout.to_array())
    assert found == FEDERATION.validate(FEDERATION.initial, 1, 3)


def test_errors_travel_ours_as_they_are_others_as_text():
    assert Failure.of(error := RunError("ours")).error is error
    assert "ZeroDivisionError" in Failure.of(ZeroDivisionError("theirs")).error
    failure = Worker(FEDERATION.site(METHOD)).do(*job(request(), client=99))
    assert isinstance(failure, Failure)
    assert "IndexError" in failure.error
