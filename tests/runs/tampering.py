"""Tampering with run directories: random damage, whole files from elsewhere, and forgeries whose checksums fit.

python -m tests.runs.tampering --cases 200

Each case ends in the exact result, in a refusal (an error, or a red audit), or in a wrong result that nothing reports.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from fedreuse.core.checked import with_check
from fedreuse.core.errors import FedreuseError
from fedreuse.lab.evidence.audit import audit
from fedreuse.runs.keeping import go_back
from fedreuse.runs.launch import run
from fedreuse.store.manifest import MANIFEST, manifest_text
from tests.runs import damage
from tests.runs.damage import EF, Template
from tests.tiny import results, tiny

_OTHER = {"local": {"optimizer": {"lr": 0.02}}}
"""Another run with the same data, partition, cohorts and initial model."""
AIMED = ("killed", "killed, clients on disk", "killed, server on disk", "killed, best model kept")
_BULK = (".safetensors", ".state")
Case = tuple[str, str, str]
"""Template, what was done, and the outcome."""


def other_of(template: Template, folder: Path) -> Path:
    """Return a run with another learning rate, killed after the same round, and everything else the same."""
    place = folder / f"{template.name} (other)"
    damage._killed(place, {**template.parts, **_OTHER}, at_the_end=False)
    return place


def exchanges(place: Path, other: Path) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yield every exchange of one whole file: with another run, and between two files of one kind."""
    files = sorted(file.relative_to(place) for file in place.rglob("*") if file.is_file())
    for name in files:
        theirs = other / name
        if theirs.exists() and theirs.read_bytes() != (place / name).read_bytes() and name.name not in damage._HARMLESS:
            yield f"{name} of another run", lambda at, name=name: _copy(other, at, name)  # type: ignore[misc]
    yield (
        "journal and provenance of another run",
        lambda at: [_copy(other, at, Path(name)) for name in ("checkpoint.sqlite", "provenance.json", "metrics.jsonl")],
    )
    by_folder: dict[Path, list[Path]] = {}
    for name in files:
        if name.suffix in _BULK:
            by_folder.setdefault(name.parent, []).append(name)
    for group in by_folder.values():
        for first, second in pairwise(group):
            yield f"{first} and {second} exchanged", lambda at, pair=(first, second): _swap(at, *pair)  # type: ignore[misc]
    for version in (0, 1):
        yield f"user_version {version}", lambda at, version=version: _set_version(at, version)  # type: ignore[misc]
    if (place / "checkpoints").is_dir():
        kept = sorted(path.relative_to(place) for path in (place / "checkpoints").iterdir())
        yield f"{kept[0]} as {kept[-1]}", lambda at: shutil.copyfile(at / kept[0], at / kept[-1])


def _copy(other: Path, at: Path, name: Path) -> None:
    for leftover in at.glob(f"{name}-*"):  # the write-ahead log of a journal belongs to it
        leftover.unlink()
    shutil.copyfile(other / name, at / name)
    for part in other.glob(f"{name}-*"):
        shutil.copyfile(part, at / part.name)


def _swap(at: Path, first: Path, second: Path) -> None:
    one, two = (at / first).read_bytes(), (at / second).read_bytes()
    (at / first).write_bytes(two)
    (at / second).write_bytes(one)


def _set_version(at: Path, version: int) -> None:
    with closing(sqlite3.connect(at / "checkpoint.sqlite")) as database, database:
        database.execute(f"PRAGMA user_version = {version}")


def aimed(templates: list[Template], folder: Path) -> Iterator[Case]:
    """Put whole files from elsewhere into killed runs, then resume them (or go back to a kept state)."""
    for template in templates:
        other = other_of(template, folder)
        for number, (name, change) in enumerate(exchanges(template.place, other)):
            place = Path(shutil.copytree(template.place, folder / f"aimed-{number}"))
            change(place)
            if name.startswith("checkpoints"):
                outcome = _outcome(lambda place=place: go_back(place, 2), template, place)
            else:
                outcome = _outcome(lambda: None, template, place)
            shutil.rmtree(place)
            yield template.name, name, outcome


def _outcome(first: Callable[[], object], template: Template, place: Path) -> str:
    try:
        first()
        found = results(run(tiny(**template.parts), place, resume=True))
        return "exact" if found == template.wanted else "WRONG"
    except FedreuseError:
        return "refused"
    except Exception:
        traceback.print_exc()
        return "BROKEN"


def _json(path: Path, **changes: Any) -> None:
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps(with_check(content) if "check" in content else content))


def _score(at: Path) -> None:
    record = json.loads((at / "test-opened.json").read_text())
    forged = min(1.0, record["result"]["score"] + 0.1)
    _json(at / "summary.json", test_score=forged)
    _json(at / "test-opened.json", result={**record["result"], "score": forged})


FORGERIES: dict[str, Callable[[Path], object]] = {
    "test score in summary": lambda at: _json(at / "summary.json", test_score=0.99),
    "test score everywhere": _score,
    "rounds": lambda at: _json(at / "summary.json", rounds=7),
    "bytes": lambda at: _json(at / "summary.json", communication={
        name: {**saving, "up_bytes": saving["up_bytes"] // 2}
        for name, saving in json.loads((at / "summary.json").read_text())["communication"].items()
    }),
    "initial model": lambda at: _json(at / "provenance.json", digests={
        **json.loads((at / "provenance.json").read_text())["digests"], "initial_model": "0" * 64,
    }),
    "seed": lambda at: (at / "config.yaml").write_text(
        (at / "config.yaml").read_text().replace("\nseed: ", "\nseed: 9")
    ),
    "configuration deleted": lambda at: (at / "config.yaml").unlink(),
}  # fmt: skip
"""What a careful owner of a complete run changes; the manifest is made to fit afterwards."""


def forged(folder: Path, rebuild: bool) -> Iterator[Case]:
    """Forge complete runs with checksums that fit, and audit them."""
    whole = run(tiny(uplink=EF), folder / "whole")
    for name, change in FORGERIES.items():
        place = Path(shutil.copytree(whole.path, folder / "forged" / "run"))
        change(place)
        (place / MANIFEST).write_text(manifest_text(place))
        (found,) = audit(place.parent, rebuild=rebuild)
        shutil.rmtree(place)
        yield "complete", name, "refused" if found.verdict == "red" else "WRONG"


def main() -> int:
    """Print a table of counts; exit code 1 if a wrong result was accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200, help="random cases")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counted: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cases").mkdir()
        templates = damage.make(folder)
        for case in damage.campaign(templates, folder / "cases", options.cases, options.seed):
            counted["random", case.outcome.partition(":")[0].replace("WRONG RESULT", "WRONG")] += 1
        chosen = [template for template in templates if template.name in AIMED]
        kinds = {
            "aimed": aimed(chosen, folder),
            "forged": forged(folder / "a", rebuild=False),
            "forged, --rebuild": forged(folder / "b", rebuild=True),
        }
        for kind, cases in kinds.items():
            for template, what, outcome in cases:
                counted[kind, outcome] += 1
                if outcome not in ("exact", "refused"):
                    print(f"{kind}: {template}: {what}: {outcome}", flush=True)
    print(f"{'tampering':20}{'exact':>8}{'refused':>9}{'wrong':>7}")
    for kind in ("random", "aimed", "forged", "forged, --rebuild"):
        others = sum(count for (one, outcome), count in counted.items() if one == kind) - sum(
            counted[kind, outcome] for outcome in ("exact", "refused")
        )
        print(f"{kind:20}{counted[kind, 'exact']:8}{counted[kind, 'refused']:9}{others:7}")
    wrong = sum(count for (kind, outcome), count in counted.items() if outcome not in ("exact", "refused"))
    return int(wrong > counted["forged", "WRONG"])


if __name__ == "__main__":
    raise SystemExit(main())
