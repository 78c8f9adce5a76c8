"""The ladder of ExecuTorch programs: which widths, cuts and batch sizes are compiled.

A rung is a fraction of the model's width, at widths that kernels like, and a cut: the layers from a block on, which are
trained together. The exporter compiles the ladder, and planners keep devices whose engine runs programs on its rungs. A
cut may train more layers than a mask: whatever lies between a trained layer and the loss costs its gradient anyway.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from edgefl.errors import SchemaError
from edgefl.masks import kept_width
from edgefl.model_graph import ModelGraph
from edgefl.values import Digest, ProgramRole, ProgramSpec

__all__ = ["DEFAULT_WIDTHS", "Ladder", "covering_cut", "cuts_of", "rung_widths"]

DEFAULT_WIDTHS = (1.0, 0.75, 0.5, 0.375, 0.25, 0.125)
_MULTIPLE = 8


def rung_widths(graph: ModelGraph, fraction: float) -> dict[str, int]:
    """Return the width of every group for a fraction of the model's width."""
    return {group.name: kept_width(group, fraction, multiple=_MULTIPLE) for group in graph.groups}


def cuts_of(graph: ModelGraph) -> dict[str, tuple[str, ...]]:
    """Return the trained layers of each cut by the block that it begins with: all layers first, the last block last."""
    blocks, found = list(graph.blocks), dict[str, tuple[str, ...]]()
    for first, name in enumerate(blocks):
        later = set(blocks[first:])
        layers = tuple(layer for layer in graph.trainable_layers if graph.layer[layer].block in later)
        if layers and layers not in found.values():
            found[name] = layers
    return found


def covering_cut(graph: ModelGraph, trained: Collection[str]) -> tuple[str, ...]:
    """Return the smallest cut that trains these layers; of none, the last one."""
    wanted = set(trained)
    return next(layers for layers in reversed(cuts_of(graph).values()) if wanted <= set(layers))


@dataclass(frozen=True)  # no slots: what is derived is cached
class Ladder:
    """The rungs of one model."""

    graph: ModelGraph
    training_graph: Digest
    """Digest of the bundle's training graph."""
    inference_graph: Digest
    """Digest of the bundle's inference graph."""
    fractions: tuple[float, ...] = DEFAULT_WIDTHS

    def __post_init__(self) -> None:
        if not self.fractions or not all(0 < fraction <= 1 for fraction in self.fractions):
            raise SchemaError(
                f"the widths of the ladder are {list(self.fractions)}", fix="Give fractions above 0 and at most 1."
            )

    @cached_property
    def widths(self) -> Mapping[float, Mapping[str, int]]:
        """The widths of every group by fraction, the widest first; of fractions with equal widths, the largest."""
        found: dict[float, dict[str, int]] = {}
        for fraction in sorted(set(self.fractions), reverse=True):
            widths = rung_widths(self.graph, fraction)
            if widths not in found.values():
                found[fraction] = widths
        return found

    @cached_property
    def cuts(self) -> Mapping[str, tuple[str, ...]]:
        """The trained layers of each cut by its first block, all layers first."""
        return cuts_of(self.graph)

    def training_spec(self, widths: Mapping[str, int], trained: Collection[str], batch_size: int) -> ProgramSpec:
        """Return what to compile for these widths so that at least these layers are trained."""
        return ProgramSpec(
            role=ProgramRole.TRAIN,
            model=self.graph.digest,
            graph=self.training_graph,
            widths=dict(widths),
            trained=covering_cut(self.graph, trained),
            batch_size=batch_size,
        )

    def inference_spec(self, widths: Mapping[str, int], batch_size: int) -> ProgramSpec:
        """Return what to compile to predict at these widths."""
        return ProgramSpec(
            role=ProgramRole.INFER,
            model=self.graph.digest,
            graph=self.inference_graph,
            widths=dict(widths),
            trained=(),
            batch_size=batch_size,
        )

    def rung_of(self, spec: ProgramSpec) -> str:
        """Return the name of a program's rung for people, such as '0.5 from block2, batch 32'."""
        width = next((f"{fraction:g}" for fraction, widths in self.widths.items() if widths == spec.widths), None)
        if width is None:  # a rung of another ladder
            width = f"about {sum(spec.widths.values()) / sum(group.width for group in self.graph.groups):.2g}"
        if spec.role is ProgramRole.INFER:
            return f"{width} to predict, batch {spec.batch_size}"
        first = next((name for name, layers in self.cuts.items() if layers == spec.trained), None)
        begin = "some layers" if first is None else "all layers" if first == next(iter(self.cuts)) else f"from {first}"
        return f"{width} {begin}, batch {spec.batch_size}"
