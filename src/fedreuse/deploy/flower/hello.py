"""Hello: newly connected nodes are asked for their client, until enough clients are there."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flwr.app import Message

from fedreuse.core.errors import ConfigError, RunError, WireError, refusal
from fedreuse.deploy.flower.frame import ANY_CLIENT, Frame
from fedreuse.deploy.flower.identity import proven_key
from fedreuse.deploy.flower.message import content_of, open_reply
from fedreuse.deploy.flower.post import collect

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from fedreuse.deploy.flower.identity import KeyRoster
    from fedreuse.deploy.flower.options import Deployment
    from fedreuse.deploy.flower.roster import Roster

__all__ = ["Hello"]

_POLL_SECONDS = 0.2


@dataclass(frozen=True, eq=False)
class Hello:
    """Server's side of hello, for one run."""

    grid: Grid
    options: Deployment
    run: str
    roster: Roster
    keys: KeyRoster | None = None
    _key_of: dict[int, str] = field(default_factory=dict)

    def gather(self, num_clients: int, for_all: bool = False) -> None:
        """Wait until enough clients have said hello.

        Args:
            num_clients: Number of clients in the federation.
            for_all: Wait for every client up to `wait_seconds`, unless the missing ones are refused.

        Raises:
            RunError: Fewer than `min_clients` after `wait_seconds`.
        """
        wanted = num_clients if self.options.min_clients == "all" else self.options.min_clients
        deadline = time.monotonic() + self.options.wait_seconds
        while True:
            self.greet()
            here, is_late = len(self.roster.nodes), time.monotonic() > deadline
            are_all = here + len(self.roster.refused) >= num_clients
            if here >= wanted and (not for_all or are_all or is_late):
                return
            if is_late:
                missing = sorted(set(range(num_clients)) - self.roster.nodes.keys())
                raise RunError(
                    f"{here} of {wanted} clients said hello within {self.options.wait_seconds:g} s; missing: "
                    f"{missing[:10]}. See log.txt for refused nodes and the reasons; start the missing nodes, or lower "
                    "deploy.min_clients, then continue with resume=True"
                )
            time.sleep(_POLL_SECONDS)

    def greet(self) -> None:
        """Say hello to new nodes, and release clients whose node's key was revoked."""
        self._revoke()
        challenge, unnamed = secrets.token_bytes(32), dict[int, int]()
        strangers = sorted(self.roster.strangers(set(self.grid.get_node_ids())))
        for node, frame in self._ask(dict.fromkeys(strangers, ANY_CLIENT), challenge):
            with self._refusing(node):
                client = self._identify(node, frame, challenge)
                if frame.client == ANY_CLIENT:
                    unnamed[node] = client
                else:
                    self.roster.admit(node, client, frame.facts)
        for node, frame in self._ask(
            unnamed, challenge
        ):  # second hello: nodes that now know their number report its facts
            with self._refusing(node):
                if frame.client != unnamed[node]:
                    raise WireError(f"it answers as client {frame.client}, but its key is that of {unnamed[node]}")
                self.roster.admit(node, frame.client, frame.facts)

    def _ask(self, clients: Mapping[int, int], challenge: bytes) -> Iterator[tuple[int, Frame]]:
        """Yield the frames of nodes that answer and can take part; refuse the others."""
        waiting, facts = self.options.timeout_seconds, {"challenge": challenge} if self.keys is not None else {}
        contents = {client: content_of(Frame(self.run, client, facts)) for client in set(clients.values())}
        messages = [Message(contents[client], node, "query", ttl=waiting) for node, client in clients.items()]
        for node, reply in collect(self.grid, messages, waiting):
            with self._refusing(node):
                frame = open_reply(reply, node)
                if "refused" in frame.facts:
                    raise WireError(f"it reports: {frame.facts['refused']}")
                yield node, frame

    def _identify(self, node: int, frame: Frame, challenge: bytes) -> int:
        """Return a node's client: by its key with a roster, else by its own claim."""
        if self.keys is None:
            if frame.client == ANY_CLIENT:
                raise WireError(
                    "it does not name its client; start it with a number, or set a roster of keys at the server "
                    "(deploy.roster)"
                )
            return frame.client
        key = proven_key(frame.facts, self.run, challenge, node)
        client = self.keys.client_of(key)
        if frame.client not in (ANY_CLIENT, client):
            raise WireError(f"it claims client {frame.client}, but its key is that of client {client}")
        self._key_of[node] = key
        return client

    def _revoke(self) -> None:
        """Refuse nodes whose key was removed from the roster, has expired, or belongs to another client now."""
        for client, node in list(self.roster.nodes.items()) if self.keys is not None else ():
            with self._refusing(node):
                assert self.keys is not None
                if self.keys.client_of(self._key_of[node]) != client:
                    raise WireError(f"its key is no longer that of client {client}")
            if node in self.roster.refused:
                del self.roster.nodes[client]

    @contextmanager
    def _refusing(self, node: int) -> Iterator[None]:
        """Refuse the node on any error in the block."""
        try:
            yield
        except ConfigError:
            raise  # the roster file itself is wrong, which no node is to blame for
        except Exception as error:
            self.roster.refuse(node, refusal(error))
