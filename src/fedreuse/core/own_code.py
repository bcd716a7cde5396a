"""Attribution of errors to the user's own network, dataset or method, by file and line."""

from __future__ import annotations

import sysconfig
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from traceback import FrameSummary, extract_tb

from fedreuse.core.errors import OwnCodeError

__all__ = ["own_code_error", "remember"]

_PACKAGE = Path(__file__).parents[1]
_LIBRARIES = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OWN: set[Path] = set()


def remember(module_name: str) -> None:
    """Record a module named by a configuration: its package, or its folder, counts as the user's code."""
    spec = None
    with suppress(ValueError):  # `__main__` of an interpreter has none
        spec = find_spec(module_name.partition(".")[0])
    if spec is None:
        return
    if spec.submodule_search_locations is not None:
        _OWN.update(Path(location).resolve() for location in spec.submodule_search_locations)
    elif spec.has_location and spec.origin is not None:
        path = Path(spec.origin).resolve()
        _OWN.add(path if path.parent in _LIBRARIES else path.parent)


def own_code_error(error: BaseException) -> OwnCodeError | None:
    """Return an OwnCodeError if the traceback passes through the user's code, else None."""
    if isinstance(error, SyntaxError) and error.filename and _is_own(error.filename):
        return OwnCodeError(f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}")
    frames = [frame for frame in reversed(extract_tb(error.__traceback__)) if _is_own(frame.filename)]
    # a configuration that names a loss of torch records torch as the user's code, but the user's file says more
    outside_libraries = [frame for frame in frames if not _is_library(Path(frame.filename).resolve())]
    return OwnCodeError(_message((outside_libraries or frames)[0], error)) if frames else None


def _message(frame: FrameSummary, error: BaseException) -> str:
    code = f" (`{frame.line}`)" if frame.line else ""
    return f"{frame.filename}, line {frame.lineno}, in {frame.name}{code}: {type(error).__name__}: {error}"


def _is_own(filename: str) -> bool:
    file = Path(filename).resolve()
    if file.is_relative_to(_PACKAGE):
        return False
    homes = [home for home in _OWN if file.is_relative_to(home)]
    # a module in the working folder must not mark a virtual environment inside that folder as the user's code
    return any(not _is_library(file) or _is_library(home) for home in homes)


def _is_library(path: Path) -> bool:
    return any(path.is_relative_to(library) for library in _LIBRARIES)
