"""A simulation over HTTP: a real coordinator (`edgefl serve`) and real agents, all on this machine.

The agents of many devices share a few processes (`edgefl.simulation.agents`), each with a home folder and a connection
of its own. The same request gives the same weights as without the network. What is simulated here is only what a
device's class says of its speed and transfers; devices do not fail or go away, so classes and traces that say so
are refused.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from edgefl.artifacts.bundle import Bundle, write_bundle
from edgefl.coordinator_process import CoordinatorProcess, running_coordinator
from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.federation.settings import EvaluationSettings
from edgefl.simulation.executor import ONE_THREAD
from edgefl.simulation.http_results import Download, final_results, round_results
from edgefl.simulation.request import SimulationInputs, SimulationRequest
from edgefl.simulation.results import RoundResult
from edgefl.simulation.run_folder import RunFolder
from edgefl.simulation.summary import Summary, summary_of
from edgefl.values import Budget, dumps

__all__ = ["simulate_over_http"]

NAME = "simulation"
_LOOK = 0.2
_LONGER = 2.0**10
"""A deadline in simulated seconds means nothing on this machine, so it is stretched, and the share of it that plans may
fill is reduced by the same power of two: their product stays the same, to the bit."""
_OVER = ("finished", "aborted")


class Shown(Protocol):
    """Receives progress."""

    def stage(self, text: str) -> None:
        """Show the current stage."""
        ...

    def round(self, result: RoundResult) -> None:
        """Show a finished round."""
        ...


def simulate_over_http(
    request: SimulationRequest, bundle: Bundle, found: SimulationInputs, folder: RunFolder, workers: int, shown: Shown
) -> Summary:
    """Run a federation to its end and return its summary."""
    _check(request)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="edgefl-http-") as name:
        place = Path(name)
        write_bundle(bundle, place / "model.zip")
        _write_federation_file(request, place / "federation.toml")
        (place / "request.json").write_text(dumps(request), encoding="utf-8")
        shown.stage("starting a coordinator")
        with (
            running_coordinator(place / "federation.toml", place / "state") as server,
            _agents(place, server, len(found.fleet), workers) as agents,
            _admin(server) as get,
        ):
            shown.stage("devices join")
            rounds = _follow(get, agents, bundle, found, folder, shown)
            masks, weights, held, personal = final_results(get, NAME, bundle, found, place / "homes", request)
    summary = summary_of(rounds, personal, time.perf_counter() - began)
    folder.finish(weights, held, masks, personal, summary)
    return summary


def _write_federation_file(request: SimulationRequest, path: Path) -> None:
    """Write the federation file of a coordinator that runs the same federation in real time."""
    from coordinator.federations.federation_file_layout import federation_toml

    settings = request.federation
    evaluation = settings.evaluation or EvaluationSettings(data=request.data)
    devices = min(settings.selection.devices, request.devices)
    real = replace(
        settings,
        name=NAME,
        round_share=settings.round_share / _LONGER,
        rounds=replace(settings.rounds, deadline=_LONGER * settings.rounds.deadline, at_least=devices),
        selection=replace(settings.selection, devices=devices, wait_for=request.devices),
        budget=replace(settings.budget, adapt=False),
        evaluation=replace(evaluation, data=request.data, folder=request.folder),
    )
    path.write_text(federation_toml(real, "model.zip"), encoding="utf-8")


def _check(request: SimulationRequest) -> None:
    for kind in request.classes:
        if kind.fails or kind.online_seconds is not None or kind.limits != Budget() or kind.most_epochs is not None:
            raise EdgeFLError(
                f"devices of class {kind.name} fail, go offline or have limits, but real agents here do not",
                fix="Leave out --over http, or choose classes without these.",
            )
    if request.availability is not None or request.resumes or request.until:
        raise EdgeFLError(
            "--availability, --resume and --until are for simulated devices, but real agents are always there",
            fix="Leave them out, or --over http.",
        )
    if request.trace is not None:
        raise EdgeFLError(
            "a trace says when devices are online, but real agents always are", fix="Leave out --trace or --over http."
        )


def _follow(
    get: Download,
    agents: Sequence["subprocess.Popen[str]"],
    bundle: Bundle,
    found: SimulationInputs,
    folder: RunFolder,
    shown: Shown,
) -> list[RoundResult]:
    """Wait for the end, and record every round as it finishes."""
    rounds: list[RoundResult] = []
    while True:
        told = json.loads(get(f"/v1/federations/{NAME}"))
        if told["rounds_done"] > len(rounds):
            for result in round_results(get, NAME, bundle, found, rounds, told["rounds_done"]):
                rounds.append(result)
                folder.add_round(result)
                shown.round(result)
        if told["state"] in _OVER and len(rounds) >= told["rounds_done"]:
            return rounds
        for agent in agents:
            if agent.poll() not in (None, 0):
                said = "" if agent.stderr is None else agent.stderr.read()
                raise EdgeFLError(f"a process of agents ended: {said.strip()[-500:]}", fix="Correct what it reports.")
        time.sleep(_LOOK)


@contextmanager
def _agents(
    place: Path, server: CoordinatorProcess, devices: int, workers: int
) -> Iterator[list["subprocess.Popen[str]"]]:
    """Start processes of agents that divide the devices among them."""
    started: list[subprocess.Popen[str]] = []
    try:
        for number in range(min(workers, devices)):
            words = [str(place), server.url, f"{number}:{devices}:{min(workers, devices)}"]
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "edgefl.simulation.agents", *words],
                    stderr=subprocess.PIPE,
                    text=True,
                    env=os.environ | ONE_THREAD | {"EDGEFL_JOIN_KEY": server.join_key},
                )
            )
        yield started
    finally:
        for process in started:
            _stop(process)


@contextmanager
def _admin(server: CoordinatorProcess) -> Iterator[Download]:
    try:
        import httpx
    except ImportError:
        raise MissingDependencyError("httpx", action="A simulation over HTTP", extra="device") from None
    headers = {"Authorization": f"Bearer {server.admin_token}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:

        def get(path: str, query: Mapping[str, Any] | None = None) -> bytes:
            answer = client.get(path, params=dict(query or {}))
            if answer.status_code >= httpx.codes.BAD_REQUEST:
                raise EdgeFLError(f"the coordinator answered {answer.status_code} to {path}", fix="See its log.")
            return answer.content

        yield get


def _stop(process: "subprocess.Popen[str]", patience: float = 10.0) -> None:
    process.terminate()
    try:
        process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
