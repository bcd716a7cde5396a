"""Gate section: scores against the threshold, decisions by reason, ages, and clients by round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.outcomes import count_outcomes
from fedreuse.config.catalog import registry_of
from fedreuse.report.page.section import Choice, Figure, Section, short
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import EventRow
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.results import Result

__all__ = ["gate"]

_OUTCOMES = ("fresh", "reused", "dropped", "lost")
_MOST_EVENTS = 250_000


def gate(shown: Shown) -> Section:
    """Return the section; without figures if every client of every run trained and none was scored."""
    deciding = [
        result
        for result in shown.results
        if any(event.outcome != "fresh" or event.score is not None for event in result.history.events)
    ]
    if not deciding:
        lead = ["In these runs every selected client trained: there was no gate decision."]
        return Section("gate", "Gate decisions", lead)
    drawn = _within_budget(deciding)
    data = [{"run": shown.results.index(result), **_events(result)} for result in drawn]
    choice = Choice("run", "Run", {str(at): f"{run.variant}, seed {run.seed}" for at, run in enumerate(drawn)})
    titles = {
        "scores": ("Gate scores and threshold by round", _scores_description(drawn[0])),
        "reasons": ("Decisions by reason and round", "Bars count the selected clients; sums are in the table."),
        "ages": ("Ages of reused updates", _ages_description(drawn[0])),
        "clients": ("Outcome by client and round", "A column per round, a row per client: fresh, reused, dropped or "
                    "lost if it was selected, else empty. The table has the shares per client."),
    }  # fmt: skip
    figures = [
        Figure(f"gate_{key}", title, text, data if key == "scores" else None, (choice,) if key == "scores" else ())
        for key, (title, text) in titles.items()
    ]
    left = len(deciding) - len(drawn)
    lead = (
        [f"Figures show {len(drawn)} runs; {left} more are only in the table, to keep the page small."] if left else []
    )
    return Section("gate", "Gate decisions", lead, figures, [_decisions(deciding)])


def _within_budget(results: Sequence[Result]) -> list[Result]:
    """Return the runs whose events fit on the page, the first seed of every variant first."""
    seen: Counter[str] = Counter()
    order: dict[int, int] = {}
    for result in results:
        order[id(result)] = seen[result.variant]
        seen[result.variant] += 1
    chosen: set[int] = set()
    room = _MOST_EVENTS
    for result in sorted(results, key=lambda result: order[id(result)]):
        room -= len(result.history.events)
        if room >= 0 or not chosen:
            chosen.add(id(result))
    return [result for result in results if id(result) in chosen]


def _events(result: Result) -> dict[str, Any]:
    """Return the events of a run as columns, and their counts by reason and by age."""
    events = result.history.events
    return {
        "rounds": [event.round_number for event in events],
        "clients": [event.client for event in events],
        "outcomes": [_OUTCOMES.index(event.outcome) for event in events],
        "scores": [short(event.score) for event in events],
        "threshold": _threshold(result),
        "reasons": _by_round(events, result.rounds),
        "ages": sorted(_ages(events).items()),
        "population": int(result.config["task"].get("clients", 0)),
    }


def _threshold(result: Result) -> list[float | int | None] | None:
    """Return the gate's threshold in each round; None for a gate without a fixed threshold."""
    config = result.config["method"].get("gate")
    gate = registry_of("gates").parse(config, "gate") if config else None
    threshold_in = getattr(gate, "threshold_in", None)
    if threshold_in is None:
        return None
    return [short(threshold_in(number)) for number in range(1, result.rounds + 1)]


def _by_round(events: Sequence[EventRow], num_rounds: int) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = {}
    for event in events:
        name = f"{event.outcome}: {event.reason}" if event.reason else event.outcome
        counts.setdefault(name, [0] * num_rounds)[event.round_number - 1] += 1
    return dict(sorted(counts.items()))


def _ages(events: Sequence[EventRow]) -> Counter[int]:
    return Counter(event.age for event in events if event.outcome == "reused" and event.age is not None)


def _scores_description(run: Result) -> str:
    scores = [event.score for event in run.history.events if event.score is not None]
    head = "One point per scored client; the line is the threshold from which a client trains."
    if not scores:
        return f"{head} In {run.variant}, seed {run.seed}, no client was scored."
    return (
        f"{head} In {run.variant}, seed {run.seed}: {len(scores)} scores from {min(scores):.3g} to {max(scores):.3g}, "
        f"median {sorted(scores)[len(scores) // 2]:.3g}."
    )


def _ages_description(run: Result) -> str:
    ages = sorted(_ages(run.history.events).items())
    counts = ", ".join(f"{count} at {age} round{'' if age == 1 else 's'}" for age, count in ages)
    return f"Ages of reused updates. In {run.variant}, seed {run.seed}: {counts or 'none was reused'}."


def _decisions(results: Sequence[Result]) -> Table:
    counted = [count_outcomes(result.history.events) for result in results]
    kinds = sorted({kind for counts in counted for kind in counts})
    rows = tuple(
        (f"{result.variant}, seed {result.seed}", *(f"{counts.get(kind, 0):,}" for kind in kinds), _shares(result))
        for result, counts in zip(results, counted, strict=True)
    )
    headers = ("run", *(kind.replace(": ", ":\n") for kind in kinds), "reused per\nclient, %")
    legend = "reused per client: lowest, median and highest share of a client's selections in which it was reused."
    return Table("Gate decisions by reason (selected clients, all rounds)", headers, rows, legend)


def _shares(result: Result) -> str:
    """Format the lowest, median and highest share of reuse over clients, in percent."""
    selected, reused = Counter[int](), Counter[int]()
    for event in result.history.events:
        selected[event.client] += 1
        reused[event.client] += event.outcome == "reused"
    shares = sorted(100 * reused[client] / number for client, number in selected.items())
    return f"{shares[0]:.0f} / {shares[len(shares) // 2]:.0f} / {shares[-1]:.0f}"
