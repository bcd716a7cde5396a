"""Cases and cards: what is declared, and how a card's table is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.testing.cases import SCORED, Case, read_messages

CARD = """---
name: example
---
## Messages

Some words.

| kind | direction | groups | when |
|---|---|---|---|
| `train` | down | model, buffers | every round |
| train | down | - | after a score |
| score | up | - | when asked |
| update, silence | up | `update` | after training |

## State
| kind | direction | groups | when |
|---|---|---|---|
| other | up | x | never |
"""


def test_a_method_is_built_as_a_run_builds_it() -> None:
    method = Case("fedavg", uplink={"name": "top_k", "ratio": 0.5}, downlink="nonzero", buffers="as_weights").build()
    assert method.uplink == dict.fromkeys(("update", "buffers", "counters"), Plain(TopK(0.5)))
    assert list(method.downlink) == ["model"]
    assert Case("fedavg", uplink="error_feedback").build().uplink == {"update": ErrorFeedback(TopK(0.2))}
    assert dict(Case("fedavg").build().uplink) == {}
    own = Case("fedavg", other_uplinks={"buffers": "natural"}, other_downlinks={"counters": "dense"})
    assert (list(own.build().uplink), list(own.build().downlink)) == (["buffers"], ["counters"])
    assert own.id == "fedavg buffers natural down counters dense"
    assert Case("fedprox", {"mu": 0.5}).build().client.mu == 0.5


def test_mistakes_in_a_case_are_those_of_a_configuration() -> None:
    with pytest.raises(ConfigError, match="did you mean 'fedavg'"):
        Case("fedavgg").build()
    with pytest.raises(ConfigError, match=r"method\.mew: unknown key"):
        Case("fedprox", {"mew": 1}).build()


def test_what_a_case_declares() -> None:
    assert Case("x", says=("train down model buffers", "score up")).declared == {
        ("train", "down", ""),
        ("train", "down", "model"),
        ("train", "down", "buffers"),
        ("score", "up", ""),
    }
    assert ("score", "up", "") in Case("x", says=SCORED).declared


def test_ids_tell_cases_apart() -> None:
    assert Case("fedavg").id == "fedavg"
    assert Case("fedavg", {"weighting": "ht"}, {"name": "top_k", "ratio": 0.3}, "nonzero", "as_weights").id == (
        "fedavg weighting=ht top_k,ratio=0.3 down nonzero as_weights"
    )


def test_a_card_is_read(tmp_path: Path) -> None:
    card = tmp_path / "example.md"
    card.write_text(CARD)
    assert read_messages(card) == {
        ("train", "down", ""),
        ("train", "down", "model"),
        ("train", "down", "buffers"),
        ("score", "up", ""),
        ("update", "up", ""),
        ("update", "up", "update"),
        ("silence", "up", ""),
        ("silence", "up", "update"),
    }


def test_a_card_may_refer_to_another(tmp_path: Path) -> None:
    (tmp_path / "example.md").write_text(CARD)
    (tmp_path / "other.md").write_text("## Messages\n\nAs [`example`](example.md).\n\n## State and cost\n")
    assert read_messages(tmp_path / "other.md") == read_messages(tmp_path / "example.md")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is missing: every method has a card"),
        ("# A card\n", "has no section `## Messages`"),
        ("## Messages\nnothing\n", "must have columns kind, direction, groups, when"),
        ("## Messages\n| what | who |\n|---|---|\n| a | b |\n", "must have columns"),
    ],
)
def test_a_card_that_cannot_be_read_fails(tmp_path: Path, text: str | None, message: str) -> None:
    card = tmp_path / "example.md"
    if text is not None:
        card.write_text(text)
    with pytest.raises(AssertionError, match=message):
        read_messages(card)


@pytest.mark.parametrize(
    ("method", "card"),
    [("fedavg", "fedavg.md"), ("fed_cap:FedCap", "fed_cap.md"), ("mine.methods.fed_cap:FedCap", "fed_cap.md")],
)
def test_a_cards_name_is_that_of_the_method_or_of_its_module(method: str, card: str) -> None:
    assert Case(method).card == card
