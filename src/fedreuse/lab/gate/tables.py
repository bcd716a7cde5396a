"""A gate study as tables: reliability of the score, decisions that flip, and what foretells harm by reuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING

from fedreuse.lab.gate.reliability import area_under_roc, rank_correlation, reliability
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.lab.gate.probe import Probe

__all__ = ["MARGINS", "PREDICTORS", "by_margin", "flip_rate", "gate_tables", "predictions"]


PREDICTORS: Mapping[str, Callable[[Probe], float]] = {
    "proxy score, one draw": lambda one: one.scores[0],
    "proxy score, mean of repeats": lambda one: one.mean_score,
    "proxy over all examples": lambda one: one.fixed_score,
    "age": lambda one: float(one.age),
    "drift of the model": lambda one: one.drift,
    "drift over the update's length": lambda one: one.relative_drift,
    "gradient against cached update": lambda one: one.against_update,
    "chance": lambda one: one.chance,
}
"""What might foretell harm: higher should mean worse. Older files lack some of it."""
MARGINS = (0.02, 0.05, 0.1, 0.2)
"""Bounds of the distance of a client's mean score from the threshold, by which decisions are counted."""
_NEAR = 0.05


def gate_tables(probes: Sequence[Probe]) -> list[Table]:
    """Reliability by round and by margin, then validity over all rounds and by round."""
    groups = {number: [one for one in probes if one.round_number == number] for number in _rounds(probes)}
    return [_reliability(groups), _margins(probes), _validity(probes, groups)]


def predictions(probes: Sequence[Probe]) -> dict[str, list[float]]:
    """What each predictor says of every case, of those that all cases have."""
    read = {name: [predict(one) for one in probes] for name, predict in PREDICTORS.items()}
    return {name: values for name, values in read.items() if not any(map(isnan, values))}


def flip_rate(probes: Sequence[Probe]) -> float | None:
    """Share of two draws of the same client that the threshold decides differently."""
    rates = []
    for one in probes:
        fresh = one.num_fresh
        repeats = len(one.scores)
        rates.append(2 * fresh * (repeats - fresh) / (repeats * (repeats - 1)))
    return sum(rates) / len(rates) if rates else None


def _against_fixed(probes: Sequence[Probe]) -> float | None:
    """Share of draws that decide otherwise than the deterministic proxy over all examples."""
    draws = [(score >= one.threshold) != (one.fixed_score >= one.threshold) for one in probes for score in one.scores]
    return sum(draws) / len(draws) if draws else None


def _reliability(groups: Mapping[int, Sequence[Probe]]) -> Table:
    rows = []
    for number, probes in groups.items():
        found = _components(probes)
        near = [one for one in probes if abs(one.mean_score - one.threshold) < _NEAR]
        fresh = sum(one.num_fresh for one in probes)
        rows.append(
            (
                str(number), str(len(probes)), f"{probes[0].threshold:.3f}" if probes else "-",
                *(_number(part) for part in found),
                _share(fresh / sum(len(one.scores) for one in probes) if probes else None),
                _share(flip_rate(probes)), f"{_share(flip_rate(near))} ({len(near)})", _share(_against_fixed(probes)),
            )
        )  # fmt: skip
    headers = ("round", "clients", "threshold", "variance\nbetween", "variance\nwithin", "ICC", "decided\nfresh",
               "two draws\ndisagree", f"within {_NEAR}\n(clients)", "other than\nall examples")  # fmt: skip
    legend = (
        "At fixed states, every client with a usable cache. between, within: variance components of the score over "
        "clients and over draws of batches; ICC: the share between. decided fresh: draws at or above the threshold.\n"
        f"within {_NEAR}: clients whose mean score is that near to the threshold. other than all examples: draws that "
        "decide otherwise than the deterministic proxy over all of a client's examples."
    )
    return Table("Reliability of the gate's score", headers, tuple(rows), legend)


def by_margin(probes: Sequence[Probe]) -> dict[str, list[Probe]]:
    """Clients by how far their mean score is from the threshold."""
    bounds = [0.0, *MARGINS, float("inf")]
    found: dict[str, list[Probe]] = {}
    for low, high in pairwise(bounds):
        name = f"{low:g} to {high:g}" if high < float("inf") else f"above {low:g}"
        found[name] = [one for one in probes if low <= abs(one.mean_score - one.threshold) < high]
    return found


def _margins(probes: Sequence[Probe]) -> Table:
    rows = tuple(
        (name, str(len(group)), _share(flip_rate(group)), _share(_against_fixed(group)))
        for name, group in by_margin(probes).items()
    )
    headers = ("mean score\nto threshold", "clients", "two draws\ndisagree", "other than\nall examples")
    return Table("Decisions by distance from the threshold, all rounds", headers, rows)


def _components(probes: Sequence[Probe]) -> tuple[float | None, float | None, float | None]:
    if len(probes) < 2:
        return None, None, None
    found = reliability([one.scores for one in probes])
    return found.between, found.within, found.icc


def _validity(probes: Sequence[Probe], groups: Mapping[int, Sequence[Probe]]) -> Table:
    harmful = [one.harm > 0 for one in probes]
    rows = []
    parts = [(predictions(group), [one.harm > 0 for one in group]) for group in groups.values()]
    for name, values in predictions(probes).items():
        by_round = [area_under_roc(told[name], hurts) for told, hurts in parts]
        rows.append(
            (
                name, _number(area_under_roc(values, harmful)), *(_number(area) for area in by_round),
                _number(rank_correlation(values, [one.harm for one in probes])),
                _number(rank_correlation(values, [1 - one.cosine for one in probes])),
                _number(rank_correlation(values, [abs(1 - one.norm_ratio) for one in probes])),
            )
        )  # fmt: skip
    headers = ("predictor", "AUC", *(f"AUC,\nround {number}" for number in groups), "rho,\nharm", "rho,\nangle",
               "rho,\nnorms")  # fmt: skip
    legend = (
        "harm: validation loss after a step with the decayed cache minus that with an update trained now; above zero "
        f"in {sum(harmful)} of {len(harmful)} cases. AUC: how often a harmful case scores above a harmless one "
        "(chance: 0.5). rho: Spearman's, with the harm, with 1 - cosine of cached and fresh update, and with |1 - "
        "their norm ratio|."
    )
    return Table("Does the score foretell harm by reuse?", headers, tuple(rows), legend)


def _rounds(probes: Sequence[Probe]) -> list[int]:
    return sorted({one.round_number for one in probes})


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
