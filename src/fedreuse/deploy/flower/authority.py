"""Test authority: a root certificate, a certificate for the SuperLink, and a key pair per node; for trials of TLS.

ca.pem goes to every node; superlink.pem and superlink.key stay at the SuperLink; node-k.key goes to node k only, and
node-k.pub is registered at the SuperLink. roster.txt stays at the server and maps keys to clients. ca.key can sign more
certificates: keep it secret, or delete it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from fedreuse.core.errors import RunDirectoryError
from fedreuse.deploy.flower.identity import ROSTER_FILE

__all__ = ["Authority", "make_authority"]

_DAYS = 90


@dataclass(frozen=True)
class Authority:
    """Folder of certificates and keys."""

    folder: Path

    @property
    def root(self) -> Path:
        """Root certificate."""
        return self._file("ca.pem")

    @property
    def superlink(self) -> tuple[Path, Path]:
        """Certificate and private key of the SuperLink."""
        return self._file("superlink.pem"), self._file("superlink.key")

    @property
    def roster(self) -> Path:
        """File that maps keys to clients."""
        return self._file(ROSTER_FILE)

    def node_key(self, node: int) -> Path:
        """Return the file of a node's private key."""
        return self._file(f"node-{node}.key")

    def own_key(self, node: int | None) -> Path:
        """Return the private key of a node; without a number, the only one in the folder."""
        keys = sorted(self.folder.glob("node-*.key"))
        if node is None and len(keys) == 1:
            return keys[0].absolute()
        if node is None:
            raise RunDirectoryError(
                f"{self.folder} holds {len(keys)} keys node-*.key; name this node's with --key FILE"
            )
        return self.node_key(node)

    def node_public_key(self, node: int) -> Path:
        """Return the file of a node's public key."""
        return self._file(f"node-{node}.pub")

    def _file(self, name: str) -> Path:
        path = (self.folder / name).absolute()
        if not path.exists():
            raise RunDirectoryError(
                f"{path} does not exist; make a test authority with `fedreuse authority {self.folder}`"
            )
        return path


def make_authority(folder: Path, num_nodes: int, hosts: Sequence[str] = ("127.0.0.1", "localhost")) -> Authority:
    """Write the certificates, keys and roster of a federation with TLS.

    Args:
        folder: Folder to write; it must not hold an authority.
        num_nodes: Number of node keys.
        hosts: Names and addresses of the SuperLink in its certificate.

    Raises:
        RunDirectoryError: The folder holds an authority already.
    """
    if (folder / "ca.pem").exists():
        raise RunDirectoryError(f"{folder} holds an authority already; choose another folder, or delete it")
    folder.mkdir(parents=True, exist_ok=True)
    root = trustme.CA(path_length=0, organization_unit_name="fedreuse test authority")
    server = root.issue_cert(*hosts, common_name="superlink", not_after=datetime.now(UTC) + timedelta(days=_DAYS))
    _write(folder / "ca.pem", root.cert_pem.bytes())
    _write(folder / "ca.key", root.private_key_pem.bytes(), is_secret=True)
    _write(folder / "superlink.pem", server.cert_chain_pems[0].bytes())
    _write(folder / "superlink.key", server.private_key_pem.bytes(), is_secret=True)
    lines = []
    for node in range(num_nodes):
        own = ec.generate_private_key(ec.SECP384R1())
        private = own.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        _write(folder / f"node-{node}.key", private, is_secret=True)
        public = own.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        _write(folder / f"node-{node}.pub", public + b"\n")
        lines.append(b"%d %s\n" % (node, public))
    _write(folder / ROSTER_FILE, b"".join(lines))
    return Authority(folder)


def _write(path: Path, data: bytes, is_secret: bool = False) -> None:
    """Write a new file; a secret is created with mode 0600, so that it is never readable by others."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if is_secret else 0o644), "wb") as file:
        file.write(data)
