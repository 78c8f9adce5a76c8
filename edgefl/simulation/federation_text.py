"""A request as a federation file, for a coordinator."""

import json
from collections.abc import Mapping
from typing import Any

from edgefl.simulation.request import SimulationRequest

__all__ = ["federation_text"]

_LONGER = 2.0**10
"""A deadline in simulated seconds says nothing about this machine. What plans may fill of it stays the same, to the
bit."""


def federation_text(request: SimulationRequest, name: str) -> str:
    """Return the TOML of a federation that asks for the same."""
    asked, work = request.federation, request.federation.work
    evaluation = {"data": request.data, "every": asked.evaluate_every or asked.rounds}
    if request.folder is not None:
        evaluation["folder"] = request.folder
    tables: dict[str, Mapping[str, Any]] = {
        "federation": {
            "name": name,
            "model": "model.zip",
            "seed": asked.seed,
            "round_share": asked.deadline_share / _LONGER,
        },
        "strategy": {"name": request.strategy, **request.settings},
        "work": {"epochs": work.epochs, "batch_size": work.batch_size}
        | ({} if work.most_steps is None else {"most_steps": work.most_steps}),
        "rounds": {
            "count": asked.rounds,
            "deadline": _LONGER * asked.deadline,
            "at_least": min(asked.per_round, request.devices),
        },
        "selection": {"devices": min(asked.per_round, request.devices), "wait_for": request.devices},
        "evaluation": evaluation,
        "budget": {"adapt": False},
    }
    return "\n".join(line for title, table in tables.items() for line in _table(title, table)) + "\n"


def _table(title: str, values: Mapping[str, Any]) -> list[str]:
    """Return a table; JSON's texts, numbers and truth values are TOML's."""
    return [f"[{title}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
