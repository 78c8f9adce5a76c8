"""The models between the rounds of one federation: the first, stored ones, and the aggregation of a round's updates.

Called by the round state machine.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from coordinator.rounds.context import Context
from coordinator.rounds.stored_updates import StoredUpdates
from coordinator.storage.records import Federation, Round, Task
from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation.left_out import run_sound
from edgefl.federation.seeds import aggregation_context
from edgefl.masks import Mask
from edgefl.strategies import Model
from edgefl.strategies.held_part import arrays_beside, begun, model_with, note_held, trains_model
from edgefl.wire import encode_weights

__all__ = ["RoundModels", "result_of"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoundModels:
    """The models of one federation."""

    context: Context
    federation: Federation

    def first(self) -> Model:
        """Return the model before the first round."""
        bundle = self.context.repository.bundle(self.federation)
        return begun(self.context.repository.strategy(self.federation).begin(bundle.graph, bundle_weights(bundle)))

    def stored(self, weights: str, state: str | None) -> Model:
        """Return a model by the digests of its weights and of the arrays beside them."""
        repository = self.context.repository
        arrays = {} if state is None else repository.arrays(state)
        return model_with(repository.bundle(self.federation).graph, repository.arrays(weights), arrays)

    def keep(self, model: Model) -> tuple[str, str | None]:
        """Store a model, and return its digests; its body equals that of a submodel with everything, to the byte."""
        about = {"model": model.graph.digest, "mask": self.context.repository.mask(model.graph, None).digest}
        keep, beside = self.context.repository.keep_arrays, arrays_beside(model)
        state = keep(encode_weights(beside, {"model": model.graph.digest})) if beside else None
        return keep(encode_weights(model.weights, about)), state

    def are_stored(self, weights: str, state: str | None) -> bool:
        """Return whether the bodies of a model are in the blob store. If not, the same step stores them again."""
        return all(self.context.blobs.size(digest) is not None for digest in (weights, state) if digest is not None)

    def aggregated(self, closed: Round, tasks: Sequence[Task]) -> tuple[Model, dict[str, str]]:
        """Aggregate the updates of these tasks; return the model, and why devices' updates were left out."""
        model = self.stored(closed.model, closed.state_arrays)
        round_context = aggregation_context(self.context.repository.settings(self.federation), closed.number)
        strategy = self.context.repository.strategy(self.federation)
        updates = StoredUpdates(self.context, self.federation, closed.number, tasks)

        def combined(places: Sequence[int]) -> Model:
            return strategy.combine(model, replace(updates, tasks=[tasks[place] for place in places]), round_context)

        aggregated, faults = run_sound(combined, len(tasks))
        left_out = {tasks[place].device: f"its update was left out: {reason}" for place, reason in faults.items()}
        for device, reason in left_out.items():
            about = {"federation": self.federation.id, "round": closed.number, "device": device, "because": reason}
            _LOG.warning("an update was left out", extra=about)
        sound = [task for place, task in enumerate(tasks) if place not in faults]
        return note_held(model, aggregated, self._trained(sound), closed.number), left_out

    def _trained(self, tasks: Sequence[Task]) -> Iterator[Mask]:
        """Yield the planned masks of the updates that trained something."""
        repository = self.context.repository
        graph = repository.bundle(self.federation).graph
        for task in tasks:
            plan = repository.plan(task)
            if task.update is None or task.result is None:
                continue
            if trains_model(plan.rule, repository.result(task.update, task.result).samples):
                yield repository.mask(graph, plan.mask_body)


def result_of(done: Round) -> tuple[str, str | None]:
    """Return the digests of the model and the arrays that a round ended with."""
    if done.next_model is None:
        raise RuntimeError(f"round {done.number} of {done.federation} is done but has no model")
    return done.next_model, done.next_state_arrays
