"""A server's end: the bytes of the engine, and both ends equal after any sequence of faults."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fedreuse import ClientChannel, ConfigError, ServerChannel
from fedreuse.channel import AskAgain, SendBack
from fedreuse.channel.server_channel import number_of
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import RunDirectoryError, WireError
from fedreuse.core.message import Message
from fedreuse.core.model import Model, from_groups, to_groups
from fedreuse.core.tensors import to_arrays
from fedreuse.core.values import arrays_of
from fedreuse.engine.ports import ServerPort, client_answer
from fedreuse.engine.rounds import mark_durable
from fedreuse.engine.state.records import ClientRecord, ServerRecord
from fedreuse.testing.quadratic import QuadraticFederation
from tests.federation import build

Arrays = dict[str, np.ndarray]
TOP_K: Mapping[str, Any] = {"name": "top_k", "ratio": 0.25}
EF21: Mapping[str, Any] = {
    "uplink": {"update": {"name": "ef21", "codec": TOP_K}},
    "downlink": {"model": {"name": "delta", "codec": TOP_K, "start": "initial"}},
}
QUICK_DISK = "/dev/shm" if Path("/dev/shm").is_dir() else None  # every message is flushed to the disk
LEAN: Mapping[str, Any] = {"name": "lean", "budget": 0.9, "rounds": 200, "clients": 1}


def draw(seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    return {
        "w": rng.normal(size=(8, 5)).astype(np.float32),
        "bn.running_var": np.ones(5, np.float32),
        "bn.num_batches_tracked": np.array(seed),
    }


def same(left: Arrays, right: Arrays) -> bool:
    return left.keys() == right.keys() and all(left[name].tobytes() == right[name].tobytes() for name in left)


def trained(arrays: Arrays, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    moved = {
        name: array + (rng.normal(size=array.shape).astype(array.dtype) if array.dtype.kind == "f" else 1)
        for name, array in arrays.items()
    }
    return {**moved, "bn.running_var": np.abs(moved["bn.running_var"]) + 1}


# --- the same bytes as the engine ---


@pytest.mark.parametrize("uplink", [{"name": "error_feedback", "codec": TOP_K}, {"name": "rand_k", "ratio": 0.3}])
def test_the_envelopes_are_those_of_the_engine(uplink: Any) -> None:
    federation, downlink = QuadraticFederation.draw(2), {"name": "delta", "codec": "nonzero"}
    method = build("fedavg", uplink, downlink=downlink)
    coding = {"uplink": {"update": uplink}, "downlink": {"model": downlink}}
    server, client = ServerChannel(coding, seed=federation.seed), ClientChannel("1")
    record, memory, model = ServerRecord(None), ClientRecord(), federation.initial
    for number in (1, 2, 3):
        port = ServerPort(method, record, number, federation.schema, federation.seed)
        request = port.pack({1: Message("train", to_groups(model, "model"))})[1]
        reply, memory = client_answer(method, request, memory, federation.trainer(1, number), 1)
        replies, refused = port.unpack({1: reply})
        assert not refused
        record = mark_durable(port.finish(None))
        data = server.encode(named(model), "1")
        assert data.endswith(request.to_bytes())
        assert len(data) == len(request.to_bytes()) + 8 or number == 1
        assert same(client.decode(data), named(model))
        end = federation.trainer(1, number).train(model).model
        answer = client.encode(named(end))
        assert answer[8:] == reply.to_bytes()
        update = from_groups(replies[1].groups, "update", federation.schema)
        assert same(server.decode(answer, "1", as_update=True), named(update))
        model = end


def named(model: Model) -> Arrays:
    parts = (model.weights, model.buffers, model.counters)
    return {name: array for part in parts for name, array in to_arrays(part).items()}


def test_a_name_of_digits_is_a_number() -> None:
    assert [number_of(name) for name in ("0", "41")] == [0, 41]
    assert number_of("site-1") != number_of("site-2")
    assert 0 <= number_of("9" * 30) < 1 << 31


# --- what comes back ---


def test_exact_returns_every_bit_both_ways() -> None:
    server, client = ServerChannel("exact"), ClientChannel("a")
    model: Arrays = {**draw(), "half": np.float16([1, 2]), "flags": np.array([True, False]), "wide": np.ones(3)}
    # 1e-9 beside 1: received + (trained - received) is rounded to 0
    model["w"][0] = 1
    for seed in range(3):
        received = client.decode(server.encode(model, "a"))
        assert same(received, model)
        sent = {**trained(received, seed), "flags": ~received["flags"], "wide": received["wide"] * 1.1}
        sent["w"][0] = 1e-9
        sent["half"] = np.float16([seed, 0.1])
        model = server.decode(client.encode(sent), "a")
        assert same(model, sent)


def test_an_update_returns_as_it_was_given() -> None:
    server, client = ServerChannel("exact"), ClientChannel("a")
    client.decode(server.encode(draw(), "a"))
    update = trained(draw(), 5)
    assert same(server.decode(client.encode(update, is_update=True), "a", as_update=True), update)


def test_top_k_by_hand() -> None:
    server, client = ServerChannel({"name": "top_k", "ratio": 0.5}), ClientChannel("a")
    client.decode(server.encode({"w": np.float32([1, 1])}, "a"))
    # of the update (3, 4) the larger half is sent, and 3 is kept
    assert server.decode(client.encode({"w": np.float32([4, 5])}), "a")["w"].tolist() == [1, 5]
    received = client.decode(server.encode({"w": np.float32([1, 5])}, "a"))
    # the update (1, 2) and the residual (3, 0) give (4, 2): 4 is sent
    update = server.decode(client.encode({"w": received["w"] + np.float32([1, 2])}), "a", as_update=True)
    assert update["w"].tolist() == [4, 0]


def test_a_confirmation_moves_the_model_that_the_client_holds() -> None:
    server, client = ServerChannel("exact"), ClientChannel("a")
    client.decode(server.encode(draw(), "a"))
    whole = len(server.encode(draw(), "a"))
    client.decode(server.encode(draw(), "a"))
    assert server.decode(client.encode(), "a") == {}
    assert len(server.encode(draw(), "a")) < whole / 2  # no agreement, no weights


def test_both_ends_may_make_the_first_model_themselves() -> None:
    start = draw()
    server, knows = ServerChannel("exact", initial=start), ClientChannel("a", initial=start)
    assert same(knows.decode(server.encode(start, "a")), start)
    assert len(server.encode(start, "a")) < len(ServerChannel("exact").encode(start, "a")) - start["w"].nbytes / 2
    stranger = ClientChannel("b", initial={**start, "w": start["w"] + 1})
    with pytest.raises(SendBack) as told:
        stranger.decode(server.encode(start, "b"))
    with pytest.raises(AskAgain, match="does not hold"):
        server.decode(told.value.reply, "b")
    assert same(stranger.decode(server.encode(start, "b")), start)


# --- what is refused ---


def test_a_reply_of_another_client_or_a_second_copy_is_refused() -> None:
    server, one, two = ServerChannel("exact"), ClientChannel("one"), ClientChannel("two")
    one.decode(server.encode(draw(), "one"))
    two.decode(server.encode(draw(), "two"))
    reply = one.encode(draw(1))
    with pytest.raises(WireError, match="does not answer the open request to two"):
        server.decode(reply, "two")
    server.decode(reply, "one")
    with pytest.raises(WireError, match="no request to one is open"):
        server.decode(reply, "one")


def test_numbers_that_are_not_finite_are_refused_and_the_request_stays_open() -> None:
    server, client = ServerChannel("exact", max_norm=100), ClientChannel("a")
    request = server.encode(draw(), "a")
    client.decode(request)
    bad = {**draw(), "w": np.full((8, 5), np.nan, np.float32)}
    with pytest.raises(WireError, match="a: group update holds infinite or undefined numbers"):
        server.decode(client.encode(bad), "a")
    client.decode(server.encode(draw(), "a"))
    with pytest.raises(WireError, match="above max_norm 100"):
        server.decode(client.encode({**draw(), "w": np.full((8, 5), 1e3, np.float32)}), "a")
    client.decode(server.encode(draw(), "a"))
    assert same(server.decode(client.encode(draw(2)), "a"), draw(2))


def test_another_model_is_refused_with_the_first_difference(tmp_path: Path) -> None:
    with ServerChannel("exact", tmp_path) as server:
        server.encode(draw(), "a")
    with ServerChannel("exact", tmp_path) as server, pytest.raises(ConfigError, match=r"w is float32 \(2,\), expected"):
        server.encode({**draw(), "w": np.zeros(2, np.float32)}, "a")


def test_a_folder_of_another_coding_or_end_is_refused(tmp_path: Path) -> None:
    with ServerChannel("exact", tmp_path) as server:
        server.encode(draw(), "a")
        with pytest.raises(RunDirectoryError, match="is in use by process"):
            ServerChannel("exact", tmp_path)
    with pytest.raises(ConfigError, match="was written with the coding Exact"):
        ServerChannel(TOP_K, tmp_path)
    with pytest.raises(RunDirectoryError, match="holds the state of the server, but was opened as client a"):
        ClientChannel("a", tmp_path)
    ServerChannel("exact", tmp_path).close()


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".a", "a" * 65, 3])
def test_a_name_must_be_that_of_a_file(name: Any) -> None:
    with pytest.raises(ConfigError, match="a client's name has"):
        ServerChannel().encode(draw(), name)


def test_a_damaged_client_state_starts_over(tmp_path: Path) -> None:
    server, client = ServerChannel("exact", tmp_path), ClientChannel("a")
    client.decode(server.encode(draw(), "a"))
    server.decode(client.encode(draw(1)), "a")
    state = tmp_path / "a.safetensors"
    state.write_bytes(state.read_bytes()[:-9])
    assert same(client.decode(server.encode(draw(2), "a")), draw(2))
    assert same(server.decode(client.encode(draw(3)), "a"), draw(3))


# --- any sequence of faults ---


class Faults(RuleBasedStateMachine):
    """One server and one client in folders; every message may be lost, repeated, late or replayed."""

    coding: Any = "exact"

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(dir=QUICK_DISK))
        self.requests: list[tuple[bytes, Arrays]] = []
        self.replies: list[tuple[bytes, Arrays]] = []
        self.seed = 0
        self.model = draw()
        self.copies: dict[str, Path] = {}

    @initialize()
    def begin(self) -> None:
        self.server = ServerChannel(self.coding, self.home / "server")
        self.client = ClientChannel("a", self.home / "client")

    def teardown(self) -> None:
        self.server.close()
        self.client.close()
        shutil.rmtree(self.home)

    @rule()
    def ask(self) -> None:
        self.seed += 1
        self.model = trained(self.model, self.seed)
        self.requests.append((self.server.encode(self.model, "a"), self.model))

    @rule(back=st.integers(1, 6))
    def arrive(self, back: int) -> None:
        """Deliver the last request, or one that was delivered before or is late."""
        if not self.requests:
            return
        data, model = self.requests[-min(back, len(self.requests))]
        try:
            received = self.client.decode(data)
        except SendBack as error:
            former = (sent for data, sent in self.replies if data == error.reply)  # a repeated request
            self.replies.append((error.reply, next(former, {})))
            return
        if self.coding == "exact":
            assert same(received, model)
        if back == 1 and (request := self.server._open.get("a")):
            held = request.port.delivered(number_of("a"))
            assert received["w"].tobytes() == held["model"].values.tobytes()
        self.seed += 1
        sent = trained(received, self.seed)
        self.replies.append((self.client.encode(sent), sent))

    @rule(back=st.integers(1, 6))
    def hear(self, back: int) -> None:
        if not self.replies:
            return
        data, sent = self.replies[-min(back, len(self.replies))]
        try:
            arrays = self.server.decode(data, "a")
        except (WireError, AskAgain):
            return
        assert sent or not arrays
        if self.coding == "exact" and sent:
            assert same(arrays, sent)

    @rule(end=st.sampled_from(["server", "client"]))
    def copy(self, end: str) -> None:
        self.copies[end] = Path(tempfile.mkdtemp(dir=self.home)) / end
        shutil.copytree(self.home / end, self.copies[end])

    @rule(end=st.sampled_from(["server", "client"]), how=st.sampled_from(["restart", "lose", "restore"]))
    def fall(self, end: str, how: str) -> None:
        getattr(self, end).close()
        if how == "lose" or (how == "restore" and end in self.copies):
            shutil.rmtree(self.home / end)
            if how == "restore":
                shutil.copytree(self.copies[end], self.home / end)
        if end == "server":
            self.server = ServerChannel(self.coding, self.home / "server")
        else:
            self.client = ClientChannel("a", self.home / "client")

    @invariant()
    def both_ends_are_equal(self) -> None:
        """The client holds the states that the server assumes, or reports that they are lost."""
        if not hasattr(self, "server") or self.server._terms is None:
            return
        terms, agreement = self.server._terms, self.client._agreement
        peer = self.server._peer("a")
        contact = peer.contact
        if agreement is None or agreement.session != terms.agreement.session:
            return
        site = self.client._site
        if site.answered.get(contact.ack, (0, 0))[1] != peer.last_reply or not contact.ack:
            return  # the tags differ: it reports that it lost its state
        memory = site.record.memories[contact.ack]
        for ours, theirs in ((contact.downlink, memory.downlink), (contact.uplink, memory.uplink)):
            for group in ours.keys() & theirs.keys():
                if group == "update" and not isinstance(self.coding, dict | Mapping):
                    continue
                left, right = list(arrays_of(ours[group])), list(arrays_of(theirs[group]))
                assert [array.tobytes() for array in left] == [array.tobytes() for array in right]

    @rule()
    def settle(self) -> None:
        """Whatever happened: a few exchanges without faults bring both ends together."""
        for _ in range(3):
            self.ask()
            data, model = self.requests[-1]
            try:
                received = self.client.decode(data)
            except SendBack as error:
                with pytest.raises(AskAgain):
                    self.server.decode(error.reply, "a")
                continue
            self.seed += 1
            sent = trained(received, self.seed)
            arrays = self.server.decode(self.client.encode(sent), "a")
            if self.coding == "exact":
                assert same(received, model)
                assert same(arrays, sent)
            return
        raise AssertionError("the ends do not come together")


class LossyFaults(Faults):
    """The same with state at both ends of both links."""

    coding: Any = EF21


class LeanFaults(Faults):
    """The same with a byte budget."""

    coding: Any = LEAN


QUICK = settings(max_examples=12, stateful_step_count=20, deadline=None)
for machine in (Faults, LossyFaults, LeanFaults):
    machine.TestCase.settings = QUICK
TestExact, TestLossy, TestLean = Faults.TestCase, LossyFaults.TestCase, LeanFaults.TestCase


@pytest.mark.slow
def test_channels_import_no_torch() -> None:
    import subprocess
    import sys

    program = (
        "import sys, numpy as np; from fedreuse import ClientChannel, ServerChannel\n"
        "s, c = ServerChannel(), ClientChannel('a'); c.decode(s.encode({'w': np.float32([1])}, 'a'))\n"
        "print([name for name in ('torch', 'flwr', 'pandas') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_frame_of_a_later_message_has_eight_bytes() -> None:
    server, client = ServerChannel("exact"), ClientChannel("a")
    client.decode(server.encode(draw(), "a"))
    server.decode(client.encode(draw(1)), "a")
    assert Envelope.address_of(server.encode(draw(1), "a")[8:])[:2] == (2, 2)
