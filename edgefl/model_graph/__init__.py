"""Framework-free description of a model, and the cost of its submodels.

elements.py  tensors, layers, channel groups and spans
graph.py     the model graph
checks.py    consistency checks of a model graph
cost.py      parameters, bytes, multiply-adds and activations of a submodel
builder.py   describing a model by hand
head.py      the last layer of a model, if it is linear
widening.py  a wider model of the same form
"""

from edgefl.model_graph.builder import GraphBuilder, Signal
from edgefl.model_graph.cost import Cost, cost_in_turn, cost_of, kept_shape
from edgefl.model_graph.elements import ChannelGroup, Dtype, Fixed, Layer, Span, TensorRole, TensorSpec, Term
from edgefl.model_graph.graph import ModelGraph
from edgefl.model_graph.head import LinearHead, linear_head
from edgefl.model_graph.widening import widened

__all__ = [
    "ModelGraph",
    "TensorSpec",
    "TensorRole",
    "Dtype",
    "Layer",
    "Term",
    "ChannelGroup",
    "Span",
    "Fixed",
    "Cost",
    "cost_in_turn",
    "cost_of",
    "kept_shape",
    "GraphBuilder",
    "Signal",
    "LinearHead",
    "linear_head",
    "widened",
]
