"""Random damage to run directories: whatever is flipped, cut or deleted ends in the exact result or in a clear refusal.

python -m tests.runs.damage --cases 2000 --seconds 600
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sqlite3
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedreuse.core.errors import FedreuseError
from fedreuse.core.events import RoundDone
from fedreuse.core.listener import Listener
from fedreuse.lab.evidence.audit import audit
from fedreuse.report.results import read_run
from fedreuse.runs.launch import run
from fedreuse.runs.unsealing import unseal
from fedreuse.store.directory import RunDirectory
from tests.tiny import results, tiny

DG = {"name": "dg_fedreuse", "gate": {"name": "proxy", "batch": 8, "batches": 2, "max_age": 3}}
TOP_K = {"update": {"name": "top_k", "ratio": 0.3}}
EF = {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}}
KILLED: dict[str, dict[str, Any]] = {
    "killed": {"method": DG, "uplink": TOP_K},
    "killed, clients on disk": {"uplink": EF, "client_store": "disk"},
    "killed, server on disk": {"method": DG, "uplink": TOP_K, "server_store": "disk", "network": {"hidden": 512}},
    "killed, best model kept": {"uplink": EF, "keep": {"model": "best", "checkpoints": 2}},
    "killed after the look at the test split": {"method": "ditto", "rounds": {"count": 2}},
}
COMPLETE: dict[str, dict[str, Any]] = {
    "complete": {"method": DG, "uplink": TOP_K, "client_store": "disk", "keep": {"models": [2]}},
    "sealed": {"uplink": EF, "test": "sealed"},
}
_HARMLESS = ("LOCK", "log.txt")
"""Files that no result is made of."""


@dataclass(frozen=True)
class Template:
    """A run directory to be damaged, its configuration, and what it must come to."""

    name: str
    place: Path
    parts: dict[str, Any]
    wanted: dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One kind of damage to one file, and what became of it."""

    template: str
    file: str
    damage: str
    look: str
    outcome: str


class _KillAfter(Listener):
    """Ends the process in the middle of its run, as a pulled plug would."""

    def __init__(self, number: int) -> None:
        self.number = number

    def round_done(self, event: RoundDone) -> None:
        if event.round_number == self.number:
            os.kill(os.getpid(), signal.SIGKILL)


def make(folder: Path, names: list[str] | None = None) -> list[Template]:
    """Every kind of directory, once."""
    made = []
    for name, parts in {**KILLED, **COMPLETE}.items():
        if names is not None and name not in names:
            continue
        whole = run(tiny(**parts), folder / f"{name} (whole)")
        place = folder / name
        if name in KILLED:
            _killed(place, parts, at_the_end="after" in name)
        else:
            shutil.copytree(whole.path, place)
        opened = unseal(whole.path) if parts.get("test") == "sealed" else whole
        made.append(Template(name, place, parts, results(opened)))
    return made


def _killed(place: Path, parts: dict[str, Any], at_the_end: bool) -> None:
    child = os.fork()
    if not child:
        if at_the_end:
            RunDirectory.finish = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
        try:
            run(tiny(**parts), place, listeners=[] if at_the_end else [_KillAfter(2)])
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"{place} came to its end"


# damage


def flip(path: Path, rng: np.random.Generator) -> bool:
    """One bit."""
    data = bytearray(path.read_bytes())
    if data:
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
    return bool(data)


def cut(path: Path, rng: np.random.Generator) -> bool:
    """The end of the file."""
    data = path.read_bytes()
    path.write_bytes(data[: rng.integers(len(data))] if data else b"")
    return bool(data)


def blank(path: Path, rng: np.random.Generator) -> bool:
    """Zeros, in some part of the file."""
    data = bytearray(path.read_bytes())
    if data:
        start = int(rng.integers(len(data)))
        stop = min(len(data), start + int(rng.integers(1, 600)))
        data[start:stop] = bytes(stop - start)
        path.write_bytes(data)
    return bool(data)


def delete(path: Path, rng: np.random.Generator) -> bool:
    """The whole file."""
    path.unlink()
    return True


def aim(path: Path, rng: np.random.Generator) -> bool:
    """One value of one row of a database, or the row; SQLite itself finds nothing wrong with that."""
    with closing(sqlite3.connect(path)) as database, database:
        table = str(rng.choice(["meta", "rows", "rows", "blobs"]))
        found = database.execute(f"SELECT rowid, * FROM {table}").fetchall()
        if not found:
            return False
        row = found[rng.integers(len(found))]
        columns = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
        place = int(rng.integers(len(columns) + 1))
        if place == len(columns):
            database.execute(f"DELETE FROM {table} WHERE rowid = ?", (row[0],))
        else:
            changed = _changed(row[1 + place], rng)
            database.execute(f"UPDATE OR IGNORE {table} SET {columns[place]} = ? WHERE rowid = ?", (changed, row[0]))
    return True


def _changed(held: Any, rng: np.random.Generator) -> Any:
    if isinstance(held, int):
        return held ^ (1 << int(rng.integers(4)))
    data = bytearray(held.encode() if isinstance(held, str) else held)
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(7))
    return data.decode(errors="replace") if isinstance(held, str) else bytes(data)


DAMAGE: dict[str, Callable[[Path, np.random.Generator], bool]] = {
    "flip": flip, "cut": cut, "blank": blank, "delete": delete, "aim": aim,
}  # fmt: skip


# what is done with the damaged directory


def resume(template: Template, place: Path) -> dict[str, Any]:
    """Go on, open what is sealed, and read everything."""
    directory = run(tiny(**template.parts), place, resume=True)
    if template.parts.get("test") == "sealed" and directory.is_sealed:
        directory = unseal(place)
    return results(directory)


def read(template: Template, place: Path) -> dict[str, Any]:
    """Read what a report and an export read; of a run that is not complete, as far as it goes."""
    directory = RunDirectory.open(place)
    shown = read_run(directory)
    if not directory.is_complete:
        told = [row["validation_score"] for row in template.wanted["metrics"]][: shown.rounds]
        scores = [row["validation_score"] for row in directory.metrics()]
        return template.wanted if scores == told and directory.ledger() is not None else {}
    found = results(directory)
    return template.wanted if directory.is_sealed and _is_sealed_form(found, template.wanted) else found


def _is_sealed_form(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a sealed run says all that the opened one says, but for its test."""
    tested = ("test_score", "test_loss", "test_examples")
    summaries = [{key: one["summary"][key] for key in one["summary"] if key not in tested} for one in (found, wanted)]
    return summaries[0] == summaries[1] and all(found[key] == wanted[key] for key in found if key != "summary")


def look(template: Template, place: Path) -> dict[str, Any]:
    """Audit: whatever it says of a damaged artifact, it is not green."""
    (found,) = audit(place)
    if found.verdict == "red" or template.name in KILLED:
        return template.wanted
    return read(template, place)


LOOKS = {"resume": resume, "read": read, "audit": look}


def play(template: Template, place: Path, rng: np.random.Generator) -> Case | None:
    """Damage a copy and look at it; None if there was nothing to damage."""
    shutil.copytree(template.place, place)
    files = sorted(str(file.relative_to(place)) for file in place.rglob("*") if file.is_file())
    damage = str(rng.choice(list(DAMAGE)))
    at_risk = [name for name in files if name not in _HARMLESS and (damage != "aim" or name.endswith(".sqlite"))]
    if not at_risk:
        shutil.rmtree(place)
        return None
    file = str(rng.choice(at_risk))
    action = "resume" if rng.random() < 0.6 else str(rng.choice(["read", "audit"]))
    if not DAMAGE[damage](place / file, rng):
        return None
    try:
        is_exact = LOOKS[action](template, place) == template.wanted
        outcome = "exact" if is_exact else "WRONG RESULT"
    except FedreuseError as error:
        outcome = "refused" if len(str(error)) > 40 else f"UNCLEAR: {error}"
    except Exception:
        outcome = f"BROKEN: {traceback.format_exc()}"
    return Case(template.name, file, damage, action, outcome)


def campaign(templates: list[Template], folder: Path, cases: int, seed: int, seconds: float = 1e9) -> list[Case]:
    """So many cases, or as many as the time allows; each from a stream of its own."""
    done: list[Case] = []
    began = time.monotonic()
    number = 0
    while len(done) < cases and time.monotonic() - began < seconds:
        rng = np.random.default_rng([seed, number])
        place = folder / f"case-{number}"
        case = play(templates[number % len(templates)], place, rng)
        shutil.rmtree(place, ignore_errors=True)
        number += 1
        if case is not None:
            done.append(case)
            if case.outcome not in ("exact", "refused"):
                print(f"case {number - 1} of seed {seed}: {case}", flush=True)
    return done


def main() -> int:
    """The command: exit code 1 if any case is neither exact nor refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cases").mkdir()
        templates = make(Path(folder))
        done = campaign(templates, Path(folder) / "cases", options.cases, options.seed, options.seconds)
    counted = Counter((case.damage, case.outcome.split(":")[0]) for case in done)
    for (damage, outcome), count in sorted(counted.items()):
        print(f"{damage:8} {outcome:14} {count:6}")
    wrong = sum(case.outcome not in ("exact", "refused") for case in done)
    print(f"{len(done)} cases, {wrong} neither exact nor refused")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
