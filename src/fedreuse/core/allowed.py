"""What a configuration may import: parts of fedreuse, of torch.nn, modules in its own folder, and what a person allows.

Whoever names `package.module:Name` in a configuration runs code of that module. The list lies in the environment, so
that the processes which this one starts have it too: workers, runs side by side, the apps of a Flower node.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fedreuse.core.errors import ConfigError

__all__ = ["VARIABLE", "allow", "allowed", "check_module", "check_target"]

VARIABLE = "FEDREUSE_ALLOW"
"""Modules, packages and folders, separated like those in PATH."""
_OURS, _TORCH = "fedreuse", "torch.nn"


def allow(entries: Iterable[str | Path]) -> None:
    """Let configurations name what these modules hold, in this process and in those that it starts.

    Args:
        entries: Modules or packages, with all that is below them (`mine`, `mine.nets`); or folders (a path with a
            slash, or `.`), for every module that lies there.

    Raises:
        ConfigError: An entry that is neither; `os.system` or `mine:Net` names no module.

    Example:
        >>> from fedreuse.core.allowed import allow, allowed
        >>> allow(["mine"])
        >>> "mine" in allowed()
        True
    """
    known = list(allowed())
    known += [entry for entry in map(_entry, entries) if entry not in known]
    os.environ[VARIABLE] = os.pathsep.join(known)


def allowed() -> tuple[str, ...]:
    """What was allowed so far: names of modules, and folders."""
    return tuple(entry for entry in os.environ.get(VARIABLE, "").split(os.pathsep) if entry)


def check_module(module: str, where: str) -> None:
    """Refuse a module that nobody allowed; one that is allowed can be imported afterwards."""
    if _is_below(module, _OURS) or _is_below(module, _TORCH):
        return
    if any(_is_below(module, entry) for entry in allowed()):
        if _place(module) is None:
            _search(Path.cwd())
        return
    folders = [Path(entry) for entry in allowed() if os.sep in entry]
    if any(_lies_in(module, folder) for folder in folders):
        return
    package = module.partition(".")[0]
    beside = f" ({', '.join(map(str, folders))})" if folders else ""
    raise ConfigError(
        f"{where}: importing '{module}' is refused, because it runs code: a configuration may name parts of fedreuse, "
        f"of torch.nn, and of modules in its own folder{beside}. If you trust '{package}', allow it: --allow {package} "
        f"on the command line, allow=['{package}'] in Python, `fedreuse supernode --allow {package}` on a node"
    )


def check_target(target: Any, module: str, where: str) -> None:
    """Refuse what fedreuse and torch.nn only pass through, and functions of fedreuse: they are tools, not parts."""
    if any(_is_below(module, entry) for entry in allowed()):
        return
    home = str(getattr(target, "__module__", ""))
    is_part = isinstance(target, type) and is_dataclass(target) and _is_below(home, _OURS)
    is_foreign = _is_below(module, _TORCH) and not home.startswith(("torch.nn", "torch._C"))
    if is_foreign or (_is_below(module, _OURS) and not is_part):
        raise ConfigError(
            f"{where}: {getattr(target, '__qualname__', target)} of {home or module} is refused: of fedreuse a "
            "configuration may name the dataclasses that are its parts, of torch.nn what is defined there"
        )


def _entry(given: str | Path) -> str:
    text = str(given)
    if isinstance(given, Path) or os.sep in text or text == ".":
        folder = Path(text).expanduser().resolve()
        if os.pathsep in str(folder):
            raise ConfigError(f"{folder}: modules cannot be allowed from a folder with '{os.pathsep}' in its name")
        return str(folder)
    if not all(word.isidentifier() for word in text.split(".")):
        raise ConfigError(f"allow: {text!r} names no module; write package, package.module, or a folder such as ./mine")
    return text


def _is_below(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _lies_in(module: str, folder: Path) -> bool:
    """Whether Python would find the module there, and not another of its name; then the folder is searched first."""
    top = module.partition(".")[0]
    if not any((folder / name).exists() for name in (top, f"{top}.py")):
        return False
    before = list(sys.path)
    _search(folder)
    place = _place(module)
    if place is None or not place.is_relative_to(folder):
        sys.path[:] = before  # a module of the standard library, or one that is imported already
        return False
    return True


def _search(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _place(module: str) -> Path | None:
    """Where the module, or the package that it is in, would come from."""
    spec = None
    with suppress(ValueError):  # `__main__` of an interpreter has none
        spec = find_spec(module.partition(".")[0])
    if spec is None:
        return None
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.has_location and spec.origin else [])]
    return Path(places[0]).resolve() if places else None
