"""Strategies of users, named by where they are: `package.module:Class`.

`strategy_of` calls this for a name with a colon. Importing a module runs it: so the name must come from the owner of
this machine, on a command line or in a federation file, and never from the network. The coordinator refuses such a name
over HTTP (`coordinator.http.routes.federations`).
"""

import dataclasses
import importlib
import inspect
from types import ModuleType

from edgefl.errors import SchemaError
from edgefl.strategies.strategy import Strategy
from edgefl.user_code import current_folder_importable

__all__ = ["is_user_strategy", "user_strategy"]

_METHODS = [name for name, value in vars(Strategy).items() if inspect.isfunction(value) and not name.startswith("_")]


def is_user_strategy(name: str) -> bool:
    """Return whether a strategy's name says where to import it from."""
    return ":" in name


def user_strategy(name: str) -> type[Strategy]:
    """Import the class that `package.module:Class` names, and check that it can be a strategy.

    Python's own path is searched first, then the current folder.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in module.split(".")) or not attribute.isidentifier():
        raise SchemaError(
            f"{name!r} does not name a class",
            fix="Write package.module:Class, such as examples.own_strategy:ServerMomentum.",
        )
    with current_folder_importable():
        found = getattr(_imported(module), attribute, None)
    if found is None:
        raise SchemaError(f"the module {module!r} has no {attribute!r}", fix="Check how the class is spelled there.")
    _check(found, name)
    strategy: type[Strategy] = found
    return strategy


def _imported(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise SchemaError(
                f"no module {error.name!r} was found",
                fix="Check the spelling, run from the folder that contains it, or install its package here.",
            ) from error
        raise SchemaError(
            f"the module {module!r} needs {error.name!r}, which is not installed", fix=f"Install {error.name!r}."
        ) from error
    except (Exception, SystemExit) as error:
        raise SchemaError(
            f"importing {module!r} failed with {type(error).__name__}: {error}",
            fix=f"Run `python -c 'import {module}'` to see where.",
        ) from error


def _check(found: object, name: str) -> None:
    if not inspect.isclass(found) or not dataclasses.is_dataclass(found):
        raise SchemaError(
            f"{name} is not a dataclass",
            fix="A strategy is a frozen dataclass of its settings; docs/own_strategy.md has an example.",
        )
    missing = [method for method in _METHODS if not callable(getattr(found, method, None))]
    missing += [] if hasattr(found, "name") else ["name"]
    if missing or inspect.isabstract(found):
        missing = missing or sorted(found.__abstractmethods__)
        raise SchemaError(
            f"{name} lacks what every strategy needs: {', '.join(missing)}",
            fix="Add it, or derive from edgefl.strategies.ComposableStrategy; docs/own_strategy.md has an example.",
        )
