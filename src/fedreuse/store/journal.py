"""The journal of a run in progress: state, ledger and metrics of each round in one SQLite transaction.

A crash at any moment leaves the last complete round, never half of one; a full disk rolls back and loses nothing.
Every entry has a digest, and the sums of the digests are sealed with the number of the round: whatever is changed,
added or taken away is noticed by whoever reads it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack

from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.core.files import beside
from fedreuse.core.formats import JOURNAL as FORMAT
from fedreuse.store.checksums import Checksums, digest_of_entry, sum_of

__all__ = ["Journal"]

_META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, text TEXT NOT NULL)"
_UNCHECKED = 1
"""The version of journals without checksums; one that was begun so goes on so."""
_TABLES = {
    "blobs": "CREATE TABLE IF NOT EXISTS blobs (place TEXT, key INTEGER, {} data BLOB NOT NULL, "
    "PRIMARY KEY (place, key))",
    "rows": "CREATE TABLE IF NOT EXISTS rows (kind TEXT, round INTEGER, {} data BLOB NOT NULL, "
    "PRIMARY KEY (kind, round))",
}
_ROWS_OF = "rows of "
_KEYS = {"blobs": ("place", "key"), "rows": ("kind", "round")}
_DIGEST = "digest BLOB NOT NULL,"
"""Before the data, so that reading it does not read them."""


class Journal:
    """A journal: one file with one writer, and readers that neither wait for it nor keep it waiting."""

    def __init__(self, path: Path, *, is_reader: bool = False) -> None:
        """Open or create; a file that is not a journal is refused. A reader makes and changes nothing."""
        self._path, self._is_reader = path, is_reader
        try:
            place = f"{path.absolute().as_uri()}?mode={'ro' if is_reader else 'rwc'}"
            self._database = sqlite3.connect(place, uri=True, isolation_level=None, timeout=5)
            self.is_checked = self._version() > _UNCHECKED
            if not is_reader:
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute("PRAGMA synchronous=FULL")
                for statement in (_META, *_TABLES.values()):
                    self._database.execute(statement.format(_DIGEST if self.is_checked else ""))
        except sqlite3.OperationalError as error:
            raise RunError(
                f"{path} could not be opened ({error}); if the disk is full, free some space, then go on with "
                "resume=True, or choose another `out`"
            ) from None
        except sqlite3.DatabaseError as error:
            raise RunDirectoryError(
                f"{path} is not a checkpoint of fedreuse ({error}); choose another `out`, or delete that directory"
            ) from None

    def _version(self) -> int:
        """A new file gets the version of today, a file without one is of the first; nothing else is written to it."""
        (found,) = self._database.execute("PRAGMA user_version").fetchone()
        if found:
            FORMAT.check(found, str(self._path))
            return int(found)
        if self._database.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone():
            return _UNCHECKED
        if self._is_reader:
            return FORMAT.version
        self._database.execute(f"PRAGMA user_version = {FORMAT.version}")
        return FORMAT.version

    def commit(
        self,
        round_number: int,
        rows: Mapping[str, list[dict[str, Any]]],
        blobs: Mapping[tuple[str, int], bytes | None] | None = None,
        origin: str | None = None,
    ) -> None:
        """One round, or several since the last checkpoint, all or nothing; `origin` is kept once it is given."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            sums = replace(self._checksums(), round_number=round_number)
            sums = sums if origin is None else replace(sums, origin=origin)
            for (place, key), data in (blobs or {}).items():
                sums = self._put("blobs", place, key, data, sums)
            for kind, entries in rows.items():
                sums = self._put("rows", kind, round_number, msgpack.packb(entries), sums)
            noted = ("checksums", sums.to_text()) if self.is_checked else ("round", str(round_number))
            self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", noted)
            self._database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            self._roll_back()
            raise RunError(
                f"{self._path}: the checkpoint of round {round_number} could not be written ({error}); rounds up to "
                f"{self.round_number} are safe. Free some disk space, then go on with resume=True"
            ) from None
        except BaseException:
            self._roll_back()
            raise

    def _put(self, table: str, place: str, key: int, data: bytes | None, sums: Checksums) -> Checksums:
        """Write, replace or (None) remove one entry, and count it."""
        part, (first, second) = _part(table, place), _KEYS[table]
        digest = None
        if self.is_checked:
            digest = None if data is None else digest_of_entry(table, place, key, data)
            held = self._query(f"SELECT digest FROM {table} WHERE {first} = ? AND {second} = ?", place, key)
            sums = sums.changed(part, held[0][0] if held else None, digest)
        if data is None:
            self._database.execute(f"DELETE FROM {table} WHERE {first} = ? AND {second} = ?", (place, key))
        else:
            entry = (place, key, digest, data) if self.is_checked else (place, key, data)
            marks = ", ".join("?" * len(entry))
            self._database.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", entry)
        return sums

    @property
    def round_number(self) -> int:
        """The last committed round; 0 before the first."""
        return self._checksums().round_number

    @property
    def origin(self) -> str:
        """The checksum of the provenance that the run began with; empty if it has none."""
        return self._checksums().origin

    def blobs(self) -> dict[tuple[str, int], bytes]:
        """Everything the state consists of."""
        return {(place, key): data for place, key, data in self._entries("blobs")}

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """Every row of a kind in the order of rounds."""
        packed = [data for _, _, data in self._entries("rows", kind)]
        try:
            return [row for data in packed for row in msgpack.unpackb(data)]
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise self._damaged(f"rows of {kind}: {error}") from None

    def together(self, *kinds: str) -> list[list[dict[str, Any]]]:
        """Every row of several kinds, as one commit left them."""
        with self._snapshot():
            has_tables = self._query("SELECT name FROM sqlite_master WHERE name = 'rows'")
            return [self.rows(kind) if has_tables else [] for kind in kinds]

    def verify(self) -> None:
        """Refuse a journal that is not as it was written, in whatever part of it."""
        for (found,) in self._query("PRAGMA integrity_check(1)"):
            if found != "ok":
                raise self._damaged(str(found))
        self._entries("blobs")
        kinds = {str(kind) for (kind,) in self._query("SELECT DISTINCT kind FROM rows")}
        for kind in kinds | {part.removeprefix(_ROWS_OF) for part in self._checksums().sums if part != "blobs"}:
            self.rows(kind)

    def _entries(self, table: str, place: str = "") -> list[tuple[str, int, bytes]]:
        """The entries of a table, or of one place in it, compared with their sum."""
        first, second = _KEYS[table]
        digest = "digest" if self.is_checked else "NULL"
        chosen = f"WHERE {first} = ?" if place else ""
        text = f"SELECT {first}, {second}, {digest}, data FROM {table} {chosen} ORDER BY {second}"
        with self._snapshot():
            found, sums = self._query(text, *([place] if place else [])), self._checksums()
        if self.is_checked:
            self._compare(table, _part(table, place), found, sums)
        return [(where, key, data) for where, key, _, data in found]

    def _compare(self, table: str, part: str, found: Sequence[tuple[Any, ...]], sums: Checksums) -> None:
        try:
            digests = [digest_of_entry(table, place, key, data) for place, key, _, data in found]
        except TypeError:
            raise self._damaged(f"an entry of its {part} holds no bytes") from None
        if any(noted != digest for (*_, noted, _), digest in zip(found, digests, strict=True)):
            raise self._damaged(f"an entry of its {part} does not have its digest")
        if sum_of(digests) != sums.sums.get(part, 0):
            raise self._damaged(f"its {part} are not those of round {sums.round_number}")

    def _checksums(self) -> Checksums:
        """What is noted of the last commit; in a journal without checksums, the round alone."""
        noted: dict[str, Any] = dict(self._query("SELECT name, text FROM meta"))
        try:
            if self.is_checked:
                return Checksums.from_text(noted["checksums"]) if noted else Checksums()
            if "checksums" in noted:
                raise ValueError("its version is not that of its checksums")
            return Checksums(int(noted.get("round", 0)))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise self._damaged(f"the number of its round: {error}") from None

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Several looks at one state, though somebody writes at the same time."""
        if self._database.in_transaction:
            yield
            return
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def _query(self, text: str, *values: str | int) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(text, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, why: str) -> RunDirectoryError:
        return RunDirectoryError(
            f"{self._path} is damaged: it is not a readable checkpoint ({why}); delete the run directory and start the "
            "run again, or bring the file back from a copy"
        )

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
                "space, then go on with resume=True"
            ) from None

    def close(self) -> None:
        """Let go of the file."""
        with closing(self._database):
            pass


def _part(table: str, place: str) -> str:
    """What has a sum of its own: all blobs, and the rows of each kind."""
    return f"{_ROWS_OF}{place}" if table == "rows" else table
