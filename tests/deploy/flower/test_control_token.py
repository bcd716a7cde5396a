"""The token of a SuperLink: `flwr` finds it under every address of the SuperLink, and nobody else can read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from flwr.cli.auth_plugin.oidc_cli_plugin import OidcCliPlugin
from flwr.supercore.credential_store import file_credential_store

from fedreuse.deploy.flower.authority import make_authority
from fedreuse.deploy.flower.control_token import issue_token, names_of


def test_flwr_sends_the_token_to_every_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "home" / "credentials.yaml"
    monkeypatch.setattr(file_credential_store, "CREDENTIAL_FILE_PATH", file)
    certificate, _ = make_authority(tmp_path / "authority", 1, ["server.example", "::1"]).superlink
    assert names_of(certificate) == ["server.example", "::1"]
    token = issue_token("0.0.0.0", 8000, str(certificate))
    assert len(token) >= 43  # 32 bytes in base64
    assert file.stat().st_mode & 0o777 == 0o600
    for address in ("server.example:8000", "[::1]:8000", "127.0.0.1:8000", "localhost:8000", "0.0.0.0:8000"):
        plugin = OidcCliPlugin(address)
        plugin.load_tokens()
        assert plugin.access_token == token
    assert issue_token("127.0.0.1", 8001, "") != token
