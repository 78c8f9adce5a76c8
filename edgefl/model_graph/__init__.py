"""What a model is and what any part of it costs, without a machine-learning framework.

graph.py     tensors, layers, blocks, channel groups: the description and its checks
cost.py      parameters, bytes, multiply-adds and activations of any submodel
builder.py   describing a model by hand
"""

from edgefl.model_graph.builder import GraphBuilder, Signal
from edgefl.model_graph.cost import Cost, cost_of, kept_shape
from edgefl.model_graph.elements import ChannelGroup, Dtype, Fixed, Layer, Span, TensorRole, TensorSpec, Term
from edgefl.model_graph.graph import ModelGraph

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
    "cost_of",
    "kept_shape",
    "GraphBuilder",
    "Signal",
]
