"""Losses of `lean` by rounding and coding, and the cost of a sum of its broadcasts: for docs/findings.

python -m benchmarks.lean_coding --out docs/bench/lean-coding.json

Two runs of `lean`: one with a memory per client, planned for 30 rounds, one with a shared memory, planned for 40. In
the first, every fifth message of weights is analysed: v is the vector that the link gives to the codec, k the
coordinates that are kept.

energy                1 - |v - decoded|^2 / |v|^2
energy_at_random      the same k, rounded to one of both levels beside a number so that the mean is right: the expected
                      energy; tensors with one magnitude stay as they are
energy_by_row         the same k, with a scale, or magnitude, for each row of a tensor that has several
row_scale_bytes       2 for each of these rows with a value that is not zero
entropy_bytes         log2 C(d, k) bits for each row, and the order-0 entropy of the levels of each tensor
more_*                the same codec, allowed a tenth more bytes

Of the second, the size of the last broadcasts as messages: one after the other, as the link sends them, and as the one
difference of the estimates, bit for bit (`delta` with `arithmetic: bits`, packed).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

import fedreuse
from fedreuse.compression.codecs.fit import Fit
from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.links.broadcast import Broadcast, Shared
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.wire.block import ABSENT, MODES, Block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.masks import num_rows
from fedreuse.compression.wire.modes.narrow import NARROW
from fedreuse.compression.wire.modes.packed import PACKED
from fedreuse.compression.wire.modes.ternary import TERNARY
from fedreuse.core.tensors import Tensors, add, sub, to_dense
from fedreuse.lab.bench.results import made_now
from fedreuse.lab.bench.wire import full_width_bytes

if TYPE_CHECKING:
    from fedreuse.compression.wire.block import Mode
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.events import RoundDone, Started
    from fedreuse.core.method import LinkContext
    from fedreuse.core.schema import Schema, TensorSpec
    from fedreuse.lab.bench.results import Row

__all__ = ["configure", "looked_at", "main", "play_coding", "play_sums", "summed"]

_BASE = Path(__file__).parents[1] / "configs" / "tune" / "closest" / "base.yaml"
_BUDGET, _SEED = 0.02, 1
_PLANNED = {"per_client": 30, "shared": 40}
"""Rounds that the budget is divided by, as in the decisions; fewer may be played."""
_EVERY = 5
"""One message in this many of a direction is analysed."""
_MORE = 1.1
_MISSED = (1, 2, 4, 8, 16, 32)
_TOP = {"int8": 127, "int4": 7}


def configure(memory: str) -> RunConfig:
    """The run of a decision."""
    method = f"method={{name: lean, budget: {_BUDGET}, server_memory: {memory}}}"
    count = f"rounds.count={_PLANNED[memory]}"
    more = ["uplink=null", "test=sealed", "keep.model=best", count, f"seed={_SEED}", "executor=serial"]
    return fedreuse.load(_BASE, [method, *more])


@dataclass(eq=False)
class _Player(fedreuse.Listener):
    """Lets a run go on for some rounds; is on while messages are real, not drawn to plan the budget."""

    rounds: int
    tell: Callable[[str], object]
    is_on: bool = False

    def started(self, event: Started) -> None:
        del event
        self.is_on = True

    def round_done(self, event: RoundDone) -> fedreuse.Stop | None:
        self.tell(f"round {event.round_number} of {self.rounds}")
        return fedreuse.Stop("seen enough") if event.round_number == self.rounds else None


def _play(config: RunConfig, player: _Player) -> None:
    with tempfile.TemporaryDirectory() as place:
        fedreuse.run(config, Path(place) / "run", listeners=[player])


def play_coding(config: RunConfig, rounds: int, every: int = _EVERY, tell: Callable[[str], object] = str) -> list[Row]:
    """Return a row per direction; a list has a number per analysed message, in the order of the run."""
    player, seen = _Player(rounds, tell), {"up": _Seen("up", every), "down": _Seen("down", every)}

    def up(link: ErrorFeedback, tensors: Tensors, state: Any, context: LinkContext, parcel: Parcel) -> None:
        assert isinstance(link.codec, Fit)
        assert (link.decay, link.decay_per_round) == (1, 1)
        seen["up"].note(link.codec, tensors if state is None else add(tensors, state), context, parcel)

    def down(link: Delta, tensors: Tensors, state: Any, context: LinkContext, parcel: Parcel) -> None:
        held = context.initial if state is None else state
        if held is not None and any(block.mode is not ABSENT for block in parcel.blocks):
            assert isinstance(link.codec, Fit)
            seen["down"].note(link.codec, sub(tensors, held), context, parcel)

    with _watched(ErrorFeedback, player, up), _watched(Delta, player, down):
        _play(config, player)
    return [one.row() for one in seen.values()]


@contextmanager
def _watched(kind: type, player: _Player, note: Callable[..., None]) -> Iterator[None]:
    """Note what links of a kind send."""
    send = kind.send  # type: ignore[attr-defined]

    def watched(link: Any, tensors: Tensors, state: Any, context: LinkContext) -> Any:
        parcel, after = send(link, tensors, state, context)
        if player.is_on:
            note(link, tensors, state, context, parcel)
        return parcel, after

    with patch.object(kind, "send", watched):
        yield


@dataclass(eq=False)
class _Seen:
    """Analysed messages of one direction."""

    way: str
    every: int
    allowed: int = 0
    messages: int = 0
    found: dict[str, list[float]] = field(default_factory=dict)

    def note(self, fit: Fit, vector: Tensors, context: LinkContext, parcel: Parcel) -> None:
        self.allowed, self.messages = fit.bytes, self.messages + 1
        if self.messages % self.every:
            return
        more = replace(fit, bytes=int(_MORE * fit.bytes)).encode(vector, context.schema, context.rng)
        wider = looked_at(vector, context.schema, more)
        facts = {
            "round": context.round_number, **looked_at(vector, context.schema, parcel),
            "more_bytes": wider["bytes"], "more_energy": wider["energy"],
        }  # fmt: skip
        for name, number in facts.items():
            self.found.setdefault(name, []).append(number)

    def row(self) -> Row:
        return {"part": "coding", "way": self.way, "allowed": self.allowed, "messages": self.messages, **self.found}


def looked_at(vector: Tensors, schema: Schema, parcel: Parcel) -> dict[str, float]:
    """Return what a parcel of all tensors keeps of a vector, and what other roundings of the same coordinates keep."""
    values, decoded = to_dense(vector).values.astype(np.float64), parcel.decode(schema)
    assert decoded.schema == schema
    index = np.arange(schema.size) if decoded.index is None else decoded.index
    cuts = np.searchsorted(index, schema.offsets)
    whole = float(values @ values)
    lost = dict.fromkeys(("energy", "energy_at_random", "energy_by_row"), whole - float(values[index] @ values[index]))
    bits, num_scales = 0.0, 0
    for spec, block, start, (low, high) in zip(schema, parcel.blocks, schema.offsets, pairwise(cuts), strict=False):
        kept = _Kept(spec, _mode_of(block), index[low:high] - start, values[index[low:high]], decoded.values[low:high])
        top = _TOP[parcel.notes["values"]] if kept.mode is NARROW else 1
        for name, error in zip(lost, (kept.error(), kept.error_at_random(top), kept.error_by_row(top)), strict=True):
            lost[name] += error
        num_scales += kept.num_scales()
        bits += kept.bits()
    return {
        "bytes": parcel.body_bytes, **{name: 1 - error / whole for name, error in lost.items()},
        "row_scale_bytes": 2 * num_scales, "entropy_bytes": bits / 8,
    }  # fmt: skip


def _mode_of(block: Block) -> Mode:
    """How a tensor was written, before it was packed."""
    return MODES[int(block.fields[0][0])] if block.mode is PACKED else block.mode


@dataclass(frozen=True, eq=False)
class _Kept:
    """The kept coordinates of one tensor: where they are, what was there, and what arrives."""

    spec: TensorSpec
    mode: Mode
    positions: np.ndarray
    values: np.ndarray
    arrived: np.ndarray

    @property
    def _rows(self) -> np.ndarray:
        return self.positions // (self.spec.size // num_rows(self.spec))

    @property
    def _has_row_scales(self) -> bool:
        return self.mode in (NARROW, TERNARY) and num_rows(self.spec) > 1

    def error(self) -> float:
        return _square(self.values - self.arrived)

    def error_at_random(self, top: int) -> float:
        """Expected; a number between two levels errs by step^2 f (1 - f), f its distance to the lower one in steps."""
        step = float(np.abs(self.arrived).max(initial=0.0)) / top
        if self.mode is not NARROW or not step:
            return self.error()
        above = np.abs(self.values) / step % 1
        return step**2 * float((above * (1 - above)).sum())

    def error_by_row(self, top: int) -> float:
        if not self._has_row_scales:
            return self.error()
        return sum(_square(each - _rounded(each, self.mode, top)) for each in self._by_row())

    def num_scales(self) -> int:
        return sum(1 for _ in self._by_row()) if self._has_row_scales else 0

    def _by_row(self) -> Iterator[np.ndarray]:
        cuts = np.flatnonzero(np.diff(self._rows)) + 1
        return (each for each in np.split(self.values, cuts) if len(each))

    def bits(self) -> float:
        """Of positions, given how many each row has, and of levels, given how often each occurs in the tensor."""
        rows = num_rows(self.spec)
        width = self.spec.size // rows
        where = sum(8 * full_width_bytes(width, int(count), 0) for count in np.bincount(self._rows, minlength=rows))
        if self.mode not in (NARROW, TERNARY):
            return where + 8 * self.spec.width * len(self.values)
        counts = np.unique(self.arrived, return_counts=True)[1]
        return where + float((counts * np.log2(counts.sum() / counts)).sum())


def _square(error: np.ndarray) -> float:
    return float(error @ error)


def _rounded(values: np.ndarray, mode: Mode, top: int) -> np.ndarray:
    """Numbers of a row by a scale in half precision, rounded up so that the largest is a level; or by a magnitude."""
    sizes, rounded = np.abs(values), np.zeros_like(values)
    if mode is TERNARY:
        rounded[:] = np.copysign(float(np.float16(sizes.mean())), values)
        return rounded
    wanted = sizes.max() / top
    scale = np.float16(wanted)
    step = float(np.nextafter(scale, np.float16(np.inf)) if scale < wanted else scale)
    if step:
        rounded[:] = np.rint(values / step) * step
    return rounded


def play_sums(config: RunConfig, rounds: int, tell: Callable[[str], object] = str) -> list[Row]:
    """A row per number of missed broadcasts, at the half and at the end of the rounds."""
    player, share = _Player(rounds, tell), Broadcast.share
    seen: list[tuple[Broadcast, LinkContext, Shared]] = []

    def watched(link: Broadcast, tensors: Tensors, shared: Shared | None, context: LinkContext) -> Shared:
        after = share(link, tensors, shared, context)
        if player.is_on:
            seen.append((link, context, after))
        return after

    with patch.object(Broadcast, "share", watched):
        _play(config, player)
    return [row for at in (len(seen) // 2, len(seen) - 1) for row in summed(seen[: at + 1])]


def summed(seen: Sequence[tuple[Broadcast, LinkContext, Shared]]) -> list[Row]:
    """Bytes of the last broadcasts, and of the one difference that they add up to; the estimate by its number."""
    estimates = {shared.number: shared.estimate for _, _, shared in seen}
    link, context, last = seen[-1]
    exact = Delta(Packed(Nonzero()), "bits", "initial")
    rows: list[Row] = []
    for missed in (one for one in _MISSED if one <= len(last.past)):
        since = last.number - missed
        apart, _ = link.send(last.estimate, since, replace(context, shared=last))
        together, _ = exact.send(last.estimate, estimates[since], context)
        both = {name: _length(parcel) for name, parcel in (("apart_bytes", apart), ("sum_bytes", together))}
        rows.append({"part": "sums", "after": last.number, "missed": missed, **both})
    return rows


def _length(parcel: Parcel) -> int:
    """As a message with nothing else in it."""
    return len(Envelope("", 0, 0, parcels={"": parcel}).to_bytes())


def main(words: Sequence[str] | None = None) -> None:
    """Play both runs, look, and store what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, help="rounds of the run with a memory per client")
    parser.add_argument("--shared-rounds", type=int, default=34, help="rounds of the run with a shared memory")
    parser.add_argument("--out", type=Path, default=Path("bench/lean-coding.json"), help="the results file")
    given = parser.parse_args(words)
    per_client, shared = configure("per_client"), configure("shared")

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - a sign of life

    rows = [*play_coding(per_client, given.rounds, tell=tell), *play_sums(shared, given.shared_rounds, tell=tell)]
    settings = {
        "budget": _BUDGET, "seed": _SEED, "every": _EVERY,
        "coding": _facts(per_client, given.rounds), "sums": _facts(shared, given.shared_rounds),
    }  # fmt: skip
    made_now("lean-coding", settings, rows).write(given.out)


def _facts(config: RunConfig, rounds: int) -> dict[str, Any]:
    return {"run": config.label, "planned_rounds": config.rounds.count, "rounds": rounds}


if __name__ == "__main__":
    main()
