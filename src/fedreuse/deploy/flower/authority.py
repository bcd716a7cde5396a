"""A test authority: one root, a certificate for the SuperLink, a key pair per node; for trying out TLS, not for keeps.

ca.pem goes to everybody; superlink.pem and superlink.key stay with the SuperLink; node-k.key goes to node k alone, and
node-k.pub is registered at the SuperLink. ca.key can make more certificates: keep it, or delete it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from fedreuse.core.errors import RunDirectoryError

__all__ = ["Authority", "make_authority"]

_DAYS = 90
_Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Authority:
    """A folder of certificates and keys, by what they are for."""

    folder: Path

    @property
    def root(self) -> Path:
        """What everybody trusts."""
        return self._file("ca.pem")

    @property
    def superlink(self) -> tuple[Path, Path]:
        """The SuperLink's certificate and key."""
        return self._file("superlink.pem"), self._file("superlink.key")

    def node_key(self, node: int) -> Path:
        """With which a node proves who it is."""
        return self._file(f"node-{node}.key")

    def node_public_key(self, node: int) -> Path:
        """By which the SuperLink knows it."""
        return self._file(f"node-{node}.pub")

    def _file(self, name: str) -> Path:
        path = (self.folder / name).absolute()
        if not path.exists():
            raise RunDirectoryError(
                f"{path} does not exist; make a test authority with `fedreuse deploy --make-authority {self.folder}`"
            )
        return path


def make_authority(folder: Path, num_nodes: int, hosts: Sequence[str] = ("127.0.0.1", "localhost")) -> Authority:
    """Write everything a federation with TLS and known nodes needs; refuses to write over an older one."""
    if (folder / "ca.pem").exists():
        raise RunDirectoryError(f"{folder} holds an authority already; choose another folder, or delete it")
    folder.mkdir(parents=True, exist_ok=True)
    root_key, key = _new_key(), _new_key()
    root_name = _name("fedreuse test authority")
    usage = x509.BasicConstraints(ca=True, path_length=0)
    root = _certificate(root_name, root_name, root_key.public_key()).add_extension(usage, critical=True)
    names = [_alternative(host) for host in hosts]
    server = _certificate(_name("superlink"), root_name, key.public_key())
    server = server.add_extension(x509.SubjectAlternativeName(names), critical=False)
    _write(folder / "ca.pem", root.sign(root_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    _write(folder / "ca.key", _private(root_key, PrivateFormat.PKCS8), is_secret=True)
    _write(folder / "superlink.pem", server.sign(root_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    _write(folder / "superlink.key", _private(key, PrivateFormat.PKCS8), is_secret=True)
    for node in range(num_nodes):
        own = _new_key()
        _write(folder / f"node-{node}.key", _private(own, PrivateFormat.OpenSSH), is_secret=True)
        public = own.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        _write(folder / f"node-{node}.pub", public + b"\n")
    return Authority(folder)


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=_DAYS))
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _new_key() -> _Key:
    return ec.generate_private_key(ec.SECP384R1())


def _private(key: _Key, form: PrivateFormat) -> bytes:
    return key.private_bytes(Encoding.PEM, form, NoEncryption())


def _write(path: Path, data: bytes, is_secret: bool = False) -> None:
    """A secret is readable by its owner alone from the first byte on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if is_secret else 0o644), "wb") as file:
        file.write(data)
