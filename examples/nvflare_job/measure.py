"""Count the bytes of the example job on the sockets, without and with compression; Linux, as root.

    python measure.py --rounds 30 --out nvflare.json

Server and sites are real processes (NVFlare's POC mode) in a network namespace of their own. The counter is a packet
socket outside all of them: TCP payload to and from the server's port, by direction, start and end of the job included.
"""

import argparse
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).parent
PORT = 8002  # of the server in POC mode
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
CODINGS = {
    "NVFlare's FedAvg": "",
    "exact": "exact",
    "top_k": '{"name": "top_k", "ratio": 0.05}',
    "lean": '{"name": "lean", "budget": 0.05, "rounds": ROUNDS, "clients": 3}',
}


def isolate():
    """Move this process and its children into a network namespace that has a loopback interface only."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "a network namespace needs root")
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up and running


class Counter:
    """TCP payload to (up) and from (down) a port on loopback."""

    def __init__(self, port):
        """Start to count."""
        self.up = self.down = 0
        self._port = port
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 26)
        self._socket.bind(("lo", 0x0003))
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            head, address = self._socket.recvfrom(128)
            if (
                address[2] != socket.PACKET_OUTGOING
                or len(head) < 40
                or head[0] >> 4 != 4
                or head[9] != socket.IPPROTO_TCP
            ):
                continue  # every packet of loopback is seen twice
            start = (head[0] & 15) * 4
            source, target = struct.unpack_from("!HH", head, start)
            payload = struct.unpack_from("!H", head, 2)[0] - start - (head[start + 12] >> 4) * 4
            self.up += payload * (target == self._port)
            self.down += payload * (source == self._port)


def run(coding, rounds, folder):
    """Run the job once; return the accuracy that the sites print for the last model."""
    words = [sys.executable, str(HERE / "job.py"), "--poc", "--rounds", str(rounds), "--workspace", str(folder)]
    words += ["--coding", coding.replace("ROUNDS", str(rounds))] if coding else []
    environment = {**os.environ, "NVFLARE_POC_WORKSPACE": str(folder / "poc")}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd=HERE)
    file = folder / "scores.txt"
    scores = re.findall(rf"round {rounds - 1}: accuracy (\d\.\d+)", file.read_text() if file.exists() else "")
    if done.returncode or not scores:
        raise SystemExit(f"the job failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return sum(map(float, scores)) / len(scores)


def main():
    """Run every coding and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument("--only", nargs="*", default=list(CODINGS))
    options.add_argument("--out", default="")
    chosen = options.parse_args()
    isolate()
    counter, rows = Counter(PORT), {}
    for name in chosen.only:
        before = counter.up, counter.down
        with tempfile.TemporaryDirectory() as folder:
            accuracy = run(CODINGS[name], chosen.rounds, Path(folder))
        rows[name] = {"up": counter.up - before[0], "down": counter.down - before[1], "accuracy": round(accuracy, 3)}
        print(name, rows[name], flush=True)
        if chosen.out:  # after each job: rows of former calls stay
            file = Path(chosen.out)
            known = json.loads(file.read_text())["jobs"] if file.exists() else {}
            whole = {"rounds": chosen.rounds, "sites": 3, "jobs": {**known, **rows}}
            file.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
