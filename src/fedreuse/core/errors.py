"""The errors a person may meet: what went wrong, where, and the way out."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

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
    """The root of everything this package raises on purpose.

    Example:
        >>> from fedreuse import ConfigError, FedreuseError, RunError
        >>> issubclass(ConfigError, FedreuseError), issubclass(RunError, FedreuseError)
        (True, True)
    """


class UserError(FedreuseError):
    """A mistake that the user can mend; the command line ends with exit code 2.

    Example:
        >>> from fedreuse import UserError, registries
        >>> try:
        ...     registries["codec"]
        ... except UserError as error:
        ...     print(error)
        'codec' cannot be listed; did you mean 'codecs'?
    """


class ConfigError(UserError):
    """A configuration that cannot be what it says.

    Example:
        >>> from fedreuse import ConfigError, load
        >>> try:
        ...     load({"task": {"name": "digits"}, "rounds": {"cohrt": 5}})
        ... except ConfigError as error:
        ...     print(error)
        rounds.cohrt: unknown key; did you mean 'cohort'?
    """


class OwnCodeError(UserError):
    """An error in a person's own network, dataset or method, with its file and line."""


class DataError(UserError):
    """A dataset that is absent, damaged or not what its name says."""


class RunDirectoryError(UserError):
    """A run directory that is in use, foreign, incomplete or damaged."""


class RunError(FedreuseError):
    """A run that started well and could not go on; the command line ends with exit code 1.

    Example:
        >>> from fedreuse import RunError, UserError
        >>> issubclass(RunError, UserError)
        False
    """


class WireError(FedreuseError):
    """Bytes that are not a message of ours."""


class NotHeld(WireError):
    """A difference to something else than the receiver holds; the sender can mend it by sending everything."""


def refusal(error: Exception) -> str:
    """Why a reply is refused, in one line: a WireError says it, any other error is named too."""
    try:
        said = str(error)
    except Exception:  # what a stranger sent may be beyond words
        said = ""
    return shortened(said if isinstance(error, WireError) else f"{type(error).__name__}: {said}")


def shortened(text: str, longest: int = 400) -> str:
    """A stranger's words in one line of bounded length, as a log may repeat them."""
    line = " ".join(text[: 2 * longest].splitlines())
    return line if len(line) <= longest else f"{line[:longest]}..."


def require(is_met: bool, message: str, value: object) -> None:
    """Refuse a configuration value, naming it."""
    if not is_met:
        raise ConfigError(f"{message}, got {value!r}")


def suggest(word: str, known: Iterable[str]) -> str:
    """A closing sentence for an unknown name: the nearest known one, or the whole list."""
    names = sorted(known)
    near = get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known: {', '.join(names)}" if names else "nothing is known here"


def and_others(count: int, one: str = "has", several: str = "have") -> str:
    """What follows the first of several things that fail alike: `, and so has 1 other`; nothing if it is alone."""
    if count == 0:
        return ""
    return f", and so {one} 1 other" if count == 1 else f", and so {several} {count:,} others"
