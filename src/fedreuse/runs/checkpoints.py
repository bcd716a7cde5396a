"""The durable side of a run: the journal, what a checkpoint writes into it, and the copies that `keep` asks for."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save

from fedreuse.accounting.columns import fold_events, fold_rows
from fedreuse.accounting.durable_rows import DurableRows
from fedreuse.accounting.ledger import EventRow, Ledger, row_from_plain
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.engine.rounds import mark_durable
from fedreuse.engine.state.checkpoint import Checkpointer, restore_clients, restore_server
from fedreuse.engine.state.client_store import DiskStore, MemoryStore
from fedreuse.engine.state.records import ServerRecord
from fedreuse.engine.state.state_file import map_state, write_state
from fedreuse.engine.state.tensor_store import TensorStore
from fedreuse.runs.keeping import best_file, best_files, checkpoint_file, checkpoint_files, model_file, state_file
from fedreuse.runs.resources import ROWS, Resources
from fedreuse.runs.summary import arrays_of
from fedreuse.store.directory import FINAL_LEDGER, SERVER_FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fedreuse.accounting.ledger import LedgerRow
    from fedreuse.core.model import Model
    from fedreuse.engine.state.client_store import ClientStore
    from fedreuse.runs.federation import Federation
    from fedreuse.store.directory import RunDirectory

__all__ = ["Checkpoints"]


class Checkpoints:
    """Durable state of one run: read once at the start, then written as it changes.

    Each checkpoint is one transaction of the journal, so a crash leaves the last one whole. Rounds after it run again
    on resume and write the same bits.
    """

    def __init__(self, federation: Federation, directory: RunDirectory) -> None:
        """Open the journal; refuse a damaged one."""
        self._federation, self._directory = federation, directory
        self._journal, self._keep = directory.journal, federation.config.keep
        directory.verify_journal()
        self._origin = directory.origin
        self._tensors = TensorStore(directory.path / SERVER_FOLDER, federation.schema, run=self._origin)
        self._resources = Resources()
        self._saved = 0, 0

    @property
    def closed_size(self) -> tuple[int, int]:
        """Numbers of ledger rows and events of the rounds that are durable with their metrics."""
        return self._saved

    @property
    def round_number(self) -> int:
        """Last durable round; 0 before the first checkpoint."""
        return self._journal.round_number

    def metrics(self) -> list[dict[str, Any]]:
        """Return the metrics of all durable rounds."""
        return self._journal.rows("metrics")

    def restore(self) -> tuple[ServerRecord, ClientStore, Ledger]:
        """Return server record, client store and ledger: those of the last checkpoint, or of a new run."""
        ledger = Ledger(warn=self._directory.log)
        record, store = self._begin() if self.round_number == 0 else self._read(ledger)
        is_on_disk = self._federation.config.server_store == "disk"
        held = None if self.round_number == 0 else record
        self._checkpointer = Checkpointer(self._federation.schema, held, self._tensors if is_on_disk else None)
        self._directory.write_metrics(self.metrics())
        self._saved = self._closed_size(ledger)
        num_rows, num_events = self._saved
        self._settle(ledger, list(ledger.rows)[num_rows:], list(ledger.events)[num_events:])
        return record, store, ledger

    def _settle(self, ledger: Ledger, rows: list[LedgerRow], events: list[EventRow]) -> None:
        """Leave the rows of closed rounds to the journal; `rows` and `events` are those of an open round."""
        ledger.rows, ledger.events = DurableRows(self._saved[0], self._rows), DurableRows(self._saved[1], self._events)
        ledger.rows.extend(rows)
        ledger.events.extend(events)

    def _rows(self) -> list[LedgerRow]:
        return [row_from_plain(row) for row in self._journal.rows("ledger")]

    def _events(self) -> list[EventRow]:
        return [EventRow(**row) for row in self._journal.rows("events")]

    def _closed_size(self, ledger: Ledger) -> tuple[int, int]:
        """Return the numbers of ledger rows and events, without those of an open round."""
        last = self.round_number - 1 if self.is_open else self.round_number
        closed = [sum(row.round_number <= last for row in rows) for rows in (ledger.rows, ledger.events)]
        return closed[0], closed[1]

    def _begin(self) -> tuple[ServerRecord, ClientStore]:
        """Return the first state, and remove what a start without a checkpoint left behind."""
        federation = self._federation
        self._tensors.keep_only(())
        if federation.config.client_store == "disk":
            shutil.rmtree(self._clients_folder, ignore_errors=True)
        record = ServerRecord(federation.method.server.init(federation.initial, federation.population))
        return record, self._open_store({})

    def _read(self, ledger: Ledger) -> tuple[ServerRecord, ClientStore]:
        blobs, where, schema = self._journal.blobs(), str(self._directory.path), self._federation.schema
        record = restore_server(blobs, schema, where, self._tensors)
        store = self._open_store(restore_clients(blobs, schema, where))
        self._check_restored(record, store)
        ledger.rows, ledger.events = self._rows(), self._events()
        ledger.counts = (self._journal.rows("counts") or [{}])[-1]
        return record, store

    def _check_restored(self, record: ServerRecord, store: ClientStore) -> None:
        """Refuse a journal of another run, and client records on disk that lack the exchange of the checkpoint."""
        where = self._directory.path
        if self._journal.origin != self._origin:
            raise RunDirectoryError(
                f"{where}: the checkpoint was not written by the run of provenance.json; restore both from a copy, "
                "or start again in another `out`"
            )
        # on real nodes the records lie at the clients, and the commit rule finds lost ones
        if not isinstance(store, DiskStore) or (where / "deployment.json").exists():
            return
        for client, contact in record.contacts.items():
            memories = store.load(client).memories
            # a client may have been told that the exchange under way was absorbed, by the run that crashed
            is_ahead = client in record.flights and record.flights[client].exchange in memories
            if contact.ack not in memories and not is_ahead:
                raise RunDirectoryError(
                    f"{where / 'clients'}: the record of client {client} lacks exchange {contact.ack}, on which the "
                    "checkpoint builds; restore the folder from a copy, or start again in another `out`"
                )

    def _open_store(self, records: dict[int, Any]) -> ClientStore:
        if self._federation.config.client_store == "disk":
            return DiskStore(self._clients_folder, self._federation.schema, self._origin)
        return MemoryStore(records)

    @property
    def _clients_folder(self) -> Path:
        return self._directory.path / "clients"

    @property
    def is_open(self) -> bool:
        """True if the last durable round has a state, but no row of metrics yet."""
        return self.round_number > max((row["round"] for row in self.metrics()), default=0)

    def write(
        self, number: int, record: ServerRecord, store: ClientStore, ledger: Ledger, metrics: list[dict[str, Any]]
    ) -> ServerRecord:
        """Make everything up to round `number` durable in one transaction, and return the record to continue with.

        `metrics` are the rows of the rounds since the last checkpoint. The journal is written before the metrics file:
        a round in that file is therefore durable. Without metrics the round stays open: the next checkpoint writes its
        rows again, with those of its evaluation.
        """
        num_rows, num_events = self._saved
        rows: dict[str, Any] = {
            "metrics": metrics,
            "ledger": fold_rows(ledger.rows[num_rows:]),
            "events": fold_events(ledger.events[num_events:]),
            "counts": [dict(ledger.counts)],
        }
        changes = self._checkpointer.changes(record, store)
        rows[ROWS] = [self._resources.note(self._checkpointer.sizes)]
        self._journal.commit(number, rows, changes, self._origin)
        record = mark_durable(self._checkpointer.settled(record))
        self._directory.append_metrics(metrics)
        if metrics:
            self._saved = len(ledger.rows), len(ledger.events)
            self._settle(ledger, [], [])
        return record

    def write_final_rows(self, rows: Sequence[LedgerRow]) -> None:
        """Store the ledger rows of messages after the last round, which the evaluation on the test split sends."""
        self._journal.commit(self.round_number, {FINAL_LEDGER: fold_rows(rows)})

    def read_final_rows(self) -> list[LedgerRow]:
        """Return the rows of `write_final_rows`, for a run that crashed after its test."""
        rows = self._journal.rows(FINAL_LEDGER)
        if not rows:
            raise RunDirectoryError(
                f"{self._directory.path}: the test split was opened, but the checkpoint lacks the messages of that "
                "evaluation; restore it from a copy, or start the run again in another `out`"
            )
        return [row_from_plain(row) for row in rows]

    def keep_model(self, number: int, model: Model, is_best: bool) -> None:
        """Store the model of a round if `keep` asks for it; call it before the round's checkpoint."""
        path = self._directory.path
        if self._keep.model == "best" and is_best:
            _write(best_file(path, number), write_state(model, self._federation.schema, self._owner_of_best(number)))
        if number in self._keep.models:
            arrays = {name: np.asarray(array, order="C") for name, array in arrays_of(model).items()}
            _write(model_file(path, number), save(arrays))

    def keep_copies(self, number: int, best_round: int) -> None:
        """Copy the journal after a checkpoint if `keep` asks for it, and drop copies and models no longer needed."""
        path = self._directory.path
        if number in self._keep.states:
            self._journal.copy(state_file(path, number))
        if self._keep.checkpoints:
            self._journal.copy(checkpoint_file(path, number))
            for old in checkpoint_files(path)[: -self._keep.checkpoints]:
                old.unlink()
        for old in best_files(path):
            # a run that goes back to a copy needs the model that was best then
            if old != best_file(path, best_round) and not self._keep.has_copies:
                old.unlink()

    def best_model(self, best_round: int) -> Model:
        """Return the stored model of the best round."""
        path = best_file(self._directory.path, best_round)
        if not path.exists():
            raise RunDirectoryError(f"{path}, the best model, is missing; restore it from a copy, or run again")
        model: Model = map_state(path, self._federation.schema, self._owner_of_best(best_round))
        return model

    def _owner_of_best(self, number: int) -> str:
        return f"run {self._origin}, best model of round {number}"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    write_whole(path, data)
