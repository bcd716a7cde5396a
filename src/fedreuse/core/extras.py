"""Optional packages: the extra that installs each one, and the error raised where one is missing."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fedreuse.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "EXTRAS",
    "INCLUDED",
    "MissingPackage",
    "install_line",
    "missing_package",
    "missing_packages",
    "needs_package",
]

EXTRAS: dict[str, tuple[str, ...]] = {
    "cli": ("typer", "click", "rich", "markdown_it"),
    "report": ("pyarrow", "pandas", "matplotlib", "scipy", "statsmodels", "plotly", "jinja2"),
    "sim": ("torch", "sklearn", "PIL", "pooch"),
    "lab": (),
    "deploy": ("flwr", "trustme"),
    "tune": ("optuna",),
    "cluster": ("ray",),
    "data": ("datasets",),
    "adapters": ("transformers", "peft", "tokenizers"),
    "track": ("tensorboard", "mlflow", "sqlalchemy", "alembic"),
}
"""Import names by the extra that adds them to the core."""

INCLUDED: dict[str, tuple[str, ...]] = {
    "report": ("cli",),
    "sim": ("report",),
    "lab": ("sim", "deploy", "tune"),
    "tune": ("sim",),
    "cluster": ("sim",),
    "data": ("sim",),
    "adapters": ("sim",),
    "track": ("sim",),
}
"""Extras that contain others."""


class MissingPackage(UserError, ImportError):
    """A missing optional package; the message has the command that installs it."""


def install_line(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'fedreuse[{extra}]'"


def missing_package(error: BaseException, purpose: str = "") -> MissingPackage | None:
    """Return an error that names the extra to install, or None for anything but a missing optional package.

    Args:
        error: The exception of an import.
        purpose: The part that needs the package, such as `executor: ray`; it begins the message.
    """
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name.partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            begin = f"{purpose} needs the package {package}, which" if purpose else f"the package {package}"
            missing = MissingPackage(f"{begin} is not installed; {install_line(extra)}")
            missing.name = error.name
            return missing
    return None


@contextmanager
def needs_package(purpose: str = "") -> Iterator[None]:
    """Replace the import error of a missing optional package inside the block by one that names its extra.

    Raises:
        MissingPackage: A package of an extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package(error, purpose) or error from None


def missing_packages(extra: str) -> list[str]:
    """Return the import names of an extra, and of the extras it contains, that are not installed."""
    names = [name for name in EXTRAS[extra] if find_spec(name) is None]
    return [*(name for inner in INCLUDED.get(extra, ()) for name in missing_packages(inner)), *names]
