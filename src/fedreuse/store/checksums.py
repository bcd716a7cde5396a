"""The checksums of a journal: for each of its parts the sum of the digests of all entries, sealed with the round.

A sum changes by one entry at a time, so that a commit costs a digest of what it writes and nothing else.
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
    """What an entry adds to the sum of its part: where it lies counts as much as what it holds."""
    digest = sha256(f"{table}\0{place}\0{key}\0".encode())
    digest.update(data)
    return digest.digest()[:_BYTES]


def sum_of(digests: Iterable[bytes]) -> int:
    """The sum of digests, in whatever order."""
    return sum(int.from_bytes(digest) for digest in digests) % _MODULUS


@dataclass(frozen=True)
class Checksums:
    """What a journal must hold after its last commit.

    Attributes:
        round_number: The last committed round.
        origin: The checksum of the provenance that the run began with.
        sums: By part of the journal, the sum of the digests of its entries.
    """

    round_number: int = 0
    origin: str = ""
    sums: Mapping[str, int] = field(default_factory=dict)

    def changed(self, part: str, before: bytes | None, after: bytes | None) -> Checksums:
        """With one entry that came, changed or went."""
        known = self.sums.get(part, 0)
        total = known + int.from_bytes(after or b"") - int.from_bytes(before or b"")
        return replace(self, sums={**self.sums, part: total % _MODULUS})

    def to_text(self) -> str:
        """As the journal keeps them."""
        sums = {part: f"{total:x}" for part, total in self.sums.items()}
        return json.dumps(with_check({"round": self.round_number, "origin": self.origin, "sums": sums}))

    @classmethod
    def from_text(cls, text: str) -> Checksums:
        """What `to_text` wrote; a ValueError if anything of it was changed."""
        plain = parse_checked(text)
        return cls(plain["round"], plain["origin"], {part: int(total, 16) for part, total in plain["sums"].items()})
