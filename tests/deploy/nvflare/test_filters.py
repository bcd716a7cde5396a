"""NVFlare filters: NVFlare's own messages, a simulated federation, real sites; `make test-nvflare` installs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare")

from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FilterKey, FLContextKey, ReservedKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply

from fedreuse.core.errors import ConfigError, RunError, WireError
from fedreuse.deploy.nvflare.filters import KEY, ClientFilter, ServerFilter

EXAMPLE = Path(__file__).parents[3] / "examples" / "nvflare_job"
MODEL = {"w": np.arange(600, dtype=np.float32).reshape(20, 30), "b": np.zeros(30, np.float32)}


class Site:
    """Context, workspace and engine that NVFlare gives the filters of one process."""

    def __init__(self, name: str, peer: str, root: Path) -> None:
        self.name, self.peer, self.root = name, peer, root
        self.handlers: dict[str, Any] = {}
        self.server: Site | None = None

    def context(self, direction: str = FilterKey.OUT) -> FLContext:
        context, other = FLContext(), FLContext()
        other.set_prop(ReservedKey.IDENTITY_NAME, self.peer)
        for key, content in {
            ReservedKey.IDENTITY_NAME: self.name,
            FLContextKey.CURRENT_RUN: "job",
            FLContextKey.FILTER_DIRECTION: direction,
            ReservedKey.ENGINE: self,
        }.items():
            context.set_prop(key, content, private=True, sticky=False)
        context.set_peer_context(other)
        return context

    def get_workspace(self) -> SimpleNamespace:
        return SimpleNamespace(get_run_dir=lambda job: str(self.root / job), get_root_dir=lambda: str(self.root))

    def register_aux_message_handler(self, topic: str, handler: Any) -> None:
        assert topic not in self.handlers
        self.handlers[topic] = handler

    def send_aux_request(self, topic: str, request: Shareable, **_: Any) -> dict[str, Shareable]:
        assert self.server is not None
        return {"server": self.server.handlers[topic](topic, request, self.server.context())}


class Job:
    """A server and a client with their four filter objects."""

    def __init__(self, root: Path, coding: Any = "exact", folder: str | None = None) -> None:
        self.server, self.client = Site("server", "site-1", root / "server"), Site("site-1", "server", root / "site-1")
        self.client.server = self.server
        self.at_server = [ServerFilter(coding, folder) for _ in range(2)]
        self.at_client = [ClientFilter(folder) for _ in range(2)]
        for each in self.at_server:
            each.handle_event(EventType.START_RUN, self.server.context())

    def task(self, data: Any, kind: str = DataKind.WEIGHTS) -> tuple[Shareable, Shareable]:
        """Return the task on the wire and at the executor."""
        original = DXO(kind, dict(data), {"round": 3}).to_shareable()
        wire = self.at_server[0].process(original, self.server.context(FilterKey.OUT))
        assert from_shareable(original).data.keys() == data.keys()  # other clients get the same object
        return wire, self.at_client[0].process(wire, self.client.context(FilterKey.IN))

    def result(self, shareable: Shareable) -> tuple[Shareable, Shareable]:
        """Return the result on the wire and at the aggregator."""
        wire = self.at_client[1].process(shareable, self.client.context(FilterKey.OUT))
        return wire, self.at_server[1].process(wire, self.server.context(FilterKey.IN))

    def close(self) -> None:
        self.at_server[0].handle_event(EventType.END_RUN, self.server.context())
        self.at_client[0].handle_event(EventType.END_RUN, self.client.context())


@pytest.fixture(autouse=True)
def _identity() -> None:
    """Flower's identity, which the other tests of deployments need, is not set: Flower may be absent here."""


@pytest.fixture(autouse=True)
def clock() -> None:
    """The same for the clock of Flower's waiting processes."""


@pytest.fixture
def job(tmp_path: Path) -> Any:
    made = Job(tmp_path)
    yield made
    made.close()


def moved(step: float) -> dict[str, np.ndarray]:
    return {name: array + np.float32(step) for name, array in MODEL.items()}


def test_models_and_updates_arrive_bit_for_bit(job: Job) -> None:
    for number, kind in enumerate((DataKind.WEIGHTS, DataKind.WEIGHT_DIFF, DataKind.WEIGHTS), start=1):
        wire, task = job.task(moved(number))
        assert list(from_shareable(wire).data) == [KEY]
        assert from_shareable(wire).meta[MetaKey.PROCESSED_ALGORITHM] == "fedreuse"
        arrived = from_shareable(task)
        assert (arrived.data_kind, arrived.meta) == (DataKind.WEIGHTS, {"round": 3})
        assert all((arrived.data[name] == array).all() for name, array in moved(number).items())
        _, result = job.result(DXO(kind, moved(0.1), {"steps": 7}).to_shareable())
        heard = from_shareable(result)
        assert (heard.data_kind, heard.meta) == (kind, {"steps": 7})
        assert all((heard.data[name] == array).all() for name, array in moved(0.1).items())


def test_metrics_pass_and_confirm_the_model(job: Job) -> None:
    job.task(MODEL)
    _, result = job.result(DXO(DataKind.METRICS, {"accuracy": 0.5}).to_shareable())
    assert from_shareable(result).data == {"accuracy": 0.5}
    wire, _ = job.task(MODEL)
    assert len(from_shareable(wire).data[KEY]) < 100  # nothing has changed


def test_other_messages_and_failures_pass(job: Job) -> None:
    failed = make_reply(ReturnCode.EXECUTION_EXCEPTION)
    assert job.result(failed)[1] is failed
    plain = Shareable({"anything": 1})
    assert job.at_server[0].process(plain, job.server.context(FilterKey.OUT)) is plain


def test_a_site_that_lost_its_state_asks_for_the_whole_model(tmp_path: Path) -> None:
    first = Job(tmp_path, folder="state")
    first.task(MODEL)
    first.result(DXO(DataKind.WEIGHTS, moved(1)).to_shareable())
    first.close()
    again = Job(tmp_path, folder="state")  # the next job continues
    wire, task = again.task(moved(1))
    assert len(from_shareable(wire).data[KEY]) < MODEL["w"].nbytes / 2
    again.close()
    shutil.rmtree(tmp_path / "site-1" / "state")
    third = Job(tmp_path, folder="state")
    _, task = third.task(moved(2))
    assert (from_shareable(task).data["w"] == moved(2)["w"]).all()
    third.close()


def test_a_site_without_the_filter_is_named(job: Job) -> None:
    job.task(MODEL)
    plain = DXO(DataKind.WEIGHTS, moved(1)).to_shareable()
    with pytest.raises(RunError, match=r"site-1 answers with an uncompressed model; add .*ClientFilter"):
        job.at_server[1].process(plain, job.server.context(FilterKey.IN))
    with pytest.raises(RunError, match=r"the server sent an uncompressed model; add .*ServerFilter"):
        job.at_client[0].process(plain, job.client.context(FilterKey.IN))


def test_mistakes_are_named(job: Job) -> None:
    with pytest.raises(ConfigError, match="did you mean 'exact'"):
        ServerFilter("exakt")
    job.task(MODEL)
    with pytest.raises(ConfigError, match="extra is float32"):
        job.result(DXO(DataKind.WEIGHTS, {**MODEL, "extra": np.float32([1])}).to_shareable())
    with pytest.raises(WireError, match="infinite or undefined"):
        job.result(DXO(DataKind.WEIGHTS, {**MODEL, "b": np.full(30, np.nan, np.float32)}).to_shareable())


@pytest.mark.deploy
def test_exact_coding_changes_a_federation_by_no_more_than_the_order_of_arrivals(tmp_path: Path) -> None:
    models = []
    for name, coding in (("before", []), ("after", ["--coding", "exact"])):
        words = [sys.executable, str(EXAMPLE / "job.py"), "--rounds", "3", "--workspace", str(tmp_path / name), *coding]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=EXAMPLE)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        (path,) = (tmp_path / name).rglob("server.npy")
        models.append(np.load(path))
        assert (tmp_path / name / "scores.txt").read_text().count("round 2: accuracy 0.8") == 3
        assert bool(list((tmp_path / name).rglob("fedreuse/client.safetensors"))) == bool(coding)
    # NVFlare adds results as they arrive, so that two runs of the same job differ in rounding, too
    assert np.abs(models[0] - models[1]).max() < 1e-5


@pytest.mark.deploy
@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_three_real_sites_send_less_on_their_sockets(tmp_path: Path) -> None:
    out, plain = tmp_path / "bytes.json", "NVFlare's FedAvg"
    words = [sys.executable, str(EXAMPLE / "measure.py"), "--rounds", "8", "--only", plain, "top_k", "--out", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=EXAMPLE)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    jobs = json.loads(out.read_text())["jobs"]
    saved = {way: jobs[plain][way] - jobs["top_k"][way] for way in ("up", "down")}
    models = 8 * 3 * 4 * 167_178  # eight rounds, three sites; NVFlare's polling grows with the time of a job
    assert saved["up"] > 0.7 * models
    assert saved["down"] > 0.5 * models  # the first model is sent whole
