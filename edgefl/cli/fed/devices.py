"""`edgefl fed devices`: list devices, their hardware, and what their last task cost."""

import argparse
from typing import Any

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import Api, connect, path_of
from edgefl.cli.tables import print_json, print_table

__all__ = ["add_parser"]

_HEAD = ("id", "state", "last seen", "done", "failed", "samples", "machine", "client", "runs", "last task")
_WIDEST = 80
"""Characters of a column: what a device calls its software may be longer."""
_ROUNDS_BACK = 3
"""Rounds searched for a device's last task; older tasks say little about it."""


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    add_action(actions, "devices", run, help="list the devices of a federation and what their last tasks cost")


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    with connect(args) as api:
        devices = api.get(path_of("federations", args.name, "devices"))["devices"]
        tasks = _last_tasks(api, args.name, {device["id"] for device in devices})
    if args.json:
        print_json({"devices": [device | {"last_task": tasks.get(device["id"])} for device in devices]})
        return 0
    rows = [_row(device, tasks.get(device["id"]), api.now) for device in devices]
    print_table(_HEAD, rows, f"no device has joined; make a key with: edgefl fed key {args.name}")
    return 0


def _last_tasks(api: Api, name: str, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """Return the last task of each device that had one in recent rounds."""
    found: dict[str, dict[str, Any]] = {}
    latest = api.get(path_of("federations", name))["round"] if wanted else None
    number = -1 if latest is None else latest["number"]
    for current in range(number, max(-1, number - _ROUNDS_BACK), -1):
        if wanted <= set(found):
            break
        tasks = api.get(path_of("federations", name, "tasks"), round=current)["tasks"]
        for task in sorted(tasks, key=lambda task: -task["created_at"]):
            found.setdefault(task["device"], task)
    return found


def _row(device: dict[str, Any], task: dict[str, Any] | None, now: float) -> tuple[object, ...]:
    from edgefl.values.formatting import format_ago

    return (
        *(device["id"], device["state"], format_ago(device["seen_at"], now)),
        *(device["done"], device["failed"], device["samples"]),
        _machine(device["profile"]),
        _client(device),
        _runs(device, task),
        _standing(device, task),
    )


def _standing(device: dict[str, Any], task: dict[str, Any] | None) -> str | None:
    """Return what its last task cost, or why it got none."""
    if device.get("left_out") is not None:
        return f"left out: {device['left_out']}"
    return None if task is None else _outcome(task)


def _client(device: dict[str, Any]) -> str:
    """'edgefl-java 0.1.0'; of a device that did not say what its software can run, its software."""
    capabilities = device.get("capabilities")
    if capabilities is None:
        return str(device["software"])[:_WIDEST]
    client = capabilities["client"]
    return f"{client['name']} {client['version']}"[:_WIDEST]


def _runs(device: dict[str, Any], task: dict[str, Any] | None) -> str | None:
    """'executorch 1.4.1, 0.5 from block2', 'onnxruntime 1.31.1, 62% of the model': engine and last submodel."""
    parts = [device.get("engine")]
    if task is not None:
        kept = task.get("kept_fraction")
        parts.append(task.get("rung") or (None if kept is None else f"{kept:.0%} of the model"))
    return ", ".join(part for part in parts if part)[:_WIDEST] or None


def _machine(profile: dict[str, Any]) -> str:
    """'raspberry-pi-4, aarch64, 4 cores, 3.2 GiB free'."""
    from edgefl.values.formatting import format_bytes

    machine = profile["machine"]
    cores = f"{machine['cores']} core{'s' if machine['cores'] != 1 else ''}"
    free = f"{format_bytes(profile['memory_free_bytes'])} free"
    return ", ".join([profile["device_name"], machine["architecture"], cores, free])


def _outcome(task: dict[str, Any]) -> str:
    """'done: 4.2 s, 61 MiB, 12.5 J estimated, thermal status light', 'refused: power'."""
    from edgefl.values.formatting import format_bytes, format_seconds

    if task["refusal"] is not None:
        return f"{task['state']}: {task['refusal']['reason']}"
    if task["result"] is None:
        return str(task["state"])
    telemetry = task["result"]["telemetry"]
    parts = [
        format_seconds(telemetry["latency"]["round_seconds"]),
        format_bytes(telemetry["memory"]["peak_bytes"]),
    ]
    energy = telemetry["energy"]
    if energy is not None:
        parts.append(f"{energy['joules']:.3g} J {energy['provenance']}")
    status = (telemetry["thermal"] or {}).get("end_status")
    if status not in (None, "none"):
        parts.append(f"thermal status {status}")
    return f"{task['state']}: {', '.join(parts)}"
