"""`fedreuse doctor`: versions, extras, resources and data of this machine, and how to get what is missing."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json, show_lines, show_pairs, show_table
from fedreuse.core.errors import RunError

__all__ = ["Finding", "doctor_command", "examine"]

_PURPOSES = {
    "cli": "this command line",
    "report": "reports, tables and figures of runs",
    "sim": "simulations, datasets and the demo",
    "lab": "studies, plans and benchmarks",
    "deploy": "real federations on Flower",
    "tune": "`fedreuse tune`",
    "cluster": "`executor: ray`",
    "data": "folders that Hugging Face `datasets` saved",
    "adapters": "`network: lora` and pretrained models of Hugging Face",
    "track": "the listeners `tensorboard` and `mlflow`",
}
"""Use of each extra."""
_CORE = ("numpy", "pydantic")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox")
_LITTLE_MEMORY, _LITTLE_DISK = 2e9, 2e9


@dataclass(frozen=True)
class Finding:
    """One row of the table; `advice` is empty if nothing is to do."""

    what: str
    found: str
    is_good: bool = True
    advice: str = ""


@app.command("doctor", epilog="Example: fedreuse doctor")
def doctor_command(
    device: Annotated[
        str | None,
        typer.Option("--device", help="Train three rounds there and on the CPU, and compare: cpu, cuda, cuda:1, ..."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the installation: versions, extras, hardware, data.

    It also checks disk, browser and network namespaces, and gives advice. Nothing is changed or downloaded. A missing
    optional part is no error: the exit code is 0. With --device it is 1 if device and CPU give
    different results.
    """
    if device is not None:
        _show_device(device, as_json)
        return
    from fedreuse.report.tables import Table

    findings = list(examine())
    if as_json:
        show_json([asdict(finding) for finding in findings])
        return
    rows = tuple((finding.what, "good" if finding.is_good else "-", finding.found) for finding in findings)
    show_table(Table("This machine", ("item", "state", "found"), rows))
    lacking = [finding for finding in findings if not finding.is_good]
    if not lacking:
        show_lines("everything is installed")
        return
    advice = [(finding.what, finding.advice) for finding in lacking]
    show_pairs(f"{len(lacking)} of {len(findings)} could be better", advice)


def _show_device(device: str, as_json: bool) -> None:
    """Train on a device and on the CPU; raise RunError if they disagree."""
    from fedreuse.runs.device_check import check_device

    found = check_device(device)
    if as_json:
        show_json(asdict(found) | {"is_good": found.is_good})
    else:
        show_lines(
            f"three rounds on {device} and on the CPU: {found.distance:.2%} apart, up to {found.tolerance:.0%} is good",
            f"validation accuracy {found.scores[1]:.2%} there, {found.scores[0]:.2%} on the CPU; training took "
            f"{found.seconds[1]:.2f} s and {found.seconds[0]:.2f} s",
        )
    if not found.is_good:
        raise RunError(
            f"{device} and the CPU give different results: {found.distance:.2%} apart, more than "
            f"{found.tolerance:.0%}; update its driver and torch, or set local.device: cpu"
        )


_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's wheels without CUDA."""


def examine() -> Iterator[Finding]:
    """Yield the rows of the table."""
    import fedreuse

    yield Finding(
        "fedreuse", f"{fedreuse.__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}"
    )
    yield from _packages()
    yield from _torch_build()
    yield Finding("cores", f"{len(os.sched_getaffinity(0))} for this process, {os.cpu_count()} in the machine")
    yield _room(
        "memory", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"), _LITTLE_MEMORY, "lower executor.workers"
    )
    yield _room(
        "disk here", shutil.disk_usage(Path.cwd()).free, _LITTLE_DISK, "see `fedreuse clean`, or choose another --out"
    )
    yield from _data()
    yield _browser()
    yield _namespaces()


def _packages() -> Iterator[Finding]:
    from fedreuse.core.extras import EXTRAS, install_line, missing_packages

    for name in _CORE:
        yield Finding(name, _version(name) or "absent")
    for extra, packages in EXTRAS.items():
        missing = missing_packages(extra)
        found = f"missing: {', '.join(missing)}" if missing else _versions(packages) or "installed"
        advice = f"for {_PURPOSES[extra]}: {install_line(extra)}" if missing else ""
        yield Finding(f"extra {extra}", found, not missing, advice)


def _torch_build() -> Iterator[Finding]:
    """Yield whether torch is the CUDA build, and whether that is of use here; nothing without torch."""
    installed = _version("torch")
    if installed is None:
        return
    has_cuda = _version("nvidia-cuda-runtime-cu12") or _version("nvidia-cuda-runtime") or "+cu" in installed
    has_gpu = Path("/dev/nvidiactl").exists()
    if not has_cuda:
        yield Finding("torch build", "CPU")
    elif has_gpu:
        yield Finding("torch build", "CUDA")
    else:
        advice = f"gigabytes that are not used: pip install --force-reinstall torch --index-url {_CPU_INDEX}"
        yield Finding("torch build", "CUDA, but this machine has no NVIDIA driver", False, advice)


def _versions(modules: Sequence[str]) -> str:
    """Return versions of the packages that provide these modules."""
    homes = packages_distributions()
    names = dict.fromkeys(homes[module][0] for module in modules if module in homes)
    return ", ".join(f"{name} {_version(name)}" for name in names)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _room(what: str, free: int, little: float, advice: str) -> Finding:
    is_good = free >= little
    return Finding(what, f"{free / 1e9:,.1f} GB free", is_good, "" if is_good else advice)


def _data() -> Iterator[Finding]:
    from fedreuse.core.extras import missing_packages

    if missing_packages("sim"):
        return  # only simulations read datasets
    from fedreuse.learning.datasets.facts import FACTS
    from fedreuse.learning.datasets.fetch import available

    for name in FACTS:
        is_here = available(name, None)
        advice = "" if is_here else f"when you need it: fedreuse data fetch {name}"
        yield Finding(f"data {name}", "here" if is_here else "absent", is_here, advice)


def _browser() -> Finding:
    found = next((path for name in _BROWSERS if (path := shutil.which(name)) is not None), None)
    return Finding(
        "browser",
        found or "none on the search path",
        found is not None,
        "" if found else "to open reports: install chromium",
    )


def _namespaces() -> Finding:
    from fedreuse.deploy.meter.namespaces import why_not

    reason = why_not()
    advice = "for `deploy --meter namespace`: run as root on Linux; `--meter relay` needs no rights"
    return Finding("network namespaces", reason or "can be made", reason is None, "" if reason is None else advice)
