"""The command group `fedreuse lab`: plans, gate studies, message sizes, exports and benchmarks."""

import typer

from fedreuse.cli.app import app

__all__ = ["lab_app"]

lab_app = typer.Typer(no_args_is_help=True, help="Laboratory: planned studies, gate studies, benchmarks.")
app.add_typer(lab_app, name="lab")
