"""Another user of this machine who attacks a port: `python stranger.py PORT TIMES FILE [close] [tls]`.

Every try writes the whole file at once. With `close` the connection is closed at once, with no wait for an answer: the
kernel knows no owner of such a socket when the server asks for one. Otherwise the answers are written to standard
output. Nothing but the standard library is imported, so that any user's Python runs it.
"""

from __future__ import annotations

import socket
import ssl
import sys
from contextlib import suppress
from pathlib import Path


def main() -> None:
    port, times, content, words = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).read_bytes(), sys.argv[4:]
    for _ in range(times):
        connection = socket.create_connection(("127.0.0.1", port))
        if "tls" in words:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = context.wrap_socket(connection)
        with connection:
            connection.sendall(content)
            if "close" not in words:
                connection.shutdown(socket.SHUT_WR)
                with suppress(ConnectionError):
                    while data := connection.recv(1 << 16):
                        sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main()
