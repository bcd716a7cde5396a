"""A reader of the few pickle opcodes in a CIFAR batch; it builds plain values and runs nothing.

The published batches are pickles of protocol 2: a dictionary of byte strings, lists of integers and one array
of bytes. The pickle module would call whatever a file names, so it is not used: here a name is a word on a
short list, and what the three known calls mean is written out below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedreuse.core.errors import DataError

__all__ = ["read_pickled_batch"]

_NAMES = {
    "_codecs encode": "encode",  # how Python 3 writes a byte string in protocol 2
    "numpy.core.multiarray _reconstruct": "reconstruct",
    "numpy._core.multiarray _reconstruct": "reconstruct",  # the same since numpy 2
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
}


@dataclass(frozen=True)
class _Name:
    """A name from the short list."""

    word: str


@dataclass(frozen=True)
class _ByteType:
    """The dtype of unsigned bytes, the only one."""


@dataclass
class _Array:
    """An array that the next BUILD fills."""

    value: np.ndarray | None = None


def read_pickled_batch(content: bytes) -> dict[str, Any]:
    """The dictionary in a CIFAR batch: byte strings, numbers, lists and uint8 arrays."""
    try:
        batch = _Machine(content).run()
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"not a CIFAR batch: a damaged pickle ({type(error).__name__}: {error})") from None
    if not isinstance(batch, dict):
        raise DataError(f"not a CIFAR batch: a pickled {type(batch).__name__}, expected a dictionary")
    return {
        key.decode("latin1") if isinstance(key, bytes) else str(key): item.value if isinstance(item, _Array) else item
        for key, item in batch.items()
    }


class _Machine:
    """The stack machine of the pickle format, reduced to what a batch needs."""

    def __init__(self, content: bytes):
        self.content = content
        self.position = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        while (opcode := self.take(1)) != b".":
            action = _ACTIONS.get(opcode)
            if action is None:
                raise DataError(f"not a CIFAR batch: pickle opcode {opcode!r} at byte {self.position - 1} is not read")
            action(self)
        return self.stack.pop()

    def take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self.content):
            raise DataError(f"truncated: {len(self.content)} bytes found, at least {end} expected")
        taken = self.content[self.position : end]
        self.position = end
        return taken

    def number(self, width: int, is_signed: bool = False) -> int:
        return int.from_bytes(self.take(width), "little", signed=is_signed)

    def line(self) -> str:
        end = self.content.index(b"\n", self.position)
        return self.take(end + 1 - self.position)[:-1].decode("ascii")

    def pop_mark(self) -> list[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def pop(self, count: int) -> tuple[Any, ...]:
        if len(self.stack) < count:
            raise IndexError("the stack is empty")
        items = tuple(self.stack[len(self.stack) - count :])
        del self.stack[len(self.stack) - count :]
        return items

    def name(self) -> None:
        full = f"{self.line()} {self.line()}"
        if full not in _NAMES:
            raise DataError(f"not a CIFAR batch: it names '{full.replace(' ', '.')}', which is never loaded")
        self.stack.append(_Name(_NAMES[full]))

    def reduce(self) -> None:
        called, arguments = self.pop(2)
        match called, arguments:
            case _Name(word="encode"), (str() as text, "latin1"):
                self.stack.append(text.encode("latin1"))
            case _Name(word="reconstruct"), (_Name(word="ndarray"), (0,), b"b"):
                self.stack.append(_Array())
            case _Name(word="dtype"), (b"u1" | "u1", 0, 1):
                self.stack.append(_ByteType())
            case _:
                raise DataError(f"not a CIFAR batch: it calls {called} with {arguments!r:.80}, which is never done")

    def build(self) -> None:
        target, state = self.pop(2)
        match target, state:
            case _ByteType(), (3, b"|" | "|", None, None, None, -1, -1, 0):
                pass
            case _Array(value=None), (
                1,
                tuple() as shape,
                _ByteType(),
                0 | 1 as is_fortran,
                bytes() as content,
            ):
                target.value = np.frombuffer(content, np.uint8).reshape(shape, order="F" if is_fortran else "C")
            case _:
                raise DataError(f"not a CIFAR batch: it sets the state of {type(target).__name__.strip('_')}")
        self.stack.append(target)

    def append(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise TypeError("items for something that is not a list")
        self.stack[-1].extend(items)

    def set_items(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], dict):
            raise TypeError("items for something that is not a dictionary")
        self.stack[-1].update(zip(items[::2], items[1::2], strict=True))

    def protocol(self) -> None:
        if (found := self.number(1)) != 2:
            raise DataError(f"not a CIFAR batch: a pickle of protocol {found}, expected 2")


_Action = Callable[[_Machine], None]


def _push(value: Callable[[_Machine], Any]) -> _Action:
    return lambda machine: machine.stack.append(value(machine))


def _remember(width: int) -> _Action:
    return lambda machine: machine.memo.update({machine.number(width): machine.stack[-1]})


_ACTIONS: dict[bytes, _Action] = {
    b"\x80": _Machine.protocol,
    b"(": lambda machine: machine.marks.append(len(machine.stack)),
    b"}": _push(lambda _: {}),
    b"]": _push(lambda _: []),
    b")": _push(lambda _: ()),
    b"N": _push(lambda _: None),
    b"\x88": _push(lambda _: True),
    b"\x89": _push(lambda _: False),
    b"K": _push(lambda machine: machine.number(1)),
    b"M": _push(lambda machine: machine.number(2)),
    b"J": _push(lambda machine: machine.number(4, is_signed=True)),
    b"U": _push(lambda machine: machine.take(machine.number(1))),
    b"T": _push(lambda machine: machine.take(machine.number(4))),
    b"X": _push(lambda machine: machine.take(machine.number(4)).decode("utf-8")),
    b"t": _push(lambda machine: tuple(machine.pop_mark())),
    b"\x85": _push(lambda machine: machine.pop(1)),
    b"\x86": _push(lambda machine: machine.pop(2)),
    b"\x87": _push(lambda machine: machine.pop(3)),
    b"a": lambda machine: machine.append(list(machine.pop(1))),
    b"e": lambda machine: machine.append(machine.pop_mark()),
    b"s": lambda machine: machine.set_items(list(machine.pop(2))),
    b"u": lambda machine: machine.set_items(machine.pop_mark()),
    b"q": _remember(1),
    b"r": _remember(4),
    b"h": _push(lambda machine: machine.memo[machine.number(1)]),
    b"j": _push(lambda machine: machine.memo[machine.number(4)]),
    b"c": _Machine.name,
    b"R": _Machine.reduce,
    b"b": _Machine.build,
}
