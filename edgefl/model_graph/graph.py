"""Model graph: a framework-free description of a model's tensors, layers and channel groups.

The exporter makes a `ModelGraph` once; masks, planners, the coordinator and devices read it. It has shapes and
connections but no weights, and is independent of torch and ONNX.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from edgefl.model_graph.checks import check_groups, check_layers, check_tensors
from edgefl.model_graph.elements import ChannelGroup, Fixed, Layer, Span, TensorRole, TensorSpec
from edgefl.values import Count, Digest, Name, check_fields, digest_of, document, dumps

__all__ = ["ModelGraph"]


@document("model_graph", version=1)
@dataclass(frozen=True)  # no slots: cached properties need a __dict__
class ModelGraph:
    """The framework-free description of a model, checked for consistency on construction."""

    name: Name
    tensors: tuple[TensorSpec, ...]
    layers: tuple[Layer, ...]
    groups: tuple[ChannelGroup, ...]
    input_elements: Count = 0
    """Elements of one input sample."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_tensors(self.name, self.tensors, self.layers)
        check_layers(self.layers, self.groups)
        check_groups(self.tensor, self.groups)

    @cached_property
    def tensor(self) -> Mapping[str, TensorSpec]:
        """The tensors by name."""
        return {tensor.name: tensor for tensor in self.tensors}

    @cached_property
    def layer(self) -> Mapping[str, Layer]:
        """The layers by name."""
        return {layer.name: layer for layer in self.layers}

    @cached_property
    def group(self) -> Mapping[str, ChannelGroup]:
        """The channel groups by name."""
        return {group.name: group for group in self.groups}

    @cached_property
    def trainable_layers(self) -> tuple[str, ...]:
        """The layers with tensors, in order; others can be neither trained nor frozen."""
        return tuple(layer.name for layer in self.layers if layer.tensors)

    @cached_property
    def classes(self) -> int | None:
        """Number of classes: the outputs of the head, or None without a head."""
        axes = ((tensor, self.class_axis(tensor.name)) for tensor in self.tensors)
        return next((tensor.shape[axis] for tensor, axis in axes if axis is not None), None)

    def class_axis(self, name: str) -> int | None:
        """Return the axis of a head tensor along which the classes lie, one index per class, or None."""
        tensor, spans = self.tensor[name], self.spans_of.get(name, ())
        if tensor.role is not TensorRole.HEAD:
            return None
        said = [span.axis for group, span in spans if group.fixed is Fixed.CLASSES and span.per_channel == 1]
        if said:
            return said[0]
        # An exported graph has no group for them: the head's output axis is first, and cannot be cut.
        return 0 if tensor.shape and all(span.axis != 0 for _, span in spans) else None

    @cached_property
    def layer_of(self) -> Mapping[str, str]:
        """The layer that each tensor belongs to."""
        return {tensor: layer.name for layer in self.layers for tensor in layer.tensors}

    @cached_property
    def blocks(self) -> Mapping[str, tuple[str, ...]]:
        """The layers of each block, in order."""
        found: dict[str, list[str]] = {}
        for layer in self.layers:
            found.setdefault(layer.block, []).append(layer.name)
        return {block: tuple(layers) for block, layers in found.items()}

    @cached_property
    def spans_of(self) -> Mapping[str, tuple[tuple[ChannelGroup, Span], ...]]:
        """The spans that lie on each tensor, with their groups."""
        found: dict[str, list[tuple[ChannelGroup, Span]]] = {}
        for group in self.groups:
            for span in group.spans:
                found.setdefault(span.tensor, []).append((group, span))
        return {tensor: tuple(spans) for tensor, spans in found.items()}

    @cached_property
    def parameters(self) -> int:
        """Number of trainable parameters; running statistics are not parameters."""
        return sum(tensor.size for tensor in self.tensors if tensor.role is not TensorRole.STATISTIC)

    @cached_property
    def digest(self) -> Digest:
        """The content address of this description."""
        return digest_of(dumps(self).encode())
