"""A whole simulation: every round, what devices make of the last model, and all of it kept in a folder."""

import time
from collections.abc import Callable

from edgefl.artifacts.bundle import Bundle
from edgefl.simulation.executor import Executor
from edgefl.simulation.request import SimulationInputs, SimulationRequest
from edgefl.simulation.results import RoundResult
from edgefl.simulation.run_folder import RunFolder
from edgefl.simulation.simulated_federation import SimulatedFederation
from edgefl.simulation.summary import Summary, summary_of

__all__ = ["simulate"]


def simulate(
    request: SimulationRequest,
    bundle: Bundle,
    found: SimulationInputs,
    crew: Executor,
    folder: RunFolder,
    *,
    show: Callable[[RoundResult], None] = lambda result: None,
    stage: Callable[[str], None] = lambda text: None,
) -> Summary:
    """Run a federation to its end, and return what it came to; `show` sees every round."""
    began, rounds = time.perf_counter(), []
    made = SimulatedFederation(
        bundle, found.fleet, found.strategy, request.federation, crew=crew, availability=found.availability
    )
    with made as federation:
        for result in federation.rounds():
            folder.add_round(result)
            rounds.append(result)
            show(result)
        parts, personal = federation.masks, None  # those of the rounds: devices tune other ones in the end
        if request.personalise:
            stage("devices make the last model their own")
            personal = federation.personalise()
        summary = summary_of(rounds, personal, time.perf_counter() - began)
        folder.finish(federation.model.weights, parts, personal, summary)
    return summary
