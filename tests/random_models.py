"""Hypothesis strategies: random models with every kind of channel coupling, random masks of them, random weights."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from edgefl.masks import Mask
from edgefl.model_graph import GraphBuilder, ModelGraph, Signal


@st.composite
def model_graphs(draw: st.DrawFn) -> ModelGraph:
    """A small network of random layers: residual adds, concatenations, flattens, depthwise, norms, LSTM."""
    build = GraphBuilder("random", channels=draw(st.integers(1, 3)), positions=4)
    x = build.conv("stem", build.input, 2 * draw(st.integers(1, 4)), kernel=3, positions=4)
    for number in range(draw(st.integers(0, 4))):
        x = _random_step(draw, build, x, f"layer{number}")
    x = build.flatten(build.pool(x, positions=draw(st.sampled_from([1, 2, 4]))))
    if draw(st.booleans()):
        x = build.linear("hidden", x, draw(st.integers(1, 6)))
    build.linear("head", x, draw(st.integers(1, 4)), head=True)
    return build.finish()


def _random_step(draw: st.DrawFn, build: GraphBuilder, x: Signal, name: str) -> Signal:
    width = 2 * draw(st.integers(1, 4))
    match draw(st.sampled_from(["conv", "norm", "depthwise", "residual", "concat", "lstm"])):
        case "conv":
            return build.conv(name, x, width, kernel=3, positions=4, bias=draw(st.booleans()))
        case "norm":
            return build.norm(name, x, groups=draw(st.sampled_from([1, 2])), statistics=draw(st.booleans()))
        case "depthwise":
            return build.depthwise(name, x, kernel=3, positions=4)
        case "residual":
            return build.add(
                build.conv(f"{name}.a", x, width, kernel=1, positions=4),
                build.conv(f"{name}.b", x, width, kernel=3, positions=4),
            )
        case "concat":
            return build.concat(x, build.conv(name, x, width, kernel=1, positions=4))
        case _:
            return build.lstm(name, x, width)


@st.composite
def masks(draw: st.DrawFn, graph: ModelGraph, *, held: bool = True) -> Mask:
    """A random mask of a model."""
    kept: dict[str, list[int]] = {}
    for group in graph.groups:
        if group.fixed is None and draw(st.booleans()):
            steps = draw(st.integers(1, group.width // group.multiple_of))
            order = draw(st.permutations(range(group.width)))
            kept[group.name] = order[: steps * group.multiple_of]
    trained = draw(st.sets(st.sampled_from(graph.trainable_layers)))
    mask = Mask.of(graph, trained=trained, kept=kept)
    if not held or draw(st.booleans()):
        return mask
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    names = draw(st.sets(st.sampled_from([tensor.name for tensor in graph.tensors])))
    flags = {name: generator.random(mask.shapes[name]) < 0.5 for name in sorted(names)}
    return Mask.of(graph, trained=trained, kept=kept, held=flags)


@st.composite
def masked_models(draw: st.DrawFn, *, held: bool = True) -> tuple[ModelGraph, Mask]:
    """A random model and a random mask of it."""
    graph = draw(model_graphs())
    return graph, draw(masks(graph, held=held))


def numbered(graph: ModelGraph) -> dict[str, Any]:
    """Weights in which every entry of the model is another number, none of them zero."""
    weights, start = {}, 1
    for tensor in graph.tensors:
        weights[tensor.name] = np.arange(start, start + tensor.size, dtype=np.float32).reshape(tensor.shape)
        start += tensor.size
    return weights
