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
    run: Annotated[bool, typer.Option("--run", help="The schema of a run alone, for `fedreuse run`.")] = False,
    study: Annotated[
        bool, typer.Option("--study", help="The schema of a study alone, for `fedreuse compare`.")
    ] = False,
    space: Annotated[
        bool, typer.Option("--space", help="The schema of a search space alone, for `fedreuse tune`.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of the files that commands read, with the meaning and range of every key.

    It holds for configurations, studies and search spaces alike, unless one of them is asked for. Save it beside your
    files: an editor with a YAML language server completes and checks those whose first line is
    `# yaml-language-server: $schema=fedreuse.schema.json`. The shipped files name the one that is shipped with them.
    """
    del as_json  # there is no other form; every command takes the option
    from fedreuse.config import json_schema

    if run + study + space > 1:
        raise ConfigError("--run, --study and --space are schemas of their own; choose one, or none for all of them")
    kinds = {json_schema.run_schema: run, json_schema.study_schema: study, json_schema.space_schema: space}
    show_json(next((make for make, is_asked in kinds.items() if is_asked), json_schema.file_schema)())
