"""The user's own model: `package.module:factory`, imported and called.

Whatever can go wrong in code that is not ours ends here as an `ExportError` that says which step failed and what to
do; the original exception stays attached as its cause.
"""

import importlib
import re
from collections.abc import Callable
from types import ModuleType

from torch import nn

from edgefl.errors import ExportError
from edgefl.user_code import current_folder_importable
from export.zoo.seeding import seeded

__all__ = ["load_factory"]

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_TARGET = re.compile(rf"({_DOTTED}):({_DOTTED})")


def load_factory(target: str, *, seed: int = 0) -> nn.Module:
    """Import the factory that `target` names, call it without arguments, and give the model it returns.

    `target` is `package.module:factory`; a class derived from `nn.Module` is a factory too. The module is looked for
    as Python does, and then in the current directory. The same `seed` gives the same initial weights as long as the
    factory draws them from torch's default generator, which is left as it was.
    """
    match = _TARGET.fullmatch(target)
    if match is None:
        raise ExportError(
            f"{target!r} does not name a model factory",
            fix="Write it as package.module:factory, for example my_models.nets:small_cnn.",
        )
    with current_folder_importable():
        # Seeded apart: the first call finds the module new and a later one finds it imported, yet both must agree.
        with seeded(seed):
            module = _module(match[1])
        factory = _factory(_attribute(module, match[2]), target)
        with seeded(seed):
            model = _called(factory, target)
    if not isinstance(model, nn.Module):
        raise ExportError(
            f"{target} returned {type(model).__name__}, not a torch.nn.Module",
            fix="Let the factory return the model itself, built and ready to train.",
        )
    return model


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ExportError(
                f"there is no module {error.name!r}",
                fix="Check the spelling, run from the directory that holds it, or install its package here.",
            ) from error
        raise ExportError(
            f"module {name!r} needs {error.name!r}, which is not installed",
            fix=f"Install {error.name!r} in the environment that runs the export.",
        ) from error
    except (Exception, SystemExit) as error:
        raise ExportError(
            f"importing {name!r} failed with {_short(error)}",
            fix=f"Run `python -c 'import {name}'` to see where, and move what is not a definition out of the module.",
        ) from error


def _attribute(module: ModuleType, path: str) -> object:
    found: object = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            defined = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
            listed = f"Its callables are {', '.join(defined[:10])}." if defined else "It defines no callables."
            raise ExportError(f"module {module.__name__!r} has no {path!r}", fix=listed) from error
    return found


def _factory(found: object, target: str) -> Callable[[], object]:
    if isinstance(found, nn.Module):
        raise ExportError(
            f"{target} is a model that is already built, not a factory",
            fix="Name a function that builds and returns it, so that every export starts from the same seed.",
        )
    if not callable(found):
        raise ExportError(
            f"{target} is {type(found).__name__}, which cannot be called",
            fix="Name a function without arguments that returns the model.",
        )
    return found


def _called(factory: Callable[[], object], target: str) -> object:
    try:
        return factory()
    except (Exception, SystemExit) as error:
        raise ExportError(
            f"{target} failed with {_short(error)}",
            fix="It is called without arguments: give each of its parameters a default, and make sure that it works "
            "when called alone.",
        ) from error


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
