"""Replay: clients that were away rebuild the server's model bit by bit."""

from __future__ import annotations

from fedreuse.core.tensors import is_equal
from fedreuse.engine.faults import RandomFaults
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, build


def test_clients_hold_the_model_of_their_step_bit_by_bit() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    for name in ("evofed", "decomfl"):
        session = federation.play(build(name), 8, Setting(faults=RandomFaults(lost=0.3)))
        moved = [session.models[0], *(model for before, model in zip(session.models, session.models[1:], strict=False)
                                      if not is_equal(before.weights, model.weights))]  # fmt: skip
        state = session.record.state
        assert state.steps == len(moved) - 1
        for client, step in state.held.items():
            contact = session.record.contacts[client]
            held = session.store.load(client).memories[contact.ack].state
            assert held.step == step
            assert is_equal(held.weights, moved[step].weights)


def test_the_server_forgets_a_client_that_lost_its_memory() -> None:
    session = QuadraticFederation.draw().play(build("decomfl"), 3)
    server, state = session.method.server, session.record.state
    client = next(iter(state.held))
    assert client not in server.forget(state, client).held
