"""Finds the module of the user's model that an operation comes from, for error messages.

A traced step is a flat list of operations without modules. So when there is a problem with an operation, the forward
pass is run once more on tensors without values, to see which module calls it.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from edgefl.errors import ExportError

__all__ = ["first_line", "is_random", "refuse_random", "module_using"]


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message."""
    text = str(error).strip()
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__


def module_using(model: nn.Module, example: Tensor, operation: str) -> str:
    """Name the module that uses an operation: "module 'conv1' (Conv2d)", or "the model" if none is found."""
    watch = _Watch(model, _plain(operation))
    handles = [handle for module in model.modules() for handle in watch.hook(module)]
    try:
        with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True), watch:
            model(example)
    except Exception:  # an error is being reported already: a second one would hide it
        pass
    finally:
        for handle in handles:
            handle.remove()
    return watch.found or f"the model {type(model).__name__}"


def _plain(operation: str) -> str:
    """Strip an operation's name to what the forward and backward forms share: aten._foo_backward.default is foo."""
    name = operation.removeprefix("aten.").removeprefix("aten::").partition(".")[0].strip("_")
    for ending in ("_data", "_backward", "_copy", "_forward"):
        name = name.removesuffix(ending)
    return name


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the first module that is running when an operation is called."""

    def __init__(self, model: nn.Module, operation: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operation = operation
        self.found: str | None = None
        self.names = {module: name for name, module in model.named_modules()}
        self.running: list[nn.Module] = []

    def hook(self, module: nn.Module) -> list[Any]:
        """Follow a module's calls."""

        def enter(module: nn.Module, *_: Any) -> None:
            self.running.append(module)

        def leave(*_: Any) -> None:
            self.running.pop()

        return [module.register_forward_pre_hook(enter), module.register_forward_hook(leave, always_call=True)]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.found is None and self.running and _plain(str(func)) == self.operation:
            module = self.running[-1]
            self.found = f"module {self.names[module] or 'itself'!r} ({type(module).__name__})"
        return func(*args, **(kwargs or {}))


def is_random(operation: object) -> bool:
    """Return whether an operation draws random numbers."""
    return isinstance(operation, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in operation.tags


def refuse_random(model: nn.Module) -> None:
    """Raise if a module drops values at random: a program has no random numbers that could match torch's."""
    for name, module in model.named_modules():
        dropout = getattr(module, "p", 0.0) if isinstance(module, nn.modules.dropout._DropoutNd) else 0.0
        if isinstance(module, nn.RNNBase):
            dropout = module.dropout
        if dropout > 0:
            raise ExportError(
                f"module {name!r} ({type(module).__name__}) drops values with probability {dropout}",
                fix="Set its probability to 0 for ExecuTorch, or export the model to ONNX, where dropout is seeded.",
            )
