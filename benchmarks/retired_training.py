"""The training build of onnxruntime, retired after 1.19.2: an engine for `benchmarks.retired_race`.

It wants packages of its time, so it lives in an environment of its own, which has no torch. EdgeFL's engine leaves a
*case* in a folder: the forward graph with its weights, a batch, and the loss and gradients that it found itself. The
retired engine makes its training graph from the forward graph, and does not start before it has found the same.

Both environments import this file, so nothing beyond the standard library is imported at its top.
"""

import contextlib
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.environments import make_environment

__all__ = ["CHAINS", "VERSION", "python_with_training", "retired_step", "write_case"]

CHAINS = ("cnn4", "mlp")
"""The measured models that are plain chains of the modules below."""
VERSION = "1.19.2"
REQUIREMENTS = (f"onnxruntime-training-cpu=={VERSION}", "onnx>=1.16,<1.17", "numpy<2")
OPSET, IR_VERSION = 17, 8
TOLERANCE = 1e-4
FORWARD, CASE = "forward.onnx", "case.npz"
_STORED = ("weight", "bias", "running_mean", "running_var")
"""What modules keep, in the order in which ONNX wants it."""


def python_with_training(environment: Path) -> Path:
    """Return the Python of an environment that has the retired build; make the environment if need be."""
    python = environment / "bin" / "python"
    if _version(python) == VERSION:
        return python
    print(f"installing onnxruntime-training {VERSION} into {environment}", file=sys.stderr, flush=True)
    if make_environment(environment, REQUIREMENTS) or _version(python) != VERSION:
        raise SystemExit(
            f"{' '.join(REQUIREMENTS)} cannot be installed: the wheels end with Python 3.12, and ARM Linux has none. "
            "With an older Python, install them into an environment of your own and name it with --environment."
        )
    return python


def _version(python: Path) -> str:
    if not python.exists():
        return ""
    code = "import onnxruntime; print(onnxruntime.__version__)"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip()


def write_case(folder: Path, model: Any, x: Any, y: Any, found: Mapping[str, Any]) -> None:
    """Leave a torch model, a batch and what EdgeFL's graph found (loss, and gradients by parameter) for the other."""
    import numpy as np
    import onnx

    onnx.save(_forward_graph(model, x), folder / FORWARD)
    np.savez(folder / CASE, x=x, y=y, **found)


def _forward_graph(model: Any, x: Any) -> Any:
    """Return a chain of modules as one ONNX node each, batch norm in training mode; all sizes are constants."""
    from onnx import TensorProto, checker, helper, numpy_helper

    nodes, weights, value = [], [], "x"
    for name, module in model.named_modules():
        if next(module.children(), None) is not None:
            continue
        stored = {f"{name}.{key}": getattr(module, key) for key in _STORED if getattr(module, key, None) is not None}
        kind, outputs, attributes = _node(module)
        names = [f"{name}.{i}" for i in range(outputs)]
        nodes.append(helper.make_node(kind, [value, *stored], names, **attributes))
        weights += [numpy_helper.from_array(tensor.detach().numpy(), key) for key, tensor in stored.items()]
        value = names[0]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)
    logits = helper.make_tensor_value_info(value, TensorProto.FLOAT, [len(x), module.out_features])
    graph = helper.make_graph(nodes, "forward", [given], [logits], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    checker.check_model(made)
    return made


def _node(module: Any) -> tuple[str, int, dict[str, Any]]:
    """Return the operation, the number of outputs and the attributes of a module."""
    match type(module).__name__:
        case "Conv2d":
            shape = {"kernel_shape": module.kernel_size, "strides": module.stride}
            return "Conv", 1, shape | {"pads": module.padding * 2, "group": module.groups}
        case "BatchNorm2d":
            return "BatchNormalization", 3, {"epsilon": module.eps, "momentum": 1 - module.momentum, "training_mode": 1}
        case "ReLU":
            return "Relu", 1, {}
        case "MaxPool2d":
            return "MaxPool", 1, {"kernel_shape": [module.kernel_size] * 2, "strides": [module.stride] * 2}
        case "Flatten":
            return "Flatten", 1, {}
        case "Linear":
            return "Gemm", 1, {"transB": 1}
        case other:
            raise SystemExit(f"{other} is no module of a plain chain")


def retired_step(folder: Path, options: Any) -> Callable[[], object]:
    """Return one training step of the case in a folder: loss and gradients, the ones before them forgotten."""
    import numpy as np
    import onnx
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    _leave_out_torch(onnxruntime)
    from onnxruntime.training import artifacts

    model = onnx.load(folder / FORWARD)
    case = dict(np.load(folder / CASE))
    stored = [weight.name for weight in model.graph.initializer]
    with _silent_stderr():
        artifacts.generate_artifacts(
            model,
            requires_grad=[name for name in stored if name in case],
            frozen_params=[name for name in stored if name not in case],  # running statistics
            loss=artifacts.LossType.CrossEntropyLoss,
            optimizer=artifacts.OptimType.SGD,
            artifact_directory=folder,
        )
    x, y = case.pop("x"), case.pop("y")
    _check(folder, options, x, y, case)
    module, _ = _opened(folder, options)

    def step() -> None:
        module.lazy_reset_grad()
        module(x, y)

    return step


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Drop what native code writes there: the build notes every pass of its optimiser, whatever its log level is."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _leave_out_torch(onnxruntime: types.ModuleType) -> None:
    """Stand in for the package `onnxruntime.training`, which imports optimisers that need torch before all else."""
    package = types.ModuleType("onnxruntime.training")
    package.__path__ = [str(Path(str(onnxruntime.__file__)).with_name("training"))]
    sys.modules[package.__name__] = package


def _opened(folder: Path, options: Any) -> tuple[Any, Any]:
    from onnxruntime.training import api

    state = api.CheckpointState.load_checkpoint(folder / "checkpoint")
    return api.Module(folder / "training_model.onnx", state, session_options=options).train(), state


def _check(folder: Path, options: Any, x: Any, y: Any, expected: Mapping[str, Any]) -> None:
    """Compare loss and gradients. The gradients are not given out, but one step of SGD at rate 1 shows them."""
    from onnxruntime.training import api

    module, state = _opened(folder, options)
    before = {name: state.parameters[name].data.copy() for name in expected if name != "loss"}
    found = {"loss": module(x, y)}
    optimiser = api.Optimizer(folder / "optimizer_model.onnx", module)
    optimiser.set_learning_rate(1.0)
    optimiser.step()
    found |= {name: array - state.parameters[name].data for name, array in before.items()}
    for name, truth in expected.items():
        error = float(abs(found[name] - truth).max() / abs(truth).max())
        if not error <= TOLERANCE:
            raise SystemExit(f"{name} differs from EdgeFL's by {error:.1e}: the times would mean nothing")
