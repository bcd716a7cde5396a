"""Conformance checks of links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import WireError
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.tensors import Tensors, is_equal, pick, to_dense, zeros
from fedreuse.engine.state.state_file import read_state
from fedreuse.testing.conformance.sessions import drawn, stored
from fedreuse.testing.guards import unchanged
from fedreuse.testing.quadratic import quadratic_schema

__all__ = ["LINK_CHECKS", "check_link"]

_Sender = tuple[Any, Any]
"""State that a sender shares among receivers, and its own end's state."""


def check_link(link: Link) -> None:
    """Run all checks of a link."""
    for check in LINK_CHECKS.values():
        check(link)


def _sender_and_receiver_agree(link: Link) -> None:
    sender = receiver = None
    for number in range(1, 6):
        context = _context(number)
        tensors = drawn(number)
        with unchanged("send", tensors, sender):
            parcel, sender = _sent(link, tensors, sender, context)
        if number == 1:
            assert parcel is not None, "the first parcel is always sent"
        with unchanged("receive", receiver):
            received, receiver = link.receive(parcel, receiver, _context(number))
        assert is_equal(received, _delivered(link, parcel, sender, context)), "delivered and received tensors differ"
        assert received.schema == context.schema


def _a_link_is_a_function(link: Link) -> None:
    """Check that the same input, state and random stream give the same parcel and state."""
    state = None
    for number in range(1, 4):
        (first, after), (second, again) = (_sent(link, drawn(number), state, _context(number)) for _ in range(2))
        assert _bytes(first) == _bytes(second)
        assert stored(after) == stored(again)
        state = after


def _link_states_are_values(link: Link) -> None:
    sender = receiver = None
    for number in range(1, 4):
        parcel, sender = _sent(link, drawn(number), sender, _context(number))
        _, receiver = link.receive(parcel, receiver, _context(number))
        for state in (sender, receiver):
            again = read_state(stored(state), quadratic_schema(), "a link's state")
            assert stored(again) == stored(state), "reading and writing changes a link's state"
        sender = read_state(stored(sender), quadratic_schema(), "a link's state")


def _parcels_survive_the_wire(link: Link) -> None:
    schema = quadratic_schema()
    sender = direct = decoded = None
    for number in range(1, 4):
        parcel, sender = _sent(link, drawn(number), sender, _context(number))
        arrived = Envelope.from_bytes(_bytes(parcel), schema).parcels["update"]
        (left, direct), (right, decoded) = (
            link.receive(parcel, direct, _context(number)),
            link.receive(arrived, decoded, _context(number)),
        )
        assert is_equal(left, right), "a parcel decodes to other tensors after encoding to bytes"


def _absent_tensors_are_left_alone(link: Link) -> None:
    """Check groups with a part of the schema: the other tensors are neither sent nor changed."""
    names = ("body.weight", "fc.bias")
    sender = receiver = None
    for number in range(1, 4):
        part = pick(drawn(number), names)
        parcel, sender = _sent(link, part, sender, _context(number))
        received, receiver = link.receive(parcel, receiver, _context(number))
        assert tuple(spec.name for spec in received.schema) == names, "other tensors arrive than were sent"
        assert is_equal(received, _delivered(link, parcel, sender, _context(number)))


def _zeros_arrive_as_zeros(link: Link) -> None:
    parcel, _ = _sent(link, zeros(quadratic_schema().weights), None, _context(1))
    received, _ = link.receive(parcel, None, _context(1))
    assert not to_dense(received).values.any()


def _silence_before_the_first_parcel_is_refused(link: Link) -> None:
    try:
        link.receive(None, None, _context(1))
    except WireError:
        return
    raise AssertionError("a receiver must refuse silence before the first parcel")


LINK_CHECKS: dict[str, Callable[[Link], None]] = {
    "sender and receiver agree": _sender_and_receiver_agree,
    "a link is a function": _a_link_is_a_function,
    "states are values": _link_states_are_values,
    "parcels survive the wire": _parcels_survive_the_wire,
    "absent tensors are left alone": _absent_tensors_are_left_alone,
    "zeros arrive as zeros": _zeros_arrive_as_zeros,
    "silence before the first parcel is refused": _silence_before_the_first_parcel_is_refused,
}


def _sent(link: Link, tensors: Tensors, sender: _Sender | None, context: LinkContext) -> tuple[Parcel | None, _Sender]:
    """Send as a server does to its only client: first the shared state, then the parcel."""
    shared, state = (None, None) if sender is None else sender
    shared = link.share(tensors, shared, context)
    parcel, state = link.send(tensors, state, replace(context, shared=shared))
    return parcel, (shared, state)


def _delivered(link: Link, parcel: Parcel | None, sender: _Sender, context: LinkContext) -> Tensors:
    shared, state = sender
    return link.delivered(parcel, state, replace(context, shared=shared))


def _context(number: int) -> LinkContext:
    return LinkContext(quadratic_schema().weights, number, 2, np.random.default_rng(number))


def _bytes(parcel: Parcel | None) -> bytes:
    return Envelope("update", 1, 1, parcels={"update": parcel}).to_bytes()
