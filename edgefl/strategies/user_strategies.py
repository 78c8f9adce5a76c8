"""Strategies of users, named by where they are: `package.module:Class`.

`strategy_of` calls this for a name with a colon. Importing a module runs it: so the name must come from the owner of
this machine, on a command line or in a federation file, and never from the network. The coordinator refuses such a name
over HTTP (`coordinator.http.routes.federations`).
"""

import dataclasses
import inspect

from edgefl.errors import SchemaError
from edgefl.strategies.strategy import Strategy
from edgefl.user_code import load_attribute

__all__ = ["is_user_strategy", "user_strategy"]

_METHODS = [name for name, value in vars(Strategy).items() if inspect.isfunction(value) and not name.startswith("_")]


def is_user_strategy(name: str) -> bool:
    """Return whether a strategy's name says where to import it from."""
    return ":" in name


def user_strategy(name: str) -> type[Strategy]:
    """Import the class that `package.module:Class` names, and check that it can be a strategy."""
    found = load_attribute(
        name,
        kind="strategy class",
        form="package.module:Class",
        example="examples.own_strategy:ServerMomentum",
        error=SchemaError,
    )
    _check(found, name)
    strategy: type[Strategy] = found  # type: ignore[assignment]  # _check has seen to it
    return strategy


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
