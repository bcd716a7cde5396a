"""One client after another in this process: the reference that every other executor must equal bit by bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.engine.executors.executor import ExecutorConfig, RunExecutor, evaluate_here, executors
from fedreuse.engine.executors.fault_injection import Exchange, FaultInjection
from fedreuse.engine.executors.group import answers_of, groups_of
from fedreuse.engine.ports import client_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.engine.executors.executor import Reply, Site

__all__ = ["Serial", "SerialExecutor", "play"]


@executors.register("serial")
@dataclass(frozen=True)
class Serial(ExecutorConfig):
    """Clients one after another in this process.

    Args:
        mode: `fast` passes envelopes as objects, `strict` encodes and decodes every envelope; the results are the same.

    Example: `executor: {name: serial, mode: strict}`.
    """

    mode: Literal["fast", "strict"] = "fast"

    def start(self, site: Site) -> SerialExecutor:
        """Start the executor for a site."""
        return SerialExecutor(site, is_strict=self.mode == "strict")


class SerialExecutor(RunExecutor):
    """An executor that runs the clients in order."""

    def __init__(self, site: Site, is_strict: bool = False) -> None:
        """Create the executor; `is_strict` encodes and decodes every envelope."""
        self._site = site
        self._is_strict = is_strict
        self._faults = FaultInjection(site.faults, site.seed)

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Deliver requests and yield replies."""
        exchange = self._faults.begin(requests)
        for group in groups_of(exchange.requests, self._site):
            yield from play(self._site, exchange, group, self._is_strict)

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """Evaluate a model on the run's validation examples."""
        return evaluate_here(self._site.validate, model, num_examples)

    def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Keep the acknowledged memories of the clients."""
        self._faults.end_round()
        self._site.store.commit(acks)


def play(site: Site, exchange: Exchange, group: Sequence[int], is_strict: bool = False) -> Iterator[Reply]:
    """Run a group of clients in this process; records are stored before the replies are visible to the server."""

    def carry(envelope: Envelope) -> Envelope:
        return Envelope.from_bytes(envelope.to_bytes(), site.schema) if is_strict else envelope

    number, records = exchange.round_number, [site.store.load(client) for client in group]
    if site.together is None:
        (client,), (known,) = group, records
        trainer = site.trainer(client, number)
        answer = client_answer(site.method, carry(exchange.requests[client]), known, trainer, client)
        answers = [(*answer, trainer.work)]
    else:
        answers = answers_of(site, number, {client: carry(exchange.requests[client]) for client in group}, records)
    for client, known, (envelope, record, work) in zip(group, records, answers, strict=True):
        # Record first, reply second: a crash in between leaves an unacknowledged memory, which the commit rule ignores.
        if record is not known:
            site.store.save(client, record)
        yield exchange.reply(client, carry(envelope), work)
