"""Why a device got no task: what the least that it could train would take, beside its budget.

A strategy leaves out a device that nothing fits, without a word. The operator is told how much too small its budget is.
This runs for every device without a task, thousands in a round: costs are counted once for all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from edgefl.model_graph import Cost, cost_of
from edgefl.planning import Rungs, TrainingLoad, cuts_of, narrowest_widths
from edgefl.strategies import Model, Participant, RoundContext, Strategy
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.values import Budget
from edgefl.values.formatting import format_bytes, format_percent, format_seconds

__all__ = ["reasons_by_budget"]

_USUAL_SAMPLES = 1000


def reasons_by_budget(strategy: Strategy, model: Model, round_context: RoundContext) -> Callable[[Participant], str]:
    """Return what tells why a strategy had no task for a device in a round."""
    samples, load = getattr(strategy, "assumed_samples", _USUAL_SAMPLES), getattr(strategy, "load", TrainingLoad())
    least: dict[Rungs | None, list[_Least]] = {}  # of each kind of device

    def why(participant: Participant) -> str:
        estimate = RoundEstimate(model.graph, participant, round_context.work, samples, {}, load)
        if participant.rungs not in least:
            least[participant.rungs] = list(_least_submodels(estimate))
        return _why_nothing_fits(estimate, least[participant.rungs])

    return why


@dataclass(frozen=True, slots=True)
class _Least:
    """A submodel that would be the least of its kind."""

    what: str
    cost: Cost
    batch: int | None
    """The size of a program's batches."""


def _least_submodels(estimate: RoundEstimate) -> Iterator[_Least]:
    """Yield what a device could train at the least, for strategies that freeze layers, that do not, and others."""
    graph, rungs = estimate.graph, estimate.participant.rungs
    known = () if rungs is None else rungs.widths(estimate.work.batch_size)
    narrowest = known[-1] if known else narrowest_widths(graph)
    whole = {group.name: group.width for group in graph.groups}
    name = "the narrowest submodel" if rungs is None else "the narrowest rung of the ladder of programs"
    cuts = dict(reversed(cuts_of(graph).items()))
    last = next(iter(cuts.values()))
    for what, widths, trained in (
        (f"{name}, with only its last block trained,", narrowest, last),
        (name, narrowest, None),
        *((f"the whole model, trained from {block} on,", whole, cuts[block]) for block in list(cuts)[:-1]),
        ("the whole model", whole, None),
    ):
        rung = estimate.rung(widths, trained)
        if rung is not None:
            yield _Least(what, rung.cost, rung.spec.batch_size)
        elif rungs is None:
            yield _Least(what, cost_of(graph, widths, trained), None)


def _why_nothing_fits(estimate: RoundEstimate, submodels: Iterable[_Least]) -> str:
    """Return the first of some submodels that is beyond a device's budget, and by how much."""
    budget = estimate.participant.budget
    density = 1.0 if budget.weight_density is None else budget.weight_density  # which some strategies keep within
    for one in submodels:
        use = estimate.use(one.cost, density, one.batch)
        exceeded = budget.exceeded_by(use)
        if exceeded:
            said = ", ".join(_beside(name, use, budget) for name in exceeded)
            return f"nothing fits its budget for a round: {one.what} needs {said}"
    return "the strategy has no task for it that fits its budget for a round"


_FORMS: Mapping[str, Callable[[float], str]] = {
    "trainable_parameters": lambda number: f"{number:,.0f} trained parameters",
    "kept_fraction": lambda share: f"{format_percent(share)} of the model",
    "round_seconds": format_seconds,
    "peak_bytes": lambda number: format_bytes(int(number)),
    "joules": lambda number: f"{number:.3g} J",
}


def _beside(name: str, use: Budget, budget: Budget) -> str:
    form = _FORMS[name]
    return f"{form(getattr(use, name))}, and it has {form(getattr(budget, name))}"
