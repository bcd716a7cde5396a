"""Run directories made by hand, without torch: two rounds or more, two clients each, one reuse from the second on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fedreuse.accounting.ledger import EventRow, LedgerRow, row_to_plain
from fedreuse.core.checked import with_check
from fedreuse.core.formats import RUN_DIRECTORY
from fedreuse.core.local_trainer import Work
from fedreuse.store.directory import RunDirectory
from fedreuse.store.identity import run_id_of
from fedreuse.store.manifest import digests_of

UPLINK = {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.2}}}
DIGESTS = dict.fromkeys(("data", "partition", "validation", "schedule", "schema", "initial_model"), "same")


def write_run(
    place: Path,
    *,
    seed: int = 1,
    test_score: float = 0.5,
    scores: tuple[float | None, ...] = (0.4, 0.6),
    uplink: dict[str, Any] | None = None,
    digests: dict[str, str] | None = None,
    metric: str = "accuracy",
    is_complete: bool = True,
    crossing: int = 0,
    config: dict[str, Any] | None = None,
) -> RunDirectory:
    """Clients 0 and 1 train in round 1; in round 2 client 0 trains and client 1 is reused. A dense model is 100 B.

    Its configuration is a small one, or `config` with the seed, and as many rounds like the second as it has. A meter
    sees `crossing` bytes each way in each round, at client 0; without, there is no meter.
    """
    directory = RunDirectory(place)
    directory.lock()
    small = {
        "task": {"name": "digits", "clients": 2, "metric": {"name": metric}},
        "network": {"name": "mlp"},
        "method": {"name": "dg_fedreuse"},
        "uplink": UPLINK if uplink is None else uplink,
        "rounds": {"count": 2},
    }
    whole = {**(small if config is None else config), "seed": seed}
    directory.write_text("config.yaml", yaml.safe_dump(whole, sort_keys=False))
    reference = {"dense_bytes": 100, "request_bytes": 110, "reply_bytes": 115}
    facts = {"run_id": run_id_of(whole), "reference": reference, "digests": {**DIGESTS, **(digests or {})}}
    write_provenance(directory, facts)
    for number in range(1, whole["rounds"]["count"] + 1):
        rows = [row for client in ((0, 1) if number == 1 else (0,)) for row in _exchange(number, client)]
        rows += _seen(number, crossing) if crossing else []
        score = scores[min(number, len(scores)) - 1]
        metrics = {"round": number, "validation_score": score, "validation_loss": None, "seconds": 1.5}
        directory.journal.commit(
            number,
            {
                "metrics": [metrics],
                "ledger": [row_to_plain(row) for row in rows],
                "events": [row_to_plain(event) for event in _events(number)],
            },
        )
    if is_complete:
        memory = {"server.all": 2_000_000, "clients.all": 500_000}
        if test_score is not None:
            directory.write_json("test-opened.json", with_check({"result": {"score": test_score}}))
        summary = {"test_score": test_score, "counts": {"kept variances": 0}, "memory_bytes": memory}
        directory.finish(summary, {"w": np.zeros(2, np.float32)})
    directory.release()
    return directory


def write_provenance(directory: RunDirectory, facts: dict[str, Any]) -> None:
    """Write a provenance with format, digests of files and checksum, as a run does."""
    content = {"format": RUN_DIRECTORY.version, **facts, "files": digests_of(directory.path)}
    directory.write_json("provenance.json", with_check(content))


def _events(number: int) -> list[EventRow]:
    if number == 1:
        return [EventRow(1, client, "fresh", "", None, None) for client in (0, 1)]
    return [EventRow(number, 0, "fresh", "age", 4, None), EventRow(number, 1, "reused", "", number - 1, 0.1)]


def _exchange(number: int, client: int) -> list[LedgerRow]:
    work = Work(training_steps=2, training_examples=8, flops=1_000_000_000, seconds=0.5)
    return [
        LedgerRow(number, 1, client, "down", "train", "training", "in_time", {"model:dense": 100}, 0, 10, 110),
        LedgerRow(number, 1, client, "up", "update", "training", "in_time", {"update:bitmap": 20}, 0, 10, 30, work),
    ]


def _seen(number: int, crossing: int) -> list[LedgerRow]:
    """What a meter counted in a round."""
    told = ("", "training", "measured", {"transport": crossing}, 0, 0, 0)
    return [LedgerRow(number, 1, 0, direction, *told) for direction in ("down", "up")]
