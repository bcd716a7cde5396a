"""Confirmation of a plan from its run directories: tests of every claim, factorials and costs to targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.plans.factorial import factorial_effects
from fedreuse.lab.plans.families import Answered, Observed, answer_families
from fedreuse.lab.plans.hierarchy import OverDatasets, over_datasets
from fedreuse.lab.plans.observations import Cell, axes_of, by_cell, value_of
from fedreuse.lab.plans.record import PlanRecord, read_plan
from fedreuse.lab.plans.targets import TargetAnswer, at_target
from fedreuse.report.results import compared_alike, planned_runs, read_runs
from fedreuse.report.statistics.contrasts import Assessment, combined
from fedreuse.store.code_versions import code_version
from fedreuse.store.directory import RunDirectory

if TYPE_CHECKING:
    from fedreuse.lab.plans.plan import Plan
    from fedreuse.report.results import Result

__all__ = ["ClaimAnswer", "Confirmation", "FactorialAnswer", "confirm"]


@dataclass(frozen=True)
class ClaimAnswer(Answered):
    """One claim with its statistics, adjusted p-value and verdict.

    `is_first`: the first plan has the contrast, with the same rules. `differing` names which of data, partition,
    cohorts and initial model differ between the runs of a pair.
    """

    is_first: bool = True
    differing: tuple[str, ...] = ()


@dataclass(frozen=True)
class FactorialAnswer:
    """Effects of two axes in one block of the other axes."""

    axes: tuple[str, str]
    where: str
    effects: Mapping[str, Assessment]


@dataclass(frozen=True)
class Confirmation:
    """All answers to a plan."""

    record: PlanRecord
    results: tuple[Result, ...]
    values: Mapping[Cell, Mapping[int, float]]
    answers: tuple[ClaimAnswer, ...]
    """Claims of the decisive plan, then those of a late amendment."""
    summaries: Mapping[str, OverDatasets]
    factorials: tuple[FactorialAnswer, ...]
    targets: tuple[TargetAnswer, ...]
    code: str

    @property
    def planned(self) -> tuple[ClaimAnswer, ...]:
        """Claims of the plan before the first result."""
        return tuple(answer for answer in self.answers if not answer.is_late)

    @property
    def late(self) -> tuple[ClaimAnswer, ...]:
        """Claims that an amendment added or changed after the first result."""
        return tuple(answer for answer in self.answers if answer.is_late)


def confirm(folder: str | Path, known: Sequence[Result] | None = None) -> Confirmation:
    """Test the plan of a study from its folder alone.

    Args:
        folder: The folder of the study.
        known: Its runs, if they were already read by `read_runs`.

    Raises:
        RunDirectoryError: The study has no plan, a run is missing or fails its audit, or the runs come from several
            versions of the code.

    """
    place = Path(folder)
    record = read_plan(place)
    if record is None:
        raise RunDirectoryError(f"{place} has no plan; add one to the study, and start it with `fedreuse lab confirm`")
    results = _complete(place, read_runs(place) if known is None else known)
    plan = record.current.plan
    cells = by_cell(results)
    read = value_of(plan)
    values = {cell: {seed: read(result) for seed, result in runs.items()} for cell, runs in cells.items()}
    claims = plan.claims(axes_of(results))
    answers = _answers(record, cells)
    return Confirmation(
        record=record,
        results=tuple(results),
        values=values,
        answers=answers,
        summaries=_summaries(answers, cells, 1 - plan.alpha),
        factorials=_factorials(record, axes_of(results), values),
        targets=tuple(answer for target in plan.targets for answer in at_target(target, plan, cells, claims)),
        code=_one_version(results),
    )


def _answers(record: PlanRecord, cells: Mapping[Cell, Mapping[int, Result]]) -> tuple[ClaimAnswer, ...]:
    def values(plan: Plan) -> dict[Cell, dict[int, float]]:
        read = value_of(plan)
        return {cell: {seed: read(result) for seed, result in runs.items()} for cell, runs in cells.items()}

    results = [result for runs in cells.values() for result in runs.values()]
    seeds = {frozenset(result.labels.items()): result.seed for result in results}
    answers = []
    for one in answer_families(record, Observed(values, seeds)):
        pairs = [run for cell in one.claim.cells for run in cells[frozenset(cell.items())].values()]
        is_first = not one.is_late and record.is_first(one.claim.contrast)
        answers.append(ClaimAnswer(**vars(one), is_first=is_first, differing=tuple(compared_alike(pairs))))
    return tuple(answers)


def _summaries(
    answers: Sequence[ClaimAnswer], cells: Mapping[Cell, Mapping[int, Result]], confidence: float
) -> dict[str, OverDatasets]:
    """Return planned contrasts over several datasets; blocks on one dataset are averaged by seed first."""
    summaries = {}
    for contrast in dict.fromkeys(answer.claim.contrast for answer in answers if not answer.is_late):
        on: dict[str, list[Mapping[int, float]]] = {}
        for answer in answers:
            if answer.claim.contrast == contrast and not answer.is_late:
                runs = cells[frozenset(answer.claim.cells[0].items())]
                on.setdefault(next(iter(runs.values())).dataset, []).append(answer.assessment.by_seed)
        means = {name: combined([(1 / len(blocks), by_seed) for by_seed in blocks]) for name, blocks in on.items()}
        summary = over_datasets({name: list(by_seed.values()) for name, by_seed in means.items()}, confidence)
        if summary is not None:
            summaries[contrast.title] = summary
    return summaries


def _factorials(
    record: PlanRecord, axes: Mapping[str, Sequence[str]], values: Mapping[Cell, Mapping[int, float]]
) -> tuple[FactorialAnswer, ...]:
    plan, answers = record.current.plan, []
    for first, second in plan.factorials:
        rest = {frozenset(pair for pair in cell if pair[0] not in (first, second)) for cell in values}
        for block in sorted(rest, key=sorted):
            corners = {
                (high, other): values[block | {(first, axes[first][high]), (second, axes[second][other])}]
                for high in (False, True)  # indices 0 and 1 of the two labels
                for other in (False, True)
            }
            effects = factorial_effects(corners, alpha=plan.alpha, power=plan.power)
            answers.append(FactorialAnswer((first, second), ", ".join(label for _, label in sorted(block)), effects))
    return tuple(answers)


def _complete(place: Path, found: Sequence[Result]) -> list[Result]:
    """Return all runs of the study; an absent, incomplete or faulty run is an error."""
    results = [result for result in found if result.is_complete]
    present = {result.directory.name for result in results}
    missing = [folder for folder in planned_runs(place) if folder not in present]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise RunDirectoryError(
            f"runs of the plan are missing or incomplete ({len(missing)}: {', '.join(missing[:3])}{more}), and a plan "
            "is tested only as a whole; run the same command again to complete them, the others are kept"
        )
    for result in (result for result in found if result.fault):
        raise RunDirectoryError(
            f"{result.directory} fails its audit, and a plan is tested only as a whole: {result.fault}. Delete this "
            "folder, and `fedreuse lab confirm` runs it again"
        )
    return results


def _one_version(results: Sequence[Result]) -> str:
    """Return the code version of all runs; several versions are an error."""
    made: dict[str, list[str]] = {}
    for result in results:
        made.setdefault(code_version(RunDirectory.open(result.directory).provenance), []).append(result.directory.name)
    if len(made) > 1:
        listed = "; ".join(f"{version}: {len(names)} runs, such as {names[0]}" for version, names in made.items())
        raise RunDirectoryError(
            f"the runs of the plan come from {len(made)} versions of the code ({listed}), so a difference may come "
            "from the code; run them all with one version, in another `out` (nothing is deleted)"
        )
    return next(iter(made))
