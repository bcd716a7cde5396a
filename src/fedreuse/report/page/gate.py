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
    """The section; empty if every client of every run trained, and nobody was scored."""
    deciding = [result for result in shown.results if _decides(result)]
    if not deciding:
        lead = ["In these runs every selected client trained: no gate decided anything."]
        return Section("gate", "Gate", lead)
    drawn = _within_budget(deciding)
    data = [{"run": shown.results.index(result), **_events(result)} for result in drawn]
    choice = Choice("run", "Run", {str(at): f"{one.variant}, seed {one.seed}" for at, one in enumerate(drawn)})
    titles = {
        "scores": ("Scores over rounds against the threshold", _scores_in_words(drawn)),
        "reasons": ("Decisions by reason in each round", "Bars count the selected clients; sums are in the table."),
        "ages": ("Ages of reused updates", _ages_in_words(drawn)),
        "clients": ("Clients by rounds", "A column per round, a row per client: fresh, reused, dropped or lost where "
                    "it was selected, empty where it was not. The table has each client's share."),
    }  # fmt: skip
    figures = [
        Figure(f"gate_{key}", title, text, data if key == "scores" else None, (choice,) if key == "scores" else ())
        for key, (title, text) in titles.items()
    ]
    left = len(deciding) - len(drawn)
    lead = (
        [f"Figures show {len(drawn)} runs; {left} more are in the table alone, to keep the page small."] if left else []
    )
    return Section("gate", "Gate", lead, figures, [_decisions(deciding)])


def _decides(result: Result) -> bool:
    return any(event.outcome != "fresh" or event.score is not None for event in result.history.events)


def _within_budget(results: Sequence[Result]) -> list[Result]:
    """As many runs as the page has room for: the first seed of every variant first."""
    seen: Counter[str] = Counter()
    turns: dict[int, int] = {}
    for result in results:
        turns[id(result)] = seen[result.variant]
        seen[result.variant] += 1
    chosen: set[int] = set()
    room = _MOST_EVENTS
    for result in sorted(results, key=lambda one: turns[id(one)]):
        room -= len(result.history.events)
        if room >= 0 or not chosen:
            chosen.add(id(result))
    return [result for result in results if id(result) in chosen]


def _events(result: Result) -> dict[str, Any]:
    """The events of a run in columns; counts by round and by age."""
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
    """The gate's threshold in each round, if it has one that is fixed beforehand."""
    named = result.config["method"].get("gate")
    made = registry_of("gates").parse(named, "gate") if named else None
    threshold = getattr(made, "threshold", None)
    if threshold is None:
        return None
    at = threshold if callable(threshold) else lambda _: threshold
    return [short(at(number)) for number in range(1, result.rounds + 1)]


def _by_round(events: Sequence[EventRow], num_rounds: int) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = {}
    for event in events:
        name = f"{event.outcome}: {event.reason}" if event.reason else event.outcome
        counts.setdefault(name, [0] * num_rounds)[event.round_number - 1] += 1
    return dict(sorted(counts.items()))


def _ages(events: Sequence[EventRow]) -> Counter[int]:
    return Counter(event.age for event in events if event.outcome == "reused" and event.age is not None)


def _scores_in_words(results: Sequence[Result]) -> str:
    one = results[0]
    scores = [event.score for event in one.history.events if event.score is not None]
    head = "A point per scored client, at its score; the line is the threshold from which a client trains."
    if not scores:
        return f"{head} In {one.variant}, seed {one.seed}, nobody was scored."
    return (
        f"{head} In {one.variant}, seed {one.seed}: {len(scores)} scores from {min(scores):.3g} to {max(scores):.3g}, "
        f"median {sorted(scores)[len(scores) // 2]:.3g}."
    )


def _ages_in_words(results: Sequence[Result]) -> str:
    one = results[0]
    ages = sorted(_ages(one.history.events).items())
    told = ", ".join(f"{count} at {age} round{'' if age == 1 else 's'}" for age, count in ages)
    return f"How old reused updates were. In {one.variant}, seed {one.seed}: {told or 'none was reused'}."


def _decisions(results: Sequence[Result]) -> Table:
    counted = [count_outcomes(result.history.events) for result in results]
    kinds = sorted({kind for counts in counted for kind in counts})
    rows = tuple(
        (f"{result.variant}, seed {result.seed}", *(f"{counts.get(kind, 0):,}" for kind in kinds), _shares(result))
        for result, counts in zip(results, counted, strict=True)
    )
    headers = ("run", *(kind.replace(": ", ":\n") for kind in kinds), "reused per\nclient, %")
    legend = "reused per client: lowest, median and highest share of a client's selections in which it was reused."
    return Table("Decisions by reason (selected clients, all rounds)", headers, rows, legend)


def _shares(result: Result) -> str:
    selected, reused = Counter[int](), Counter[int]()
    for event in result.history.events:
        selected[event.client] += 1
        reused[event.client] += event.outcome == "reused"
    shares = sorted(100 * reused[client] / number for client, number in selected.items())
    return f"{shares[0]:.0f} / {shares[len(shares) // 2]:.0f} / {shares[-1]:.0f}"
