"""Token without which a SuperLink accepts no app: written to Flower's credential file, from which `flwr` sends it.

A token lives as long as its SuperLink; the file (0600) is `credentials.yaml` in FLWR_HOME.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from fedreuse.deploy.flower.private import program_part

__all__ = ["issue_token", "names_of"]

_TOKEN_BYTES = 32


def issue_token(host: str, port: int, certificate: str) -> str:
    """Make a token, and store it for every address under which `flwr` may reach the SuperLink.

    Args:
        host: The address that the SuperLink listens on.
        port: Its port.
        certificate: Its certificate file, whose names are stored too; empty without TLS.

    Returns:
        The token.
    """
    plugin = program_part("OidcCliPlugin")
    credentials = program_part("AccountAuthCredentials")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    names = {host, "127.0.0.1", "localhost", *(names_of(Path(certificate)) if certificate else ())}
    for name in sorted(names):
        address = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        plugin(address).store_tokens(credentials(access_token=token, refresh_token=token))
    return token


def names_of(certificate: Path) -> list[str]:
    """Return the names and addresses that a certificate is for."""
    from cryptography import x509

    found = x509.load_pem_x509_certificate(certificate.read_bytes()).extensions
    names = found.get_extension_for_class(x509.SubjectAlternativeName).value
    return [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
