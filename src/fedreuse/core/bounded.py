"""Bounded readers of JSON, YAML and npz: size, depth and repetition are checked before anything is built.

Files and messages come from elsewhere, and a small one may ask for unbounded memory: brackets nested a hundred thousand
deep, aliases of aliases, arrays that decompress to gigabytes. The whole package reads through these functions. They
raise ValueError, and the callers add the place and the remedy.
"""

from __future__ import annotations

import json
import re
import stat
import zipfile
import zlib
from math import prod
from typing import IO, TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    import numpy as np

__all__ = [
    "MAX_DEPTH",
    "MAX_JSON_BYTES",
    "MAX_LIST_BYTES",
    "MAX_NODES",
    "MAX_YAML_BYTES",
    "TooLarge",
    "array_names",
    "check_table",
    "check_yaml",
    "json_lines",
    "map_array",
    "parse_json",
    "parse_yaml",
    "read_arrays",
    "read_bytes",
    "read_json",
    "read_yaml",
]

MAX_DEPTH = 64
"""Deepest nesting of lists and mappings."""
MAX_JSON_BYTES = 1 << 26
"""Longest JSON document. State headers are the longest, about 100 bytes per array."""
MAX_LIST_BYTES = 1 << 28
"""Longest JSON document that lists clients or examples: schedules, traces and partitions."""
MAX_YAML_BYTES = 1 << 22
"""Longest YAML document; configurations have some kilobytes, and libyaml reads about 10 MB/s."""
MAX_NODES = 1 << 18
"""Most values of a YAML document, each alias counted as often as it repeats its anchor."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # that of libyaml is about ten times as fast
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8, "BYTE_ARRAY": 4}
"""Bytes of a value of each physical type of Parquet; of a text at least its offset."""
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class TooLarge(ValueError):
    """Content that would need more memory than its reader allows."""


def read_bytes(path: Path, max_bytes: int = MAX_JSON_BYTES) -> bytes:
    """Return the content of a regular file.

    Args:
        path: The file.
        max_bytes: Largest size that is read.

    Raises:
        OSError: The file is absent or cannot be read.
        ValueError: It is larger, or is a device, a pipe or the like, which might never end.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a directory is an error of its own
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"it has more than {max_bytes:,} bytes")
    return data


def parse_json(data: bytes | bytearray | memoryview | str, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Parse a JSON document.

    Args:
        data: The document, UTF-8.
        max_bytes: Its largest size.

    Raises:
        ValueError: It is not JSON, is longer, or is nested deeper than `MAX_DEPTH`.

    Example:
        >>> from fedreuse.core.bounded import parse_json
        >>> parse_json(b'{"rounds": [1, 2]}')
        {'rounds': [1, 2]}
    """
    text = data.encode(errors="surrogatepass") if isinstance(data, str) else bytes(data)
    if len(text) > max_bytes:
        raise ValueError(f"it has {len(text):,} bytes, more than {max_bytes:,}")
    if _is_deep(text):
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    return json.loads(text)


def read_json(path: Path, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Read a file with one JSON document; raises OSError, and ValueError as `parse_json` does."""
    return parse_json(read_bytes(path, max_bytes), max_bytes)


def json_lines(data: bytes) -> Iterator[Any]:
    """Parse a file with one JSON document per line."""
    return map(parse_json, data.splitlines())


def check_yaml(text: str | bytes) -> None:
    """Refuse a YAML document that is too long, too deep, or too large once its aliases are expanded.

    The document is read as a stream of events, which needs no stack; what is not YAML is left to the parser.

    Raises:
        ValueError: One of the limits is exceeded, or an alias stands inside its own anchor.
    """
    size = len(text) if isinstance(text, bytes) else len(text.encode(errors="surrogatepass"))
    if size > MAX_YAML_BYTES:
        raise ValueError(f"it has {size:,} bytes, more than {MAX_YAML_BYTES:,}")
    try:
        _check_events(yaml.parse(text, _LOADER))
    except yaml.YAMLError:
        return


def parse_yaml(text: str | bytes) -> Any:
    """Parse a YAML document with plain values only.

    Raises:
        ValueError: It is not YAML, or exceeds a limit of `check_yaml`.

    Example:
        >>> from fedreuse.core.bounded import parse_yaml
        >>> parse_yaml("rounds: {count: 3}")
        {'rounds': {'count': 3}}
    """
    check_yaml(text)
    try:
        return yaml.load(text, _LOADER)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def read_yaml(path: Path) -> Any:
    """Read a file with one YAML document; raises OSError, and ValueError as `parse_yaml` does."""
    return parse_yaml(read_bytes(path, MAX_YAML_BYTES))


def read_arrays(
    path: Path, names: Collection[str] = (), max_bytes: int = 1 << 34, optional: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """Read arrays of an npz file; their size is known before they are decompressed.

    Args:
        path: The file.
        names: Names of the arrays; empty: all of them.
        max_bytes: Most bytes that the arrays may have together.
        optional: Further names, which may be absent.

    Raises:
        OSError: The file is absent or cannot be read.
        KeyError: An array is absent.
        TooLarge: The arrays are larger.
        ValueError: The file is not an npz file, is damaged, or holds Python objects.
    """
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("not an npz file, or truncated" if path.exists() else "no such file")
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            wanted = [*(names or members), *(name for name in optional if name in members)]
            for name in wanted:
                if name not in members:
                    raise KeyError(name)
            total = sum(members[name].file_size for name in wanted)
            if total > max_bytes:
                raise TooLarge(f"its arrays have {total:,} bytes, more than {max_bytes:,}")
            return {name: _array(archive, members[name]) for name in wanted}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, TypeError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays of an npz file; raises OSError and ValueError as `read_arrays` does."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise ValueError(f"not an npz file, or truncated: {error}") from None


def map_array(path: Path) -> np.ndarray:
    """Map the array of an npy file, which needs no memory; NumPy refuses objects and files that are too short."""
    import numpy as np

    array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def check_table(metadata: Any, max_bytes: int) -> None:
    """Refuse a Parquet file whose columns would need more memory.

    Args:
        metadata: The `FileMetaData` of pyarrow.
        max_bytes: Most bytes of all columns. Texts count with their encoded size, numbers with their width.

    Raises:
        TooLarge: The columns are larger.
    """
    total = 0
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            width = _WIDTHS.get(column.physical_type, 0)
            total += max(column.total_uncompressed_size, column.num_values * width)
    if total > max_bytes:
        raise TooLarge(f"its columns have {total:,} bytes, more than {max_bytes:,}")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        _check_header(file, member.file_size)
    import numpy as np

    with archive.open(member) as file:
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _check_header(file: IO[bytes], size: int) -> None:
    """Refuse a header whose array is larger than the file: NumPy allocates it before it reads."""
    from numpy.lib import format as npy

    headers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(file)
    if version not in headers:
        raise ValueError(f"arrays of version {version} of the npy format are not read")
    shape, _, dtype = headers[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not read")
    if prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} is longer than its file")


def _is_deep(text: bytes) -> bool:
    """Return whether a JSON text is nested deeper than `MAX_DEPTH`."""
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _STRINGS.sub(b"", text).translate(_AS_SQUARE, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):  # each pass removes the innermost level
        brackets = brackets.replace(b"[]", b"")
    return brackets.count(b"[") > MAX_DEPTH or b"[]" in brackets


def _check_events(events: Iterable[Any]) -> None:
    """Count values and nesting of a stream of events."""
    sizes: dict[str | None, int] = {}
    open_nodes: list[tuple[str | None, int]] = []  # anchor, and number of values before it, of each open collection
    total = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            if any(event.anchor == anchor for anchor, _ in open_nodes):
                raise ValueError(f"the alias *{event.anchor} stands inside its own anchor")
            total += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.NodeEvent):
            total += 1
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append((event.anchor, total - 1))
            else:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            sizes[anchor] = total - before
        if len(open_nodes) > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        if total > MAX_NODES:
            raise ValueError(f"it has more than {MAX_NODES:,} values, aliases expanded")
