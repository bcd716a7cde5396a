"""Simulated studies without an effect whose plan is amended after results: how often something false is claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.randomness import stream
from fedreuse.lab.plans.claims import Contrast
from fedreuse.lab.plans.correction import adjusted
from fedreuse.lab.plans.families import Answered, Observed, answer_families
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.record import Entry, PlanRecord
from fedreuse.report.statistics.contrasts import Assessment
from fedreuse.report.statistics.hypotheses import Hypothesis, t_p

__all__ = ["STRATEGIES", "FalseClaims", "simulate_gaming"]

LOOKS = (5, 10, 15, 20)
_BASE = "base"
_Values = Mapping[str, np.ndarray]
"""The difference of each label to the base, by seed."""


@dataclass(frozen=True)
class FalseClaims:
    """Shares of the simulated studies with a false claim: if the last plan were tested alone, and as reported."""

    strategy: str
    repetitions: int
    naive: float
    reported: float


def simulate_gaming(strategy: str, repetitions: int = 4000, seed: int = 1) -> FalseClaims:
    """Simulate studies in which nothing differs, and amend each of them as the strategy says.

    Args:
        strategy: One of `STRATEGIES`.
        repetitions: Number of studies; the standard error of a rate near 0.05 is 0.0034 with 4,000 of them.
        seed: Seed of the simulation.

    Example:
        >>> simulate_gaming("one plan", repetitions=10).repetitions
        10

    """
    require(strategy in STRATEGIES, f"one of {', '.join(STRATEGIES)} expected", strategy)
    rng = stream(seed, f"amendments, {strategy}")
    hits = np.array([STRATEGIES[strategy](rng) for _ in range(repetitions)])
    naive, reported = hits.mean(axis=0).tolist()
    return FalseClaims(strategy, repetitions, naive, reported)


def _one_plan(rng: np.random.Generator) -> tuple[bool, bool]:
    values, record = _draw(rng, 4, 5), PlanRecord((_entry(_plan(4), 5),))
    return _claims_naively(values, record.current), _claims(record, values)


def _dropped(rng: np.random.Generator) -> tuple[bool, bool]:
    """Keep only the contrast with the smallest p-value of four."""
    values = _draw(rng, 4, 5)
    best = min(range(4), key=lambda number: _p(values[f"v{number}"][:5]))
    first, last = _entry(_plan(4), 5), _entry(Plan((_contrast(best),)), 5, labels=4, is_late=True)
    return _claims_naively(values, last), _claims(PlanRecord((first, last)), values)


def _added_seeds(rng: np.random.Generator, looks: tuple[int, ...] = ()) -> tuple[bool, bool]:
    """Add five seeds after every look, until something is significant or there are twenty."""
    values = _draw(rng, 1, LOOKS[-1])
    entries: list[Entry] = []
    plan = Plan((_contrast(0),), looks=looks)
    naive = reported = False
    for num_seeds in LOOKS:
        entries.append(_entry(plan, num_seeds, is_late=bool(entries)))
        naive = naive or _claims_naively(values, entries[-1])
        reported = reported or _claims(PlanRecord(tuple(entries)), values)
        if naive and not looks:
            break
    return naive, reported


def _other_metric(rng: np.random.Generator) -> tuple[bool, bool]:
    """Change to the metric (of two) that is significant."""
    values, others = _draw(rng, 1, 5), _draw(rng, 1, 5)
    first, last = _entry(_plan(1), 5), _entry(Plan((_contrast(0),), metric="validation"), 5, is_late=True)
    naive = _claims_naively(values, first) or _claims_naively(others, last)
    return naive, _claims(PlanRecord((first, last)), values, others)


STRATEGIES: Mapping[str, Callable[[np.random.Generator], tuple[bool, bool]]] = {
    "one plan": _one_plan,
    "three of four contrasts dropped": _dropped,
    "seeds added after each look": _added_seeds,
    "seeds added, looks declared": partial(_added_seeds, looks=LOOKS),
    "another metric chosen": _other_metric,
}


def _draw(rng: np.random.Generator, num_labels: int, num_seeds: int) -> _Values:
    return {f"v{number}": rng.normal(size=num_seeds) for number in range(num_labels)}


def _contrast(number: int) -> Contrast:
    return Contrast(f"v{number}", _BASE)


def _plan(num_labels: int) -> Plan:
    return Plan(tuple(map(_contrast, range(num_labels))))


def _entry(plan: Plan, num_seeds: int, labels: int = 0, is_late: bool = False) -> Entry:
    """Return a plan over all labels and the first seeds; a late one was registered when a run was complete."""
    names = [_BASE, *(f"v{number}" for number in range(labels or len(plan.contrasts)))]
    runs = [
        {"labels": {"method": name, "seed": str(seed)}, "run_id": f"{name} {seed}"}
        for name in names
        for seed in range(num_seeds)
    ]
    return Entry(plan, tuple(runs), f"{plan} {num_seeds}", "", ("a run",) if is_late else ())


def _claims(record: PlanRecord, values: _Values, others: _Values | None = None) -> bool:
    """Return whether the report of a study shows anything that the user may call confirmed."""

    def read(plan: Plan) -> Mapping[frozenset[tuple[str, str]], Mapping[int, float]]:
        chosen = values if plan.metric == "test" or others is None else others
        by_seed = {name: dict(enumerate(drawn.tolist())) for name, drawn in chosen.items()}
        base = dict.fromkeys(range(max(map(len, by_seed.values()))), 0.0)
        return {frozenset({("method", name)}): drawn for name, drawn in {**by_seed, _BASE: base}.items()}

    labels = [run["labels"] for entry in record.entries for run in entry.runs]
    seeds = {frozenset(one.items()): int(one["seed"]) for one in labels}
    answers: Sequence[Answered] = answer_families(record, Observed(read, seeds, _assess))
    return any(answer.verdict.startswith("shown") for answer in answers)


def _claims_naively(values: _Values, entry: Entry) -> bool:
    """Return whether a plan that forgets the earlier ones claims anything."""
    plan, drawn = entry.plan, [values[contrast.of][: entry.num_seeds] for contrast in entry.plan.contrasts]
    return any(p is not None and p <= plan.alpha for p in adjusted([_p(one) for one in drawn], plan.correction))


def _p(differences: np.ndarray) -> float:
    return t_p(differences.tolist(), Hypothesis()) or 1.0


def _assess(by_seed: Mapping[int, float], hypothesis: Hypothesis, **_: float) -> Assessment:
    """Compute the p-value alone, which decides; intervals take a hundred times as long."""
    differences = list(by_seed.values())
    p = t_p(differences, hypothesis)
    return Assessment(dict(by_seed), float(np.mean(differences)), None, None, None, None, p, 1.0, 1.0, None)
