"""The test authority: a chain that verifies, keys nobody else can read, files that are not written over."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from fedreuse.core.errors import RunDirectoryError
from fedreuse.deploy.flower.authority import Authority, make_authority


def test_the_chain_verifies_and_names_the_hosts(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, 0, ["10.0.0.7", "server.example"])
    root = x509.load_pem_x509_certificate(authority.root.read_bytes())
    server = x509.load_pem_x509_certificate(authority.superlink[0].read_bytes())
    server.verify_directly_issued_by(root)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ip_address("10.0.0.7")]
    assert names.get_values_for_type(x509.DNSName) == ["server.example"]


def test_each_node_has_a_pair_of_its_own(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, 2)
    keys = [load_ssh_private_key(authority.node_key(node).read_bytes(), None) for node in range(2)]
    public = [load_ssh_public_key(authority.node_public_key(node).read_bytes()) for node in range(2)]
    assert all(isinstance(key, ec.EllipticCurvePrivateKey) for key in keys)
    assert [key.public_key() for key in keys] == public
    assert public[0] != public[1]


def test_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    make_authority(tmp_path, 1)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {"ca.key", "superlink.key", "node-0.key"}


def test_an_authority_is_not_written_over_and_a_missing_one_is_named(tmp_path: Path) -> None:
    make_authority(tmp_path, 1)
    with pytest.raises(RunDirectoryError, match="already"):
        make_authority(tmp_path, 1)
    with pytest.raises(RunDirectoryError, match=r"node-1\.key.*fedreuse authority"):
        Authority(tmp_path).node_key(1)
