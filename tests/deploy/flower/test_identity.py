"""Keys and clients: what a signature holds for, and what a roster says and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError, WireError
from fedreuse.deploy.flower.authority import Authority, make_authority
from fedreuse.deploy.flower.identity import KeyRoster, check_secret, prove, proven_key


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return make_authority(tmp_path / "keys", 3)


def public(authority: Authority, node: int) -> str:
    return authority.node_public_key(node).read_text().strip()


def test_a_signature_holds_for_one_node_run_and_challenge(authority: Authority) -> None:
    facts = prove(authority.node_key(1), "run", b"challenge", 7)
    assert proven_key(facts, "run", b"challenge", 7) == public(authority, 1)
    for other in (("other", b"challenge", 7), ("run", b"another", 7), ("run", b"challenge", 8)):
        with pytest.raises(WireError, match="its signature is not that of the key"):
            proven_key(facts, *other)
    with pytest.raises(WireError, match="its signature is not that of the key"):
        proven_key({**facts, "key": public(authority, 2)}, "run", b"challenge", 7)  # somebody else's key


@pytest.mark.parametrize(
    "facts", [{}, {"key": 3, "signature": b""}, {"key": "x", "signature": b"x"}, {"key": "x" * 10**6, "signature": b""}]
)
def test_what_is_no_proof_is_refused(facts: dict[str, object]) -> None:
    with pytest.raises(WireError, match="key"):
        proven_key(facts, "run", b"challenge", 7)


def test_a_roster_is_read_anew_so_that_keys_come_and_go(authority: Authority) -> None:
    roster = KeyRoster(authority.roster)
    assert [roster.client_of(public(authority, node)) for node in range(3)] == [0, 1, 2]
    authority.roster.write_text(f"# rotated\n\n2 {public(authority, 0)} expires=2999-01-01 ward\n")
    assert roster.client_of(public(authority, 0)) == 2
    with pytest.raises(WireError, match="not in the roster"):
        roster.client_of(public(authority, 1))
    authority.roster.write_text(f"2 {public(authority, 0)} expires=2020-01-31\n")
    with pytest.raises(WireError, match="expired on 2020-01-31"):
        roster.client_of(public(authority, 0))


@pytest.mark.parametrize("line", ["x", "zero ecdsa-sha2-nistp384 AAAA", "0 ssh-rsa AAAA", "0", "0 {key} expires=soon"])
def test_a_line_that_is_none_is_named(authority: Authority, line: str) -> None:
    authority.roster.write_text("\n" + line.format(key=public(authority, 0)))
    with pytest.raises(ConfigError, match=r"roster\.txt, line 2: .*CLIENT TYPE KEY"):
        KeyRoster(authority.roster).known()


def test_a_key_plays_one_client(authority: Authority) -> None:
    authority.roster.write_text(f"0 {public(authority, 0)}\n1 {public(authority, 0)} again\n")
    with pytest.raises(ConfigError, match="line 2: this key occurs twice"):
        KeyRoster(authority.roster).known()


def test_files_that_others_could_change_or_read_are_refused(authority: Authority) -> None:
    authority.roster.chmod(0o664)
    with pytest.raises(ConfigError, match="chmod go-w"):
        KeyRoster(authority.roster).known()
    with pytest.raises(ConfigError, match="cannot be read"):
        KeyRoster(authority.folder / "nowhere.txt").known()
    check_secret(authority.node_key(0))
    authority.node_key(0).chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        prove(authority.node_key(0), "run", b"challenge", 7)
    with pytest.raises(ConfigError, match="cannot be read"):
        check_secret(authority.folder / "nowhere.key")
