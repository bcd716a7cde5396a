"""The command group `fedreuse lab`: what produces and checks published evidence."""

import typer

from fedreuse.cli.app import app

__all__ = ["lab_app"]

lab_app = typer.Typer(no_args_is_help=True, help="Plans, gate studies, message sizes, exports and benchmarks.")
app.add_typer(lab_app, name="lab")
