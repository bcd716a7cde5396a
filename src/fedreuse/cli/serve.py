"""`fedreuse serve`: serve the report of runs in progress to a browser, with automatic refresh."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app, on_interrupt
from fedreuse.cli.output import say, show_json
from fedreuse.core.errors import UserError

__all__ = ["serve_command"]


@app.command("serve", epilog="Example: fedreuse serve runs/demo --port 8765")
def serve_command(
    context: typer.Context,
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run directories, studies or folders of runs.", show_default=False, metavar="FOLDER..."),
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 chooses a free one.")] = 8765,
    every: Annotated[int, typer.Option("--every", min=1, help="Seconds between two updates of the page.")] = 5,
    title: Annotated[str, typer.Option("--title", help="The heading (default: the names of the folders).")] = "",
    as_json: AsJson = False,
) -> None:
    """Serve a report of runs in progress on localhost, until Ctrl-C.

    The page is that of `fedreuse report` and refreshes itself; the runs are not changed. The server listens on loopback
    only. From another machine: `ssh -L 8765:localhost:8765 HOST`.
    """
    from fedreuse.lab.sections import lab_sections, planned_targets
    from fedreuse.report.page.page import Page, page_of
    from fedreuse.report.page.server import Content, report_server, state_of

    def make(places: Sequence[Path], title: str) -> Page:
        return page_of(places, title, planned_targets(places), sections=lab_sections())

    state_of(runs)  # raise for a missing folder before the server starts
    try:
        server = report_server(Content(runs, every, title, make), port)
    except OSError as error:
        raise UserError(f"port {port} cannot be used ({error.strerror}); choose another with --port, or 0") from None
    on_interrupt(context, "the page is no longer served; the runs continue")
    with server:
        address, shown = f"http://localhost:{server.server_address[1]}/", list(map(str, runs))
        if as_json:
            show_json({"address": address, "runs": shown})
        else:
            say(f"{address} shows {', '.join(shown)}; stop with Ctrl-C")
        server.serve_forever()
