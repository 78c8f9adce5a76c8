"""An estimate of one device's round: its number of steps, what it takes, and which submodel fits.

Strategies use this when they plan. `edgefl.planning` knows what a step takes, and the budget how much is too much.

Most engines train a submodel of any widths. An engine that runs compiled programs trains only those on its device's
rungs (`Participant.rungs`), and at the cost of a whole program: all layers of its cut, and batches that are filled up.
This is the one place that knows the difference. A strategy asks for the widest submodel, or whether a device can train
a certain one, and gets an answer that holds for the device's engine.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace

from edgefl.errors import MaskError
from edgefl.masks import Mask
from edgefl.model_graph import Cost, ModelGraph, cost_of
from edgefl.planning import Rung, TrainingLoad, predict, widest
from edgefl.strategies.strategy import Participant, RoundContext
from edgefl.values import Budget, LocalWork, Prediction

__all__ = ["RoundEstimate", "largest_fitting", "round_estimates"]


@dataclass(frozen=True, slots=True, eq=False)
class RoundEstimate:
    """The work of a round on one device."""

    graph: ModelGraph
    participant: Participant
    work: LocalWork
    assumed_samples: int
    """The number of training samples of a device that has never said it."""
    costs: MutableMapping[object, dict[int, Cost]] = field(default_factory=dict)
    """The costs of uniform submodels by the layers that they train, shared by the estimates of several devices."""
    load: TrainingLoad = field(default_factory=TrainingLoad)
    """What the rule takes beyond plain gradient descent."""

    @property
    def on_rungs(self) -> bool:
        """Whether the device's engine runs compiled programs, so that not every submodel will do."""
        return self.participant.rungs is not None

    @property
    def samples(self) -> int:
        """The number of training samples of the device, or an assumption; one that has none is planned as with one."""
        told = self.participant.samples
        return self.assumed_samples if told is None else max(told, 1)

    @property
    def steps(self) -> int:
        """The number of training steps of the round. As on the device, a last batch of one sample is left out."""
        whole, rest = divmod(self.samples, self.work.batch_size)
        steps = self.work.epochs * (whole + (rest > 1 or whole == 0))
        return min(steps, self.work.most_steps or steps)

    def widest(self, trained: Collection[str] | None = None, *, density: float = 1.0) -> Mask | None:
        """Return the widest submodel of leading channels that fits, with these layers trained, or all of them.

        None if none fits.
        """
        if not self.on_rungs:
            known = self.costs.setdefault(None if trained is None else frozenset(trained), {})
            try:
                return widest(self.graph, lambda cost: self.fits(cost, density), trained=trained, known=known)
            except MaskError:
                return None
        found = self.largest_rung(trained, density=density)
        return None if found is None else _leading(self.graph, found, trained)

    def widest_within(self, mask: Mask) -> Mask | None:
        """Return a submodel of leading channels if it fits; on rungs, the widest one within it. None if it does not."""
        if self.on_rungs:
            within = (
                widths for widths in self._rung_widths(mask.widths) if self.rung(widths, mask.trained) is not None
            )
            found = next(within, None)
            if found is None:
                return None
            mask = mask if found == mask.widths else _leading(self.graph, found, mask.trained)
        return mask if self.can_train(mask) else None

    def largest_rung(
        self,
        trained: Collection[str] | None = None,
        *,
        within: Mapping[str, int] | None = None,
        density: float = 1.0,
        accept: Callable[[Mapping[str, int]], bool] | None = None,
    ) -> Mapping[str, int] | None:
        """Return the largest widths of the device's rungs at which it can train these layers; None if there are none.

        `within` are widths that they must not exceed in any group, and `accept` may refuse others.
        """
        allowed = (widths for widths in self._rung_widths(within) if accept is None or accept(widths))
        return next((widths for widths in allowed if self.fits_at(widths, trained, density)), None)

    def rung(self, widths: Mapping[str, int], trained: Collection[str] | None) -> Rung | None:
        """Return the program that would train a submodel; None if there is none, or if none is needed."""
        rungs = self.participant.rungs
        return None if rungs is None else rungs.cover(widths, trained, self.work.batch_size)

    def runs(self, mask: Mask) -> bool:
        """Return whether the device's engine can train a submodel at all, whatever it takes."""
        return not self.on_rungs or self.rung(mask.widths, mask.trained) is not None

    def can_train(self, mask: Mask, density: float = 1.0) -> bool:
        """Return whether the device can train a submodel within its budget."""
        if self.on_rungs:
            return self.fits_at(mask.widths, mask.trained, density)
        return self.fits(self.cost(mask), density)

    def fits_at(self, widths: Mapping[str, int], trained: Collection[str] | None, density: float = 1.0) -> bool:
        """Return whether the device can train these layers at these widths within its budget."""
        if not self.on_rungs:
            return self.fits(cost_of(self.graph, widths, trained), density)
        rung = self.rung(widths, trained)
        return rung is not None and not self.participant.budget.exceeded_by(self.use_of(rung, density))

    def cost(self, mask: Mask) -> Cost:
        """Return the cost for the engine: arrays are whole, however few of their weights are held."""
        rung = self.rung(mask.widths, mask.trained)
        if rung is not None:
            return rung.cost
        return cost_of(self.graph, mask.widths, mask.trained) if mask.held else mask.cost

    def use(self, cost: Cost, density: float = 1.0, batch: int | None = None, *, around: Cost | None = None) -> Budget:
        """Return what the round takes with a submodel of this cost that holds this share of its weights.

        `batch` is the size of a program's batches, which are filled up; `around` is what the submodel is cut out of for
        every run.
        """
        batch = min(self.work.batch_size, self.samples) if batch is None else batch
        use = predict(self.participant.profile, cost, batch=batch, steps=self.steps, load=self.load, around=around)
        kept_fraction = min(cost.parameters / max(self.graph.parameters, 1), 1.0)  # networks may share some
        return replace(use, kept_fraction=kept_fraction, weight_density=density)

    def use_of(self, rung: Rung, density: float = 1.0) -> Budget:
        """Return what the round takes with a program."""
        return self.use(rung.cost, density, rung.spec.batch_size)

    def fits(self, cost: Cost, density: float = 1.0) -> bool:
        """Return whether a round at this cost stays within the device's budget, whatever its engine can run."""
        return not self.participant.budget.exceeded_by(self.use(cost, density))

    def prediction(self, mask: Mask) -> Prediction:
        """Return what the round takes, in the form that a plan holds."""
        rung = self.rung(mask.widths, mask.trained)
        use = self.use(self.cost(mask)) if rung is None else self.use_of(rung)
        return Prediction(seconds=use.round_seconds, peak_bytes=use.peak_bytes, joules=use.joules)

    def _rung_widths(self, within: Mapping[str, int] | None) -> Iterable[Mapping[str, int]]:
        rungs, size = self.participant.rungs, self.work.batch_size
        if rungs is None:
            return ()
        return rungs.widths(size) if within is None else rungs.below(within, size)


def largest_fitting(least: int, most: int, fits: Callable[[int], bool]) -> int | None:
    """Return the largest amount from `least` to below `most` that fits, where less fits if more does; None if none."""
    begin = least
    while least < most:
        middle = (least + most) // 2
        if fits(middle):
            least = middle + 1
        else:
            most = middle
    return least - 1 if least > begin else None


def _leading(graph: ModelGraph, widths: Mapping[str, int], trained: Collection[str] | None) -> Mask:
    return Mask.of(graph, trained=trained, kept={name: range(width) for name, width in widths.items()})


def round_estimates(
    graph: ModelGraph,
    participants: Sequence[Participant],
    round_context: RoundContext,
    assumed_samples: int,
    load: TrainingLoad | None = None,
) -> dict[str, RoundEstimate]:
    """Return the estimates of some devices by their ids; they share a cache of costs."""
    costs: dict[object, dict[int, Cost]] = {}
    load = load or TrainingLoad()
    return {
        participant.device_id: RoundEstimate(graph, participant, round_context.work, assumed_samples, costs, load)
        for participant in participants
    }
