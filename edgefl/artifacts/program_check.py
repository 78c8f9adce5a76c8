"""Checks a compiled program before anybody is told to run it: that it belongs to a bundle, and is called as it must be.

The coordinator calls it for what is uploaded. Whether a program computes the right thing is checked where it is
compiled; here it must only be certain that a device that loads it finds the inputs and outputs that it expects.
"""

from collections.abc import Iterable, Sequence

from edgefl.artifacts.bundle import INFER, TRAIN, Bundle, spec_problem
from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.errors import SchemaError
from edgefl.model_graph import TensorRole
from edgefl.values import SAMPLE_WEIGHTS, Program, ProgramRole, ProgramSpec

__all__ = ["check_program_file", "check_programs"]

_MAGIC = slice(4, 8)
_IDENTIFIER = b"ET12"
"""What a file of an ExecuTorch program has at its bytes 4 to 8."""
_FIX = "Compile it for this federation's bundle: edgefl compile."


def check_program_file(head: bytes) -> None:
    """Refuse a file that is not an ExecuTorch program, by its first bytes."""
    if head[_MAGIC] != _IDENTIFIER:
        raise SchemaError("this is not the file of an ExecuTorch program", fix="Send the bytes of a .pte file.")


def check_programs(programs: Iterable[Program], bundle: Bundle) -> None:
    """Refuse programs that are not those of this model, or that are not called as their role says."""
    names: dict[ProgramRole, tuple[list[str], list[str]]] = {}
    for program in programs:
        role = program.spec.role
        problem = spec_problem(program.spec, bundle)
        if problem is not None:
            raise SchemaError(problem, fix=_FIX)
        if role not in names:
            names[role] = _names(bundle, role)
        _check_calls(program, bundle, *names[role])


def _check_calls(program: Program, bundle: Bundle, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse a program with other inputs and outputs than the ONNX graph that computes the same."""
    training = program.spec.role is ProgramRole.TRAIN
    tensors = set(bundle.graph.tensor)
    needed = ["x", *(["y", SAMPLE_WEIGHTS] if training else []), *(set(inputs) & tensors)]
    _check_names("inputs", program.inputs, needed, [*needed, *inputs, *tensors])
    trained = _trained(bundle, program.spec)
    offered = [name for name in outputs if not name.startswith((GRADIENT, NEW_STATISTIC)) or name in trained]
    _check_names("outputs", program.outputs, offered, offered)


def _names(bundle: Bundle, role: ProgramRole) -> tuple[list[str], list[str]]:
    """Return the inputs and outputs of the ONNX graph that computes the same."""
    import onnx

    source = bundle.files[TRAIN if role is ProgramRole.TRAIN else INFER]
    graph = onnx.load_from_string(source).graph
    return [one.name for one in graph.input], [one.name for one in graph.output]


def _trained(bundle: Bundle, spec: ProgramSpec) -> set[str]:
    """Return the outputs that belong to the trained layers: gradients of parameters, and new statistics."""
    graph, found = bundle.graph, set[str]()
    for layer in spec.trained:
        for name in graph.layer[layer].tensors:
            is_statistic = graph.tensor[name].role is TensorRole.STATISTIC
            found.add((NEW_STATISTIC if is_statistic else GRADIENT) + name)
    return found


def _check_names(what: str, names: Sequence[str], needed: Sequence[str], allowed: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise SchemaError(f"the program's {what} have equal names", fix=_FIX)
    missing, unknown = set(needed) - set(names), set(names) - set(allowed)
    if missing:
        raise SchemaError(f"the program's {what} lack {min(missing)!r}", fix=_FIX)
    if unknown:
        raise SchemaError(f"the program's {what} have {min(unknown)!r}, which the model does not", fix=_FIX)
