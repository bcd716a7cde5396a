"""A real worker under a real keeper, and messages as Flower's processes have them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict

from fedreuse.deploy.resident.forwarding import ResidentApp
from fedreuse.deploy.resident.keeper import Keeper
from fedreuse.deploy.resident.line import VARIABLE
from tests.deploy.resident.apps import TARGET

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeper]:
    """A worker that is being started; messages of this process go to it."""
    folder = tmp_path / "store" / ".resident"
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]), prepend=":")
    monkeypatch.setenv(VARIABLE, str(folder))
    for patience in ("forwarding._REPLACED_SECONDS", "line.GREETING_SECONDS"):  # however busy the machine is
        monkeypatch.setattr(f"fedreuse.deploy.resident.{patience}", 600.0)
    keeper = Keeper(folder, TARGET)
    keeper.start()
    while keeper.worker is None:
        time.sleep(0.01)
    yield keeper
    keeper.stop()


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """One message through the forwarding app; what the app told."""
    context = Context(1, 2, {"store": str(tmp_path)}, RecordDict(), {})

    def asked(deed: str = "", seconds: float = 600.0, target: str = TARGET) -> dict[str, Any]:
        if deed:
            (tmp_path / "deed").write_text(deed)
        message = Message(RecordDict(), dst_node_id=2, message_type="query", ttl=seconds)
        message.metadata.__dict__["_message_id"] = "1"
        reply = ResidentApp(target)(message, context)
        assert reply.metadata.reply_to_message_id == "1"
        return dict(reply.content["told"])

    return asked
