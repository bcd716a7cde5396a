"""Run directories made by hand, without torch: two rounds, two clients each, one reuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fedreuse.accounting.ledger import EventRow, LedgerRow, row_to_plain
from fedreuse.core.local_trainer import Work
from fedreuse.runs.directory import RunDirectory

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
) -> RunDirectory:
    """Clients 0 and 1 train in round 1; in round 2 client 0 trains and client 1 is reused. A dense model is 100 B.

    A meter sees `crossing` bytes each way in each round, at client 0; without, there is no meter.
    """
    directory = RunDirectory(place)
    directory.lock()
    config = {
        "task": {"name": "digits", "clients": 2, "metric": {"name": metric}},
        "network": {"name": "mlp"},
        "method": {"name": "dg_fedreuse"},
        "uplink": UPLINK if uplink is None else uplink,
        "rounds": {"count": 2},
        "seed": seed,
    }
    directory.write_text("config.yaml", yaml.safe_dump(config))
    reference = {"dense_bytes": 100, "request_bytes": 110, "reply_bytes": 115}
    facts = {"run_id": place.name, "reference": reference, "digests": {**DIGESTS, **(digests or {})}}
    directory.write_json("provenance.json", facts)
    trained = {1: (0, 1), 2: (0,)}
    events = {
        1: [EventRow(1, 0, "fresh", "", None, None), EventRow(1, 1, "fresh", "", None, None)],
        2: [EventRow(2, 0, "fresh", "age", 4, None), EventRow(2, 1, "reused", "", 1, 0.1)],
    }
    for number in (1, 2):
        rows = [row for client in trained[number] for row in _exchange(number, client)]
        rows += _seen(number, crossing) if crossing else []
        metrics = {"round": number, "validation_score": scores[number - 1], "validation_loss": None, "seconds": 1.5}
        directory.journal.commit(
            number,
            {
                "metrics": [metrics],
                "ledger": [row_to_plain(row) for row in rows],
                "events": [row_to_plain(event) for event in events[number]],
            },
        )
    if is_complete:
        memory = {"server.all": 2_000_000, "clients.all": 500_000}
        summary = {"test_score": test_score, "counts": {"kept variances": 0}, "memory_bytes": memory}
        directory.finish(summary, {"w": np.zeros(2, np.float32)})
    directory.release()
    return directory


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
