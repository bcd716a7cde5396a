"""Configurations shipped with the package, by name, such as `paper/fashion_mnist`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["find_config", "shipped_configs"]

_FOLDER = "configs"


def shipped_configs() -> dict[str, Path]:
    """Return name and file of every configuration and study that comes with the package.

    Example:
        >>> "paper/fashion_mnist" in shipped_configs()
        True
    """
    folder = Path(str(files("fedreuse"))) / _FOLDER
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in sorted(folder.rglob("*.yaml"))}


def find_config(source: str | Path) -> Path:
    """Return the file at this path or, if there is none, the shipped configuration of this name.

    Args:
        source: A path, or the name of a shipped configuration; the prefix `configs/` and the suffix `.yaml` are
            optional.

    Example:
        >>> find_config("digits").name
        'digits.yaml'
    """
    path = Path(source)
    if path.exists():
        return path
    inside = path.relative_to(_FOLDER) if path.parts[:1] == (_FOLDER,) else path
    name = inside.with_suffix("") if inside.suffix in (".yaml", ".yml") else inside
    return shipped_configs().get(name.as_posix(), path)
