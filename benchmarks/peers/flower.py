"""Flower's simulation engine (Ray) on the same work, with its FedAvg and as many clients at a time as there are cores.

Runs in an environment of its own, with torch, numpy and flwr; of this package it imports its neighbours alone.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from fedreuse.lab.bench.peer_work import PeerWork, load_once
from fedreuse.lab.bench.turn import Turn

__all__ = ["main"]


class _Rounds(FedAvg):
    """FedAvg over given cohorts; a round begins when it is its turn."""

    def __init__(self, turn: Turn, work: PeerWork) -> None:
        super().__init__(fraction_evaluate=0.0)
        self._turn, self._work = turn, work

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        nodes = sorted(grid.get_node_ids())
        self._turn.wait()
        for client in self._work.cohorts[server_round - 1].tolist():
            record = RecordDict({"arrays": arrays, "config": ConfigRecord({**config, "client": client})})
            yield Message(content=record, message_type="train", dst_node_id=nodes[client])

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> tuple[Any, Any]:
        arrived = list(replies)
        failed = [str(reply.error) for reply in arrived if reply.has_error()]
        if failed:
            raise RuntimeError(f"round {server_round}: {failed[0]}")
        result = super().aggregate_train(server_round, arrived)
        cohort = self._work.cohorts[server_round - 1]
        self._turn.done(examples=self._work.examples(cohort), clients=len(cohort))
        return result


def _client_app(path: str, is_tuned: bool) -> ClientApp:
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        del context
        torch.set_num_threads(1)
        work = load_once(path)
        network = work.network(is_tuned)
        network.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
        client = message.content.config_records["config"]["client"]
        assert isinstance(client, int)
        examples = work.client(client, is_tuned)
        work.train(network, examples)
        metrics = MetricRecord({"num-examples": len(examples[1])})
        content = RecordDict({"arrays": ArrayRecord(network.state_dict()), "metrics": metrics})
        return Message(content=content, reply_to=message)

    return app


def main(task: Mapping[str, Any]) -> None:
    """Play all rounds of the work."""
    turn = Turn()
    work, is_tuned = PeerWork.load(task["work"]), task["is_tuned"]
    server = ServerApp()

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        del context
        arrays = ArrayRecord(work.network(is_tuned).state_dict())
        _Rounds(turn, work).start(grid=grid, initial_arrays=arrays, num_rounds=len(work.cohorts))

    # "local": do not join a cluster that already runs on this machine
    ray = {"address": "local", "num_cpus": task["processes"], "include_dashboard": False, "logging_level": "error"}
    backend = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": ray}
    try:
        run_simulation(server, _client_app(task["work"], is_tuned), len(work.offsets) - 1, backend_config=backend)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # Flower's server thread waits for clients without end, and would keep a failed process alive


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
