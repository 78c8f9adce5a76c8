"""Writes an ONNX graph, node by node, with the same bytes every time.

The operations of `export.ops` call it; it knows ONNX and nothing of torch. Names are numbered, equal constants are
stored once, and nodes that no output needs are dropped at the end, so two exports of one model are identical.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgefl.artifacts.cut import inputs_of, needed_nodes

__all__ = ["IR_VERSION", "OPSET", "Emitter", "Shape", "Step"]

OPSET = 20
IR_VERSION = 10
"""onnxruntime 1.18 and later read these; newer ones would exclude devices for no benefit."""

Shape = Sequence[int | str]
Step = Callable[["Emitter", Sequence[str], Sequence[str]], tuple[Sequence[str], Sequence[str]]]
"""The body of a loop: takes the emitter, states and entries; returns the new states and what is kept of the step."""
_TYPES = {
    "float32": TensorProto.FLOAT,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
}


class Emitter:
    """Collects nodes and constants; `finish` returns the model."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        """Prefix of all names: the body of a loop must not use a name of the graph around it."""
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, npt.NDArray[Any]] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._made: dict[tuple[Any, ...], str] = {}

    def node(self, kind: str, inputs: Sequence[str], *, outputs: int = 1, **attributes: Any) -> tuple[str, ...]:
        """Add a node and return the names of its outputs. An empty input name omits an optional input."""
        name = f"{self._prefix}{kind}_{len(self._nodes)}"
        names = tuple(name + (f"_{i}" if i else "") for i in range(outputs))
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self._nodes.append(helper.make_node(kind, list(inputs), list(names), **attributes))
        return names

    def one(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output, or reuse an equal one."""
        key = (kind, inputs, tuple(sorted((name, str(value)) for name, value in attributes.items())))
        if key not in self._made:
            self._made[key] = self.node(kind, inputs, **attributes)[0]
        return self._made[key]

    def note(self, value: str, key: str, text: str) -> None:
        """Attach a note to the node that makes a value, for `edgefl.artifacts` to read."""
        node = next(node for node in reversed(self._nodes) if value in node.output)
        if not any(prop.key == key for prop in node.metadata_props):
            node.metadata_props.add(key=key, value=text)

    def constant(self, value: npt.ArrayLike, dtype: str = "float32") -> str:
        """Return the name of a constant."""
        array = np.asarray(value, dtype)
        key = (dtype, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"{self._prefix}constant_{len(self._constants)}"
            self._constants[self._known[key]] = array
        return self._known[key]

    def integers(self, *values: int) -> str:
        """Return the name of a constant list of whole numbers, as used for shapes and axes."""
        return self.constant(values, "int64")

    def scan(self, states: Sequence[str], sequences: Sequence[str], step: Step, *, reverse: bool = False) -> list[str]:
        """Loop over the first axis of sequences, from the last to the first if reversed.

        `step` emits the body: it maps the states and one entry of each sequence to the new states and to what is kept
        of every step. Return the last states, then what was kept, as sequences. The body may read values from outside.
        """
        body = Emitter(f"{self._prefix}loop{len(self._nodes)}/")
        given = [f"{body._prefix}state_{i}" for i in range(len(states))]
        given += [f"{body._prefix}entry_{i}" for i in range(len(sequences))]
        results = [name for group in step(body, given[: len(states)], given[len(states) :]) for name in group]
        # Every result needs its own name, and none is an input: a loop cannot return one value twice.
        results = [body.node("Identity", [name])[0] if name in results[:i] else name for i, name in enumerate(results)]
        graph = helper.make_graph(
            body._nodes,
            "body",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in given],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results],
            [numpy_helper.from_array(array, key) for key, array in body._constants.items()],
        )
        kept = len(results) - len(states)
        return list(
            self.node(
                "Scan",
                [*states, *sequences],
                outputs=len(results),
                body=graph,
                num_scan_inputs=len(sequences),
                scan_input_directions=[int(reverse)] * len(sequences),
                scan_output_directions=[int(reverse)] * kept,
            )
        )

    def finish(
        self,
        name: str,
        inputs: Mapping[str, tuple[str, Shape]],
        outputs: Mapping[str, tuple[str, str, Shape]],
    ) -> onnx.ModelProto:
        """Return the model. Inputs are name -> (dtype, shape), outputs are name -> (value, dtype, shape)."""
        nodes = [*self._nodes]
        nodes += [helper.make_node("Identity", [value], [out]) for out, (value, _, _) in outputs.items()]
        nodes = needed_nodes(nodes, outputs)
        used = {source for node in nodes for source in inputs_of(node)}
        graph = helper.make_graph(
            nodes,
            name,
            [_declared(key, dtype, shape) for key, (dtype, shape) in inputs.items() if key in used],
            [_declared(key, dtype, shape) for key, (_, dtype, shape) in outputs.items()],
            [numpy_helper.from_array(array, key) for key, array in self._constants.items() if key in used],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="edgefl")
        model.ir_version = IR_VERSION
        return model


def _declared(name: str, dtype: str, shape: Shape) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, _TYPES[dtype], list(shape))
