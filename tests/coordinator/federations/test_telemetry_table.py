"""The table of what every task cost: as JSON, CSV and Parquet, with labels, and nothing made up."""

import csv
import dataclasses
import io
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.federations.telemetry_table import COLUMNS, as_csv, rows
from coordinator.storage.records import Round, Task, TaskState
from edgefl.values import (
    ClientPlan,
    LocalResult,
    Prediction,
    Provenance,
    Reason,
    Refusal,
    Thermal,
    ThermalStatus,
    dumps,
)
from tests.coordinator.http.site import Site
from tests.coordinator.stage import until
from tests.values.samples import PLAN, RESULT

PHONE = dataclasses.replace(
    RESULT.telemetry,
    thermal=Thermal(start_status=ThermalStatus.NONE, end_status=ThermalStatus.LIGHT),
    transfer=dataclasses.replace(RESULT.telemetry.transfer, provenance=Provenance.ESTIMATED),
)
PATH = "/v1/federations/tabled/telemetry"


class Table:
    """A store with one round of one task in each state."""

    def __init__(self) -> None:
        plan: ClientPlan = dataclasses.replace(PLAN, predicted=Prediction(seconds=40.0, peak_bytes=10**8, joules=9.5))
        result: LocalResult = dataclasses.replace(RESULT, telemetry=PHONE)
        refusal = Refusal(reason=Reason.POWER, message="=no")
        ends: dict[TaskState, dict[str, Any]] = {
            TaskState.DONE: {"result": dumps(result), "counted_in": 0},
            TaskState.REFUSED: {"refusal": dumps(refusal)},
            TaskState.EXPIRED: {},
            TaskState.OPEN: {},
        }
        tasks = [
            Task(
                id=f"task-{state}",
                federation="f",
                round=0,
                device=f"-{state}",
                plan=dumps(plan),
                created_at=1.0,
                state=state,
                **end,
            )
            for state, end in ends.items()
        ]

        one = Round(federation="f", number=0, model="", opened_at=0, deadline_at=0)
        self.rounds = SimpleNamespace(of=lambda federation: [one])
        self.tasks = SimpleNamespace(of=lambda federation, *, number: tasks)


def test_a_row_has_what_was_measured_by_what_and_what_was_predicted() -> None:
    done, refused, expired = rows(Table(), "f")  # type: ignore[arg-type]
    telemetry = RESULT.telemetry
    assert list(done) == list(COLUMNS)
    assert done["round_seconds"] == telemetry.latency.round_seconds
    assert (done["predicted_seconds"], done["predicted_peak_bytes"], done["predicted_joules"]) == (40.0, 10**8, 9.5)
    assert telemetry.energy is not None
    assert done["joules"] == telemetry.energy.joules
    assert done["energy_source"] == telemetry.energy.source
    assert done["energy_provenance"] == telemetry.energy.provenance
    assert done["memory_scope"] == telemetry.memory.scope
    assert done["up_bytes"] == telemetry.transfer.up_bytes
    assert (done["start_status"], done["end_status"]) == ("none", "light")
    assert done["transfer_provenance"] == "estimated"
    assert (refused["state"], refused["refusal_reason"], refused["loss"]) == ("refused", "power", None)
    assert (expired["state"], expired["joules"]) == ("expired", None)


def test_csv_gives_nothing_that_a_spreadsheet_would_run() -> None:
    text = b"".join(as_csv(rows(Table(), "f"))).decode()  # type: ignore[arg-type]
    table = list(csv.DictReader(io.StringIO(text)))
    assert [row["device"] for row in table] == ["'-done", "'-refused", "'-expired"]
    assert table[0]["predicted_seconds"] == "40.0"
    assert table[1]["loss"] == ""


@pytest.fixture(scope="module")
def tabled(site: Site) -> Site:
    site.federation("tabled")
    tokens = [site.device(name, "tabled") for name in ("one", "two")]
    tasks = site.open_round("one", "two", federation="tabled")
    with site.agent(tokens[0]) as agent:
        agent.upload(tasks[0], site.update(tasks[0]))
    with site.agent(tokens[1]) as agent:
        plan = agent.poll(0).plan
        assert plan is not None
        agent.refuse(plan, Refusal(reason=Reason.TEMPERATURE, message="hot"))
    until(lambda: site.admin.get(PATH).json()["rows"][1]["handed_at"] is not None)  # noted after it was answered
    return site


def test_the_three_forms_say_the_same(tabled: Site) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    as_json = tabled.admin.get(PATH).json()["rows"]
    answer = tabled.admin.get(f"{PATH}?format=csv")
    assert answer.headers["Content-Type"].startswith("text/csv")
    from_csv = list(csv.DictReader(io.StringIO(answer.text)))
    answer = tabled.admin.get(f"{PATH}?format=parquet")
    from_parquet = parquet.read_table(io.BytesIO(answer.content)).to_pylist()
    assert [(row["device"], row["state"]) for row in as_json] == [("one", "done"), ("two", "refused")]
    assert from_parquet == as_json
    for text, value in zip(from_csv, as_json, strict=True):
        assert text == {name: "" if one is None else str(one) for name, one in value.items()}
    assert list((tabled.context.blobs._spool).iterdir()) == []  # type: ignore[attr-defined]


def test_a_federation_without_tasks_has_an_empty_table(site: Site) -> None:
    assert site.admin.get("/v1/federations/digits/telemetry").json() == {"rows": []}
    lines = site.admin.get("/v1/federations/digits/telemetry?format=csv").text.splitlines()
    assert lines == [",".join(COLUMNS)]
