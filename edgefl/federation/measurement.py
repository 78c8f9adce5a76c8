"""The cases that a client measures itself with: steps of a federation's own model at several widths, cuts and batches.

Widths and batch sizes separate the fixed cost of a step from what grows with the model and with the samples; cuts
separate the forward from the backward pass. Everything is made from the bundle and the batch size alone, so that every
worker of a coordinator makes the same.

A client whose engine runs compiled programs measures itself with programs that exist: their widths, cuts and batches.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from edgefl.artifacts.bundle import Bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation.submodel_document import submodel_document
from edgefl.masks import Mask, Weights, gather, kept_width
from edgefl.model_graph import ModelGraph, cost_of
from edgefl.values import Digest, Measurement, MeasurementCase, Program, ProgramRole, digest_of, dumps
from edgefl.wire import encode_weights

__all__ = ["MeasurementBodies", "make_measurement", "make_program_measurement"]

_FRACTIONS = (1.0, 0.6, 0.3)
_BATCH_RATIO = 4
_MOST_PROGRAMS = 12


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementBodies:
    """A measurement, and the bodies that it names: kind and content, by digest."""

    measurement: Measurement
    bodies: Mapping[Digest, tuple[str, bytes]]


def make_measurement(bundle: Bundle, batch_size: int, training_graph: Callable[[Mask], bytes]) -> MeasurementBodies:
    """Return the cases of a bundle; `training_graph` cuts the graph for what a mask trains."""
    maker = _CaseMaker(bundle, bundle_weights(bundle), training_graph)
    sizes = tuple(dict.fromkeys((max(1, batch_size // _BATCH_RATIO), batch_size)))
    return maker.measurement(
        case for fraction, mask in _masks(bundle.graph) for case in maker.cases(fraction, mask, sizes)
    )


def make_program_measurement(
    bundle: Bundle, programs: Iterable[Program], training_graph: Callable[[Mask], bytes]
) -> MeasurementBodies:
    """Return cases for clients whose engine runs programs, one for each of some training programs of a bundle.

    A few of many are taken, from the least work to the most. The model's graph, which programs name, is among the
    bodies, and the files of programs are not: a `Program` names its own.
    """
    maker = _CaseMaker(bundle, bundle_weights(bundle), training_graph)
    training = [one for one in programs if one.spec.role is ProgramRole.TRAIN]
    training.sort(key=lambda one: (_work(bundle.graph, one), one.spec.key))
    places = np.linspace(0, len(training) - 1, min(len(training), _MOST_PROGRAMS)).round().astype(int)
    made = maker.measurement(case for place in places for case in maker.program_case(training[place]))
    model_graph = dumps(bundle.graph).encode()
    return replace(made, bodies={**made.bodies, digest_of(model_graph): ("model_graph", model_graph)})


def _work(graph: ModelGraph, program: Program) -> int:
    cost = cost_of(graph, program.spec.widths, program.spec.trained)
    return program.spec.batch_size * (cost.forward_multiply_adds + cost.backward_multiply_adds)


@dataclass(frozen=True, slots=True, eq=False)
class _CaseMaker:
    """Makes cases, and keeps the bodies that they name."""

    bundle: Bundle
    weights: Weights
    training_graph: Callable[[Mask], bytes]
    bodies: dict[Digest, tuple[str, bytes]] = field(default_factory=dict)

    def cases(self, fraction: float, mask: Mask, sizes: tuple[int, ...]) -> Iterator[MeasurementCase]:
        """Yield the cases of a mask, one for each batch size."""
        # Masks that differ only in what they train share the weights: the body must not name the mask.
        shared = self._keep("weights", encode_weights(gather(mask, self.weights), {"model": self.bundle.graph.digest}))
        graph = self._keep("graph", self.training_graph(mask))
        submodel = self._keep("tensors", dumps(submodel_document(mask, {})).encode())
        for size in sizes:
            yield _case(fraction, mask, size, graph=graph, weights=shared, submodel=submodel)

    def program_case(self, program: Program) -> Iterator[MeasurementCase]:
        """Yield the case of a program."""
        spec, groups = program.spec, self.bundle.graph.groups
        kept = {name: range(width) for name, width in spec.widths.items()}
        mask = Mask.of(self.bundle.graph, trained=spec.trained, kept=kept)
        share = sum(spec.widths.values()) / max(sum(group.width for group in groups), 1)
        described = self._keep("program", dumps(program).encode())
        for case in self.cases(min(share, 1.0), mask, (spec.batch_size,)):
            yield replace(case, program=described)

    def measurement(self, cases: Iterable[MeasurementCase]) -> MeasurementBodies:
        """Return the cases from the least work to the most, with their bodies."""
        work = sorted(cases, key=lambda c: (c.forward_multiply_adds + c.backward_multiply_adds, c.batch_size))
        return MeasurementBodies(Measurement(model=self.bundle.manifest.model, cases=tuple(work)), self.bodies)

    def _keep(self, kind: str, body: bytes) -> Digest:
        digest = digest_of(body)
        self.bodies[digest] = (kind, body)
        return digest


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
