"""Network namespaces with a packet interface, which end with their process; Linux only, with the necessary rights.

A namespace has no name and no file, only an open descriptor, so that nothing is left behind even if the process is
killed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TypeVar

__all__ = ["Namespace", "why_not"]

T = TypeVar("T")
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_TUN_SET_INTERFACE = 0x400454CA  # TUNSETIFF
_TUN_PLAIN_PACKETS = 0x0001 | 0x1000  # IFF_TUN | IFF_NO_PI
_GET_FLAGS, _SET_FLAGS, _SET_ADDRESS, _SET_MASK, _SET_QUEUE = 0x8913, 0x8914, 0x8916, 0x891C, 0x8943  # SIOC*
_UP_AND_RUNNING = 0x1 | 0x40
_QUEUED_PACKETS = 10_000  # no packet may be lost before it is counted
_libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str | None:
    """Return the reason why namespaces with an interface cannot be made here; None if they can."""
    try:
        namespace = Namespace()
    except (OSError, AttributeError) as error:
        return f"network namespaces cannot be made here ({error})"
    try:
        os.close(namespace.interface("probe0", "10.77.0.1"))
    except OSError as error:
        return f"packet interfaces cannot be made here ({error})"
    finally:
        namespace.close()
    return None


class Namespace:
    """Network namespace with loopback only."""

    def __init__(self) -> None:
        """Make the namespace in a thread of its own, and keep it by its descriptor."""
        self._descriptor = _in_thread(_new_network)
        self.call(_set_up_loopback)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function inside the namespace; sockets that it makes stay inside."""

        def inside() -> T:
            _check(_libc.setns(self._descriptor, _NEW_NETWORK), "entering a network namespace")
            return function()

        return _in_thread(inside)

    @property
    def path(self) -> str:
        """Path of the namespace for other programs, such as `ip link set netns`, while this process keeps it."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a command that runs inside, while this process keeps the namespace."""
        return ["nsenter", f"--net={self.path}", "--", *command]

    def interface(self, name: str, address: str) -> int:
        """Make a packet interface (TUN) in a /30 network; return its descriptor, which reads and writes IP packets."""
        return self.call(lambda: _make_interface(name, address))

    def statistics(self, name: str) -> dict[str, int]:
        """Return the kernel's counts of an interface: bytes and packets in both directions."""

        def read() -> str:
            return Path("/proc/thread-self/net/dev").read_text()

        line = next(line for line in self.call(read).splitlines() if line.strip().startswith(f"{name}:"))
        numbers = [int(word) for word in line.partition(":")[2].split()]
        return {"rx_bytes": numbers[0], "rx_packets": numbers[1], "tx_bytes": numbers[8], "tx_packets": numbers[9]}

    def close(self) -> None:
        """Close the descriptor; the namespace ends with the last process inside."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _new_network() -> int:
    _check(_libc.unshare(_NEW_NETWORK), "making a network namespace")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _set_up_loopback() -> None:
    """Bring up loopback; disable IPv6, whose router solicitations would be counted."""
    with suppress(OSError):
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    _bring_up("lo")


def _make_interface(name: str, address: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.ioctl(descriptor, _TUN_SET_INTERFACE, struct.pack("16sH22x", name.encode(), _TUN_PLAIN_PACKETS))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for request, value in ((_SET_ADDRESS, address), (_SET_MASK, "255.255.255.252")):
                packed = struct.pack("16sHH4s8x", name.encode(), socket.AF_INET, 0, socket.inet_aton(value))
                fcntl.ioctl(control, request, packed)
            fcntl.ioctl(control, _SET_QUEUE, struct.pack("16si20x", name.encode(), _QUEUED_PACKETS))
        _bring_up(name)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _bring_up(name: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = fcntl.ioctl(control, _GET_FLAGS, struct.pack("16sH22x", name.encode(), 0))
        flags = struct.unpack("16sH22x", request)[1] | _UP_AND_RUNNING
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH22x", name.encode(), flags))


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _in_thread(function: Callable[[], T]) -> T:
    """Call a function in a new thread: a namespace applies to one thread, and the others keep theirs."""
    results: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(function())
        except BaseException as error:  # raised again in the caller
            errors.append(error)

    thread = Thread(target=body)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
