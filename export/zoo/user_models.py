"""The user's own model: `package.module:factory`, imported and called.

Any failure in the user's code becomes an `ExportError` that says which step failed and how to fix it; the original
exception stays attached as its cause.
"""

from collections.abc import Callable

from torch import nn

from edgefl.errors import ExportError
from edgefl.user_code import current_folder_importable, error_summary, load_attribute
from export.zoo.seeding import seeded

__all__ = ["load_factory"]


def load_factory(target: str, *, seed: int = 0) -> nn.Module:
    """Import the factory that `target` names, call it without arguments, and return its model.

    `target` is `package.module:factory`; a class derived from `nn.Module` is a factory too. The module may be in the
    current folder. The same `seed` gives the same initial weights as long as the factory draws them from torch's
    default generator, whose state is restored.
    """
    with current_folder_importable():
        # Seeded apart: only the first call imports the module, yet all calls must give the same weights.
        with seeded(seed):
            found = load_attribute(
                target,
                kind="model factory",
                form="package.module:factory",
                example="my_models.nets:small_cnn",
                error=ExportError,
            )
        factory = _factory(found, target)
        with seeded(seed):
            model = _called(factory, target)
    if not isinstance(model, nn.Module):
        raise ExportError(
            f"{target} returned {type(model).__name__}, not a torch.nn.Module",
            fix="Let the factory return the model itself, built and ready to train.",
        )
    return model


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
            f"{target} failed with {error_summary(error)}",
            fix="It is called without arguments: give each of its parameters a default, and make sure that it works "
            "when called alone.",
        ) from error
