"""What Flower adds: counts of objects, and a sum by hand."""

from __future__ import annotations

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
