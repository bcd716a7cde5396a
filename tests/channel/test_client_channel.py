"""A client's end: what it refuses, what it sends back, and what it stores."""

from __future__ import annotations

import doctest
import os
import shutil
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import fedreuse
from fedreuse import ClientChannel, ConfigError, ServerChannel
from fedreuse.channel import AskAgain, SendBack
from fedreuse.core.errors import RunDirectoryError, WireError

MODEL = {"w": np.arange(600, dtype=np.float32)}


def exchange(server: ServerChannel, client: ClientChannel, name: str = "a", step: float = 1) -> dict[str, np.ndarray]:
    received = client.decode(server.encode(MODEL, name))
    return server.decode(client.encode({"w": received["w"] + np.float32(step)}), name)


def test_a_repeated_request_gets_the_same_reply_again() -> None:
    server, client = ServerChannel("top_k"), ClientChannel("a")
    request = server.encode(MODEL, "a")
    client.decode(request)
    reply = client.encode({"w": MODEL["w"] + 1})
    with pytest.raises(SendBack, match="exchange 1 was answered before; send `reply`") as told:
        client.decode(request)
    assert told.value.reply == reply


def test_a_client_that_lost_its_state_says_so_and_goes_on() -> None:
    server = ServerChannel("exact")
    exchange(server, ClientChannel("a"))
    stranger = ClientChannel("a")
    with pytest.raises(SendBack, match="a has no state for this message") as told:
        stranger.decode(server.encode(MODEL, "a"))
    assert len(told.value.reply) < 50
    with pytest.raises(AskAgain, match="a: the client lost its memory"):
        server.decode(told.value.reply, "a")
    assert (exchange(server, stranger)["w"] == MODEL["w"] + 1).all()


def test_a_message_for_another_client_is_refused() -> None:
    server = ServerChannel("exact")
    with pytest.raises(WireError, match="for another client than b"):
        ClientChannel("b").decode(server.encode(MODEL, "a"))


def test_a_folder_copied_from_another_client_is_refused(tmp_path: Path) -> None:
    with ClientChannel("a", tmp_path / "a") as client:
        exchange(ServerChannel(), client)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with pytest.raises(RunDirectoryError, match="holds the state of client a, but was opened as client b"):
        ClientChannel("b", tmp_path / "b")


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ServerChannel()
    request = server.encode(MODEL, "a")
    with monkeypatch.context() as patch:
        patch.setattr(fedreuse, "__version__", "9.9.9")
        with pytest.raises(WireError, match=r"the other end has fedreuse 0\.1\.0.*install the same version"):
            ClientChannel("a").decode(request)
    with pytest.raises(WireError, match="channel version 7, but this program reads version 1"):
        ClientChannel("a").decode(request[:2] + b"\x07" + request[3:])


def test_damaged_bytes_are_refused_and_change_nothing() -> None:
    server, client = ServerChannel(), ClientChannel("a")
    exchange(server, client)
    request = server.encode(MODEL, "a")
    for data in (b"", b"FC", b"hello", request[:-1], request[:20], request[:-3] + b"xyz"):
        with pytest.raises((WireError, SendBack)):
            client.decode(data)
    assert client.decode(request)["w"].shape == (600,)


def test_a_bomb_in_the_agreement_is_refused() -> None:
    request = ServerChannel().encode(MODEL, "a")
    bomb = zlib.compress(bytes(1 << 25))
    data = request[:8] + len(bomb).to_bytes(4, "little") + bomb
    with pytest.raises(WireError, match="damaged or too long"):
        ClientChannel("a").decode(data)


def test_arrays_must_be_those_of_the_request() -> None:
    server, client = ServerChannel(), ClientChannel("a")
    with pytest.raises(ConfigError, match="there is no request to answer"):
        client.encode(MODEL)
    client.decode(server.encode(MODEL, "a"))
    with pytest.raises(ConfigError, match="v is float32"):
        client.encode({**MODEL, "v": np.zeros(1, np.float32)})
    with pytest.raises(ConfigError, match=r"w is float32 \(3,\), expected float32 \(600,\)"):
        client.encode({"w": np.zeros(3, np.float32)})
    assert (server.decode(client.encode(MODEL), "a")["w"] == MODEL["w"]).all()


def test_torch_tensors_are_taken() -> None:
    torch = pytest.importorskip("torch")
    server, client = ServerChannel(), ClientChannel("a")
    network = torch.nn.Linear(3, 2)
    received = client.decode(server.encode(dict(network.named_parameters()), "a"))
    assert np.array_equal(received["weight"], network.weight.detach().numpy())
    with pytest.raises(ConfigError, match=r"weight is torch\.bfloat16.*\.float\(\)"):
        server.encode(network.bfloat16().state_dict(), "a")


def test_a_damaged_state_counts_as_lost(tmp_path: Path) -> None:
    server = ServerChannel()
    with ClientChannel("a", tmp_path) as client:
        exchange(server, client)
    (tmp_path / "client.safetensors").write_bytes(b"damaged")
    with ClientChannel("a", tmp_path) as client, pytest.raises(SendBack) as told:
        client.decode(server.encode(MODEL, "a"))
    with pytest.raises(AskAgain):
        server.decode(told.value.reply, "a")


def test_a_new_state_of_the_server_starts_over(tmp_path: Path) -> None:
    client = ClientChannel("a")
    exchange(ServerChannel("top_k"), client)
    assert (exchange(ServerChannel("exact"), client)["w"] == MODEL["w"] + 1).all()


PROGRAM = """
import os, signal, sys
import numpy as np
from fedreuse import ClientChannel
import fedreuse.core.files as files
client = ClientChannel("a", sys.argv[1])
received = client.decode(sys.stdin.buffer.read())
if sys.argv[2] == "killed":  # in the middle of storing the state
    os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
sys.stdout.buffer.write(client.encode({"w": received["w"] + np.float32(1)}))
"""


@pytest.mark.slow
def test_a_client_killed_while_it_stores_answers_the_same_request_again(tmp_path: Path) -> None:
    server = ServerChannel("exact")

    def run(request: bytes, how: str) -> subprocess.CompletedProcess[bytes]:
        words = [sys.executable, "-c", PROGRAM, str(tmp_path), how]
        return subprocess.run(words, input=request, capture_output=True, check=False, env={**os.environ})

    first = run(server.encode(MODEL, "a"), "well")
    model = server.decode(first.stdout, "a")
    request = server.encode(model, "a")
    assert run(request, "killed").returncode == -signal.SIGKILL
    again = run(request, "well")
    assert again.returncode == 0, again.stderr.decode()
    assert (server.decode(again.stdout, "a")["w"] == MODEL["w"] + 2).all()


@pytest.mark.parametrize("kind", [AskAgain, SendBack])
def test_the_examples_of_the_errors_run(kind: type[Exception]) -> None:
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(kind.__doc__ or "", {}, kind.__name__, None, None)
    doctest.DocTestRunner().run(test, out=said.append)
    assert test.examples
    assert not said, "".join(said)
