"""`fedreuse lab wire`: bytes of a run's messages by part, with two lower bounds."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.app import Allow, AsJson
from fedreuse.cli.known_keys import check_file
from fedreuse.cli.lab.app import lab_app
from fedreuse.cli.output import say, show_json, show_table
from fedreuse.core.errors import require

if TYPE_CHECKING:
    from fedreuse.lab.bench.wire import Share

__all__ = ["wire_command"]

_PARTS = ("mask_bytes", "value_bytes")
_BOUNDS = ("full_width", "entropy")


@lab_app.command("wire", epilog="Example: fedreuse lab wire configs/wire/fashion_mnist.yaml --round 1 --round 5")
def wire_command(
    config: Annotated[Path, typer.Argument(help="A YAML file.", show_default=False)],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Changes, such as rounds.cohort=5.", show_default=False),
    ] = None,
    rounds: Annotated[
        list[int] | None, typer.Option("--round", help="A round to measure; again for more (default: the first).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder of the run (default: a temporary one, deleted afterwards).")
    ] = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Show the bytes of messages by part: masks, values, headers.

    It runs up to the last round given, and compares the modelled fields of each message with its bytes and with two
    bounds.
    """
    check_file(config, overrides or [])
    from fedreuse.config.run_config import load
    from fedreuse.lab.bench.wire import Watch
    from fedreuse.runs.launch import run
    from fedreuse.runs.listeners.progress import Watcher

    wanted = frozenset(rounds or [1])
    require(min(wanted) >= 1, "--round must be at least 1", min(wanted))
    planned = load(config, overrides or [])
    planned = replace(planned, rounds=replace(planned.rounds, count=max(wanted)))
    watch = Watch(planned.executor, wanted)
    with TemporaryDirectory() as folder, Watcher(stderr=True, echo=say) as watcher:
        run(planned, out or Path(folder) / "run", listeners=[watcher], executor=watch)
    if as_json:
        show_json([_plain(share) for share in watch.found])
    else:
        _show(watch.found)


def _plain(share: Share) -> dict[str, Any]:
    tensors = [{key: None if value != value else value for key, value in asdict(t).items()} for t in share.tensors]  # noqa: PLR0124  # not a number
    return {**asdict(share), "tensors": tensors}


def _show(shares: list[Share]) -> None:
    from fedreuse.report.tables import Table

    by_kind: dict[tuple[int, str, str], list[Share]] = {}
    for share in shares:
        by_kind.setdefault((share.round_number, share.direction, share.kind), []).append(share)
    headers = ("round", "message", "fields", "bytes", "share", "least", "most", "mask", "values", "header",
               "full\nwidth", "entropy")  # fmt: skip
    rows = tuple(_row(*key, messages) for key, messages in sorted(by_kind.items()))
    legend = (
        "Means per message, in bytes. Fields: the modelled numerical fields. Bytes: the whole message. Share: bytes / "
        "fields, with its least and most. Full width and entropy: two bounds as shares of the fields; full-width "
        "values and log2 C(d, k) bits, and the order-0 entropy of byte planes and of the mask by rows, by tensor."
    )
    show_table(Table("Bytes of messages by part", headers, rows, legend))


def _row(round_number: int, direction: str, kind: str, messages: list[Share]) -> tuple[str, ...]:
    fields = fmean(message.field_bytes for message in messages)
    shares = [message.share for message in messages]
    parts = [fmean(message.total(part) for message in messages) for part in _PARTS]
    bounds = [fmean(message.total(part) for message in messages) / fields for part in _BOUNDS]
    return (
        str(round_number), f"{len(messages)} {kind} {direction}", f"{fields:,.0f}",
        f"{fmean(message.message_bytes for message in messages):,.0f}", f"{fmean(shares):.3f}", f"{min(shares):.3f}",
        f"{max(shares):.3f}", *(f"{part:,.0f}" for part in parts),
        f"{fmean(message.header_bytes for message in messages):,.0f}", *(f"{bound:.3f}" for bound in bounds),
    )  # fmt: skip
