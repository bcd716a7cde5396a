"""Node authentication: a node signs the server's challenge, and the server's roster maps its key to a client."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from fedreuse.core.errors import ConfigError, WireError

__all__ = ["ROSTER_FILE", "KeyRoster", "Known", "check_secret", "prove", "proven_key"]

ROSTER_FILE = "roster.txt"
_EXPIRES = "expires="
_LONGEST = 1000
_HASH = ec.ECDSA(SHA256())


@dataclass(frozen=True)
class Known:
    """Client of a key, and the key's expiry."""

    client: int
    expires: datetime | None = None


@dataclass(frozen=True)
class KeyRoster:
    """Roster file of the server: one line per key, `CLIENT TYPE KEY [expires=2027-01-31] [comment]`.

    TYPE and KEY are those of `node-0.pub`. The file is read again at every use, so that changes apply at once.
    """

    path: Path

    def known(self) -> dict[str, Known]:
        """Return the clients by key.

        Raises:
            ConfigError: The file is unreadable, malformed or writable by others, or a key occurs twice.
        """
        mode = self._stat().st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigError(
                f"{self.path} decides which node is which client, but others may write it; chmod go-w {self.path}"
            )
        clients: dict[str, Known] = {}
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), start=1):
            words = line.split()
            if words and not words[0].startswith("#"):
                key, known = self._read(words, number)
                if key in clients:
                    raise ConfigError(f"{self.path}, line {number}: this key occurs twice; a key belongs to one client")
                clients[key] = known
        return clients

    def client_of(self, key: str) -> int:
        """Return the client of a key; raise WireError for an unknown, removed or expired key."""
        known = self.known().get(key)
        if known is None:
            raise WireError(f"its key {_short(key)} is not in the roster")
        if known.expires is not None and known.expires <= datetime.now(UTC):
            raise WireError(f"its key {_short(key)} expired on {known.expires.isoformat()}")
        return known.client

    def _stat(self) -> Any:
        try:
            return self.path.stat()
        except OSError as error:
            raise ConfigError(
                f"deploy.roster: {self.path} cannot be read ({error}); restore it, since it names the nodes of the run"
            ) from None

    def _read(self, words: list[str], number: int) -> tuple[str, Known]:
        try:
            client, key = int(words[0]), " ".join(words[1:3])
            dates = [word.removeprefix(_EXPIRES) for word in words[3:] if word.startswith(_EXPIRES)]
            expires = datetime.fromisoformat(dates[0]) if dates else None
            _public(key)
        except (ValueError, IndexError, WireError) as error:
            raise ConfigError(
                f"{self.path}, line {number}: {error}; write CLIENT TYPE KEY, for example 3 and the line of "
                "node-3.pub, and expires=2027-01-31 after it to let it expire"
            ) from None
        if expires is not None and expires.tzinfo is None:
            expires = expires.replace(tzinfo=UTC)
        return key, Known(client, expires)


def prove(key_file: Path, run: str, challenge: bytes, node: int) -> dict[str, Any]:
    """Return a node's public key, and a signature that is valid only for this node, run and challenge."""
    check_secret(key_file)
    private = load_ssh_private_key(key_file.read_bytes(), None)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{key_file}: the key must be an elliptic-curve key, as `fedreuse authority` makes it")
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return {"key": public, "signature": private.sign(_signed_text(run, challenge, node), _HASH)}


def proven_key(facts: Mapping[str, Any], run: str, challenge: bytes, node: int) -> str:
    """Return the key that a node has proven to hold; raise WireError without a valid proof."""
    key, signature = facts.get("key"), facts.get("signature")
    if not isinstance(key, str) or not isinstance(signature, bytes):
        raise WireError("it proves no key, which the roster needs; start it with --authority or --key")
    try:
        _public(key).verify(signature, _signed_text(run, challenge, node), _HASH)
    except InvalidSignature:
        raise WireError(f"its signature is not that of the key {_short(key)} for this hello") from None
    return key


def check_secret(path: Path) -> None:
    """Raise ConfigError for a private key that others can read."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigError(f"{path}: the key of this node cannot be read ({error}); --key names the file") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{path} is a private key, but others can read or write it; chmod 600 {path}")


def _signed_text(run: str, challenge: bytes, node: int) -> bytes:
    return b"\0".join([b"fedreuse hello", run.encode(), challenge, str(node).encode()])


def _public(key: str) -> ec.EllipticCurvePublicKey:
    try:
        public = load_ssh_public_key(key[:_LONGEST].encode())
    except Exception as error:  # the parser may raise anything for untrusted bytes
        raise WireError(f"not a public key ({type(error).__name__}: {error})") from None
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise WireError("not an elliptic-curve key")
    return public


def _short(key: str) -> str:
    return f"...{key[-12:]}"
