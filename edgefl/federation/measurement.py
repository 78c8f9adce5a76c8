"""The cases that a client measures itself with: steps of a federation's own model at several widths, cuts and batches.

Widths and batch sizes separate the fixed cost of a step from what grows with the model and with the samples; cuts
separate the forward from the backward pass. Everything is made from the bundle and the batch size alone, so that every
worker of a coordinator makes the same.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from edgefl.artifacts.bundle import Bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation.submodel_document import submodel_document
from edgefl.masks import Mask, gather, kept_width
from edgefl.model_graph import ModelGraph
from edgefl.values import Digest, Measurement, MeasurementCase, digest_of, dumps
from edgefl.wire import encode_weights

__all__ = ["MeasurementBodies", "make_measurement"]

_FRACTIONS = (1.0, 0.6, 0.3)
_BATCH_RATIO = 4


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementBodies:
    """A measurement, and the bodies that it names: kind and content, by digest."""

    measurement: Measurement
    bodies: Mapping[Digest, tuple[str, bytes]]


def make_measurement(bundle: Bundle, batch_size: int, training_graph: Callable[[Mask], bytes]) -> MeasurementBodies:
    """Return the cases of a bundle; `training_graph` cuts the graph for what a mask trains."""
    weights, bodies = bundle_weights(bundle), dict[Digest, tuple[str, bytes]]()

    def keep(kind: str, body: bytes) -> Digest:
        digest = digest_of(body)
        bodies[digest] = (kind, body)
        return digest

    cases = []
    for fraction, mask in _masks(bundle.graph):
        # Masks that differ only in what they train share the weights: the body must not name the mask.
        shared = keep("weights", encode_weights(gather(mask, weights), {"model": bundle.graph.digest}))
        graph = keep("graph", training_graph(mask))
        submodel = keep("tensors", dumps(submodel_document(mask, {})).encode())
        cases += [
            _case(fraction, mask, size, graph=graph, weights=shared, submodel=submodel)
            for size in dict.fromkeys((max(1, batch_size // _BATCH_RATIO), batch_size))
        ]
    cases.sort(key=lambda case: (case.forward_multiply_adds + case.backward_multiply_adds, case.batch_size))
    return MeasurementBodies(Measurement(model=bundle.manifest.model, cases=tuple(cases)), bodies)


def _masks(graph: ModelGraph) -> Iterator[tuple[float, Mask]]:
    """Yield masks of every width: the whole model trained, the later half of its blocks, the last block."""
    layers, blocks = graph.trainable_layers, list(graph.blocks)
    cuts = [
        tuple(layer for layer in layers if graph.layer[layer].block in blocks[first:])
        for first in (0, len(blocks) // 2, len(blocks) - 1)
    ]
    for fraction in _FRACTIONS:
        kept = {group.name: range(kept_width(group, fraction)) for group in graph.groups}
        for trained in dict.fromkeys(cut for cut in cuts if cut):
            yield fraction, Mask.of(graph, trained=trained, kept=kept)


def _case(
    fraction: float, mask: Mask, batch_size: int, *, graph: Digest, weights: Digest, submodel: Digest
) -> MeasurementCase:
    cost = mask.cost
    return MeasurementCase(
        width=fraction,
        batch_size=batch_size,
        graph=graph,
        weights=weights,
        submodel=submodel,
        forward_multiply_adds=batch_size * cost.forward_multiply_adds,
        backward_multiply_adds=batch_size * cost.backward_multiply_adds,
        activation_bytes=cost.activation_bytes(batch_size),
        parameter_bytes=cost.parameter_bytes,
        trained_parameters=cost.trained_parameters,
    )
