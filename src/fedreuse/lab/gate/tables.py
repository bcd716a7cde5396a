"""Tables of a gate study: reliability of the score, decisions that flip, and predictors of harm by reuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from fedreuse.lab.gate.reliability import area_under_roc, rank_correlation, reliability
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.lab.gate.probe import Probe

__all__ = ["MARGINS", "PREDICTORS", "by_margin", "flip_rate", "gate_tables", "predictions"]


PREDICTORS: Mapping[str, Callable[[Probe], float]] = {
    "proxy score, one draw": lambda probe: probe.scores[0],
    "proxy score, mean of repeats": lambda probe: probe.mean_score,
    "proxy over all examples": lambda probe: probe.fixed_score,
    "age": lambda probe: float(probe.age),
    "drift of the model": lambda probe: probe.drift,
    "drift over the update's length": lambda probe: probe.relative_drift,
    "gradient against cached update": lambda probe: probe.against_update,
    "chance": lambda probe: probe.chance,
}
"""Predictors of harm by reuse: a higher value predicts more harm."""
MARGINS = (0.02, 0.05, 0.1, 0.2)
"""Bounds of the groups by distance of a client's mean score from the threshold."""
_NEAR = 0.05


def gate_tables(probes: Sequence[Probe]) -> list[Table]:
    """Return reliability by round and by margin, then validity over all rounds and by round."""
    rounds = sorted({probe.round_number for probe in probes})
    groups = {number: [probe for probe in probes if probe.round_number == number] for number in rounds}
    return [_reliability(groups), _margins(probes), _validity(probes, groups)]


def predictions(probes: Sequence[Probe]) -> dict[str, list[float]]:
    """Return the values of every predictor, one per probe."""
    return {name: [predict(probe) for probe in probes] for name, predict in PREDICTORS.items()}


def flip_rate(probes: Sequence[Probe]) -> float | None:
    """Return the share of pairs of draws of one client that the threshold decides differently, mean over clients."""
    rates = []
    for probe in probes:
        fresh, repeats = probe.num_fresh, len(probe.scores)
        rates.append(2 * fresh * (repeats - fresh) / (repeats * (repeats - 1)))
    return sum(rates) / len(rates) if rates else None


def _against_fixed(probes: Sequence[Probe]) -> float | None:
    """Return the share of draws with another decision than the deterministic proxy over all examples."""
    draws = [
        (score >= probe.threshold) != (probe.fixed_score >= probe.threshold)
        for probe in probes
        for score in probe.scores
    ]
    return sum(draws) / len(draws) if draws else None


def _reliability(groups: Mapping[int, Sequence[Probe]]) -> Table:
    rows = []
    for number, probes in groups.items():
        components = _components(probes)
        near = [probe for probe in probes if abs(probe.mean_score - probe.threshold) < _NEAR]
        fresh = sum(probe.num_fresh for probe in probes)
        rows.append(
            (
                str(number), str(len(probes)), f"{probes[0].threshold:.3f}" if probes else "-",
                *(_number(part) for part in components),
                _share(fresh / sum(len(probe.scores) for probe in probes) if probes else None),
                _share(flip_rate(probes)), f"{_share(flip_rate(near))} ({len(near)})", _share(_against_fixed(probes)),
            )
        )  # fmt: skip
    headers = ("round", "clients", "threshold", "variance\nbetween", "variance\nwithin", "ICC", "decided\nfresh",
               "two draws\ndisagree", f"within {_NEAR}\n(clients)", "other than\nall examples")  # fmt: skip
    legend = (
        "At fixed states, every client with a usable cache. between, within: variance components of the score between "
        "clients and between draws of batches; ICC: share between clients. decided fresh: draws at or above the "
        f"threshold.\nwithin {_NEAR}: clients with a mean score at most that far from the threshold. other than all "
        "examples: draws with another decision than the deterministic proxy over all of a client's examples."
    )
    return Table("Reliability of the gate's score", headers, tuple(rows), legend)


def by_margin(probes: Sequence[Probe]) -> dict[str, list[Probe]]:
    """Group clients by the distance of their mean score from the threshold."""
    bounds = [0.0, *MARGINS, float("inf")]
    groups: dict[str, list[Probe]] = {}
    for low, high in pairwise(bounds):
        name = f"{low:g} to {high:g}" if high < float("inf") else f"above {low:g}"
        groups[name] = [probe for probe in probes if low <= abs(probe.mean_score - probe.threshold) < high]
    return groups


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
    components = reliability([probe.scores for probe in probes])
    return components.between, components.within, components.icc


def _validity(probes: Sequence[Probe], groups: Mapping[int, Sequence[Probe]]) -> Table:
    harmful = [probe.harm > 0 for probe in probes]
    rows = []
    parts = [(predictions(group), [probe.harm > 0 for probe in group]) for group in groups.values()]
    for name, values in predictions(probes).items():
        by_round = [area_under_roc(predicted[name], is_harmful) for predicted, is_harmful in parts]
        rows.append(
            (
                name, _number(area_under_roc(values, harmful)), *(_number(area) for area in by_round),
                _number(rank_correlation(values, [probe.harm for probe in probes])),
                _number(rank_correlation(values, [1 - probe.cosine for probe in probes])),
                _number(rank_correlation(values, [abs(1 - probe.norm_ratio) for probe in probes])),
            )
        )  # fmt: skip
    headers = ("predictor", "AUC", *(f"AUC,\nround {number}" for number in groups), "rho,\nharm", "rho,\nangle",
               "rho,\nnorms")  # fmt: skip
    legend = (
        "harm: validation loss after a step with the decayed cached update minus that with an update trained now; "
        f"above zero in {sum(harmful)} of {len(harmful)} cases. AUC: probability that a harmful case scores above a "
        "harmless one (chance: 0.5). rho: Spearman's rank correlation with the harm, with 1 - cosine of cached and "
        "fresh update, and with |1 - their norm ratio|."
    )
    return Table("Prediction of harm by reuse", headers, tuple(rows), legend)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
