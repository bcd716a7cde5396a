"""A run in progress: the server's record, the clients' memories, the ledger, and the journal that makes them safe."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.dense import dense_reference
from fedreuse.accounting.ledger import EventRow, Ledger, row_from_plain, row_to_plain
from fedreuse.core.errors import RunDirectoryError
from fedreuse.engine.executors.executor import Site, TooFewReplies, WorkersLost
from fedreuse.engine.rounds import mark_durable, run_round
from fedreuse.engine.state.checkpoint import Checkpointer, restore_clients, restore_server
from fedreuse.engine.state.client_store import DiskStore, MemoryStore
from fedreuse.engine.state.records import ServerRecord
from fedreuse.engine.state.tensor_store import TensorStore
from fedreuse.runs.resources import ROWS, Resources
from fedreuse.runs.workers import TaskSetup, shared_arrays
from fedreuse.store.directory import FINAL_LEDGER, SERVER_FOLDER

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.model import Model
    from fedreuse.engine.executors.executor import RunExecutor
    from fedreuse.engine.state.client_store import ClientStore
    from fedreuse.runs.federation import Federation
    from fedreuse.store.directory import RunDirectory

__all__ = ["LiveRun"]


class LiveRun:
    """The state of one run: from its beginning, or as its journal holds it."""

    def __init__(self, federation: Federation, directory: RunDirectory) -> None:
        """Read what is stored, or begin."""
        self.federation, self.directory = federation, directory
        self.reference = dense_reference(federation.schema)
        self.ledger = Ledger(warn=directory.log)
        config, schema, journal = federation.config, federation.schema, directory.journal
        tensors = TensorStore(directory.path / SERVER_FOLDER, schema)
        directory.verify_journal()
        self._origin = directory.origin
        if journal.round_number == 0:
            tensors.keep_only(())
            if config.client_store == "disk":
                shutil.rmtree(directory.path / "clients", ignore_errors=True)
            self.record = ServerRecord(federation.method.server.init(federation.initial, federation.population))
            self.store = self._store({})
        else:
            blobs, where = journal.blobs(), str(directory.path)
            self.record = restore_server(blobs, schema, where, tensors)
            self.store = self._store(restore_clients(blobs, schema, where))
            self._check_restored()
            self.ledger.rows = [row_from_plain(row) for row in journal.rows("ledger")]
            self.ledger.events = [EventRow(**row) for row in journal.rows("events")]
            self.ledger.counts = (journal.rows("counts") or [{}])[-1]
        held = None if journal.round_number == 0 else self.record
        self._checkpointer = Checkpointer(schema, held, tensors if config.server_store == "disk" else None)
        directory.write_metrics(journal.rows("metrics"))
        self._resources = Resources()
        self._waiting: list[dict[str, Any]] = []
        self._saved = self.seen

    @property
    def safe_round(self) -> int:
        """The last round that the journal holds; 0 before the first."""
        return self.directory.journal.round_number

    @property
    def model(self) -> Model:
        """The server's model."""
        return self.federation.method.server.model(self.record.state)

    @property
    def seen(self) -> tuple[int, int]:
        """How many rows and events the ledger has: what comes later is new."""
        return len(self.ledger.rows), len(self.ledger.events)

    @property
    def site(self) -> Site:
        """What an executor needs to play this run's clients."""
        config, prepared = self.federation.config, self.federation.prepared
        return Site(
            self.federation.workplace,
            self.store,
            config.faults,
            config.seed,
            TaskSetup.of(config, prepared),
            shared_arrays(prepared),
            self.directory.log,
            self.federation.population,
            config.rounds.cohort,
        )

    def converse(self, cohort: Cohort, executor: RunExecutor) -> None:
        """One round, tried again as long as too few answered and the executor is willing."""
        num_rows, num_events = self.seen
        method, schema = self.federation.method, self.federation.schema
        while True:
            try:
                self.record = run_round(method, self.record, cohort, executor, self.ledger, schema)
                return
            except TooFewReplies as few:
                if not few.may_retry:
                    raise
                self.record = replace(self.record, exchange=few.exchange)
            except WorkersLost:  # a fault of the machine: whole rounds that wait for their checkpoint get it now
                del self.ledger.rows[num_rows:], self.ledger.events[num_events:]
                self.checkpoint_waiting()
                raise

    def note(self, row: dict[str, Any]) -> None:
        """Keep a round's metrics until the next checkpoint makes them safe."""
        self._waiting.append(row)

    def checkpoint(self, number: int) -> None:
        """Make everything up to this round safe, in one transaction."""
        num_rows, num_events = self._saved
        rows = {
            "metrics": self._waiting,
            "ledger": [row_to_plain(row) for row in self.ledger.rows[num_rows:]],
            "events": [row_to_plain(event) for event in self.ledger.events[num_events:]],
            "counts": [dict(self.ledger.counts)],
        }
        changes = self._checkpointer.changes(self.record, self.store)
        rows[ROWS] = [self._resources.note(self._checkpointer.sizes)]
        self.directory.journal.commit(number, rows, changes, self._origin)
        self.record = mark_durable(self._checkpointer.settled(self.record))
        self.directory.append_metrics(self._waiting)
        self._waiting = []
        self._saved = self.seen

    def checkpoint_waiting(self) -> None:
        """Make the rounds safe that wait for their checkpoint, if there are any."""
        if self._waiting:
            self.checkpoint(self._waiting[-1]["round"])

    def keep_last_rows(self, since: int) -> None:
        """Store the ledger's rows from here on as those that crossed after the last round."""
        rows = [row_to_plain(row) for row in self.ledger.rows[since:]]
        self.directory.journal.commit(self.safe_round, {FINAL_LEDGER: rows})

    def take_last_rows(self) -> None:
        """Take up again what crossed after the last round, before a crash; the look at the test split needs it."""
        rows = self.directory.journal.rows(FINAL_LEDGER)
        if not rows:
            raise RunDirectoryError(
                f"{self.directory.path}: the test split was opened, and the checkpoint lost what crossed for that; "
                "bring it back from a copy, or start the run again in another `out`"
            )
        self.ledger.rows += [row_from_plain(row) for row in rows]

    def _check_restored(self) -> None:
        """Refuse a journal of another run, and memories on disk that do not reach back to the last checkpoint."""
        where = self.directory.path
        if self.directory.journal.origin != self._origin:
            raise RunDirectoryError(
                f"{where}: the checkpoint was not written by the run of provenance.json; bring both back from a copy, "
                "or start again in another `out`"
            )
        if not isinstance(self.store, DiskStore) or (where / "deployment.json").exists():
            return
        for client, contact in self.record.contacts.items():
            if contact.ack not in self.store.load(client).memories:
                raise RunDirectoryError(
                    f"{where / 'clients'}: what client {client} remembers of exchange {contact.ack} is gone, but the "
                    "checkpoint builds on it; bring the folder back from a copy, or start again in another `out`"
                )

    def _store(self, records: dict[int, Any]) -> ClientStore:
        if self.federation.config.client_store == "disk":
            return DiskStore(self.directory.path / "clients", self.federation.schema)
        return MemoryStore(records)
