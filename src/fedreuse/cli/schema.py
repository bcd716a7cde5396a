"""`fedreuse schema`: the JSON Schema of configurations, studies and search spaces, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json
from fedreuse.core.errors import ConfigError

__all__ = ["schema_command"]


@app.command("schema", epilog="Example: fedreuse schema > fedreuse.schema.json")
def schema_command(
    study: Annotated[bool, typer.Option("--study", help="The schema of a study, for `fedreuse compare`.")] = False,
    space: Annotated[bool, typer.Option("--space", help="The schema of a search space, for `fedreuse tune`.")] = False,
    as_json: AsJson = True,
) -> None:
    """Print the JSON Schema of a configuration, a study or a search space, with the meaning and range of every key.

    Save it beside your files: an editor with a YAML language server completes and checks those whose first line is
    `# yaml-language-server: $schema=fedreuse.schema.json`.
    """
    del as_json  # there is no other form; every command takes the option
    from fedreuse.runs.json_schema import run_schema, space_schema, study_schema

    if study and space:
        raise ConfigError("--study and --space are two schemas; choose one")
    show_json(space_schema() if space else study_schema() if study else run_schema())
