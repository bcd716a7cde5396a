"""The modules a configuration may import: fedreuse, torch.nn, those in its own folder, and those the user allows.

Naming `package.module:Name` in a configuration runs code of that module. The list of allowed modules is kept in an
environment variable, so that child processes inherit it: workers, parallel runs, the apps of a Flower node.
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
"""Environment variable with the allowed modules, packages and folders, separated like the entries of PATH."""
_PACKAGE, _TORCH = "fedreuse", "torch.nn"


def allow(entries: Iterable[str | Path]) -> None:
    """Allow configurations to name objects of these modules, in this process and its child processes.

    Args:
        entries: Modules or packages, which include their submodules (`mine`, `mine.nets`); or folders (a path with a
            slash, or `.`), which include every module in them.

    Raises:
        ConfigError: If an entry is neither, such as `mine:Net`.

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
    """Return the modules and folders allowed so far."""
    return tuple(entry for entry in os.environ.get(VARIABLE, "").split(os.pathsep) if entry)


def check_module(module: str, where: str) -> None:
    """Raise ConfigError unless the module is allowed; extend `sys.path` so that an allowed one can be imported."""
    if _is_below(module, _PACKAGE) or _is_below(module, _TORCH):
        return
    if any(_is_below(module, entry) for entry in allowed()):
        if _location(module) is None:
            _prepend_to_path(Path.cwd())
        return
    folders = [Path(entry) for entry in allowed() if os.sep in entry]
    if any(_resolves_to(module, folder) for folder in folders):
        return
    package = module.partition(".")[0]
    if not _is_installed(package) and not any(_holds(folder, package) for folder in (Path.cwd(), *folders)):
        where_searched = ", ".join(dict.fromkeys(map(str, (Path.cwd(), *folders))))
        raise ConfigError(
            f"{where}: there is no module '{package}', neither installed nor in {where_searched}; correct the name, or "
            "put the file beside the configuration"
        )
    listed = f" ({', '.join(map(str, folders))})" if folders else ""
    raise ConfigError(
        f"{where}: importing '{module}' is refused, because it runs code: a configuration may name parts of fedreuse, "
        f"of torch.nn, and of modules in its own folder{listed}. If you trust '{package}', allow it: --allow {package} "
        f"on the command line, allow=['{package}'] in Python, `fedreuse supernode --allow {package}` on a node"
    )


def check_target(target: Any, module: str, where: str) -> None:
    """Raise ConfigError for names that fedreuse or torch.nn merely import, and for fedreuse names that are no parts."""
    if any(_is_below(module, entry) for entry in allowed()):
        return
    home = str(getattr(target, "__module__", ""))
    is_part = isinstance(target, type) and is_dataclass(target) and _is_below(home, _PACKAGE)
    # modules of torch.nn import others, whose functions must not be reachable through them
    is_foreign = _is_below(module, _TORCH) and not home.startswith(("torch.nn", "torch._C"))
    if is_foreign or (_is_below(module, _PACKAGE) and not is_part):
        raise ConfigError(
            f"{where}: {getattr(target, '__qualname__', target)} of {home or module} is refused: a configuration may "
            "name dataclasses of fedreuse, and objects that torch.nn itself defines"
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


def _resolves_to(module: str, folder: Path) -> bool:
    """Return whether the module is imported from this folder; if so, the folder stays first in `sys.path`."""
    top = module.partition(".")[0]
    if not _holds(folder, top):
        return False
    before = list(sys.path)
    _prepend_to_path(folder)
    location = _location(module)
    if location is None or not location.is_relative_to(folder):
        sys.path[:] = before  # a module of the standard library, or one that is imported already
        return False
    return True


def _is_installed(package: str) -> bool:
    """Return whether a top-level module can be found; built-in modules such as `posix` have no file."""
    try:
        return find_spec(package) is not None
    except ValueError:  # `__main__` of an interpreter
        return True


def _holds(folder: Path, package: str) -> bool:
    return any((folder / name).exists() for name in (package, f"{package}.py"))


def _prepend_to_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _location(module: str) -> Path | None:
    """Return the file or folder from which the module's top-level package would be imported."""
    spec = None
    with suppress(ValueError):  # `__main__` of an interpreter has none
        spec = find_spec(module.partition(".")[0])
    if spec is None:
        return None
    origin = [spec.origin] if spec.has_location and spec.origin else []
    locations = [*(spec.submodule_search_locations or ()), *origin]
    return Path(locations[0]).resolve() if locations else None
