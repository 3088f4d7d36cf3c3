"""The exit code of a command, and what it prints of an error: the user's own exception first, then what it ended."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import click

from ..errors import DefinitionError, TopologyError, TridentError
from ..model.user_traceback import blame, describe_error
from ..topology.user_modules import ModuleFailed, NotFound
from .display import exit_code

FAILED, WRONG = 1, 2
DEFECT = (
    "error: this is a defect of trident_py. Please report it with the lines above, the command, and what "
    "`trident --version` and `python --version` print; `pip show trident-py` names the page of the project"
)


def run_guarded(body: Callable[[], int], full: bool) -> int:
    """Return the exit code of ``body``. Errors are printed, not raised, but for those that click knows: a wrong
    option, and a reader of what is printed that has gone."""
    try:
        code = body()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as stopped:
        return exit_code(stopped)
    except (click.ClickException, BrokenPipeError):
        raise
    except NotFound as error:
        return tell(f"error: {error}", WRONG)
    except DefinitionError as error:
        return tell(f"error: {error}{origin(error)}", WRONG, trace_of(error, full))
    except TopologyError as error:
        return tell(str(error), FAILED, error.trace if full else "")
    except TridentError as error:
        return tell(f"{describe_error(error)}{origin(error)}", FAILED, trace_of(error, full))
    except ModuleFailed as failed:
        cause = failed.__cause__ or failed
        text = f"{describe(cause)}\nerror: the module or its build function failed"
        return tell(text, WRONG, trace_of(cause, full))
    except Exception as error:
        return tell_unexpected(error, full)


def guard(command: Callable[..., int]) -> Callable[..., None]:
    """Return what click calls for a command that returns its exit code. ``full``: whether it got ``--traceback``."""

    @wraps(command)
    def run(*, full: bool = False, **options: Any) -> None:
        sys.exit(run_guarded(partial(command, **options), full))

    return run


def tell_unexpected(error: Exception, full: bool) -> int:
    """Tell of an error that no command expects. The machine's own (a full disk, a port) is no defect."""
    if isinstance(error, OSError):
        return tell(f"error: {describe(error)}", FAILED, traceback.format_exc() if full else "")
    return tell(DEFECT, FAILED, traceback.format_exc())


def tell(text: str, code: int, trace: str = "") -> int:
    print(f"{trace}{text}", file=sys.stderr)
    return code


def trace_of(error: BaseException, full: bool) -> str:
    return blame(error).trace if full else ""


def describe(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip() + origin(error)


def origin(error: BaseException) -> str:
    """Return the innermost line of the user's own code, if the traceback has one."""
    line = blame(error).origin
    return f"\n  at {line}" if line else ""
