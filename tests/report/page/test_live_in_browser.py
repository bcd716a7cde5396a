"""A served page in a real Chromium while its run goes on: it follows round by round to the end, without an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any

import pytest

from fedreuse import run
from fedreuse.report.page.server import Content, report_server
from fedreuse.runs.listeners import Listener, RoundDone
from tests.report.page.browser import chromium, wait_for, why_not
from tests.tiny import tiny

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]
ROUNDS = 6
SEEN = """
const plot = document.body && document.body.dataset.drawn && document.querySelector("[data-figure=trajectories]");
const line = plot && plot.data && plot.data.find(one => one.meta === 0);
"""


class InSteps(Listener):
    """Lets a run do a round when it is told to."""

    def __init__(self) -> None:
        self.may_go_on = Semaphore(2)

    def round_done(self, event: RoundDone) -> None:
        self.may_go_on.acquire()


@contextmanager
def served(place: Path) -> Iterator[str]:
    """The address of a page that looks every second."""
    with report_server(Content([place], 1)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def rounds_shown(page: Any, at_least: int) -> Any:
    return wait_for(page, SEEN + f"return line && Math.max(...line.x) >= {at_least} && line.x.length")


def test_a_page_follows_a_run_to_its_end(tmp_path: Path) -> None:
    steps, place = InSteps(), tmp_path / "run"
    config = tiny(rounds={"count": ROUNDS, "evaluate_every": 1})
    going = Thread(target=lambda: run(config, place, listeners=[steps]))
    going.start()
    try:
        with chromium(tmp_path) as page, served(tmp_path) as address:
            page.get(address)
            assert rounds_shown(page, 1), "rounds appear while the run waits"
            assert wait_for(page, SEEN + "return line && line.name.includes('running')")
            page.execute_script("document.querySelector('#filter').value = 'fed';"
                                "document.querySelector('#filter').dispatchEvent(new Event('input'))")  # fmt: skip
            for number in range(3, ROUNDS + 1):
                steps.may_go_on.release()
                assert rounds_shown(page, number - 1), number
            steps.may_go_on.release(ROUNDS)
            assert rounds_shown(page, ROUNDS)
            assert wait_for(page, SEEN + "return line && !line.name.includes('running')"), "it has come to its end"
            assert page.execute_script("return document.querySelector('#filter').value") == "fed", (
                "what was chosen stays"
            )
            assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
    finally:
        steps.may_go_on.release(ROUNDS)
        going.join()
