"""`fedreuse schema`: the JSON Schema of configurations and studies, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json

__all__ = ["schema_command"]


@app.command("schema", epilog="Example: fedreuse schema > fedreuse.schema.json")
def schema_command(
    study: Annotated[bool, typer.Option("--study", help="That of a study, for `fedreuse compare`.")] = False,
    as_json: AsJson = True,
) -> None:
    """Print the JSON Schema of a configuration, or of a study, with the meaning and range of every key.

    Save it beside your files: an editor with a YAML language server completes and checks those whose first line is
    `# yaml-language-server: $schema=fedreuse.schema.json`.
    """
    del as_json  # there is no other form; every command takes the option
    from fedreuse.runs.json_schema import run_schema, study_schema

    show_json(study_schema() if study else run_schema())
