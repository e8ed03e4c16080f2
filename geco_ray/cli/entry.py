"""From the words of the command line to a verb, and from what a verb raises to a message and an exit code.

Exit codes: 0 every cell of the grid is done; 1 some failed or are left; 2 bad input; 3 resources or packages that are
not available; 4 the run folder is in use; 5 storage; 6 Ray itself died; 129 SIGHUP; 130 Ctrl-C; 143 SIGTERM.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer

from geco_ray import __version__
from geco_ray.cli.analysis_package import claim_analysis
from geco_ray.cli.app import app, err, out
from geco_ray.cli.health.doctor import missing_package
from geco_ray.cli.output import labelled, prepare_streams
from geco_ray.errors import GecoRayError, unknown_name
from geco_ray.plan.gridfile import grid_names, is_grid_path

_WRONG_WORDS: type[Any] = typer.BadParameter.__mro__[2]  # ClickException, whichever copy of click this typer uses


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of ``geco-ray``; a first word that is no verb is taken for a grid: ``geco-ray demo``."""
    prepare_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    named = ((one.name, one.callback) for one in app.registered_commands)
    verbs = {name or (callback.__name__ if callback else "") for name, callback in named}
    verbs |= {group.name or "" for group in app.registered_groups}
    if words == ["--version"]:
        out.print(__version__)
        sys.exit(0)
    try:
        claim_analysis()
        if words and not words[0].startswith("-") and words[0] not in verbs:
            _check_first_word(words[0], verbs)
            words.insert(0, "run")
        code = app(words, prog_name="geco-ray", standalone_mode=False)
    except GecoRayError as error:
        _end(str(error), error.exit_code)
    except _WRONG_WORDS as error:
        what = str(error.format_message()).replace("Value error, ", "").rstrip(".")
        if what:  # else the help has been printed already
            context = getattr(error, "ctx", None)
            _end(f"{what}. `{context.command_path if context else 'geco-ray'} --help` tells what there is.", 2)
        code = 2
    except ModuleNotFoundError as error:
        if (needed := missing_package(error)) is None:
            raise
        _end(needed, 3)
    except (KeyboardInterrupt, typer.Abort):
        err.print("stopped by SIGINT")
        code = 130
    except BrokenPipeError:  # such as `geco-ray ls | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _check_first_word(word: str, verbs: set[str]) -> None:
    """Refuse a first word that is neither a verb nor a grid, with the closest of both."""
    if is_grid_path(word) or word in (grids := grid_names()):
        return
    raise unknown_name("command or grid", word, [*sorted(verbs), *grids])


def _end(message: str, code: int) -> NoReturn:
    # Whoever stops a run knows that it is no error.
    err.print(message if code > 128 else labelled("error:", "red", message), soft_wrap=True)
    if code > 128:  # Ray's threads, stopped half-way, can crash Python's own shutdown and so change the exit code
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
