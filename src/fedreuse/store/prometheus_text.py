"""State of a run in the text format of Prometheus, read from its directory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fedreuse.store.standing import standing_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.store.directory import RunDirectory

__all__ = ["prometheus_text", "samples"]

_STATES = ("running", "complete", "stopped", "interrupted")
_AGAIN = {"resync": "not held", "forgot": "lost state"}


def prometheus_text(directory: RunDirectory) -> str:
    """Return the committed rounds of a run as metrics: rounds, bytes by direction and kind, lost clients, resyncs.

    Args:
        directory: The run directory, of a running or ended run.

    Raises:
        RunDirectoryError: The directory is damaged.
    """
    one = standing_of(directory)
    rows = [row for row in directory.ledger() if not row.is_measured]
    sizes, resyncs = Counter[tuple[str, str]](), Counter[str]()
    for row in rows:
        sizes[row.direction, row.kind] += row.total_bytes
        if row.direction == "up" and row.kind in _AGAIN:
            resyncs[_AGAIN[row.kind]] += 1
    refused = sum(row.status == "refused" and row.kind not in _AGAIN for row in rows)
    score = {"validation_score": one.scores[-1]} if one.scores else {}
    parts = [
        samples("rounds_total", "Committed rounds.", {"": one.rounds}),
        samples("rounds_planned", "Rounds of the configuration.", {"": one.planned_rounds}, "gauge"),
        samples("state", "1 for the current state.", {f'state="{s}"': int(s == one.state) for s in _STATES}, "gauge"),
        samples(
            "message_bytes_total",
            "Serialized messages by direction and kind.",
            {f'direction="{way}",kind="{_escaped(kind)}"': size for (way, kind), size in sorted(sizes.items())},
        ),
        samples("dense_bytes_total", "Bytes of dense FedAvg for the same clients.", {"": one.dense_bytes}),
        samples("clients_lost_total", "Selected clients without a valid reply.", {"": one.num_lost}),
        samples("replies_refused_total", "Replies that were refused.", {"": refused}),
        samples(
            "resyncs_total",
            "Clients that were sent the whole model again, by reason.",
            {f'reason="{reason}"': resyncs[reason] for reason in _AGAIN.values()},
        ),
        samples("round_seconds_total", "Duration of the committed rounds.", {"": one.seconds}),
        *(samples(name, "Last validation score.", {"": value}, "gauge") for name, value in score.items()),
    ]
    return "".join(parts)


def samples(name: str, meaning: str, found: Mapping[str, float], kind: str = "counter") -> str:
    """Return one metric with a sample per set of labels."""
    lines = [f"# HELP fedreuse_{name} {meaning}", f"# TYPE fedreuse_{name} {kind}"]
    lines += [
        f"fedreuse_{name}{{{labels}}} {value}" if labels else f"fedreuse_{name} {value}"
        for labels, value in found.items()
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
