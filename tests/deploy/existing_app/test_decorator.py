"""The decorator: other strategies see the app as it was; ours is answered, or refused in words."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.config.recipe import Recipe
from fedreuse.core.registry import parse
from fedreuse.deploy.existing_app.agreement import Agreement
from fedreuse.deploy.existing_app.array_layout import ArrayLayout
from fedreuse.deploy.existing_app.decorator import AGREEMENT, MISSING, PARTITION, REFUSED, fedreuse_train
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of, has_frame, others_of
from fedreuse.testing.quadratic import QuadraticFederation
from tests.deploy.app_grid import record_of

FEDERATION = QuadraticFederation.draw(2)
LAYOUT = ArrayLayout.of(record_of(FEDERATION))


def untrained(message: Message, context: Context) -> Message:
    """An app that learns nothing."""
    content = RecordDict({"arrays": message.content["arrays"], "metrics": MetricRecord({"num-examples": 3})})
    return Message(content=content, reply_to=message)


def told(method: object = "fedavg") -> Frame:
    agreement = Agreement(parse(Recipe, {"method": method}, ""), LAYOUT, 5)
    return Frame("run1", facts={AGREEMENT: True}, body=agreement.to_bytes())


@pytest.fixture
def ask(tmp_path: Path):
    context = Context(
        run_id=1, node_id=9, node_config={"partition-id": 4, "store": str(tmp_path)}, state=RecordDict(), run_config={}
    )

    def asked(frame: Frame, function=untrained, decorate=fedreuse_train) -> Message:
        message = Message(content_of(frame), 9, "train")
        message.content["config"] = ConfigRecord({"server-round": 1})
        return decorate(function)(message, context)

    return asked


def request() -> bytes:
    from fedreuse.compression.codecs.dense import Dense
    from fedreuse.core.model import to_groups
    from fedreuse.core.randomness import stream

    groups = to_groups(FEDERATION.initial, "model")
    parcels = {name: Dense().encode(group, group.schema, stream(0, "x")) for name, group in groups.items()}
    return Envelope("train", 1, 1, parcels=parcels).to_bytes()


def test_other_strategies_messages_reach_the_function_untouched() -> None:
    message = Message(RecordDict({"arrays": ArrayRecord(), "config": ConfigRecord()}), 1, "train")
    seen = []
    decorated = fedreuse_train(lambda message, context: seen.append((message, context)))  # type: ignore[func-returns-value, arg-type, return-value]
    decorated(message, "context")  # type: ignore[arg-type]
    assert seen == [(message, "context")]
    assert not has_frame(message)


def test_a_conversation(ask) -> None:
    assert frame_of(ask(told())).facts == {PARTITION: 4}
    reply = ask(Frame("run1", 0, {}, request()))
    envelope = Envelope.from_bytes(frame_of(reply).body, LAYOUT.schema)
    assert (envelope.kind, envelope.exchange) == ("update", 1)
    assert set(others_of(reply)) == {"metrics"}  # arrays travel inside the envelope alone
    assert others_of(reply)["metrics"]["num-examples"] == 3
    assert frame_of(reply).client == 0


def test_the_function_sees_what_flower_would_have_given_it(ask) -> None:
    seen = []

    def curious(message: Message, context: Context) -> Message:
        seen.append((set(message.content), message.content["config"]["server-round"], message.content["arrays"]))
        return untrained(message, context)

    ask(told())
    ask(Frame("run1", 0, {}, request()), curious)
    ((records, number, arrays),) = seen
    assert (records, number) == ({"arrays", "config"}, 1)
    assert {name: array.numpy().tobytes() for name, array in arrays.items()} == {
        name: array.numpy().tobytes() for name, array in record_of(FEDERATION).items()
    }


def test_without_an_agreement_the_client_asks_for_it(ask) -> None:
    assert frame_of(ask(Frame("run1", 0, {}, request()))).facts == {MISSING: True}


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (told("scaffold"), "method scaffold corrects every local step"),
        (told("dg_fedreuse"), "method dg_fedreuse needs gradients"),
        (Frame("../run", facts={AGREEMENT: True}), "is not the name of a run"),
        (Frame("run1", facts={AGREEMENT: True}, body=b"{"), "not an agreement"),
    ],
)
def test_what_cannot_be_is_said_in_words(ask, frame: Frame, reason: str) -> None:
    assert reason in frame_of(ask(frame)).facts[REFUSED]


def test_with_a_network_a_method_that_corrects_is_accepted(ask) -> None:
    assert frame_of(ask(told("scaffold"), decorate=fedreuse_train(network=object))).facts == {PARTITION: 4}
    facts = frame_of(ask(told("dg_fedreuse"), decorate=fedreuse_train(network=object))).facts
    assert "without network and loss" in facts[REFUSED]


def test_an_exception_of_the_function_is_its_own(ask) -> None:
    def broken(message: Message, context: Context) -> Message:
        raise ZeroDivisionError("theirs")

    ask(told())
    with pytest.raises(ZeroDivisionError, match="theirs"):
        ask(Frame("run1", 0, {}, request()), broken)


@pytest.mark.slow
def test_the_client_side_loads_neither_torch_nor_the_server() -> None:
    code = (
        "import sys; from fedreuse.deploy import fedreuse_train\n"
        "heavy = {'torch', 'pyarrow', 'matplotlib', 'sklearn', 'fedreuse.deploy.existing_app.strategy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
