"""Imports code that users name as `package.module:name`: their own models and strategies.

Importing a module runs it, so the name must come from the user of this machine, never from the network.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from edgefl.errors import EdgeFLError

__all__ = ["current_folder_importable", "error_summary", "load_attribute"]

_LISTED_CALLABLES = 10
_SUMMARY_CHARACTERS = 200


def load_attribute(target: str, *, kind: str, form: str, example: str, error: type[EdgeFLError]) -> object:
    """Import what `package.module:name` names, from Python's path or else from the current folder.

    Args:
        target: The name to load; the part after the colon may be dotted.
        kind: What the target should name, for the error message.
        form: What a valid target looks like, for the error message.
        example: A valid target, for the error message.
        error: The exception to raise for whatever goes wrong; the cause stays attached.
    """
    module_name, _, path = target.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        raise error(f"{target!r} does not name a {kind}", fix=f"Write it as {form}, for example {example}.")
    with current_folder_importable():
        return _attribute(_module(module_name, error), path, error)


def _module(name: str, error: type[EdgeFLError]) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as cause:
        if cause.name is not None and f"{name}.".startswith(f"{cause.name}."):
            raise error(
                f"there is no module {cause.name!r}",
                fix="Check the spelling, run from the folder that holds it, or install its package here.",
            ) from cause
        raise error(
            f"module {name!r} needs {cause.name!r}, which is not installed",
            fix=f"Install {cause.name!r} in this environment.",
        ) from cause
    except (Exception, SystemExit) as cause:
        raise error(
            f"importing {name!r} failed with {error_summary(cause)}",
            fix=f"Run `python -c 'import {name}'` to see where, and move what is not a definition out of the module.",
        ) from cause


def _attribute(module: ModuleType, path: str, error: type[EdgeFLError]) -> object:
    found: object = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as cause:
            defined = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
            listed = ", ".join(defined[:_LISTED_CALLABLES])
            fix = f"Its callables are {listed}." if defined else "It defines no callables."
            raise error(f"module {module.__name__!r} has no {path!r}", fix=fix) from cause
    return found


def error_summary(error: BaseException) -> str:
    """Return an exception's type and the start of its message, on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:_SUMMARY_CHARACTERS]}" if text else type(error).__name__


@contextmanager
def current_folder_importable() -> Iterator[None]:
    """Search the current folder for modules, last: a console script, unlike `python -m`, does not."""
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        yield
    finally:
        # The imported code may have changed the path itself: remove the last entry that can be ours, if one is left.
        if here in sys.path:
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(here)]
