"""Exceptions of the package, and helpers that word their messages."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from fedreuse.core.untrusted import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ConfigError",
    "DataError",
    "FedreuseError",
    "NotHeld",
    "OwnCodeError",
    "RunDirectoryError",
    "RunError",
    "UserError",
    "WireError",
    "and_others",
    "refusal",
    "require",
    "shortened",
    "suggest",
]


class FedreuseError(Exception):
    """Base class of the exceptions of this package.

    Example:
        >>> from fedreuse import ConfigError, FedreuseError, RunError
        >>> issubclass(ConfigError, FedreuseError), issubclass(RunError, FedreuseError)
        (True, True)
    """


class UserError(FedreuseError):
    """A user error, with a message that says how to fix it; the command line exits with code 2.

    Example:
        >>> from fedreuse import UserError, registries
        >>> try:
        ...     registries["codec"]
        ... except UserError as error:
        ...     print(error)
        'codec' cannot be listed; did you mean 'codecs'?
    """


class ConfigError(UserError):
    """An invalid configuration.

    Example:
        >>> from fedreuse import ConfigError, load
        >>> try:
        ...     load({"task": {"name": "digits"}, "rounds": {"cohrt": 5}})
        ... except ConfigError as error:
        ...     print(error)
        rounds.cohrt: unknown key; did you mean 'cohort'?
    """


class OwnCodeError(UserError):
    """An error in the user's own network, dataset or method, with its file and line."""


class DataError(UserError):
    """A dataset that is missing, damaged or not what its name says."""


class RunDirectoryError(UserError):
    """A run directory that is in use, incomplete, damaged or not a run directory."""


class RunError(FedreuseError):
    """A failure during a run; the command line exits with code 1.

    Example:
        >>> from fedreuse import RunError, UserError
        >>> issubclass(RunError, UserError)
        False
    """


class WireError(FedreuseError):
    """Bytes that are not a valid message."""


class NotHeld(WireError):
    """A difference against a tensor that the receiver does not hold; the sender can send the full tensor instead."""


def refusal(error: Exception) -> str:
    """Return one line that says why a reply is refused; errors other than WireError are named by their type."""
    try:
        text = str(error)
    except Exception:  # `str()` may raise on content that a remote client sent
        text = ""
    return shortened(text if isinstance(error, WireError) else f"{type(error).__name__}: {text}")


def shortened(text: str, longest: int = 400) -> str:
    """Return untrusted text as one line of bounded length, safe to write to a log."""
    line = printable(" ".join(text[: 2 * longest].splitlines()))
    return line if len(line) <= longest else f"{line[:longest]}..."


def require(is_met: bool, message: str, value: object) -> None:
    """Raise ConfigError with the message and the value unless the condition is met."""
    if not is_met:
        raise ConfigError(f"{message}, got {value!r}")


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the nearest known name, or all of them."""
    names = sorted(known)
    near = get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known: {', '.join(names)}" if names else "nothing is known here"


def and_others(count: int, one: str = "has", several: str = "have") -> str:
    """Return the end of a message about several equal failures, such as `, and so has 1 other`; "" for a count of 0."""
    if count == 0:
        return ""
    return f", and so {one} 1 other" if count == 1 else f", and so {several} {count:,} others"
