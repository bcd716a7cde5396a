"""Events as named numbers, for trackers: `scores/...`, `up_bytes/messages`, `work/flops`."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.events import Evaluated, Finished, RoundDone

__all__ = ["flatten", "of_evaluation", "of_round", "of_summary"]

_BY_BOUNDARY = re.compile(r"(?P<what>\w+) \((?P<boundary>\w+)\)")


def of_evaluation(event: Evaluated) -> dict[str, float]:
    """Return the scores of a round."""
    return {f"scores/{name}": score for name, score in event.scores.items()}


def of_round(event: RoundDone) -> dict[str, float]:
    """Return bytes under every boundary, numbers of clients by outcome, work and seconds of a round."""
    numbers = {
        f"{match['what']}/{match['boundary']}": float(number)
        for name, number in event.row.items()
        if (match := _BY_BOUNDARY.fullmatch(name))
    }
    numbers |= {f"events/{name}": float(count) for name, count in event.events.items()}
    numbers |= {f"work/{name}": float(amount) for name, amount in asdict(event.work).items()}
    return {**numbers, "time/seconds": float(event.row["seconds"])}


def of_summary(event: Finished) -> dict[str, float]:
    """Return the scores on the test split, and the savings over the whole run."""
    summary = event.summary
    scores = (name for name in summary if name.startswith("test_") and name != "test_examples")
    numbers = {f"test/{name.removeprefix('test_')}": summary[name] for name in scores}
    for boundary, totals in summary["communication"].items():
        numbers |= {f"{name}/{boundary}": totals[name] for name in ("saving", "up_saving", "down_saving")}
    return {name: float(number) for name, number in numbers.items() if number is not None}


def flatten(plain: Any, prefix: str = "") -> Mapping[str, Any]:
    """Return a configuration as one level of dotted keys."""
    if not isinstance(plain, dict):
        return {prefix: plain}
    leaves: dict[str, Any] = {}
    for key, value in plain.items():
        leaves |= flatten(value, f"{prefix}.{key}" if prefix else str(key))
    return leaves
