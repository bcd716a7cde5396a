"""Communication section: bytes by direction, group and mode, headers and control; modelled and measured; by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.accounting.boundaries.boundary import measured
from fedreuse.report.event_costs import event_table
from fedreuse.report.page.section import Choice, Figure, Section, short, shorts
from fedreuse.report.tables import Table, comparison, links_table, megabytes
from fedreuse.store.directory import RunDirectory

if TYPE_CHECKING:
    from fedreuse.accounting.breakdown import Share
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.variants import Variant

__all__ = ["communication"]


def communication(shown: Shown) -> Section:
    """Return the section; without figures before the first round."""
    by_variant = {variant.name: _mean_shares(variant) for variant in shown.begun}
    shares = sorted({share for parts in by_variant.values() for share in parts})
    if not shares:
        return Section("bytes", "Communication", ["No round is complete yet."])
    data = {
        "shares": [share.label for share in shares],
        "variants": [
            {
                "variant": shown.place_of(variant.name),
                "total": [short(_total(by_variant[variant.name], share) / 1e6) for share in shares],
                "rounds": [
                    shorts(by_variant[variant.name][share] / 1e3) if share in by_variant[variant.name] else None
                    for share in shares
                ],
                "dense": shorts(_mean_dense(variant) / 1e3),
            }
            for variant in shown.begun
        ],
    }
    totals = Figure("totals", "MB of messages by part", _description(by_variant), data)
    options = {str(shown.place_of(variant.name)): variant.name for variant in shown.begun}
    by_round = Figure(
        "by_round",
        "kB of messages per round",
        "Bytes by part and round for one variant; the dashed line is dense FedAvg with the same cohorts and replies. "
        "The table below has the sums.",
        None,
        (Choice("variant", "Variant", options),),
    )
    tables = [_table(by_variant, shares), *_measured_tables(shown)]
    if shown.complete:
        tables += [*comparison(shown.complete)[1:], links_table(shown.complete)]
    lead = [
        "Bytes at the boundary messages, means over seeds. header: frames, names and checksums of messages with "
        "tensors; control: messages without tensors, such as scores and reuse requests."
    ]
    return Section("bytes", "Communication", lead, [totals, by_round], tables)


def _mean_shares(variant: Variant) -> dict[Share, np.ndarray]:
    """Return mean bytes over seeds by part and round, for the rounds that all seeds have."""
    count = min(result.rounds for result in variant.results)
    shares = sorted({share for result in variant.results for share in result.history.shares})
    none = np.zeros(count)
    return {
        share: np.mean([result.history.shares.get(share, none)[:count] for result in variant.results], axis=0)
        for share in shares
    }


def _mean_dense(variant: Variant) -> np.ndarray:
    count = min(result.rounds for result in variant.results)
    traffics = [result.history.traffic["messages"] for result in variant.results]
    dense: np.ndarray = np.mean([(traffic.dense_up + traffic.dense_down)[:count] for traffic in traffics], axis=0)
    return dense


def _total(shares: Mapping[Share, np.ndarray], share: Share) -> float:
    return float(shares[share].sum()) if share in shares else 0.0


def _description(by_variant: Mapping[str, Mapping[Share, np.ndarray]]) -> str:
    """Return the text alternative: total and largest part of every variant."""
    lines = []
    for name, shares in by_variant.items():
        total = sum(float(sizes.sum()) for sizes in shares.values())
        if total:
            largest = max(shares, key=lambda share: float(shares[share].sum()))
            lines.append(
                f"{name}: {megabytes(total)} MB, most of it {largest.label} ({shares[largest].sum() / total:.0%})"
            )
    return f"One bar per variant, divided into parts. {'; '.join(lines)}."


def _table(by_variant: Mapping[str, Mapping[Share, np.ndarray]], shares: Sequence[Share]) -> Table:
    rows = tuple(
        (name, *("-" if share not in parts else megabytes(_total(parts, share)) for share in shares))
        for name, parts in by_variant.items()
    )
    headers = ("variant", *(f"{share.direction}\n{' '.join(filter(None, share[1:]))}" for share in shares))
    return Table("MB of messages by part (means over seeds)", headers, rows, is_grouped=True)


def _measured_tables(shown: Shown) -> list[Table]:
    """Return the bytes per event of the first run of every variant that has measured bytes."""
    tables = []
    for variant in shown.variants:
        run = variant.results[0]
        if measured().keys() & run.savings.keys():
            table = event_table(RunDirectory.open(run.directory))
            tables.append(replace(table, title=f"{table.title}: {variant.name}, seed {run.seed}"))
    return tables
