"""Groups of clients that train together: how a cohort is divided, and the answers of one group.

Floating-point results may depend on the members of a group. Groups are therefore formed from all requests of an
exchange before any work is assigned, and a group is never divided: the bits do not depend on the number of workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.core.errors import NotHeld
from fedreuse.core.local_trainer import Paused
from fedreuse.engine.ports import Opened, answer_opened, client_answer, leaves_memory, open_request
from fedreuse.engine.state.records import MemoryLost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.local_trainer import WaitingTrainer, Work
    from fedreuse.engine.executors.executor import Site
    from fedreuse.engine.state.records import ClientRecord

__all__ = ["answers_of", "groups_of"]

Answered = tuple["Envelope", "ClientRecord", "Work"]


def groups_of(clients: Iterable[int], site: Site) -> list[list[int]]:
    """Return the groups of an exchange, clients with similar numbers of examples together; without `together`, of one.

    A group ends with as many clients as `together` says.
    """
    if site.together is None:
        return [[client] for client in clients]
    size = site.together.size
    ordered = sorted(clients, key=lambda client: (site.examples(client), client))
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def answers_of(
    site: Site, round_number: int, requests: Mapping[int, Envelope], records: Sequence[ClientRecord]
) -> list[Answered]:
    """Return reply, new record and work of every client of a group.

    A client's half runs until it trains; then all wait for each other, train at once, and run again from the start
    with the result. This is possible because an answer is a function of request and state. For the same reason clients
    that share both are not asked what training they want, unless the first one's half has read anything of its own.
    """
    assert site.together is not None
    method, clients = site.method, list(requests)
    trainers = site.together.trainers(clients, round_number)
    answered, opened = _opened(site, requests, records, trainers)
    waiting = list(opened)
    while waiting:
        paused: list[int] = []
        leader: dict[int, WaitingTrainer] = {}  # by opened request: the first client that waits
        for at in waiting:
            trainer, client = trainers[at], clients[at]
            first = leader.get(id(opened[at]))
            if first is not None and trainer.follow(first):
                paused.append(at)
                continue
            trainer.restart()
            try:
                answer = answer_opened(method, requests[client], opened[at], (records[at], trainer), client)
            except Paused:
                paused.append(at)
                leader.setdefault(id(opened[at]), trainer)
            else:
                answered[at] = *answer, trainer.work
        if paused:
            site.together.train([trainers[at] for at in paused])
        waiting = paused
    return [answered[at] for at in range(len(clients))]


def _opened(
    site: Site, requests: Mapping[int, Envelope], records: Sequence[ClientRecord], trainers: Sequence[WaitingTrainer]
) -> tuple[dict[int, Answered], dict[int, Opened]]:
    """Return, by place in the group, the replies of clients that lack what a request needs, and the decoded requests.

    Without memory, all clients read a request alike: it is decoded once.
    """
    method, answered, opened = site.method, dict[int, Answered](), dict[int, Opened]()
    same: dict[int, Opened] = {}
    for at, (client, request) in enumerate(requests.items()):
        has_memory = leaves_memory(method, request.keep, request.ack)
        if not has_memory and id(request) in same:
            opened[at] = same[id(request)]
            continue
        try:
            opened[at] = open_request(method, request, records[at], trainers[at], client)
        except (MemoryLost, NotHeld):
            answered[at] = *client_answer(method, request, records[at], trainers[at], client), trainers[at].work
        else:
            if not has_memory:
                same[id(request)] = opened[at]
    return answered, opened
