"""The rungs of one device: which submodels its engine has training programs for.

An engine that runs programs trains a submodel only if there is a program of exactly its widths, whose cut covers the
trained layers and whose batches are large enough: smaller ones are filled up. `Rungs` answers for the whole ladder, as
if all of it were compiled, or for the programs that exist. Round estimates ask it; strategies never do.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from edgefl.model_graph import Cost, cost_of
from edgefl.planning.rungs import Ladder
from edgefl.values import ProgramRole, ProgramSpec

__all__ = ["Rung", "Rungs"]

_Widths = tuple[int, ...]
"""The widths of all groups, in the model's order."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A training program, compiled or not, and what its steps take."""

    spec: ProgramSpec
    cost: Cost
    """The cost of its cut for one sample."""

    @property
    def step_multiply_adds(self) -> int:
        """What a step takes, however few samples of the batch are real."""
        return self.spec.batch_size * (self.cost.forward_multiply_adds + self.cost.backward_multiply_adds)


@dataclass(frozen=True, slots=True, eq=False)
class Rungs:
    """The submodels that one device's engine can train. Devices that can train the same share one object."""

    ladder: Ladder
    programs: tuple[ProgramSpec, ...] = ()
    """The programs that exist, whatever their widths."""
    whole_ladder: bool = False
    """Whether every rung of the ladder counts, compiled or not, at any batch size."""
    _known: dict[tuple[_Widths, frozenset[str], int], Rung | None] = field(default_factory=dict)
    _widths: dict[int, tuple[Mapping[str, int], ...]] = field(default_factory=dict)
    _costs: dict[tuple[_Widths, tuple[str, ...]], Cost] = field(default_factory=dict)
    _existing: frozenset[ProgramSpec] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_existing", frozenset(self.programs))

    def widths(self, batch_size: int) -> tuple[Mapping[str, int], ...]:
        """Return the widths that can be trained in batches of this size, the largest submodel first."""
        if batch_size not in self._widths:
            found = [dict(spec.widths) for spec in self._training() if spec.batch_size >= batch_size]
            found += map(dict, self.ladder.widths.values()) if self.whole_ladder else []
            distinct = {self._key(widths): widths for widths in found}
            ordered = sorted(distinct.items(), key=lambda pair: (-self._cost(pair[1]).parameters, pair[0]))
            self._widths[batch_size] = tuple(widths for _, widths in ordered)
        return self._widths[batch_size]

    def cover(self, widths: Mapping[str, int], trained: Collection[str] | None, batch_size: int) -> Rung | None:
        """Return the cheapest rung of these widths that trains these layers, or all of them; None if there is none."""
        layers = frozenset(self.ladder.graph.trainable_layers if trained is None else trained)
        key = self._key(widths), layers, batch_size
        if key not in self._known:
            found = [
                spec
                for spec in self._training()
                if spec.batch_size >= batch_size and layers <= set(spec.trained) and self._key(spec.widths) == key[0]
            ]
            if self.whole_ladder and dict(widths) in self.ladder.widths.values():
                found.append(self.ladder.training_spec(widths, layers, batch_size))
            rungs = [Rung(spec, self._cost(spec.widths, spec.trained)) for spec in found]
            self._known[key] = min(rungs, key=lambda rung: rung.step_multiply_adds, default=None)
        return self._known[key]

    def has(self, spec: ProgramSpec) -> bool:
        """Return whether a program exists."""
        return spec in self._existing

    def below(self, widths: Mapping[str, int], batch_size: int) -> Iterable[Mapping[str, int]]:
        """Yield the widths that are within the given ones in every group, the largest submodel first."""
        for found in self.widths(batch_size):
            if all(width <= widths[name] for name, width in found.items()):
                yield found

    def inference(self, widths: Mapping[str, int], batch_size: int) -> ProgramSpec | None:
        """Return the program that evaluates submodels of these widths, of about this batch size; None if there is none.

        Every batch size will do: samples are cut into batches, and the last one is filled up.
        """
        found = (spec for spec in self.programs if spec.role is ProgramRole.INFER and spec.widths == widths)
        nearest = min(found, key=lambda spec: (abs(spec.batch_size - batch_size), spec.batch_size), default=None)
        if nearest is None and self.whole_ladder and dict(widths) in self.ladder.widths.values():
            return self.ladder.inference_spec(widths, batch_size)
        return nearest

    def _training(self) -> Iterable[ProgramSpec]:
        return (spec for spec in self.programs if spec.role is ProgramRole.TRAIN)

    def _key(self, widths: Mapping[str, int]) -> _Widths:
        return tuple(widths[group.name] for group in self.ladder.graph.groups)

    def _cost(self, widths: Mapping[str, int], trained: tuple[str, ...] = ()) -> Cost:
        key = self._key(widths), trained
        if key not in self._costs:
            self._costs[key] = cost_of(self.ladder.graph, widths, trained)
        return self._costs[key]
