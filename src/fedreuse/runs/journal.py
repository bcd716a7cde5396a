"""The journal of a run in progress: state, ledger and metrics of each round in one SQLite transaction.

A crash at any moment leaves the last complete round, never half of one; a full disk rolls back and loses nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgpack

from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.core.files import beside
from fedreuse.core.formats import JOURNAL as FORMAT

__all__ = ["Journal"]

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS blobs (place TEXT, key INTEGER, data BLOB NOT NULL, PRIMARY KEY (place, key));
CREATE TABLE IF NOT EXISTS rows (kind TEXT, round INTEGER, data BLOB NOT NULL, PRIMARY KEY (kind, round));
"""


class Journal:
    """A journal: one file with one writer."""

    def __init__(self, path: Path) -> None:
        """Open or create; a file that is not a journal is refused."""
        self._path = path
        try:
            self._database = sqlite3.connect(path, isolation_level=None, timeout=5)
            self._check_version()
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.executescript(_TABLES)
        except sqlite3.OperationalError as error:
            raise RunError(
                f"{path} could not be opened ({error}); if the disk is full, free some space, then go on with "
                "resume=True, or choose another `out`"
            ) from None
        except sqlite3.DatabaseError as error:
            raise RunDirectoryError(
                f"{path} is not a checkpoint of fedreuse ({error}); choose another `out`, or delete that directory"
            ) from None

    def _check_version(self) -> None:
        """A new file gets the version of today, a file without one is of the first; nothing else is written to it."""
        (found,) = self._database.execute("PRAGMA user_version").fetchone()
        if found:
            FORMAT.check(found, str(self._path))
        elif not self._database.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone():
            self._database.execute(f"PRAGMA user_version = {FORMAT.version}")

    def commit(
        self,
        round_number: int,
        rows: Mapping[str, list[dict[str, Any]]],
        blobs: Mapping[tuple[str, int], bytes | None] | None = None,
    ) -> None:
        """One round, or several since the last checkpoint, all or nothing."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for (place, key), data in (blobs or {}).items():
                if data is None:
                    self._database.execute("DELETE FROM blobs WHERE place = ? AND key = ?", (place, key))
                else:
                    self._database.execute("INSERT OR REPLACE INTO blobs VALUES (?, ?, ?)", (place, key, data))
            for kind, entries in rows.items():
                packed = msgpack.packb(entries)
                self._database.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", (kind, round_number, packed))
            self._database.execute("INSERT OR REPLACE INTO meta VALUES ('round', ?)", (str(round_number),))
            self._database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise RunError(
                f"{self._path}: the checkpoint of round {round_number} could not be written ({error}); rounds up to "
                f"{self.round_number} are safe. Free some disk space, then go on with resume=True"
            ) from None

    @property
    def round_number(self) -> int:
        """The last committed round; 0 before the first."""
        found = self._query("SELECT text FROM meta WHERE name = 'round'")
        return int(found[0][0]) if found else 0

    def blobs(self) -> dict[tuple[str, int], bytes]:
        """Everything the state consists of."""
        return {(place, key): data for place, key, data in self._query("SELECT * FROM blobs")}

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """Every row of a kind in the order of rounds."""
        found = self._query("SELECT data FROM rows WHERE kind = ? ORDER BY round", kind)
        return list(_unpacked(data for (data,) in found))

    def _query(self, text: str, *values: str) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(text, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise RunDirectoryError(
                f"{self._path} is damaged, or not a checkpoint of fedreuse ({error}); restore the file, "
                "or delete that directory and start the run again"
            ) from None

    def copy(self, path: Path) -> None:
        """The journal as it is after its last commit, in another file, whole or not at all."""
        path.parent.mkdir(exist_ok=True)
        partial = beside(path)
        partial.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(partial)) as target:
                self._database.backup(target)
            partial.replace(path)
        except (sqlite3.Error, OSError) as error:
            partial.unlink(missing_ok=True)
            raise RunError(
                f"{path} could not be written ({error}); rounds up to {self.round_number} are safe. Free some disk "
                "space, then go on with --resume"
            ) from None

    def close(self) -> None:
        """Let go of the file."""
        with closing(self._database):
            pass


def _unpacked(packed: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    for data in packed:
        yield from msgpack.unpackb(data)
