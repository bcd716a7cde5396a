"""What Flower adds: counts of objects, and a sum by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedreuse.deploy.flower.own_traffic import OwnTraffic, objects_of

ARRAYS = ArrayRecord({"a": Array(np.zeros(2)), "b": Array(np.zeros(3))})


def test_objects() -> None:
    # the message, its dictionary, two records, and two arrays with their values
    assert objects_of(RecordDict({"arrays": ARRAYS, "config": ConfigRecord({"lr": 0.1})})) == 2 + 2 + 4


def test_by_hand() -> None:
    own = OwnTraffic()
    assert own.estimate({}) == {"down": 0, "up": 0}
    own.request(RecordDict({"config": ConfigRecord()}))
    # pull-messages 846 + 13, confirm 846 + 100, and three times pull-object 846 + 87
    assert own.estimate({})["up"] == 859 + 946 + 3 * 933
    own.idle_seconds = {7: 30.0}
    more = own.estimate({7: 40.0})["up"] - own.estimate({})["up"]
    assert more == 10 * 859 + 2 * 875 + 4 * 846 + 560  # ten polls, two heartbeats, the start


def test_the_guide_has_the_bytes_of_an_exchange() -> None:
    own, frame = OwnTraffic(), RecordDict({"fedreuse": ConfigRecord()})
    own.request(frame)
    own.reply(frame)
    took = own.estimate({})
    guide = (Path(__file__).parents[3] / "docs" / "how-to" / "flower-app.md").read_text()
    assert f"{took['up'] / 1000:.1f} kB up and {took['down'] / 1000:.1f} kB down" in guide


def test_waiting_is_the_part_that_depends_on_time() -> None:
    own = OwnTraffic(requests=2, idle_seconds={7: 30.0})
    waiting, seconds = own.waiting({7: 40.0}), {7: 40.0}
    assert waiting == {"up": 10 * 859 + 2 * 875, "down": 10 * 129 + 2 * 130}
    own.idle_seconds = {}
    assert own.waiting({}) == {"up": 0, "down": 0}
    assert own.estimate(seconds)["up"] > own.waiting(seconds)["up"]
