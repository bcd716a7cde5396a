"""Whose estimates the server averages: the cohort's, as FedAvg; or everybody's, as MIFA."""

from __future__ import annotations

import numpy as np

from fedreuse.core.cohort import Cohort
from fedreuse.core.population import Population
from fedreuse.methods.averaging import AveragingServer
from fedreuse.methods.estimates import estimates_server
from fedreuse.methods.server_memory import MemoryServer
from tests.servers import start, step, weight

TWO = Population(np.array([10, 30]))


def test_the_cohorts_by_hand() -> None:
    # client 0 sends 4, then client 1 sends 8: each counts fully in its round; steps of 1/2
    server = estimates_server("participants", 0.5)
    assert isinstance(server, AveragingServer)
    _, state, _ = step(server, start(server, TWO), Cohort(1, (0,), 1, population=TWO), {0: 4.0})
    _, state, _ = step(server, state, Cohort(2, (1,), 1, population=TWO), {1: 8.0})
    assert weight(server, state) == 2.0 + 4.0


def test_everybodys_by_hand() -> None:
    # 4/4 = 1, then 4/4 + 8 * 3/4 = 7; steps of 1/2
    server = estimates_server("all", 0.5)
    assert isinstance(server, MemoryServer)
    _, state, _ = step(server, start(server, TWO), Cohort(1, (0,), 1, population=TWO), {0: 4.0})
    _, state, _ = step(server, state, Cohort(2, (1,), 1, population=TWO), {1: 8.0})
    assert weight(server, state) == 0.5 + 3.5
