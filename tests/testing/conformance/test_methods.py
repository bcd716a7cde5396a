"""The suite of methods: each check fails for something that breaks the rule it is there for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.message import Event, Events, Message
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.model import to_groups
from fedreuse.core.needs import Needs
from fedreuse.core.tensors import Tensors, scale
from fedreuse.methods.averaging import AveragingServer, AveragingState, TrainingClient
from fedreuse.testing.cases import Case
from fedreuse.testing.conformance.methods import METHOD_CHECKS, check_card, check_method, check_table

CARDS = Path(__file__).parents[3] / "docs" / "methods"


@pytest.mark.slow
def test_an_honest_case_passes_everything() -> None:
    check_method(Case("fedavg"), CARDS)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch):
    """Register a method made of these halves for the time of a test."""

    def register(server: Any = None, client: Any = None, needs: Needs | None = None) -> Case:
        @dataclass(frozen=True)
        class Broken(MethodConfig):
            @property
            def needs(self) -> Needs:
                return needs or Needs()

            def halves(self, buffers: str) -> tuple[Any, Any]:
                return server or AveragingServer(), client or TrainingClient()

        methods.names()
        monkeypatch.setitem(methods._classes, "broken", Broken)
        return Case("broken")

    return register


def fails(check: str, case: Case, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        METHOD_CHECKS[check](case)


def test_a_hidden_counter_in_a_half_is_no_state(broken) -> None:
    class Forgetful(AveragingServer):
        """Counts rounds beside its state, so a resumed run counts anew."""

        def round(self, state: Any, cohort: Any) -> Any:
            object.__setattr__(self, "seen", getattr(self, "seen", 0) + 1)
            state, events = yield from super().round(state, cohort)
            weights = scale(state.model.weights, 1 + 0.01 * self.seen)
            return AveragingState(replace(state.model, weights=weights), state.step), events

    fails("resume equals uninterrupted", broken(server=Forgetful()), "models differ after round")


def test_randomness_that_is_no_stream(broken) -> None:
    @dataclass(frozen=True)
    class Dice(TrainingClient):
        def answer(self, request: Message, state: None, trainer: Any) -> tuple[Message, None]:
            reply, _ = super().answer(request, state, trainer)
            factor = np.random.default_rng().random()
            return Message("update", {**reply.groups, "update": scale(reply.groups["update"], factor)}), state

    fails("strict equals fast", broken(client=Dice()), "models differ")


def test_a_client_that_counts_on_replies_that_got_lost(broken) -> None:
    class Leaky(TrainingClient):
        """Remembers in itself what it sent, absorbed or not."""

        def answer(self, request: Message, state: None, trainer: Any) -> tuple[Message, None]:
            count = getattr(self, "count", 0) + 1
            object.__setattr__(self, "count", count)
            reply, _ = super().answer(request, state, trainer)
            return Message("update", {**reply.groups, "update": scale(reply.groups["update"], 1 / count)}), state

    fails("a late reply is a lost reply", broken(client=Leaky()), "models differ")


def test_messages_that_nobody_declared(broken) -> None:
    @dataclass(frozen=True)
    class Chatty(TrainingClient):
        def answer(self, request: Message, state: None, trainer: Any) -> tuple[Message, None]:
            reply, _ = super().answer(request, state, trainer)
            return Message("update", {**reply.groups, "control": reply.groups["update"]}), state

    class Patient(AveragingServer):
        """Takes any answer."""

        def round(self, state: Any, cohort: Any) -> Any:
            conversation = super().round(state, cohort)
            replies = yield {client: replace(asked, answers=()) for client, asked in next(conversation).items()}
            try:
                conversation.send(replies)
            except StopIteration as finished:
                return finished.value

    case = broken(server=Patient(), client=Chatty())
    fails("an unexpected reply is a lost reply", case, r"requests \['train'\] do not name their answers")
    fails("only declared messages cross", case, r"\('update', 'up', 'control'\)")
    METHOD_CHECKS["only declared messages cross"](replace(case, says=(*case.says, "update up control")))


def test_gradients_that_are_not_among_the_needs(broken) -> None:
    case = Case("dg_fedreuse", {"gate": "quantile"})

    class Secretive(TrainingClient):
        def answer(self, request: Message, state: None, trainer: Any) -> tuple[Message, None]:
            from fedreuse.core.local_trainer import BatchPlan
            from fedreuse.core.model import from_groups

            trainer.gradient(from_groups(request.groups, "model", trainer.schema), ("fc.bias",), BatchPlan(1, 2), "p")
            return super().answer(request, state, trainer)

    fails("needs are enforced", broken(client=Secretive()), r"Needs\(gradients=True\)")
    METHOD_CHECKS["needs are enforced"](case)


def test_needs_that_check_nothing(broken) -> None:
    class Lax(Needs):
        def check(self, *arguments: Any) -> None:
            pass

    fails("needs are enforced", broken(needs=Lax(full_participation=True)), "3 of 6 clients are accepted")
    METHOD_CHECKS["needs are enforced"](broken(needs=Needs(full_participation=True)))


def test_a_state_that_cannot_be_stored(broken) -> None:
    @dataclass(frozen=True)
    class Bag:
        model: Any
        junk: list[int]

    class Hoarder(AveragingServer):
        def init(self, model: Any, population: Any) -> Any:
            return Bag(model, [1])

        def model(self, state: Any) -> Any:
            return state.model

        def round(self, state: Any, cohort: Any) -> Any:
            after, events = yield from super().round(AveragingState(state.model), cohort)
            return Bag(after.model, [1]), events

    with pytest.raises(TypeError, match="cannot be part of a state"):
        METHOD_CHECKS["states are values"](broken(server=Hoarder()))


def test_events_for_everybody(broken) -> None:
    class Quiet(AveragingServer):
        def round(self, state: Any, cohort: Any) -> Any:
            state, events = yield from super().round(state, cohort)
            return state, Events(events.clients[1:])

    fails("strict equals fast", broken(server=Quiet()), "were selected")


def test_a_model_that_moves_although_nobody_answered(broken) -> None:
    class Restless(AveragingServer):
        def round(self, state: Any, cohort: Any) -> Any:
            replies = yield dict.fromkeys(cohort.clients, Message("train", to_groups(state.model, "model")))
            weights = scale(state.model.weights, 1.01)
            events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
            return AveragingState(replace(state.model, weights=weights), state.step), Events(events)

    fails("a round without replies changes nothing", broken(server=Restless()), "answered in round 3")


def test_swallowed_numbers_are_noticed(broken) -> None:
    @dataclass(frozen=True)
    class Soother(TrainingClient):
        """Turns what is not finite into zeros, so that nobody sees the divergence."""

        def answer(self, request: Message, state: None, trainer: Any) -> tuple[Message, None]:
            reply, _ = super().answer(request, state, trainer)
            update = reply.groups["update"]
            calm = Tensors(update.schema, np.nan_to_num(update.values))
            return Message("update", {**reply.groups, "update": calm}), state

    fails("non-finite numbers are refused", broken(client=Soother()), "was absorbed as fresh")


def test_a_kind_of_answer_in_two_forms(broken) -> None:
    class Lenient(AveragingServer):
        """Takes updates without counters, too."""

        def round(self, state: Any, cohort: Any) -> Any:
            conversation = super().round(state, cohort)
            asked = next(conversation)
            (whole,) = next(iter(asked.values())).answers
            bare = replace(whole, groups={name: whole.groups[name] for name in ("update", "buffers")})
            replies = yield {client: replace(request, answers=(whole, bare)) for client, request in asked.items()}
            try:
                conversation.send(replies)
            except StopIteration as finished:
                return finished.value

    fails("an unexpected reply is a lost reply", broken(server=Lenient()), r"allow .*\['update without counters'\]")


# the table and the cards


def test_a_method_without_a_case_and_a_case_without_a_card(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"methods without a case in the table: \["):
        check_table([Case("fedavg")], CARDS)
    with pytest.raises(AssertionError, match=r"methods without a card in"):
        check_table([Case(name) for name in methods.names()], tmp_path)


def test_a_card_that_lists_too_little(tmp_path: Path) -> None:
    (tmp_path / "fedavg.md").write_text(
        "## Messages\n| kind | direction | groups | when |\n|---|---|---|---|\n| train | down | model | always |\n"
    )
    with pytest.raises(AssertionError, match=r"does not list .*\('update', 'up', 'update'\)"):
        check_card(Case("fedavg"), tmp_path)
