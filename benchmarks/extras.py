"""Size and installation time of every extra, for the installation pages.

python -m benchmarks.extras --out docs/bench/extras.json [EXTRA...]

Each extra is installed from the wheel into an empty environment of its own, one after the other, with the versions of
constraints.txt (torch is the CPU build where pip finds it). A row per extra:

packages     distributions in the environment, without pip
megabytes    of the environment, without those of an empty one (10^6 bytes)
seconds      of `pip install`, once; the network, pip's cache and other work on the machine change it severalfold
check        the command that was run there afterwards; it must succeed
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from fedreuse.core.extras import EXTRAS
from fedreuse.lab.bench.results import made_now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.lab.bench.results import Row

__all__ = ["CHECKS", "check_of", "main", "measured"]

ROOT = Path(__file__).parents[1]
_RUN = "fedreuse run digits rounds.count=2 --out {shared}/run-{extra}"
_CODEC = (
    "import numpy, fedreuse; from fedreuse.compression.codecs.top_k import TopK; "
    "print(fedreuse.__version__, sorted(fedreuse.registries)[:3], TopK(0.1))"
)
_FLOWER = (
    "import sys; from fedreuse.deploy import FedReuseStrategy, ResidentApp, fedreuse_train; "
    "import fedreuse.deploy.flower.client; assert 'torch' not in sys.modules"
)
CHECKS: dict[str, str] = {
    "core": f'python -c "{_CODEC}"',
    "cli": "fedreuse list codecs",
    "deploy": f'python -c "{_FLOWER}"',
    "report": "fedreuse report {shared}/run-sim --out {shared}/report.html",
}
"""Commands that show that an extra is complete; the others are checked by a run."""


def check_of(extra: str) -> str:
    """Return the command that checks an environment; `{shared}` is a folder that all environments share."""
    return CHECKS.get(extra, _RUN.replace("{extra}", extra))


def measured(extra: str, wheel: Path, shared: Path) -> Row:
    """Install an extra into an empty environment, check it, and return its row."""
    home = shared / f"environment-{extra}"
    venv.create(home, with_pip=True)
    empty = _size(home)
    wanted = str(wheel) if extra == "core" else f"{wheel}[{extra}]"
    began = perf_counter()
    _do(
        home,
        shared,
        f"python -m pip install --quiet --disable-pip-version-check -c {ROOT / 'constraints.txt'} {wanted}",
    )
    seconds = perf_counter() - began
    names = _do(home, shared, "python -m pip list --format freeze --disable-pip-version-check").split()
    size = _size(home) - empty
    check = check_of(extra)
    _do(home, shared, check.format(shared=shared))
    shutil.rmtree(home)
    packages = sum(not name.startswith(("pip==", "setuptools==")) for name in names)
    return {"extra": extra, "packages": packages, "megabytes": round(size / 1e6), "seconds": round(seconds, 1),
            "check": check.format(shared="OUT")}  # fmt: skip


def _do(home: Path, folder: Path, command: str) -> str:
    """Run a command with the programs of an environment, outside the checkout, and return what it prints."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    clean["PATH"] = f"{home / 'bin'}{os.pathsep}{clean['PATH']}"
    done = subprocess.run(command, shell=True, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


def _size(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())


def main(words: Sequence[str] | None = None) -> None:
    """Measure the extras that are named, or all of them, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help="default: core and every extra")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(words)
    # a run of `sim` is what the check of `report` reads
    names = asked.extras or ["core", "cli", "sim", *(name for name in (*EXTRAS, "all") if name not in ("cli", "sim"))]
    with TemporaryDirectory(dir=asked.out.parent if asked.out.parent.is_dir() else None) as folder:
        shared = Path(folder).resolve()
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", shared, ROOT], check=True, capture_output=True
        )
        (wheel,) = shared.glob("*.whl")
        rows = []
        for name in names:
            rows.append(measured(name, wheel, shared))
            sys.stderr.write(f"{rows[-1]}\n")
            made_now("extras", {}, rows).write(asked.out)


if __name__ == "__main__":
    main()
