"""Frames of a channel's messages: a tag, the agreement in a first message, and an envelope.

The tag of a request is a checksum of session, client and the last reply that the server decoded; that of a reply is the
checksum of the request it answers. So neither end builds on a state that the other does not have.
Layout: magic `FC`, version and flags (1 byte each), tag (4), then, if flag 1 is set, the length (4) and the compressed
JSON of the agreement, then the envelope.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fedreuse
from fedreuse.channel.coding import links_of
from fedreuse.channel.layout import Layout
from fedreuse.config.recipe import Recipe
from fedreuse.core.bounded import parse_json
from fedreuse.core.errors import FedreuseError, WireError
from fedreuse.core.formats import CHANNEL, WIRE
from fedreuse.core.method import Method
from fedreuse.core.registry import parse

__all__ = ["Agreement", "Frame", "tag_of"]

_START = struct.Struct("<2sBBI")
_LENGTH = struct.Struct("<I")
_GREETS = 1
_LONGEST = 1 << 24
"""Largest agreement in bytes; that of a model with 100,000 arrays has about six million."""


@dataclass(frozen=True)
class Agreement:
    """Settings that both ends share, sent with the first message.

    Args:
        session: Random name of the server's state, which a new state does not share.
        layout: Names, shapes and dtypes of the arrays.
        recipe: Links of both directions.
        is_exact: Whether updates come with corrections of their rounding.
        seed: Seed of random links.
    """

    session: str
    layout: Layout
    recipe: Recipe
    is_exact: bool
    seed: int

    def links(self) -> Method:
        """Return the links of both directions."""
        return links_of(self.recipe, is_exact=self.is_exact)

    def to_bytes(self) -> bytes:
        """Return the agreement as JSON."""
        plain = {
            "versions": _versions(),
            "session": self.session,
            "arrays": self.layout.to_plain(),
            "recipe": self.recipe.to_plain(),
            "exact": self.is_exact,
            "seed": self.seed,
        }
        return json.dumps(plain).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Agreement:
        """Parse an agreement, which may name parts of this package only: a client imports nothing that a server names.

        Raises:
            WireError: Another version of fedreuse, a part from elsewhere, or malformed bytes.
        """
        try:
            plain = parse_json(data)
            if (versions := plain["versions"]) != _versions():
                raise WireError(
                    f"the other end has {_text(versions)}, this one {_text(_versions())}; install the same version of "
                    "fedreuse on both"
                )
            _refuse_foreign(plain["recipe"])
            layout, recipe = Layout.from_plain(plain["arrays"]), parse(Recipe, plain["recipe"], "")
            return Agreement(str(plain["session"]), layout, recipe, bool(plain["exact"]), int(plain["seed"]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise WireError(f"not an agreement ({type(error).__name__}: {error})") from None
        except WireError:
            raise
        except FedreuseError as error:
            raise WireError(f"the agreement is refused: {error}") from None


@dataclass(frozen=True)
class Frame:
    """A message of a channel.

    Args:
        tag: Of a request, see `tag_of`; of a reply, checksum of the request.
        body: Serialized envelope.
        agreement: Serialized agreement in a first message; empty otherwise.
    """

    tag: int
    body: bytes
    agreement: bytes = b""

    def to_bytes(self) -> bytes:
        """Return the message."""
        start = _START.pack(b"FC", CHANNEL.version, _GREETS if self.agreement else 0, self.tag)
        if not self.agreement:
            return start + self.body
        packed = zlib.compress(self.agreement, 9)
        return b"".join([start, _LENGTH.pack(len(packed)), packed, self.body])

    @staticmethod
    def from_bytes(data: bytes) -> Frame:
        """Parse a message.

        Raises:
            WireError: The bytes are no message of a channel, or of another version.
        """
        data = bytes(data)
        if len(data) < _START.size or data[:2] != b"FC":
            raise WireError("not a message of a channel: it does not start with FC")
        _, version, flags, tag = _START.unpack_from(data)
        CHANNEL.check(version, "the message", WireError)
        if flags & _GREETS == 0:
            return Frame(tag, data[_START.size :])
        start = _START.size + _LENGTH.size
        end = start + (_LENGTH.unpack_from(data, _START.size)[0] if len(data) >= start else len(data))
        if end > len(data):
            raise WireError("the message ends within its agreement")
        try:
            opened = zlib.decompressobj()
            agreement = opened.decompress(data[start:end], _LONGEST)
        except zlib.error as error:
            raise WireError(f"the agreement is damaged ({error})") from None
        if not opened.eof:
            raise WireError("the agreement is damaged or too long")
        return Frame(tag, data[end:], agreement)


def tag_of(session: str, client: str, last_reply: int) -> int:
    """Return the tag of a request; `last_reply` is the checksum of the last decoded reply, 0 before the first."""
    return zlib.crc32(f"{session}\0{client}\0{last_reply}".encode())


def _versions() -> dict[str, Any]:
    return {"fedreuse": fedreuse.__version__, "channel": CHANNEL.version, "wire": WIRE.version}


def _text(versions: Any) -> str:
    pairs = versions.items() if isinstance(versions, Mapping) else ()
    return ", ".join(f"{name} {number}" for name, number in pairs)[:100]


def _refuse_foreign(node: Any) -> None:
    """Raise WireError for any text of the form `package.module:Name` in a recipe."""
    if isinstance(node, str) and ":" in node:
        raise WireError(
            f"the server asks for {node}, which is not part of fedreuse; a client imports nothing that a server "
            "names: choose a link and codec that `fedreuse list` shows"
        )
    if isinstance(node, Mapping | list):
        for inner in node.values() if isinstance(node, Mapping) else node:
            _refuse_foreign(inner)
