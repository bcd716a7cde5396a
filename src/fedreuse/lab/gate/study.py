"""Gate study: repeated scores of the gate at fixed states, and the harm that reuse would cause there.

At the start of chosen rounds of a run, every client with a usable cache is probed, selected or not: its score is
repeated with different batches, and it is trained in any case. The run itself is not affected: it continues with
bit-identical results.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.checked import with_check
from fedreuse.core.corrections import proximal
from fedreuse.core.errors import ConfigError, RunDirectoryError, require
from fedreuse.core.files import write_whole
from fedreuse.core.local_trainer import BatchPlan
from fedreuse.core.model import Model, apply, combine, difference
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors, dot, sub
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.schedule import Schedule
from fedreuse.engine.state.records import ClientMemory
from fedreuse.lab.gate.probe import PROBES_FILE, Probe
from fedreuse.lab.gate.recorded import Recorded
from fedreuse.methods.dg_fedreuse import DgFedReuse, DgState, Signature, score
from fedreuse.methods.gates.proxy import Proxy
from fedreuse.runs.claim import check_facts
from fedreuse.runs.facts import facts_of
from fedreuse.runs.federation import Federation, assemble
from fedreuse.runs.keeping import kept_states
from fedreuse.runs.live import LiveRun
from fedreuse.store.directory import JOURNAL, RunDirectory

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig

__all__ = ["gate_study", "write_probes"]


def gate_study(
    config: RunConfig,
    at: Sequence[int],
    repeats: int = 10,
    tell: Callable[[str], object] = str,
    run: RunDirectory | None = None,
) -> list[Probe]:
    """Run a configuration up to the last of some rounds, and probe every usable cache at the start of each.

    Args:
        config: A run of `dg_fedreuse` with the gate `proxy`, and validation examples.
        at: Rounds from 2 on; before round 2 no client has a cache.
        repeats: Number of repeats of each score, at least 2.
        tell: Called with progress messages.
        run: The stored run of this configuration. Rounds before a kept state are not repeated unless a probe needs
            their models; every repeated round is compared with the recorded one.

    Raises:
        ConfigError: The method or gate is another one, there are no validation examples, or the run lacks a round.
        RunDirectoryError: A repeated round or the data differ from those of the stored run.
    """
    method = config.method
    if not isinstance(method, DgFedReuse) or not isinstance(method.gate, Proxy):
        raise ConfigError("a gate study needs method dg_fedreuse with the gate proxy: method={name: dg_fedreuse}")
    last = len(run.metrics()) if run is not None and run.is_complete else config.rounds.count
    wrong = [number for number in at if not 2 <= number <= last]
    require(bool(at) and not wrong, f"rounds from 2 to {last} expected", list(at))
    require(repeats > 1, "repeats must be at least 2", repeats)
    federation = assemble(replace(config, executor=Serial()))
    require(federation.num_validation > 0, "task.validation must hold out examples", federation.num_validation)
    with tempfile.TemporaryDirectory() as folder:
        return _Replay(federation, Path(folder), run, tell).probes(sorted(set(at)), repeats)


def write_probes(folder: Path, config: RunConfig, probes: Sequence[Probe], origin: Mapping[str, Any]) -> None:
    """Store probes with the configuration and id of the probed run, under a checksum.

    Args:
        folder: Folder of `gate.json`.
        config: Configuration of the probed run.
        probes: The probes.
        origin: Provenance of the study at its start.

    Raises:
        RunDirectoryError: The folder cannot be written.
    """
    plain = [asdict(probe) for probe in probes]
    content = {"run_id": config.run_id, "config": config.to_plain(), "provenance": dict(origin), "probes": plain}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / PROBES_FILE, json.dumps(with_check(content)).encode())
    except OSError as error:
        raise RunDirectoryError(f"{folder} cannot be written ({error}); choose another --out") from None


class _Replay:
    """A run in a temporary folder, from the beginning or from a kept state of a stored run."""

    def __init__(
        self, federation: Federation, folder: Path, run: RunDirectory | None, tell: Callable[[str], object]
    ) -> None:
        config, rounds = federation.config, federation.config.rounds
        self._federation, self._folder, self._run, self._tell = federation, folder, run, tell
        self._schedule = Schedule.draw(
            config.task.clients, rounds.count, rounds.cohort, rounds.availability, config.seed
        )
        self._recorded = None if run is None else Recorded(run, federation.schema)
        if run is not None:
            check_facts(run.provenance, facts_of(federation, self._schedule), run)

    def probes(self, at: Sequence[int], repeats: int) -> list[Probe]:
        """Probe every usable cache at the start of each of the rounds."""
        self._take_state(at[0])
        directory = RunDirectory(self._folder)
        directory.lock()
        probes: list[Probe] = []
        models: dict[int, Model] = {}
        with ExitStack() as stack:
            stack.callback(directory.release)
            live = stack.enter_context(LiveRun(self._federation, directory, self._schedule).connected())
            first = live.round_number + 1
            for number in range(first, at[-1] + 1):
                models[number] = live.model
                if number in at:
                    self._tell(f"round {number}: probing every usable cache")
                    probes += _RoundProbe(self._federation, live, number, repeats, models).probes()
                self._converse(live)
        if self._run is not None:
            self._tell(f"rounds {first} to {at[-1]} are identical to the recorded rounds of {self._run.path}")
        return probes

    def _take_state(self, first: int) -> None:
        """Copy the latest kept state from which all models for the first probes can be computed."""
        method = self._federation.config.method
        assert isinstance(method, DgFedReuse)
        assert isinstance(method.gate, Proxy)
        kept = {} if self._run is None else kept_states(self._run.path)
        usable = [number for number in kept if number <= first - method.gate.max_age]
        if self._run is None or not usable:
            return
        self._tell(f"starting from the kept state of round {max(usable)}")
        shutil.copyfile(kept[max(usable)], self._folder / JOURNAL)
        shutil.copyfile(self._run.file("provenance.json"), self._folder / "provenance.json")  # the journal refers to it

    def _converse(self, live: LiveRun) -> None:
        _, num_events = live.ledger_size
        live.converse()
        live.checkpoint()
        if self._recorded is not None:
            self._recorded.compare(live.round_number, live.ledger.events[num_events:], live.model)


class _RoundProbe:
    """States of the server and the clients at the start of one round, and the probes of its clients."""

    def __init__(
        self, federation: Federation, live: LiveRun, number: int, repeats: int, models: dict[int, Model]
    ) -> None:
        self._federation, self._live, self._number, self._repeats = federation, live, number, repeats
        method, state = federation.config.method, live.record.state
        assert isinstance(method, DgFedReuse)
        assert isinstance(method.gate, Proxy)
        assert isinstance(state, DgState)
        self._method, self._gate, self._state, self._models = method, method.gate, state, models

    def probes(self) -> list[Probe]:
        ages = {client: self._number - self._state.rounds[client] for client in self._state.cache}
        usable = sorted(client for client, age in ages.items() if age < self._gate.max_age)
        signatures = [(client, self._signature(client)) for client in usable]
        return [self._probe(client, head, ages[client]) for client, head in signatures if head is not None]

    def _signature(self, client: int) -> Tensors | None:
        contact = self._live.record.contacts.get(client)
        first = ClientMemory(Signature(None))
        memory = self._live.store.load(client).resolve(0 if contact is None else contact.ack, first)
        head: Tensors | None = memory.state.head
        return head

    def _probe(self, client: int, signature: Tensors, age: int) -> Probe:
        model, cached = self._state.model, self._state.cache[client]
        trainer = self._federation.trainer.for_client(client, self._number)
        head, plan = self._federation.schema.head(), BatchPlan(self._gate.batches, self._gate.batch)
        whole = BatchPlan(None, self._gate.batch, is_deterministic=True)
        names = [spec.name for spec in model.weights.schema]
        scores = tuple(
            score(trainer.gradient(model, head, plan, f"gate proxy{f', repeat {number}' if number else ''}"), signature)
            for number in range(self._repeats)  # the first repeat uses the batches of the run itself
        )
        downhill = trainer.gradient(model, names, plan, "gate study")
        trained = trainer.train(model, proximal(model.weights, self._method.mu)).model
        fresh = replace(difference(trained, model), buffers=cached.buffers, counters=cached.counters)
        moved = sub(model.weights, self._models[self._number - age].weights)
        return Probe(
            self._number, client, age, scores,
            fixed_score=score(trainer.gradient(model, head, whole, "fixed proxy"), signature),
            threshold=self._gate.threshold_in(self._number),
            drift=_norm(moved),
            against_update=1 + _cosine(downhill, cached.weights),
            chance=float(stream(self._federation.config.seed, "gate study", self._number, client).random()),
            cosine=_cosine(cached.weights, fresh.weights),
            norm_ratio=_norm(cached.weights) / max(_norm(fresh.weights), 1e-12),
            harm=self._loss(client, cached, self._method.rho**age) - self._loss(client, fresh, 1.0),
            relative_drift=_norm(moved) / max(_norm(cached.weights), 1e-12),
        )  # fmt: skip

    def _loss(self, client: int, update: Model, decay: float) -> float:
        """Return the validation loss after one step with this update alone, weighted as in an average cohort."""
        sizes = self._federation.prepared.training.sizes
        weight = decay * sizes[client] / (sizes.mean() * self._federation.config.rounds.cohort)
        moved, _ = apply(self._state.model, combine([(float(weight), update)], self._federation.schema))
        return self._federation.validate(moved, 0, self._federation.num_validation).mean_loss


def _norm(tensors: Tensors) -> float:
    return sqrt(dot(tensors, tensors))


def _cosine(left: Tensors, right: Tensors) -> float:
    return dot(left, right) / max(_norm(left) * _norm(right), 1e-12)
