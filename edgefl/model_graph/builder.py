"""Builder for model graphs: describe a model by hand, layer by layer, without a framework.

The builder tracks channels: the output of an operation is a new channel group, its input joins the group of its source,
and an addition merges two groups. Use it for models that were not exported, in examples and in tests. It only describes
(activations are the outputs of layers with weights); `ModelGraph` checks the result.

    build = GraphBuilder("small", channels=1, positions=28 * 28)
    x = build.conv("conv1", build.input, 32, kernel=3, positions=28 * 28)
    x = build.pool(build.norm("norm1", x), positions=14 * 14)
    build.linear("head", build.flatten(x), 10, head=True)
    graph = build.finish()
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from edgefl.errors import MaskError
from edgefl.model_graph.elements import ChannelGroup, Fixed, Layer, Span, TensorRole, TensorSpec, Term
from edgefl.model_graph.graph import ModelGraph

__all__ = ["GraphBuilder", "Signal"]


@dataclass(frozen=True, slots=True)
class Signal:
    """A value between layers: the channels of one or more groups, at a number of positions."""

    parts: tuple[tuple[str, int], ...]
    """Groups in order, with the number of indices per channel: more than 1 after a flatten."""
    positions: int
    layers: tuple[str, ...] = ()
    from_input: bool = False
    """Whether the model's input is part of it."""


@dataclass(slots=True)
class _Group:
    width: int
    spans: list[Span] = field(default_factory=list)
    multiple_of: int = 1
    fixed: Fixed | None = None


class GraphBuilder:
    """Collects layers; `finish` returns the graph."""

    def __init__(self, name: str, *, channels: int, positions: int = 1) -> None:
        self._name, self._input_elements = name, channels * positions
        self._tensors: list[TensorSpec] = []
        self._layers: list[Layer] = []
        self._groups: dict[str, _Group] = {"input": _Group(channels, fixed=Fixed.INPUT)}
        self._joined: dict[str, str] = {}
        self._block: str | None = None
        self.input = Signal((("input", 1),), positions, from_input=True)

    def begin_block(self, name: str | None) -> None:
        """Put the following layers into one block; None makes each its own block again."""
        self._block = name

    def conv(
        self, name: str, source: Signal, channels: int, *, kernel: int, positions: int, bias: bool = False
    ) -> Signal:
        """Add a square convolution with `positions` output positions."""
        out = self._new_signal(name, channels, positions)
        shape = (channels, self._width(source), kernel, kernel)
        names = [self._tensor(f"{name}.weight", shape, TensorRole.WEIGHT, positions, {0: out, 1: source})]
        if bias:
            names.append(self._tensor(f"{name}.bias", (channels,), TensorRole.BIAS, 0, {0: out}))
        return self._layer(name, "conv", names, source, out)

    def depthwise(self, name: str, source: Signal, *, kernel: int, positions: int) -> Signal:
        """Add a depthwise convolution, which shares the channels of its source."""
        out = replace(source, positions=positions)
        shape = (self._width(source), 1, kernel, kernel)
        weight = self._tensor(f"{name}.weight", shape, TensorRole.WEIGHT, positions, {0: source})
        return self._layer(name, "depthwise", [weight], source, out)

    def linear(self, name: str, source: Signal, channels: int, *, bias: bool = True, head: bool = False) -> Signal:
        """Add a linear layer; `head` marks the classifier, whose classes are never cut."""
        fixed = Fixed.CLASSES if head else None
        out = self._new_signal(name, channels, source.positions, fixed)
        weight_role, bias_role = (TensorRole.HEAD, TensorRole.HEAD) if head else (TensorRole.WEIGHT, TensorRole.BIAS)
        shape = (channels, self._width(source))
        names = [self._tensor(f"{name}.weight", shape, weight_role, source.positions, {0: out, 1: source})]
        if bias:
            names.append(self._tensor(f"{name}.bias", (channels,), bias_role, 0, {0: out}))
        return self._layer(name, "linear", names, source, out)

    def norm(self, name: str, source: Signal, *, groups: int = 1, statistics: bool = False) -> Signal:
        """Add a norm with scale and shift; `groups` of a group norm restrict widths; batch norm may track."""
        for group, _ in self._resolved(source):
            group.multiple_of = math.lcm(group.multiple_of, groups)
        parts = [("weight", TensorRole.NORM, source.positions), ("bias", TensorRole.NORM, 0)]
        if statistics:
            parts += [("running_mean", TensorRole.STATISTIC, 0), ("running_var", TensorRole.STATISTIC, 0)]
        width = self._width(source)
        names = [self._tensor(f"{name}.{part}", (width,), role, n, {0: source}) for part, role, n in parts]
        return self._layer(name, "norm", names, source, source)

    def embedding(self, name: str, words: int, channels: int, *, steps: int) -> Signal:
        """Add an embedding of the model's input, a text of `steps` words."""
        out = self._new_signal(name, channels, steps)
        table = self._tensor(f"{name}.weight", (words, channels), TensorRole.WEIGHT, 0, {1: out})
        return self._layer(name, "embedding", [table], self.input, out)

    def lstm(self, name: str, source: Signal, channels: int) -> Signal:
        """Add one LSTM layer over the positions of its source; its four gates are stacked on the first axis."""
        out = self._new_signal(name, channels, source.positions)
        names = []
        for part, inner in (("ih", source), ("hh", out)):
            shape = (4 * channels, self._width(inner))
            weight = f"{name}.weight_{part}"
            names.append(self._tensor(weight, shape, TensorRole.WEIGHT, source.positions, {1: inner}))
            names.append(self._tensor(f"{name}.bias_{part}", (4 * channels,), TensorRole.BIAS, 0, {}))
        for tensor in names:
            self._groups[name].spans.append(Span(tensor, 0, stacks=4, stride=channels))
        return self._layer(name, "lstm", names, source, out)

    def pool(self, source: Signal, *, positions: int) -> Signal:
        """Reduce the number of positions."""
        return replace(source, positions=positions)

    def flatten(self, source: Signal) -> Signal:
        """Turn C channels at P positions into C * P features, channel by channel."""
        parts = tuple((group, repeat * source.positions) for group, repeat in source.parts)
        return replace(source, positions=1, parts=parts)

    def add(self, one: Signal, other: Signal) -> Signal:
        """Add two signals, as a residual connection does: their channels become one group."""
        repeats = [[repeat for _, repeat in signal.parts] for signal in (one, other)]
        if repeats[0] != repeats[1] or one.positions != other.positions:
            raise MaskError(
                "two signals of different shapes are added", fix="Add signals with equal channels and positions."
            )
        for (left, _), (right, _) in zip(one.parts, other.parts, strict=True):
            self._join(left, right)
        return self._merged(one.parts, [one, other])

    def concat(self, *signals: Signal) -> Signal:
        """Concatenate the channels of several signals."""
        if len({signal.positions for signal in signals}) != 1:
            raise MaskError(
                "signals with different positions are concatenated", fix="Pool them to the same size first."
            )
        return self._merged(tuple(part for signal in signals for part in signal.parts), signals)

    def finish(self) -> ModelGraph:
        """Return the graph."""
        groups = tuple(
            ChannelGroup(name, group.width, tuple(group.spans), group.multiple_of, group.fixed)
            for name, group in self._groups.items()
        )
        layers = tuple(replace(layer, activations=tuple(self._settled(layer.activations))) for layer in self._layers)
        return ModelGraph(self._name, tuple(self._tensors), layers, groups, self._input_elements)

    def _tensor(self, name: str, shape: tuple[int, ...], role: TensorRole, uses: int, axes: dict[int, Signal]) -> str:
        """Add a tensor whose given axes carry the channels of the given signals."""
        self._tensors.append(TensorSpec(name, shape, role, uses))
        for axis, signal in axes.items():
            offset = 0
            for group, repeat in self._resolved(signal):
                group.spans.append(Span(name, axis, offset, repeat))
                offset += group.width * repeat
        return name

    def _layer(self, name: str, kind: str, tensors: list[str], source: Signal, out: Signal) -> Signal:
        activations = tuple(Term(out.positions * repeat, (group,)) for group, repeat in out.parts)
        layer = Layer(
            name, kind, self._block or name, tuple(tensors), source.layers, activations, reads_input=source.from_input
        )
        self._layers.append(layer)
        return replace(out, layers=(name,), from_input=False)

    def _new_signal(self, name: str, width: int, positions: int, fixed: Fixed | None = None) -> Signal:
        if name in self._groups or name in self._joined:
            raise MaskError(f"group {name!r} already exists", fix="Give the layer another name.")
        self._groups[name] = _Group(width, fixed=fixed)
        return Signal(((name, 1),), positions)

    def _merged(self, parts: tuple[tuple[str, int], ...], signals: Sequence[Signal]) -> Signal:
        layers = tuple(dict.fromkeys(name for signal in signals for name in signal.layers))
        return Signal(parts, signals[0].positions, layers, any(signal.from_input for signal in signals))

    def _join(self, left: str, right: str) -> None:
        keep, gone = self._name_now(left), self._name_now(right)
        if keep == gone:
            return
        group, other = self._groups[keep], self._groups[gone]
        if group.width != other.width:
            raise MaskError(
                f"{keep!r} with {group.width} channels is added to {gone!r} with {other.width}",
                fix="Add signals with equal channels.",
            )
        group.spans += other.spans
        group.multiple_of = math.lcm(group.multiple_of, other.multiple_of)
        group.fixed = group.fixed or other.fixed
        del self._groups[gone]
        self._joined[gone] = keep

    def _name_now(self, name: str) -> str:
        while name in self._joined:
            name = self._joined[name]
        return name

    def _resolved(self, signal: Signal) -> Iterator[tuple[_Group, int]]:
        return ((self._groups[self._name_now(name)], repeat) for name, repeat in signal.parts)

    def _width(self, signal: Signal) -> int:
        return sum(group.width * repeat for group, repeat in self._resolved(signal))

    def _settled(self, terms: tuple[Term, ...]) -> Iterator[Term]:
        return (replace(term, groups=tuple(map(self._name_now, term.groups))) for term in terms)
