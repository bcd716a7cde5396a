"""Tables of studies that were run: results are stored in docs/bench, documents mark where their tables go.

python -m docs.site.studies runs/robust-digits         stores docs/bench/robust-digits.json from the study's runs
make tables                                            writes `<!-- study: robust-digits -->` ... `<!-- end -->` again
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from fedreuse.report.crossed import crossed
from fedreuse.report.results import Result, read_runs
from fedreuse.report.tables import to_markdown

__all__ = ["filled", "store", "stored", "tables"]

STORED = Path(__file__).parents[1] / "bench"
_MARKED = re.compile(r"<!-- study: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)
_KEPT = ("labels", "seed", "test_score", "attack_success")
_SAME = ("method", "dataset", "network", "metric", "rounds")


def store(folder: Path) -> Path:
    """Keep what tables need of a study's complete runs."""
    results = [result for result in read_runs(folder) if result.is_complete]
    kept = [{key: value for key in _KEPT if (value := getattr(result, key)) is not None} for result in results]
    head = {key: sorted({getattr(result, key) for result in results}) for key in _SAME}
    lines = ",\n".join(json.dumps(run, default=dict) for run in kept)
    path = STORED / f"{folder.name}.json"
    path.write_text(f'{{"study": {json.dumps(head)}, "runs": [\n{lines}\n]}}\n', encoding="utf-8")
    return path


def tables(name: str) -> str:
    """The tables of a stored study."""
    return "\n\n".join(to_markdown(table).rstrip() for table in crossed(stored(name)))


def stored(name: str) -> list[Result]:
    """The runs of a stored study."""
    content = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    same = {key: values[0] for key, values in content["study"].items()}
    return [_result({**same, **run}) for run in content["runs"]]


def filled(text: str) -> str:
    """A document with the tables of every study that it marks."""
    return _MARKED.sub(lambda mark: f"<!-- study: {mark[1]} -->\n\n{tables(mark[1])}\n\n<!-- end -->", text)


def _result(run: dict[str, Any]) -> Result:
    return Result(directory=Path(), run_id="", variant="", is_complete=True, planned_rounds=run["rounds"], **run)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(store(Path(given)))
