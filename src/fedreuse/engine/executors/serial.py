"""One process, one client after another: the reference that every other executor must equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.engine.executors.executor import ExecutorConfig, RunExecutor, evaluate_here, executors
from fedreuse.engine.executors.fault_injection import Exchange, FaultInjection
from fedreuse.engine.ports import client_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.engine.executors.executor import Reply, Site

__all__ = ["Serial", "SerialExecutor", "play"]


@executors.register("serial")
@dataclass(frozen=True)
class Serial(ExecutorConfig):
    """Clients one after another in this process; `fast` passes envelopes as objects, `strict` through bytes.

    Args:
        mode: `fast` or `strict`; the results are the same.

    Example: `executor: {name: serial, mode: strict}`.
    """

    mode: Literal["fast", "strict"] = "fast"

    def start(self, site: Site) -> SerialExecutor:
        """An executor at work."""
        return SerialExecutor(site, is_strict=self.mode == "strict")


class SerialExecutor(RunExecutor):
    """Plays the clients in order."""

    def __init__(self, site: Site, is_strict: bool = False) -> None:
        """`is_strict` sends every envelope through its bytes and back."""
        self._site = site
        self._is_strict = is_strict
        self._faults = FaultInjection(site.faults, site.seed)

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """One exchange of requests and replies."""
        exchange = self._faults.begin(requests)
        for client in exchange.requests:
            yield play(self._site, exchange, client, self._is_strict)

    def evaluate(self, model: Model, num_examples: int) -> Metrics:
        """A model on the run's validation examples."""
        return evaluate_here(self._site.validate, model, num_examples)

    def close(self) -> None:
        """Nothing to let go of."""

    def end_round(self, acks: Mapping[int, int]) -> None:
        """Settle the clients' memories."""
        self._faults.end_round()
        self._site.store.commit(acks)


def play(site: Site, exchange: Exchange, client: int, is_strict: bool = False) -> Reply:
    """One client in this process; its memory is stored before anybody sees the reply."""

    def carry(envelope: Envelope) -> Envelope:
        return Envelope.from_bytes(envelope.to_bytes(), site.schema) if is_strict else envelope

    trainer = site.trainer(client, exchange.round_number)
    known = site.store.load(client)
    envelope, record = client_answer(site.method, carry(exchange.requests[client]), known, trainer, client)
    if record is not known:
        site.store.save(client, record)
    return exchange.reply(client, carry(envelope), trainer.work)
