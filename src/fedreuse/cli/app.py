"""The application that commands register with; it turns errors into one message and an exit code.

Exit codes: 0 success, 1 a run failed, 2 a user error, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import click
import typer
from typer.core import TyperGroup

import fedreuse
from fedreuse.cli.output import command_words
from fedreuse.core.allowed import allow as allow_imports
from fedreuse.core.errors import FedreuseError, UserError
from fedreuse.core.extras import missing_package
from fedreuse.core.formats import FORMATS
from fedreuse.core.own_code import own_code_error

__all__ = ["PANELS", "RUN_FAILED", "Allow", "AsJson", "app", "main", "on_interrupt"]

PANELS = {
    "Start": ("try", "demo", "init", "configs", "docs", "schema", "new-method", "doctor"),
    "Run": ("run", "watch", "show", "replay", "clean", "unseal"),
    "Compare": ("compare", "tune", "report", "serve", "figure", "audit", "list", "describe", "sizes"),
    "Deploy": ("deploy", "authority", "superlink", "supernode", "health"),
    "Data": ("data", "export"),
    "Lab": ("lab",),
}
"""Groups of commands in `fedreuse --help`, in order."""
RUN_FAILED, USER_ERROR, INTERRUPTED = 1, 2, 130
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else.")]


def _allow(entries: list[str] | None) -> list[str]:
    """Allow imports from these packages in the whole process, as soon as the option is parsed."""
    allow_imports(entries or [])
    return entries or []


Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="MODULE",
        help="A package, module or folder whose code the configuration may name; again for more.",
        callback=_allow,
        show_default=False,
    ),
]


class _Commands(TyperGroup):
    """Group that turns errors into exit codes, in a shell, in tests and in other programs alike."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of `PANELS`, then those of no panel."""
        known = super().list_commands(ctx)
        ordered = [name for names in PANELS.values() for name in names if name in known]
        return ordered + [name for name in known if name not in ordered]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command with its help panel, and with help that wraps at the width of the terminal.

        Commands of `fedreuse lab` also run without the word `lab`, with a note that names the full command.
        """
        command = super().get_command(ctx, cmd_name)
        lab = super().get_command(ctx, "lab")
        if command is None and isinstance(lab, click.Group) and cmd_name in lab.commands:
            typer.echo(f"note: the command is `fedreuse lab {cmd_name}`", err=True)
            command = lab.get_command(ctx, cmd_name)
        if command is not None:
            _unwrap_help(command)
            panels = [panel for panel, names in PANELS.items() if cmd_name in names]
            setattr(command, "rich_help_panel", panels[0] if panels else None)  # noqa: B010  # Typer's own attribute
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept `--debug` at any position."""
        end = args.index("--") if "--" in args else len(args)
        is_debug = "--debug" in args[:end]
        ctx.obj = {"debug": is_debug, "on_interrupt": ""}
        kept = [word for position, word in enumerate(args) if word != "--debug" or position > end]
        return super().parse_args(ctx, kept)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error is one paragraph on standard error, with a traceback only after `--debug`."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            _print_error("stopped", ctx.obj["on_interrupt"] or "complete work is kept; run the same command again")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if ctx.obj["debug"]:
                raise
            known = (
                error if isinstance(error, FedreuseError) else own_code_error(error) or missing_package(error) or error
            )
            _print_error("error", _explain(known))
            raise typer.Exit(USER_ERROR if isinstance(known, UserError) else RUN_FAILED) from None


def _unwrap_help(command: click.Command) -> None:
    """Join the lines of every paragraph; Typer does so with the first one only."""
    command.help = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _unwrap_help(inner)


app = typer.Typer(
    name="fedreuse",
    cls=_Commands,
    no_args_is_help=True,
    suggest_commands=False,  # click suggests already
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fedreuse demo",
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo("\n".join([f"fedreuse {fedreuse.__version__}", *map(str, FORMATS)]))
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Communication-efficient federated learning: run, compare, deploy.

    `fedreuse COMMAND --help` shows the options of a command, with an example.
    """
    del debug, version  # declared for the help only: parse_args and the callback handle them


def main() -> None:
    """Run the command `fedreuse`."""
    app()


def on_interrupt(context: typer.Context, advice: str) -> None:
    """Set the message that Ctrl-C prints from now on."""
    context.obj["on_interrupt"] = advice


def _explain(error: Exception) -> str:
    if isinstance(error, FedreuseError):
        return command_words(str(error))
    if isinstance(error, OSError):
        return f"the system refused: {error}"
    return f"internal error ({type(error).__name__}: {error}); re-run with --debug to see where"


def _print_error(word: str, message: str) -> None:
    is_terminal = sys.stderr.isatty()
    head = typer.style(f"{word}:", fg="red", bold=True) if is_terminal else f"{word}:"
    typer.echo(f"{head} {message}", err=True)
