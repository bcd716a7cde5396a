"""Tables of the paper with the numbers of runs; cells that were not run or published are empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedreuse.lab.paper.archive import archival_table, fedadam_table, mechanisms_table, seeds_table
from fedreuse.lab.paper.cells import METHODS, OUTCOME, SAVING, mean_difference, of_common_seeds, outcome, plain
from fedreuse.lab.paper.protocol import FEDADAM, MATRIX, REUSE_ONLY, TOP_K
from fedreuse.lab.paper.published import NAMES, published, saving, variant_of
from fedreuse.lab.paper.setup import data_table, tuning_table
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.lab.paper.protocol import PaperRuns
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = ["like_paper", "retained"]

_PARTIAL = "partial: "
_SIDES = "Left of each pair: these runs, mean ± sample standard deviation over seeds; right: the paper."


def like_paper(runs: PaperRuns) -> list[Table]:
    """Return the paper's tables 3 to 10 and 12 with the runs of its protocol.

    Args:
        runs: Runs selected by `paper_runs`; the paper's FedAvg, FedProx and DG all send Top-K 0.2.

    Example:
        >>> from fedreuse.lab.paper.protocol import PaperRuns
        >>> like_paper(PaperRuns({}))[0].title
        'Table 3 of the paper: datasets and models'
    """
    matrix = runs.of(MATRIX)
    return [
        data_table(runs.of()), tuning_table(runs.of()), _top_k(runs.of(TOP_K)), _round90(matrix), _symmetric(matrix),
        archival_table(matrix), fedadam_table(runs.of(FEDADAM)), mechanisms_table(runs.of(MATRIX, REUSE_ONLY)),
        seeds_table(matrix),
    ]  # fmt: skip


def _round90(results: Sequence[Result]) -> Table:
    rows = []
    for dataset, known in published()["round90"].items():
        theirs = {"fedavg": (known["fedavg"], known["fedavg_saving"]), "dg_fedreuse": (known["dg"], known["dg_saving"])}
        variants = {method: variant_of(results, dataset, method) for method in METHODS}
        is_run = any(_tested(variant) for variant in variants.values())
        for method, variant in variants.items():
            seeds = _seeds_text(_tested(variant)) if is_run else "-"
            rows.append((NAMES[dataset], METHODS[method], seeds, *outcome(variant, theirs.get(method))))
    legend = (
        f"{_SIDES} {SAVING} {_seeds_text(published()['seeds'])}: seeds {_listed(published()['seeds'])}. The paper has "
        "no FedProx at round 90; its best is in table 8, differences are in table 12."
    )
    headers = ("Dataset", "Method", "seeds", *OUTCOME)
    return _with_seeds("Table 6 of the paper: fixed budget of 90 rounds", headers, rows, 2, legend)


def _symmetric(results: Sequence[Result]) -> Table:
    rows = []
    for dataset, known in published()["symmetric"].items():
        fedavg, dg = (variant_of(results, dataset, method) for method in ("fedavg", "dg_fedreuse"))
        saved = saving("symmetric_fields", "both")
        mine = {"fedavg": fedavg.mean(saved), "dg": dg.mean(saved), "gain": mean_difference(dg, fedavg, saved)}
        cells = (cell for key, theirs in known.items() for cell in (plain(mine[key]), f"{theirs:.2f}"))
        rows.append((NAMES[dataset], _seeds(fedavg, dg), *cells))
    columns = ("Top-K FedAvg saving (%)", "DG saving (%)", "DG gain (pp)")
    headers = ("Dataset", "seeds", *(f"{name}\n{side}" for name in columns for side in ("runs", "paper")))
    legend = f"{_SIDES} Saving: both directions, symmetric_fields, cumulative; gain: over the seeds that both have."
    return _with_seeds("Table 7 of the paper: symmetric sensitivity", headers, rows, 1, legend)


def _with_seeds(
    title: str, headers: tuple[str, ...], rows: Sequence[tuple[str, ...]], column: int, legend: str
) -> Table:
    """Return a table that is marked as partial if a row lacks seeds of the paper."""
    if any(row[column].startswith(_PARTIAL) for row in rows):
        paper = _listed(published()["seeds"])
        title, legend = f"{title} (partial)", f"{legend} partial: not every seed of the paper ({paper})."
    return Table(title, headers, tuple(rows), legend, is_grouped=True)


def _top_k(results: Sequence[Result]) -> Table:
    rows = []
    for ratio, known in published()["top_k"].items():
        count, kept, saved = retained(results, ratio)
        rows.append((f"{ratio:.2f}", str(count), plain(kept), str(known["retention"]), plain(saved),
                     str(known["saving"])))  # fmt: skip
    headers = ("r", "datasets", "Worst retention (%)\nruns", "Worst retention (%)\npaper", "Mean saving (%)\nruns",
               "Mean saving (%)\npaper")  # fmt: skip
    legend = f"Retention: validation accuracy of DG-FedReuse over that with r = 1. {SAVING}"
    return Table("Table 5 of the paper: Top-K ratio", headers, tuple(rows), legend, is_grouped=True)


def retained(results: Sequence[Result], ratio: float) -> tuple[int, float | None, float | None]:
    """Return the number of datasets with a ratio, the worst accuracy retention of DG-FedReuse, and the mean saving.

    Both in percent. Retention is validation accuracy relative to reuse alone (ratio 1, or dense) on the same data and
    seeds.
    """
    kept, saved = [], []
    for dataset in sorted({result.dataset for result in results}):
        here, whole = of_common_seeds(*(variant_of(results, dataset, "dg_fedreuse", one) for one in (ratio, 1.0)))
        mine, dense = (variant.mean(lambda result: result.validation_score) for variant in (here, whole))
        share = here.mean(saving())
        if mine is not None and dense and share is not None:
            kept.append(100 * mine / dense)
            saved.append(share)
    return (len(kept), min(kept), sum(saved) / len(saved)) if kept else (0, None, None)


def _tested(variant: Variant) -> list[int]:
    return sorted(run.seed for run in variant.results if run.test_score is not None)


def _seeds_text(seeds: Sequence[int]) -> str:
    """Return the tested seeds, in short form if they are the paper's; marked where the paper has more."""
    paper = published()["seeds"]
    if seeds == paper:
        return f"all {len(paper)}"
    return ("" if set(paper) <= set(seeds) else _PARTIAL) + (_listed(seeds) or "none")


def _seeds(fedavg: Variant, dg: Variant) -> str:
    """Return the tested seeds, by method where they differ; marked where the paper has more."""
    tested = [_tested(variant) for variant in (fedavg, dg)]
    if not any(tested):
        return "-"
    if tested[0] == tested[1]:
        return _seeds_text(tested[0])
    return f"{_PARTIAL}FedAvg {_listed(tested[0]) or 'none'}; DG {_listed(tested[1]) or 'none'}"


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
