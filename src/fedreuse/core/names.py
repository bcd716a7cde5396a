"""Names that files give of other files: checked before they are joined to a folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from fedreuse.core.errors import RunDirectoryError

__all__ = ["inside", "relative_name"]


def relative_name(name: object) -> PurePosixPath:
    """Return a stored name as a relative path that stays below its folder.

    Args:
        name: A name from a manifest, a list of runs or an archive, with `/` between its parts.

    Raises:
        RunDirectoryError: It is empty, absolute, not plain text, or has a part `.` or `..`.

    Example:
        >>> from fedreuse.core.names import relative_name
        >>> str(relative_name("models/best.safetensors"))
        'models/best.safetensors'
    """
    if not isinstance(name, str) or not name or "\0" in name or "\\" in name:
        raise RunDirectoryError(f"{name!r} is not the name of a file in its folder")
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):  # an absolute name has an empty first part
        raise RunDirectoryError(f"{name!r} is not the name of a file in its folder: absolute, or with '.' or '..'")
    return PurePosixPath(name)


def inside(folder: Path, name: object) -> Path:
    """Return the path of a stored name below a folder; nothing below the folder on that path may be a link.

    Raises:
        RunDirectoryError: The name leaves the folder, or a part of the path is a symbolic link.
    """
    path = folder
    for part in relative_name(name).parts:
        path = path / part
        if path.is_symlink():
            raise RunDirectoryError(f"{path} is a symbolic link, which may lead out of {folder}; copy the file instead")
    return path
