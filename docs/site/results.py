"""Tables of published results: read from results/ at the root, written where a document marks their place.

`<!-- results: NAME TABLE -->`, what was written last time, `<!-- end -->`; `make tables` writes them again. TABLE is:

comparison  what `fedreuse compare results/NAME` shows: scores, savings, work
answers     what the plan asked, with observations and differences by seed
paired      differences by seed of a study without a plan
runs        a row per run
frontier    a line per variant: score, difference to the first variant by seed, what was saved of all messages
gate        what `fedreuse gate results/NAME` shows: reliability and validity of the gate's score
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from docs.site.marks import fill
from fedreuse.report.admission import admitted
from fedreuse.report.confirmation import confirm
from fedreuse.report.confirmation_tables import confirmation_tables, in_words, interval, number
from fedreuse.report.gate_tables import gate_tables
from fedreuse.report.observations import unit_of
from fedreuse.report.paired import Pairs, paired_differences, paired_table
from fedreuse.report.results import Result, rank_of, read_runs
from fedreuse.report.table_forms import to_markdown
from fedreuse.report.tables import Table, comparison, runs_table
from fedreuse.report.variants import Variant, by_variant
from fedreuse.runs.gate_probe import read_probes

__all__ = ["filled", "tables"]

STORED = Path(__file__).parents[2] / "results"


def tables(name: str, kind: str) -> str:
    """The tables of one kind, of one export."""
    return _KINDS[kind](STORED / name)


def filled(text: str) -> str:
    """A document with the tables of every export that it marks."""
    return fill(text, "results", tables)


def _results(place: Path) -> list[Result]:
    results, left_out = admitted(read_runs(place))
    if left_out:
        raise ValueError(f"results/{place.name}: {'; '.join(left_out)}")
    return results


def _comparison(place: Path) -> str:
    return _in_markdown(comparison(_results(place), rank_of(place)))


def _answers(place: Path) -> str:
    _results(place)
    found = confirm(place)
    return "\n\n".join([_in_markdown(confirmation_tables(found)), *in_words(found)])


def _gate(place: Path) -> str:
    return _in_markdown(gate_tables(read_probes(place)))


def _in_markdown(drawn: Sequence[Table]) -> str:
    return "\n\n".join(to_markdown(table).rstrip() for table in drawn)


def _paired(place: Path) -> str:
    table = paired_table(_results(place))
    return "There are no two seeds to pair." if table is None else to_markdown(table).rstrip()


def _runs(place: Path) -> str:
    return _in_markdown([runs_table(_results(place))])


def _frontier(place: Path) -> str:
    """Scores beside savings, few enough columns for a front page."""
    results = _results(place)
    variants, pairs = by_variant(results), paired_differences(results)
    metric, unit = results[0].metric, unit_of("test", results)
    rows = tuple((variant.name, *_scores(variant, pairs, unit), *_saved(variant)) for variant in variants)
    headers = ("variant", f"test {metric}, %", f"difference to {variants[0].name}, {unit[0].split(', ')[-1]} (95 %)",
               "saved up, %", "down, %", "both, %")  # fmt: skip
    count = len(variants[0].results)
    legend = (
        f"Means over {count} seeds; differences by seed, Student's t interval; saved: of the bytes of all messages."
    )
    return to_markdown(Table("Accuracy and bytes", headers, rows, legend)).strip()


def _scores(variant: Variant, pairs: Pairs, unit: tuple[str, float]) -> tuple[str, str]:
    score = variant.mean(lambda result: result.test_score)
    assert score is not None, "a published run was tested"
    if variant.name not in pairs:
        return f"{100 * score:.2f}", "-"
    said = pairs[variant.name][1]
    return f"{100 * score:.2f}", f"{number(said.mean, unit)} ({interval(said.t, unit)})"


def _saved(variant: Variant) -> list[str]:
    means = [variant.mean(lambda one, way=way: getattr(one.savings["messages"], way)) for way in ("up", "down", "both")]
    return ["-" if mean is None else f"{round(100 * mean, 2) + 0.0:.2f}" for mean in means]


_KINDS: dict[str, Callable[[Path], str]] = {
    "comparison": _comparison, "answers": _answers, "paired": _paired, "runs": _runs,
    "frontier": _frontier, "gate": _gate,
}  # fmt: skip
