"""Time and size of the report of a large study.

python -m benchmarks.report --runs 200 --rounds 90

One real run on the digits is copied under other names: variants of ten seeds each. Time is processor time, from the
first file to the written page; rendering in a browser is not included.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import fedreuse
from fedreuse.report.page.html import render
from fedreuse.report.page.page import page_of
from fedreuse.store.study_file import STUDY_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main", "make_study", "measure"]

_SEEDS = 10


def make_study(folder: Path, num_runs: int, num_rounds: int) -> Path:
    """A study of so many copies of one real run with a gate."""
    config = fedreuse.load("digits", ["method=dg_fedreuse", f"rounds.count={num_rounds}", "rounds.evaluate_every=5"])
    first = fedreuse.run(config, folder / "run-0").path
    listed = []
    for number in range(num_runs):
        name, variant, seed = f"run-{number}", f"variant {number // _SEEDS}", str(number % _SEEDS)
        if number:
            shutil.copytree(first, folder / name)
        listed.append({"folder": name, "variant": variant, "labels": {"method": variant, "seed": seed}})
    (folder / STUDY_FILE).write_text(json.dumps({"name": "copies", "runs": listed}), encoding="utf-8")
    return folder


def measure(folder: Path) -> dict[str, float]:
    """Processor seconds and bytes of the page of a folder."""
    start = time.process_time()
    content = render(page_of([folder])).encode()
    (folder / "report.html").write_bytes(content)
    return {"seconds": round(time.process_time() - start, 1), "megabytes": round(len(content) / 1e6, 2)}


def main(words: Sequence[str] | None = None) -> None:
    """Make the study, measure, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="how many runs the study has")
    parser.add_argument("--rounds", type=int, default=90, help="how many rounds each has")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as place:
        found = measure(make_study(Path(place), given.runs, given.rounds))
    print(json.dumps({"runs": given.runs, "rounds": given.rounds, **found}))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
