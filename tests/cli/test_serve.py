"""`fedreuse serve`: a page at an address of this machine, until Ctrl-C; mistakes are told before."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.conftest import Invoke, heed_ctrl_c


@pytest.mark.slow
def test_a_page_until_ctrl_c(complete: Path) -> None:
    words = [
        sys.executable,
        "-c",
        "from fedreuse.cli import main; main()",
        "serve",
        str(complete),
        "--port",
        "0",
        "--json",
    ]
    served = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c)
    assert served.stdout is not None
    told = json.loads("".join(iter(served.stdout.readline, "}\n")) + "}")
    address = told["address"]
    assert told["runs"] == [str(complete)]
    assert address.startswith("http://localhost:")
    with urlopen(address.replace("localhost", "127.0.0.1"), timeout=600) as page:
        assert b"Communication" in page.read()
    served.send_signal(signal.SIGINT)
    _, said = served.communicate(timeout=600)
    assert served.returncode == 130
    assert "no longer served" in said


def test_mistakes(invoke: Invoke, complete: Path, tmp_path: Path) -> None:
    assert "no such directory" in invoke("serve", tmp_path / "nowhere").stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = invoke("serve", complete, "--port", taken.getsockname()[1])
    assert done.exit_code == 2
    assert "choose another with --port" in done.stderr
