"""The model of a load test: a small perceptron with updates of 50 KB, described by hand.

It is never trained, so its training graph is a stand-in: every tensor's gradient is the tensor itself. To the
coordinator, which cuts graphs and averages tensors, it is a model like any other. `--bundle` replaces it.
"""

import numpy as np

from edgefl import __version__
from edgefl.artifacts.bundle import GRAPH, INFER, TRAIN, WEIGHTS, Bundle, Manifest
from edgefl.model_graph import Dtype, GraphBuilder, ModelGraph
from edgefl.values import digest_of, dumps
from edgefl.wire import encode_weights

__all__ = ["perceptron_bundle"]

_INPUTS, _HIDDEN, _CLASSES = 64, (128, 32), 10


def perceptron_bundle() -> Bundle:
    """Return the bundle of a 64-128-32-10 perceptron."""
    graph = _graph()
    generator = np.random.default_rng(0)
    weights = {t.name: generator.normal(0, 0.1, t.shape).astype(np.float32) for t in graph.tensors}
    stand_in = _stand_in(graph)
    files = {
        GRAPH: dumps(graph).encode(),
        TRAIN: stand_in,
        INFER: stand_in,
        WEIGHTS: encode_weights(weights, {"model": graph.digest}),
    }
    manifest = Manifest(
        model=graph.name,
        graph=graph.digest,
        input_shape=(_INPUTS,),
        input_dtype=Dtype.FLOAT32,
        outputs=_CLASSES,
        loss="cross_entropy",
        files={name: digest_of(data) for name, data in files.items()},
        made_with={"edgefl": __version__},
    )
    return Bundle(manifest, graph, files)


def _graph() -> ModelGraph:
    build = GraphBuilder("load", channels=_INPUTS)
    x = build.input
    for number, width in enumerate(_HIDDEN, start=1):
        x = build.linear(f"linear{number}", x, width)
    build.linear("head", x, _CLASSES, head=True)
    return build.finish()


def _stand_in(graph: ModelGraph) -> bytes:
    """Return a graph with the inputs and outputs of a training graph."""
    from onnx import TensorProto, ValueInfoProto, helper

    from edgefl.artifacts.cut import GRADIENT

    def info(name: str, shape: tuple[int, ...]) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name}.{axis}" for axis in range(len(shape))])

    inputs = [info(tensor.name, tensor.shape) for tensor in graph.tensors]
    outputs = [info(GRADIENT + tensor.name, tensor.shape) for tensor in graph.tensors]
    nodes = [helper.make_node("Identity", [t.name], [GRADIENT + t.name]) for t in graph.tensors]
    nodes.append(helper.make_node("ReduceMean", [graph.tensors[0].name], ["loss"], keepdims=0))
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    made = helper.make_graph(nodes, graph.name, inputs, [loss, *outputs])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    data: bytes = model.SerializeToString(deterministic=True)
    return data
