"""Checksums of a journal: for each of its parts the sum of the digests of all entries, stored with the round number.

A sum is updated entry by entry, so that a commit costs the digests of the entries it writes and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from fedreuse.core.checked import parse_checked, with_check

__all__ = ["Checksums", "digest_of_entry", "sum_of"]

_BYTES = 16
_MODULUS = 1 << (8 * _BYTES)


def digest_of_entry(table: str, place: str, key: int, data: bytes) -> bytes:
    """Return the digest of an entry; it covers the position (table, place, key) as well as the data."""
    digest = sha256(f"{table}\0{place}\0{key}\0".encode())
    digest.update(data)
    return digest.digest()[:_BYTES]


def sum_of(digests: Iterable[bytes]) -> int:
    """Return the sum of digests, which does not depend on their order."""
    return sum(int.from_bytes(digest) for digest in digests) % _MODULUS


@dataclass(frozen=True)
class Checksums:
    """Expected content of a journal after its last commit.

    Attributes:
        round_number: The last committed round.
        origin: The checksum of the run's provenance.
        sums: By part of the journal, the sum of the digests of its entries.
    """

    round_number: int = 0
    origin: str = ""
    sums: Mapping[str, int] = field(default_factory=dict)

    def changed(self, part: str, before: bytes | None, after: bytes | None) -> Checksums:
        """Return the checksums after one entry was added (before is None), replaced, or removed (after is None)."""
        known = self.sums.get(part, 0)
        total = known + int.from_bytes(after or b"") - int.from_bytes(before or b"")
        return replace(self, sums={**self.sums, part: total % _MODULUS})

    def to_text(self) -> str:
        """Return the text that the journal stores, with a checksum of its own."""
        sums = {part: f"{total:x}" for part, total in self.sums.items()}
        return json.dumps(with_check({"round": self.round_number, "origin": self.origin, "sums": sums}))

    @classmethod
    def from_text(cls, text: str) -> Checksums:
        """Parse the text of `to_text`; a changed one is a ValueError."""
        plain = parse_checked(text)
        return cls(plain["round"], plain["origin"], {part: int(total, 16) for part, total in plain["sums"].items()})
