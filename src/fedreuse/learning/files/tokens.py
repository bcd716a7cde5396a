"""Text as token numbers by a rule that needs no data, so that all clients agree and nothing of a test text leaks."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Literal

import numpy as np

__all__ = ["PADDING", "UNKNOWN", "TokenKind", "num_tokens", "token_name", "tokens_of"]

TokenKind = Literal["characters", "words"]
PADDING, UNKNOWN = 0, 1
_FIRST = 2
_CHARACTERS = "\n" + "".join(chr(code) for code in range(32, 127))
_NUMBER_OF = {character: number + _FIRST for number, character in enumerate(_CHARACTERS)}
_WORD = re.compile(r"\w+|[^\w\s]")


def num_tokens(kind: TokenKind, buckets: int) -> int:
    """How many numbers there are, padding and unknown included."""
    return _FIRST + (len(_CHARACTERS) if kind == "characters" else buckets)


def tokens_of(text: str, kind: TokenKind, buckets: int) -> np.ndarray:
    """The tokens of a text: printable ASCII and newline by their place, or lower-case words hashed into buckets.

    Characters outside that alphabet are UNKNOWN; PADDING never occurs in a text.
    """
    if kind == "characters":
        return np.array([_NUMBER_OF.get(character, UNKNOWN) for character in text], np.int64)
    return np.array([_FIRST + _hashed(word) % buckets for word in _WORD.findall(text.lower())], np.int64)


def token_name(number: int, kind: TokenKind) -> str:
    """What a token number stands for, for people."""
    if number < _FIRST:
        return ("padding", "unknown")[number]
    return repr(_CHARACTERS[number - _FIRST]) if kind == "characters" else f"bucket {number - _FIRST}"


def _hashed(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
