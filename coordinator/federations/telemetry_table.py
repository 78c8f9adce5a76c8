"""The telemetry table: what every task cost, a row for each task that ended, for plots and spreadsheets.

Energy, memory and latency keep their labels: source, scope, measured or estimated. Each measured number has the
planner's prediction beside it. Rows are read round by round, so a long federation needs little memory.
"""

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from coordinator.storage.records import Task, TaskState, name_of
from coordinator.storage.store import Store
from edgefl.errors import MissingDependencyError
from edgefl.values import ClientPlan, LocalResult, Prediction, Refusal, Telemetry, loads

__all__ = ["COLUMNS", "as_csv", "rows", "write_parquet"]

Type = Literal["text", "integer", "number", "flag"]

COLUMNS: dict[str, Type] = {
    "task": "text",
    "round": "integer",
    "device": "text",
    "state": "text",
    "counted_in": "integer",
    "created_at": "number",
    "handed_at": "number",
    "ended_at": "number",
    "refusal_reason": "text",
    "kept_fraction": "number",
    "trained_fraction": "number",
    "rung": "text",
    "samples": "integer",
    "steps": "integer",
    "loss": "number",
    "accuracy": "number",
    "threads": "integer",
    "load_seconds": "number",
    "first_step_seconds": "number",
    "min_step_seconds": "number",
    "p50_step_seconds": "number",
    "p90_step_seconds": "number",
    "steps_measured": "integer",
    "round_seconds": "number",
    "predicted_seconds": "number",
    "latency_source": "text",
    "latency_scope": "text",
    "latency_provenance": "text",
    "baseline_bytes": "integer",
    "peak_bytes": "integer",
    "predicted_peak_bytes": "integer",
    "memory_source": "text",
    "memory_scope": "text",
    "memory_provenance": "text",
    "joules": "number",
    "predicted_joules": "number",
    "idle_watts": "number",
    "plugged": "flag",
    "energy_source": "text",
    "energy_scope": "text",
    "energy_provenance": "text",
    "start_celsius": "number",
    "end_celsius": "number",
    "throttled": "flag",
    "start_status": "text",
    "end_status": "text",
    "down_bytes": "integer",
    "up_bytes": "integer",
    "transfer_provenance": "text",
}
"""Every column and its type, in order."""


def rows(store: Store, federation: str) -> Iterator[dict[str, Any]]:
    """Give a row for each task that ended, ordered by round and device."""
    for one in store.rounds.of(federation):
        for task in store.tasks.of(federation, number=one.number):
            if task.state is not TaskState.OPEN:
                yield _row(task)


def as_csv(table: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """Give the table as CSV, piece by piece. Unknown values are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for row in table:
        writer.writerow({name: _safe(value) for name, value in row.items()})
        if text.tell() > 64 * 1024:
            yield _taken(text)
    yield _taken(text)


def write_parquet(table: Iterator[dict[str, Any]], path: Path) -> None:
    """Write the table as a Parquet file."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise MissingDependencyError("pyarrow", action="A Parquet file", extra="parquet") from None
    schema = pyarrow.schema([(name, _parquet_type(pyarrow, kind)) for name, kind in COLUMNS.items()])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in _batches(table, 5000):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema))


def _row(task: Task) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {
        "task": task.id,
        "round": task.round,
        "device": name_of(task.device),
        "state": str(task.state),
        "counted_in": task.counted_in,
        "created_at": task.created_at,
        "handed_at": task.handed_at,
        "ended_at": task.ended_at,
        "kept_fraction": task.kept_fraction,
        "trained_fraction": task.trained_fraction,
        "rung": task.rung,
    }
    if task.refusal is not None:
        row["refusal_reason"] = str(loads(Refusal, task.refusal).reason)
    row |= _predicted(loads(ClientPlan, task.plan).predicted)
    if task.result is not None:
        result = loads(LocalResult, task.result)
        row |= _named(result, "samples", "steps", "loss", "accuracy") | _telemetry(result.telemetry)
    return row


def _predicted(predicted: Prediction | None) -> dict[str, Any]:
    if predicted is None:
        return {}
    return {f"predicted_{name}": value for name, value in _named(predicted, "seconds", "peak_bytes", "joules").items()}


def _telemetry(telemetry: Telemetry) -> dict[str, Any]:
    latency = (
        "load_seconds",
        "first_step_seconds",
        "min_step_seconds",
        "p50_step_seconds",
        "p90_step_seconds",
        "steps_measured",
        "round_seconds",
    )
    row = {"threads": telemetry.threads} | _named(telemetry.latency, *latency) | _labels("latency", telemetry.latency)
    row |= _named(telemetry.memory, "baseline_bytes", "peak_bytes") | _labels("memory", telemetry.memory)
    row |= _named(telemetry.transfer, "down_bytes", "up_bytes")
    row["transfer_provenance"] = str(telemetry.transfer.provenance)
    if telemetry.energy is not None:
        row |= _named(telemetry.energy, "joules", "idle_watts", "plugged") | _labels("energy", telemetry.energy)
    if telemetry.thermal is not None:
        row |= _named(telemetry.thermal, "start_celsius", "end_celsius", "throttled", "start_status", "end_status")
    return row


def _named(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _labels(part: str, value: object) -> dict[str, Any]:
    return {f"{part}_{name}": str(getattr(value, name)) for name in ("source", "scope", "provenance")}


def _safe(value: object) -> object:
    """Quote a text that a spreadsheet would run as a formula; devices choose some of these texts."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _taken(text: io.StringIO) -> bytes:
    taken = text.getvalue().encode()
    text.seek(0)
    text.truncate()
    return taken


def _parquet_type(pyarrow: Any, kind: Type) -> Any:
    make: dict[Type, Callable[[], Any]] = {
        "text": pyarrow.string,
        "integer": pyarrow.int64,
        "number": pyarrow.float64,
        "flag": pyarrow.bool_,
    }
    return make[kind]()


def _batches(table: Iterator[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in table:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
