"""Privacy after a crash: the server is killed while clients evaluate a new model, and then a reply is lost.

`python -m tests.deploy.test_private_release FOLDER` is the server that is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message
from flwr.supercore.task_identity import TaskIdentity

from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import serve
from fedreuse.engine import ports
from fedreuse.learning.files.writing import at_home_task, write_clients
from fedreuse.store.directory import RunDirectory
from tests.deploy.fake_grid import FIRST_NODE, FakeGrid
from tests.tiny import plain, tiny

CLIENTS, KILLED_IN, LOST = 4, 2, 3
PARTS: dict[str, Any] = {
    "method": {"name": "averaging", "aggregate": {"name": "private_mean", "clip": 0.5, "noise": 2.0}},
    "rounds": {"count": 3, "cohort": CLIENTS, "evaluate_every": 1},
}


def serve_in(folder: Path, seen: list[tuple[int, np.ndarray]], kill: bool) -> RunDirectory:
    """Run or resume the server; `seen` gets the models of evaluations, in the order in which they leave the server."""
    simulation = tiny(task={"name": "digits", "clients": CLIENTS, "limit": 200}, **PARTS)
    shutil.rmtree(folder / "all", ignore_errors=True)
    written = write_clients(simulation.task, simulation.seed, folder / "all")
    home = tiny(**{**plain(**PARTS), "task": at_home_task(written, simulation.task.dataset.load(None))})
    flat = to_flat(home, Deployment(out=str(folder / "out"), resume=not kill, timeout_seconds=0.5))
    grid = FakeGrid(folder, flat, range(CLIENTS))
    for client in range(CLIENTS):
        grid.contexts[FIRST_NODE + client].node_config["data-path"] = str(folder / f"all/clients/{client}")
    evaluation = ports._evaluation

    def watched(method: Any, question: Any, state: Any, trainer: Any) -> Any:
        seen.append((trainer._round, np.array(question.groups["model"].values)))
        if kill and trainer._round == KILLED_IN:
            np.save(folder / "released.npy", seen[-1][1])
            os._exit(9)  # as SIGKILL: nothing is cleaned up
        return evaluation(method, question, state, trainer)

    def spoil(request: Message, reply: Message) -> Message | None:
        del request
        is_lost = not kill and reply.metadata.src_node_id == FIRST_NODE + LOST
        return None if is_lost and reply.metadata.message_type == "train" else reply

    ports._evaluation = watched
    grid.spoil = spoil
    try:
        return serve(grid, flat)
    finally:
        ports._evaluation = evaluation


@pytest.mark.slow
def test_a_model_that_left_the_server_is_not_made_again_with_other_replies(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.deploy.test_private_release", str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == 9
    released = np.load(tmp_path / "released.npy")
    seen: list[tuple[int, np.ndarray]] = []
    directory = serve_in(tmp_path, seen, kill=False)
    again = [model for number, model in seen if number == KILLED_IN]
    assert again
    # Before, the difference was the clipped update of the lost client, without noise.
    assert all(np.array_equal(model, released) for model in again)
    assert [row["round"] for row in directory.metrics()] == [1, 2, 3]
    assert all(row["validation_score"] is not None for row in directory.metrics())
    lost = [(event.round_number, event.client) for event in directory.events() if event.outcome == "lost"]
    assert lost == [(3, LOST)]  # round 2 was committed with all replies before anything left the server
    directory.verify()


if __name__ == "__main__":
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    serve_in(Path(sys.argv[1]), [], kill=True)
