"""`fedreuse schema`: print the JSON Schema of configurations, studies and search spaces, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json
from fedreuse.core.errors import ConfigError

__all__ = ["schema_command"]


@app.command("schema", epilog="Example: fedreuse schema > fedreuse.schema.json")
def schema_command(
    run: Annotated[bool, typer.Option("--run", help="Only the schema of a run, for `fedreuse run`.")] = False,
    study: Annotated[bool, typer.Option("--study", help="Only the schema of a study, for `fedreuse compare`.")] = False,
    space: Annotated[
        bool, typer.Option("--space", help="Only the schema of a search space, for `fedreuse tune`.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of configuration files, for your editor.

    It describes every key with its range, of configurations, studies and search spaces, unless an option selects one.
    Save it beside your files: an editor with a YAML language server completes and checks files whose first line is
    `# yaml-language-server: $schema=fedreuse.schema.json`. Shipped files name the schema that is shipped with them.
    """
    del as_json  # the output is always JSON; every command takes the option
    from fedreuse.config import json_schema

    if run + study + space > 1:
        raise ConfigError("--run, --study and --space exclude each other; choose one, or none for all of them")
    kinds = {json_schema.run_schema: run, json_schema.study_schema: study, json_schema.space_schema: space}
    show_json(next((schema for schema, is_chosen in kinds.items() if is_chosen), json_schema.file_schema)())
