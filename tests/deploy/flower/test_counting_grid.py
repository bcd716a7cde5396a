"""The counting grid: what crosses is what the inner grid carried, byte for byte."""

from __future__ import annotations

from pathlib import Path

from flwr.app import Message, RecordDict
from flwr.serverapp.strategy import FedAvg

from fedreuse.deploy.existing_app.strategy import FedReuseStrategy
from fedreuse.deploy.flower.counting_grid import CountingGrid
from fedreuse.testing.quadratic import QuadraticFederation
from tests.deploy.app_grid import FIRST_NODE, AppGrid, quadratic_app, record_of

FEDERATION = QuadraticFederation.draw(3, has_buffers=False)


def test_both_strategies_are_counted_as_they_cross(tmp_path: Path) -> None:
    for strategy in (FedAvg(), FedReuseStrategy()):
        inner = AppGrid(tmp_path, quadratic_app(FEDERATION), 3)
        grid = CountingGrid(inner)
        strategy.start(grid, record_of(FEDERATION), 2)
        keys = {(kind, way) for kind, way, _ in inner.crossed}
        assert keys == {(kind, way) for kind in ("train", "evaluate") for way in ("down", "up")}
        for key in keys:
            sizes = [size for kind, way, size in inner.crossed if (kind, way) == key]
            assert (grid.num_bytes[key], grid.num_messages[key]) == (sum(sizes), len(sizes))


def test_the_rest_is_the_inner_grids(tmp_path: Path) -> None:
    inner = AppGrid(tmp_path, quadratic_app(FEDERATION), 3)
    grid = CountingGrid(inner)
    assert sorted(grid.get_node_ids()) == [FIRST_NODE, FIRST_NODE + 1, FIRST_NODE + 2]
    assert {info.node_id for info in grid.get_nodes()} == set(grid.get_node_ids())
    inner.create_message = lambda *args, **kwargs: Message(*args, **kwargs)  # type: ignore[method-assign]
    assert grid.create_message(RecordDict(), 5, "train").metadata.dst_node_id == 5
    assert grid.run is None
    grid.set_run(None)
