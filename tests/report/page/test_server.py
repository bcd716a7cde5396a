"""The served report: two addresses to be read, nothing else; made again when a round became safe."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Thread

import pytest

from fedreuse.report.page.server import LOOPBACK, Content, report_server, state_of
from fedreuse.store.directory import RunDirectory
from tests.report.runs import write_run


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    write_run(tmp_path / "a", is_complete=False)
    with report_server(Content([tmp_path], 3)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def _ask(port: int, path: str, way: str = "GET", host: str = "localhost") -> tuple[HTTPResponse, bytes]:
    asked = HTTPConnection(LOOPBACK, port, timeout=600)
    try:
        asked.request(way, path, headers={"Host": f"{host}:{port}"})
        answer = asked.getresponse()
        return answer, answer.read()
    finally:
        asked.close()


@pytest.mark.slow
def test_the_page_follows_its_runs(port: int, tmp_path: Path) -> None:
    answer, body = _ask(port, "/")
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-store"
    state = _ask(port, "/state")[1].decode()
    assert f'data-refresh="3" data-state="{state}"' in body.decode()
    assert _ask(port, "/")[1] == body, "nothing changed, nothing is made"
    RunDirectory(tmp_path / "a").append_metrics([{"round": 1}])
    later = _ask(port, "/state")[1].decode()
    assert later != state, "a round became safe"
    write_run(tmp_path / "b")
    assert _ask(port, "/state")[1].decode() not in (state, later)
    assert "2 runs" in _ask(port, "/")[1].decode()


@pytest.mark.slow
def test_it_is_read_only_and_for_this_machine(port: int, tmp_path: Path) -> None:
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for way in ("POST", "PUT", "DELETE"):
        assert _ask(port, "/", way)[0].status == 501
    assert _ask(port, "/../../etc/passwd")[0].status == 404
    assert _ask(port, "/", host="stranger.example")[0].status == 403
    answer, body = _ask(port, "/state", "HEAD")
    assert (answer.status, body) == (200, b"")
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_folder_without_a_round_says_so_and_looks_again(tmp_path: Path) -> None:
    page = Content([tmp_path], 3).page().decode()
    assert "no run directory" in page
    assert 'http-equiv="refresh" content="3"' in page
    assert state_of([tmp_path]) == state_of([tmp_path])
