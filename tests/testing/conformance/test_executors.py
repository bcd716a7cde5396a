"""The suite of executors: each check fails for an executor that breaks the rule it is there for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.engine.executors.executor import ExecutorWrapper, Reply, Site
from fedreuse.engine.executors.serial import Serial
from fedreuse.testing.conformance.executors import EXECUTOR_CHECKS, check_executor


@dataclass(frozen=True)
class Hasty:
    """An executor that forgets that some replies are late."""

    def start(self, site: Site) -> Any:
        return _Hasty(Serial().start(site))


class _Hasty(ExecutorWrapper):
    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        for reply in self._inner.exchange(requests):
            yield replace(reply, status="in_time")


@pytest.mark.slow
def test_broken_executors_are_caught() -> None:
    EXECUTOR_CHECKS["equals the reference"](Hasty())
    with pytest.raises(AssertionError):
        EXECUTOR_CHECKS["equals the reference under faults"](Hasty())


@pytest.mark.slow
def test_an_honest_executor_passes_everything() -> None:
    check_executor(Serial())
