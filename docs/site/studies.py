"""Tables of studies that were run: results are stored in docs/bench, documents mark where their tables go.

python -m docs.site.studies runs/robust-digits         stores docs/bench/robust-digits.json from the study's runs
make tables                                            writes `<!-- study: robust-digits -->` ... `<!-- end -->` again
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docs.site.marks import fill
from fedreuse.report.crossed import crossed
from fedreuse.report.results import Result, read_runs
from fedreuse.report.table_forms import to_markdown
from fedreuse.report.tables import Table
from fedreuse.report.variants import by_variant

__all__ = ["filled", "store", "stored", "tables"]

STORED = Path(__file__).parents[1] / "bench"
_KEPT = ("variant", "labels", "seed", "test_score", "attack_success", "epsilon")
_BYTES = "messages"
_SAME = ("method", "dataset", "network", "metric", "rounds")


def store(folder: Path) -> Path:
    """Keep what tables need of a study's complete runs."""
    results = [result for result in read_runs(folder) if result.is_complete]
    kept = [_kept(result) for result in results]
    head = {key: sorted({getattr(result, key) for result in results}) for key in _SAME}
    lines = ",\n".join(json.dumps(run, default=dict) for run in kept)
    path = STORED / f"{folder.name}.json"
    path.write_text(f'{{"study": {json.dumps(head)}, "runs": [\n{lines}\n]}}\n', encoding="utf-8")
    return path


def tables(name: str) -> str:
    """The tables of a stored study."""
    results = stored(name)
    return "\n\n".join(to_markdown(table).rstrip() for table in crossed(results) or [_in_rows(results)])


def _kept(result: Result) -> dict[str, Any]:
    """What a stored study holds of a run; of one with a single axis the bytes of its messages, too."""
    kept = {key: value for key in _KEPT if (value := getattr(result, key)) is not None}
    if len(result.labels.keys() - {"seed"}) > 1:
        del kept["variant"]
        return kept
    saving = result.savings[_BYTES]
    return {**kept, "up": saving.up_bytes, "down": saving.down_bytes}


def _in_rows(results: list[Result]) -> Table:
    """A study with one axis: epsilon where there is one, test score and bytes of every variant."""
    rows, has_epsilon = [], any(result.epsilon is not None for result in results)
    for variant in by_variant(results):
        score, told, up, down = (
            variant.over_seeds(value)
            for value in (_score, lambda result: result.epsilon, _crossed_bytes("up"), _crossed_bytes("down"))
        )
        spent = (_shown(told, 2, 1),) if has_epsilon else ()
        cells = (*spent, _shown(score, 1, 100), _shown(up, 2, 1e-6), _shown(down, 2, 1e-6))
        rows.append((variant.name, *cells))
    seeds = len({result.seed for result in results})
    over = "one seed" if seeds == 1 else f"means over {seeds} seeds"
    title = f"{'Epsilon, test' if has_epsilon else 'Test'} accuracy and bytes ({over})"
    headers = (
        "variant",
        *(("epsilon",) if has_epsilon else ()),
        "test accuracy %",
        f"up MB ({_BYTES})",
        f"down MB ({_BYTES})",
    )
    return Table(title, headers, tuple(rows))


def _score(result: Result) -> float | None:
    return result.test_score


def _crossed_bytes(direction: str) -> Callable[[Result], float | None]:
    return lambda result: result.work.get(direction)


def _shown(found: tuple[float, float | None] | None, places: int, factor: float) -> str:
    return "-" if found is None else f"{factor * found[0]:,.{places}f}"


def stored(name: str) -> list[Result]:
    """The runs of a stored study."""
    content = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    same = {key: values[0] for key, values in content["study"].items()}
    return [_result({**same, **run}) for run in content["runs"]]


def filled(text: str) -> str:
    """A document with the tables of every study that it marks."""
    return fill(text, "study", tables)


def _result(run: dict[str, Any]) -> Result:
    known = {"variant": "", **run}
    crossed_bytes = {direction: known.pop(direction) for direction in ("up", "down") if direction in known}
    facts = {"directory": Path(), "run_id": "", "is_complete": True, "planned_rounds": run["rounds"]}
    return Result(**facts, **known, work=crossed_bytes)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(store(Path(given)))
