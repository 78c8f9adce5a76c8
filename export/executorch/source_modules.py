"""Finds the module of the user's model that an operation comes from, for error messages.

A traced step is a flat list of operations without modules. So when there is a problem with an operation, the forward
pass is run once more on tensors without values, to see which module calls it.
"""

from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from export.executorch.traced_submodel import TracedSubmodel

__all__ = ["module_using"]


def module_using(model: TracedSubmodel, example: Tensor, operation: str) -> str:
    """Name the module that uses an operation: "module 'conv1' (Conv2d)", or "the model" if none is found."""
    watch = _Watch(model, _plain(operation))
    seed = torch.zeros((), dtype=torch.int64) if model.draws else None
    try:
        with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True), watch:
            model(example, seed)
    except Exception:  # an error is being reported already: a second one would hide it
        pass
    return watch.found or "the model"


def _plain(operation: str) -> str:
    """Strip an operation's name to what the forward and backward forms share: aten._foo_backward.default is foo."""
    name = operation.removeprefix("aten.").removeprefix("aten::").partition(".")[0].strip("_")
    for ending in ("_data", "_backward", "_copy", "_forward"):
        name = name.removesuffix(ending)
    return name


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the first module that is running when an operation is called."""

    def __init__(self, model: TracedSubmodel, operation: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.model = model
        self.operation = operation
        self.found: str | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.found is None and _plain(str(func)) == self.operation:
            self.found = self.model.running
        return func(*args, **(kwargs or {}))
