"""A bundle of a wider model, without exporting anything: its graphs run any width.

The first weights of channels that are added are drawn, with replacement, from those of the same tensor, so they have
the distribution with which it was initialised; those of the original channels stay. A model that was trained already is
not made better by this.
"""

from dataclasses import replace

import numpy as np

from edgefl.artifacts.bundle import GRAPH, WEIGHTS, Bundle, program_file
from edgefl.artifacts.submodel import bundle_weights
from edgefl.masks import Array, Mask, scatter
from edgefl.model_graph import widened
from edgefl.noise import derive
from edgefl.values import digest_of, dumps
from edgefl.wire import encode_weights

__all__ = ["widen"]


def widen(bundle: Bundle, factor: float, *, seed: int = 0) -> Bundle:
    """Return the bundle of a model with this many times as many channels; compiled programs do not fit it."""
    graph, weights = widened(bundle.graph, factor), bundle_weights(bundle)
    drawn = {
        tensor.name: _drawn(weights[tensor.name], tensor.shape, derive(seed, "widen", tensor.name))
        for tensor in graph.tensors
    }
    original = Mask.of(graph, kept={group.name: range(group.width) for group in bundle.graph.groups})
    wider = scatter(original, weights, drawn)
    files = {name: data for name, data in bundle.files.items() if name not in _programs(bundle)}
    files[GRAPH] = (dumps(graph, indent=2) + "\n").encode()
    files[WEIGHTS] = encode_weights(wider, {"model": graph.digest, "mask": Mask.of(graph).digest})
    digests = {name: digest_of(data) for name, data in files.items()}
    return Bundle(replace(bundle.manifest, graph=graph.digest, files=digests, programs=()), graph, files)


def _programs(bundle: Bundle) -> set[str]:
    return {program_file(program.spec) for program in bundle.manifest.programs}


def _drawn(array: Array, shape: tuple[int, ...], seed: int) -> Array:
    if not array.size or array.shape == shape:
        return np.broadcast_to(array, shape).copy()
    return np.random.default_rng(seed).choice(array.reshape(-1), shape)
