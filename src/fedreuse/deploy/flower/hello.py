"""Hello: nodes that came since are asked who they are, until enough clients are there."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flwr.app import Message

from fedreuse.core.errors import RunError, WireError, refusal
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, open_reply
from fedreuse.deploy.flower.post import collect

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from fedreuse.deploy.flower.options import Deployment
    from fedreuse.deploy.flower.roster import Roster

__all__ = ["Hello"]

_POLL_SECONDS = 0.2


@dataclass(frozen=True, eq=False)
class Hello:
    """The server's side, for one run."""

    grid: Grid
    options: Deployment
    run: str
    roster: Roster

    def gather(self, num_clients: int, for_all: bool = False) -> None:
        """Wait until enough clients have said hello; `for_all` takes the whole time, unless the others are refused."""
        wanted = num_clients if self.options.min_clients == "all" else self.options.min_clients
        deadline = time.monotonic() + self.options.wait_seconds
        while True:
            self.greet()
            here, is_late = len(self.roster.nodes), time.monotonic() > deadline
            is_everybody = here + len(self.roster.refused) >= num_clients
            if here >= wanted and (not for_all or is_everybody or is_late):
                return
            if is_late:
                missing = sorted(set(range(num_clients)) - self.roster.nodes.keys())
                raise RunError(
                    f"{here} of {wanted} clients said hello within {self.options.wait_seconds:g} s; missing: "
                    f"{missing[:10]}. See log.txt for who was refused and why; start the missing nodes, or lower "
                    "deploy.min_clients, then go on with resume=True"
                )
            time.sleep(_POLL_SECONDS)

    def greet(self) -> None:
        """Say hello to nodes that came since."""
        strangers = self.roster.strangers(set(self.grid.get_node_ids()))
        if not strangers:
            return
        content, waiting = content_of(Frame(self.run)), self.options.timeout_seconds
        messages = [Message(content, node, "query", ttl=waiting) for node in sorted(strangers)]
        for node, reply in collect(self.grid, messages, waiting):
            try:
                frame = open_reply(reply, node)
                if "refused" in frame.facts:
                    raise WireError(f"it says: {frame.facts['refused']}")
                self.roster.admit(node, frame.client, frame.facts)
            except Exception as error:  # whatever one node says, it is that node that is refused
                self.roster.refuse(node, refusal(error))
