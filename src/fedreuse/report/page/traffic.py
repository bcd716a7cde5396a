"""Where the bytes go: by direction, group and mode, frames and control; modelled beside measured; round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.accounting.boundaries.boundary import measured
from fedreuse.report.measured import event_table
from fedreuse.report.page.section import Choice, Figure, Section, short, shorts
from fedreuse.report.tables import Table, comparison, links_table, megabytes
from fedreuse.store.directory import RunDirectory

if TYPE_CHECKING:
    from fedreuse.accounting.breakdown import Share
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.variants import Variant

__all__ = ["where_the_bytes_go"]


def where_the_bytes_go(shown: Shown) -> Section:
    """The section; empty before the first round."""
    found = {variant.name: _mean_shares(variant) for variant in shown.begun}
    shares = sorted({share for one in found.values() for share in one})
    if not shares:
        return Section("bytes", "Where the bytes go", ["No round is complete yet."])
    data = {
        "shares": [share.label for share in shares],
        "variants": [
            {
                "variant": shown.place_of(variant.name),
                "total": [short(_total(found[variant.name], share) / 1e6) for share in shares],
                "rounds": [
                    shorts(found[variant.name][share] / 1e3) if share in found[variant.name] else None
                    for share in shares
                ],
                "dense": shorts(_mean_dense(variant) / 1e3),
            }
            for variant in shown.begun
        ],
    }
    totals = Figure("totals", "MB of messages by part", _in_words(found), data)
    options = {str(shown.place_of(variant.name)): variant.name for variant in shown.begun}
    by_round = Figure(
        "by_round",
        "kB of messages per round",
        "The parts of the figure before, round by round, for one variant; the dashed line is dense FedAvg with the "
        "same cohorts and replies. The table below has the sums.",
        None,
        (Choice("variant", "Variant", options),),
    )
    tables = [_table(shown, found, shares), *_against_meter(shown)]
    if shown.complete:
        tables += [*comparison(shown.complete)[1:], links_table(shown.complete)]
    lead = [
        "Bytes under the boundary messages, means over seeds. header: frames, names and checksums of messages with "
        "tensors; control: messages without any, such as scores and orders to reuse."
    ]
    return Section("bytes", "Where the bytes go", lead, [totals, by_round], tables)


def _mean_shares(variant: Variant) -> dict[Share, np.ndarray]:
    """Bytes by part and round, the mean over seeds, in the rounds that all of them have."""
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
    dense: np.ndarray = np.mean([(one.dense_up + one.dense_down)[:count] for one in traffics], axis=0)
    return dense


def _total(shares: Mapping[Share, np.ndarray], share: Share) -> float:
    return float(shares[share].sum()) if share in shares else 0.0


def _in_words(found: Mapping[str, Mapping[Share, np.ndarray]]) -> str:
    told = []
    for name, shares in found.items():
        all_ = sum(float(sizes.sum()) for sizes in shares.values())
        if all_:
            largest = max(shares, key=lambda share: float(shares[share].sum()))
            told.append(
                f"{name}: {megabytes(all_)} MB, most of it {largest.label} ({shares[largest].sum() / all_:.0%})"
            )
    return f"A bar per variant, divided into parts. {'; '.join(told)}."


def _table(shown: Shown, found: Mapping[str, Mapping[Share, np.ndarray]], shares: Sequence[Share]) -> Table:
    rows = tuple(
        (name, *("-" if share not in parts else megabytes(_total(parts, share)) for share in shares))
        for name, parts in found.items()
    )
    headers = ("variant", *(f"{share.direction}\n{' '.join(filter(None, share[1:]))}" for share in shares))
    del shown
    return Table("MB of messages by part (means over seeds)", headers, rows, is_grouped=True)


def _against_meter(shown: Shown) -> list[Table]:
    """Bytes per event where a meter stood, for the first run of every variant."""
    tables = []
    for variant in shown.variants:
        one = variant.results[0]
        if measured().keys() & one.savings.keys():
            table: Any = event_table(RunDirectory.open(one.directory))
            tables.append(Table(f"{table.title}: {variant.name}, seed {one.seed}", *_rest(table)))
    return tables


def _rest(table: Table) -> tuple[Any, ...]:
    return table.headers, table.rows, table.legend, table.is_grouped
