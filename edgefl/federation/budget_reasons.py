"""Why a device got no task: what the least that it could train would take, beside its budget.

A strategy leaves out a device that nothing fits, without a word. The operator is told how much too small its budget is.
This runs for every device without a task, thousands in a round: costs are counted once for all of them.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

from edgefl.model_graph import Cost, ModelGraph, cost_of
from edgefl.planning import cuts_of, narrowest_widths
from edgefl.strategies import Model, Participant, RoundContext, Strategy
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.values import Budget
from edgefl.values.formatting import format_bytes, format_percent, format_seconds

__all__ = ["reasons_by_budget", "why_nothing_fits"]

_USUAL_SAMPLES = 1000


def reasons_by_budget(strategy: Strategy, model: Model, round_context: RoundContext) -> Callable[[Participant], str]:
    """Return what tells why a strategy had no task for a device in a round."""
    samples, models = getattr(strategy, "assumed_samples", _USUAL_SAMPLES), getattr(strategy, "models", 1)

    def why(participant: Participant) -> str:
        return why_nothing_fits(RoundEstimate(model.graph, participant, round_context.work, samples, {}, models))

    return why


def why_nothing_fits(estimate: RoundEstimate) -> str:
    """Return why a device can train nothing: the least submodel that is beyond its budget, and by how much."""
    rungs, graph = estimate.participant.rungs, estimate.graph
    narrowest = "the narrowest submodel" if rungs is None else "the narrowest rung of its engine's programs"
    last = tuple(cuts_of(graph).values())[-1]
    for what, widths, trained in (
        (f"{narrowest}, with only its last block trained,", _narrowest(estimate), last),
        (narrowest, _narrowest(estimate), None),
        ("the whole model", _whole(graph), None),
    ):
        use = _use(estimate, widths, trained)
        exceeded = () if use is None else estimate.participant.budget.exceeded_by(use)
        if use is not None and exceeded:
            said = ", ".join(_beside(name, use, estimate.participant.budget) for name in exceeded)
            return f"nothing fits its budget for a round: {what} needs {said}"
    return "the strategy has no task for it that fits its budget for a round"


def _use(estimate: RoundEstimate, widths: Mapping[str, int], trained: tuple[str, ...] | None) -> Budget | None:
    limit = estimate.participant.budget.weight_density
    density = 1.0 if limit is None else limit  # some strategies leave weights out, and others do not
    if not estimate.on_rungs:
        return estimate.use(_cost(estimate.graph, tuple(widths.items()), trained), density)
    rung = estimate.rung(widths, trained)
    return None if rung is None else estimate.use_of(rung, density)


@lru_cache(maxsize=64)
def _cost(graph: ModelGraph, widths: tuple[tuple[str, int], ...], trained: tuple[str, ...] | None) -> Cost:
    return cost_of(graph, dict(widths), trained)


def _narrowest(estimate: RoundEstimate) -> Mapping[str, int]:
    rungs = estimate.participant.rungs
    found = () if rungs is None else rungs.widths(estimate.work.batch_size)
    return found[-1] if found else narrowest_widths(estimate.graph)


def _whole(graph: ModelGraph) -> dict[str, int]:
    return {group.name: group.width for group in graph.groups}


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
