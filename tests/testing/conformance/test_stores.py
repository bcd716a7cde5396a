"""The suite of client stores: each check fails for a store that breaks the rule it is there for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ClientRecord
from fedreuse.testing.conformance.stores import STORE_CHECKS, check_store


class Amnesiac(MemoryStore):
    def load(self, client: int) -> ClientRecord:
        return ClientRecord()


class Eager(MemoryStore):
    def commit(self, acks: Mapping[int, int]) -> None:
        for client in list(self._records):
            self._records[client] = self._records[client].committed(acks.get(client, 0))


@pytest.mark.parametrize(
    ("check", "store"),
    [
        ("saved records are loaded", Amnesiac),
        ("acknowledged memories survive a commit", Eager),
        ("an unknown client is empty", lambda: MemoryStore({1: ClientRecord()})),
    ],
)
def test_broken_stores_are_caught(check: str, store: Any) -> None:
    with pytest.raises(AssertionError):
        STORE_CHECKS[check](store)


@pytest.mark.slow
def test_an_honest_store_passes_everything() -> None:
    check_store(MemoryStore)
