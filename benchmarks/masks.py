"""Gather and scatter of a PreResNet18 submodel (11.2 million parameters), compared with a plain copy."""

import numpy as np

from edgefl.bench.timing import medians
from edgefl.masks import Mask, Weights, gather, leading_channels, random_channels, scatter
from edgefl.model_graph import ModelGraph
from examples.networks import preresnet18


def main() -> None:
    """Print the table."""
    graph = preresnet18()
    generator = np.random.default_rng(0)
    weights = {t.name: generator.standard_normal(t.shape, dtype=np.float32) for t in graph.tensors}
    masks = {
        "leading half": leading_channels(graph, 0.5),
        "random half": random_channels(graph, 0.5, generator),
        "random half, weights half held": _half_held(random_channels(graph, 0.5, generator), generator),
    }
    print(f"{graph.name}: {graph.parameters:,} parameters; medians of 25 rounds in turns, milliseconds")
    print(f"{'mask':<32} {'kept':>10} {'cut anew':>9} {'gather':>8} {'scatter':>8} {'copy of all':>12}")
    for name, mask in masks.items():
        times = _times(graph, mask, weights)
        line = " ".join(f"{times[column] * 1e3:{width}.1f}" for column, width in _COLUMNS.items())
        print(f"{name:<32} {mask.cost.parameters:>10,} {line}")


_COLUMNS = {"cut anew": 9, "gather": 8, "scatter": 8, "copy": 12}


def _times(graph: ModelGraph, mask: Mask, weights: Weights) -> dict[str, float]:
    part = gather(mask, weights)
    tasks = {
        # A mask that was never used before: its index arrays are made on the way.
        "cut anew": lambda: gather(Mask(graph, mask.trained, mask.kept, mask.held), weights),
        "gather": lambda: gather(mask, weights),
        "scatter": lambda: scatter(mask, part, weights),
        "copy": lambda: {name: array.copy() for name, array in weights.items()},
    }
    return medians(tasks, rounds=25)


def _half_held(mask: Mask, generator: np.random.Generator) -> Mask:
    held = {name: generator.random(shape) < 0.5 for name, shape in mask.shapes.items() if len(shape) > 1}
    return Mask.of(mask.graph, kept=mask.kept, held=held)


if __name__ == "__main__":
    main()
