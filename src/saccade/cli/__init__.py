"""The command `saccade`: one module per command, loaded when that command runs."""

import os
import signal
import sys
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from saccade.cli import console
from saccade.cli.terminal import spell_out

__all__ = ["app", "main"]

SUMMARIES = {  # first sentences of the commands' help: the overview shows them without loading the commands
    "fit": "Train on DATA and write MODEL, one file of tables.",
    "predict": "Predict DATA with MODEL: a label, its probability, variance and novelty per example, as CSV.",
    "ask": "Choose the examples in DATA whose labels help most, and write them as questions to fill in.",
    "novelty": "Learn what is normal from FIT and judge SCORE: a score, how normal it is, and a verdict per example.",
    "find": "Find the object in each of PICTURES: the box that MODEL takes most for one, after a look at few crops.",
    "info": "Show what is in MODEL, after checking that it is whole and unchanged.",
}
SETTINGS: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": "rich"}


class _Commands(TyperGroup):
    """Turns an error into one sentence and an exit status: 2 for bad input, 130 for Ctrl-C.

    A mistake of ours has status 1, and its traceback is shown.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = {name: TyperCommand(name, help=text) for name, text in SUMMARIES.items()}
        self._options: set[str] = set()  # of the command that runs: messages speak of them, not of Python's parameters

    def invoke(self, ctx: Any) -> Any:
        if os.environ.get("SACCADE_DEBUG"):
            return super().invoke(ctx)
        try:
            with console.plain_warnings(self._options):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            console.note("Stopped.")
            raise typer.Exit(130) from None
        except Exception as error:
            if console.expected(error):
                console.fail(console.as_options(console.explain(error), self._options))
                raise typer.Exit(2) from None
            if hasattr(error, "exit_code") or isinstance(error, typer.Abort | OSError):
                raise  # typer's own: a wrong option, a deliberate end, a reader who left
            console.fail_as_ours(error)
            raise typer.Exit(1) from None

    def resolve_command(self, ctx: Any, args: Any) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        alone, run = typer.Typer(**SETTINGS), getattr(import_module(f"saccade.cli.commands.{name}"), str(name))
        paragraphs = (getdoc(run) or "").split("\n\n")  # a terminal breaks their lines where its own width ends
        alone.command(name, help="\n\n".join(" ".join(each.split()) for each in paragraphs))(run)
        command = typer.main.get_command(alone)
        self._options.clear()
        self._options.update(option for parameter in getattr(command, "params", ()) for option in parameter.opts)
        return name, command, rest


app = typer.Typer(
    cls=_Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}, **SETTINGS
)


def _version(wanted: bool) -> None:
    if wanted:
        from saccade import __version__

        print(f"saccade {__version__}")
        raise typer.Exit


@app.callback()
def _saccade(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """One Gaussian process for pictures.

    Train a classifier on a table of features, keep it in one file, and use it anywhere:

    saccade fit train.csv model.saccade

    saccade predict model.saccade new.csv --out answers.csv

    Ask which examples to label next, if few have labels:

    saccade ask photos/

    Learn what is normal, and find what is not:

    saccade novelty known/ new/ --report report.html

    Find where an object is in a picture, in few looks:

    saccade find model.saccade photos/ --out boxes.json --report find.html
    """


def main() -> None:
    """What the installed script calls."""
    for stream in (sys.stdout, sys.stderr):
        spell_out(stream)
    try:
        app(prog_name="saccade")
    except KeyboardInterrupt:  # before or after a command runs
        sys.exit(130)
    except SystemExit as end:
        if end.code == 130:  # a second Ctrl-C need not wait for loops to come to their end
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise
