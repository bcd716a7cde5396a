"""Events can travel between processes, as those of a study's runs do."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler

from fedreuse.core.events import Evaluated, Finished, RoundDone, Stop, Stopped
from fedreuse.core.local_trainer import Work


def test_events_can_be_sent() -> None:
    done = RoundDone({"round": 7, "fresh": 2}, {"fresh": 2}, Work(training_steps=3))
    for event in (done, Evaluated(1, {"validation_score": 0.5}), Finished({"rounds": 1}), Stopped(2, "why"), Stop("x")):
        assert len(ForkingPickler.dumps(event)) > 0


def test_a_round_knows_its_number() -> None:
    assert RoundDone({"round": 7}, {}, Work()).round_number == 7
