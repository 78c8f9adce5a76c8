"""Runs a whole simulation: every round, then personalisation; the run is kept in a folder."""

import time
from collections.abc import Callable

from edgefl.artifacts.bundle import Bundle
from edgefl.simulation.executor import Executor
from edgefl.simulation.request import SimulationInputs, SimulationRequest
from edgefl.simulation.results import RoundResult
from edgefl.simulation.run_folder import RunFolder
from edgefl.simulation.simulated_federation import SimulatedFederation
from edgefl.simulation.summary import Summary, summary_of
from edgefl.strategies.held_part import judged_part

__all__ = ["simulate"]


def simulate(
    request: SimulationRequest,
    bundle: Bundle,
    found: SimulationInputs,
    executor: Executor,
    folder: RunFolder,
    *,
    show: Callable[[RoundResult], None] = lambda result: None,
    stage: Callable[[str], None] = lambda text: None,
) -> Summary:
    """Run a federation to its end and return its summary; `show` is called with every round."""
    began, rounds = time.perf_counter(), []
    made = SimulatedFederation(
        bundle,
        found.fleet,
        found.strategy,
        request.federation,
        executor=executor,
        availability=found.availability,
        resumes=request.resumes,
    )
    with made as federation:
        for result in federation.rounds(request.until):
            folder.add_round(result)
            rounds.append(result)
            show(result)
        parts, personal = federation.masks, None  # of the rounds: personalisation may change them
        if request.personalise:
            stage("devices personalise the final model")
            personal = federation.personalise()
        summary = summary_of(rounds, personal, time.perf_counter() - began, federation.stopped)
        judged = judged_part(found.strategy, federation.model)
        folder.finish(federation.model.weights, judged, parts, personal, summary)
    return summary
