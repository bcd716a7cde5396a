"""Runs section, the last of the page: runs, plan, code versions, test evaluations, and the state of every run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fedreuse.report.page.section import Section
from fedreuse.report.results import compared_alike, same_models
from fedreuse.report.tables import Table, comparison, megabytes, score, tested
from fedreuse.store.archive import name_of
from fedreuse.store.code_versions import code_version
from fedreuse.store.directory import RunDirectory
from fedreuse.store.openings import evaluations_of
from fedreuse.store.study_file import registered_plans

if TYPE_CHECKING:
    from fedreuse.report.page.shown import Shown

__all__ = ["overview"]


def overview(shown: Shown) -> Section:
    """Return the section."""
    tables = [_runs(shown)]
    if shown.complete:
        tables = [comparison(shown.complete)[0], *tables]
    return Section("overview", "Runs and code", list(_lead(shown)), (), tables)


def _lead(shown: Shown) -> Iterator[str]:
    """Yield the sentences above the tables."""
    results = shown.results
    data = ", ".join(sorted({f"{result.network} on {result.dataset}" for result in results}))
    seeds = sorted({result.seed for result in results})
    unfinished = len(results) - len(shown.complete)
    yield (
        f"{len(results)} run{'s' * (len(results) > 1)} of {len(shown.names)} variant{'s' * (len(shown.names) > 1)}: "
        f"{data}; seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}."
        + (f" {unfinished} not complete." if unfinished else "")
    )
    for place in shown.places:
        if plans := registered_plans(place):
            amended = f", amended {len(plans) - 1} time(s)" if len(plans) > 1 else ""
            yield f"{name_of(place)}: plan {plans[-1]['digest']}, registered {plans[-1]['registered']}{amended}."
    started = [result for result in results if result.rounds]
    versions = sorted({code_version(RunDirectory.open(result.directory).provenance) for result in started})
    yield f"Code: {'; '.join(versions)}." if versions else "No round is complete yet."
    yield from shown.left_out
    if differing := compared_alike(shown.complete):
        yield f"Runs of the same seed differ in {', '.join(differing)}."
    else:
        yield "Runs of the same seed share data, partition, cohorts and initial model (digests compared)."
    yield evaluations_of([result.directory for result in shown.complete]) or "The test set was not evaluated."
    for seed, names in same_models(shown.complete):
        named = " and ".join(repr(name) for name in names)
        yield f"{named} end with bit-identical models (seed {seed}): they differ only in name."


def _runs(shown: Shown) -> Table:
    rows = tuple(
        (
            result.directory.name, result.variant, str(result.seed),
            "complete" if result.is_complete else RunDirectory.open(result.directory).state,
            f"{result.rounds}/{result.planned_rounds}", tested(result), score(result.validation_score, result.metric),
            megabytes(result.savings["messages"].used("both")) if "messages" in result.savings else "-", result.run_id,
        )
        for result in shown.results
    )  # fmt: skip
    headers = ("run", "variant", "seed", "state", "rounds", "test", "validation", "MB\nmessages", "run id")
    legend = (
        "state: for complete runs, files, run id, sums, counts and test score agree with their checksums. validation: "
        "the last evaluation."
    )
    return Table("Runs", headers, rows, legend)
