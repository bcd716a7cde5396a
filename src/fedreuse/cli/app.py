"""The application: its commands hang on it, and here alone errors become a line and an exit code.

0 all went well, 1 a run failed, 2 the user's mistake, 130 stopped by Ctrl-C.
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

__all__ = ["RUN_FAILED", "Allow", "AsJson", "app", "main", "on_interrupt"]

MOVED_TO_LAB = ("bench", "confirm", "export-results", "gate", "wire")
"""Commands that also answer to their former place at the top; `--help` does not list them there."""
RUN_FAILED, USERS_MISTAKE, INTERRUPTED = 1, 2, 130
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else.")]


def _allow(entries: list[str] | None) -> list[str]:
    """Whatever the command does with the list, it holds from here on."""
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
    """Turns errors into exit codes, whoever invokes the commands: a shell, a test, another program."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command whose help has lines as long as the terminal is wide, not as long as those of its docstring."""
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in MOVED_TO_LAB:
            lab = super().get_command(ctx, "lab")
            assert isinstance(lab, click.Group)
            typer.echo(f"note: `fedreuse {cmd_name}` is now `fedreuse lab {cmd_name}`", err=True)
            found = lab.get_command(ctx, cmd_name)
        if found is not None:
            _unwrap_help(found)
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`--debug` may stand anywhere."""
        end = args.index("--") if "--" in args else len(args)
        is_debug = "--debug" in args[:end]
        ctx.obj = {"debug": is_debug, "on_interrupt": ""}
        kept = [word for position, word in enumerate(args) if word != "--debug" or position > end]
        return super().parse_args(ctx, kept)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a mistake is one paragraph on standard error, a traceback only with `--debug`."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            _complain("stopped", ctx.obj["on_interrupt"] or "what is complete is safe; run the same command again")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if ctx.obj["debug"]:
                raise
            told = (
                error if isinstance(error, FedreuseError) else own_code_error(error) or missing_package(error) or error
            )
            _complain("error", _explain(told))
            raise typer.Exit(USERS_MISTAKE if isinstance(told, UserError) else RUN_FAILED) from None


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
        bool, typer.Option("--version", help="Show the version and end.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Federated learning with cached-update reuse, its closest relatives, and honest byte accounting."""
    del debug, version  # parse_args and the callback have seen to them; they stand here for the help


def main() -> None:
    """The entry point of the command `fedreuse`."""
    app()


def on_interrupt(context: typer.Context, advice: str) -> None:
    """What to tell somebody who presses Ctrl-C from here on."""
    context.obj["on_interrupt"] = advice


def _explain(error: Exception) -> str:
    if isinstance(error, FedreuseError):
        return command_words(str(error))
    if isinstance(error, OSError):
        return f"the system refused: {error}"
    return f"internal error ({type(error).__name__}: {error}); re-run with --debug to see where"


def _complain(word: str, message: str) -> None:
    is_terminal = sys.stderr.isatty()
    head = typer.style(f"{word}:", fg="red", bold=True) if is_terminal else f"{word}:"
    typer.echo(f"{head} {message}", err=True)
