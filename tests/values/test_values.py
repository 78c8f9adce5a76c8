"""The values in Python: an invalid one cannot be made, and a valid one cannot change."""

import ast
import copy
import dataclasses
import inspect
import itertools
import json
import textwrap
import types
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import pytest

import edgefl.values
from edgefl.errors import SchemaError
from edgefl.values import (
    Budget,
    ClientPlan,
    FieldError,
    RuleSettings,
    Scope,
    Telemetry,
    Thermal,
    ThermalStatus,
    check_digest,
    digest_of,
    dumps,
    loads,
    timestamp_of,
)
from edgefl.values.field_error import path_text, shown
from tests.values.samples import BUDGET, ENROLLED, PLAN, PROFILE, RESULT, SAMPLES, SUBMODEL, TELEMETRY


def parts_of(value: Any) -> list[Any]:
    """A value and every dataclass inside it."""
    inner = [getattr(value, field.name) for field in dataclasses.fields(value)]
    return [value, *(part for item in inner if dataclasses.is_dataclass(item) for part in parts_of(item))]


EVERY_PART = {type(part).__name__: part for value in SAMPLES.values() for part in parts_of(value)}


@pytest.mark.parametrize("name", EVERY_PART)
def test_a_value_cannot_change(name: str) -> None:
    part = EVERY_PART[name]
    field = dataclasses.fields(part)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(part, field, None)
    with pytest.raises((AttributeError, TypeError)):
        part.brand_new = 1  # slots: no room for it
    assert not hasattr(part, "__dict__")


@pytest.mark.parametrize("name", EVERY_PART)
def test_no_field_takes_a_foreign_object(name: str) -> None:
    part = EVERY_PART[name]
    for field in dataclasses.fields(part):
        with pytest.raises(FieldError) as caught:
            dataclasses.replace(part, **{field.name: object()})
        assert caught.value.path == (field.name,)


@pytest.mark.parametrize("name", EVERY_PART)
def test_only_an_optional_field_takes_none(name: str) -> None:
    part = EVERY_PART[name]
    for field in dataclasses.fields(part):
        if types.NoneType in get_args(field.type):
            dataclasses.replace(part, **{field.name: None})
        else:
            with pytest.raises(FieldError, match="got null"):
                dataclasses.replace(part, **{field.name: None})


@pytest.mark.parametrize(
    ("part", "changes", "field"),
    [
        (TELEMETRY.memory, {"peak_bytes": 1}, "peak_bytes"),
        (TELEMETRY.latency, {"p50_step_seconds": 0.001}, "p50_step_seconds"),
        (TELEMETRY.latency, {"p90_step_seconds": 0.012}, "p90_step_seconds"),
        (TELEMETRY.latency, {"round_seconds": 0.01}, "round_seconds"),
        (TELEMETRY.latency, {"steps_measured": 0}, "steps_measured"),
        (TELEMETRY, {"threads": 0}, "threads"),
        (TELEMETRY.energy, {"joules": -1}, "joules"),
        (TELEMETRY.energy, {"scope": "socket"}, "scope"),
        (PROFILE, {"memory_free_bytes": 5 * 2**30}, "memory_total_bytes"),
        (PROFILE, {"measured_at": "2026-01-31 12:00"}, "measured_at"),
        (PROFILE, {"measured_at": "2026-01-31T12:00:00+00:00"}, "measured_at"),
        (PROFILE, {"device_name": ""}, "device_name"),
        (PROFILE, {"device_name": " pi"}, "device_name"),
        (PROFILE, {"device_name": "two\nlines"}, "device_name"),
        (PROFILE, {"device_name": "x" * 201}, "device_name"),
        (PLAN, {"seed": -1}, "seed"),
        (PLAN, {"seed": 2**64}, "seed"),
        (PLAN, {"seed": True}, "seed"),
        (PLAN, {"model": "sha256:" + "A" * 64}, "model"),
        (PLAN, {"mask": "sha256:" + "a" * 63}, "mask"),
        (PLAN, {"weights": "a" * 64}, "weights"),
        (PLAN, {"task_id": "../etc"}, "task_id"),
        (PLAN, {"round": 1.5}, "round"),
        (RESULT, {"loss": float("nan")}, "loss"),
        (RESULT, {"accuracy": 87.5}, "accuracy"),
        (PLAN.work, {"epochs": 0}, "epochs"),
        (ENROLLED, {"token": "two words"}, "token"),
        (BUDGET, {"weight_density": 1.01}, "weight_density"),
    ],
)
def test_an_invalid_value_cannot_be_made(part: Any, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError) as caught:
        dataclasses.replace(part, **changes)
    assert caught.value.path == (field,)


def test_the_order_of_fields_is_explained() -> None:
    with pytest.raises(FieldError) as caught:
        dataclasses.replace(TELEMETRY.memory, peak_bytes=1)
    assert str(caught.value) == (
        "field 'peak_bytes' is 1, below 'baseline_bytes', which is 41943040. "
        "These fields must hold baseline_bytes <= peak_bytes"
    )


def test_a_thermal_part_that_says_nothing_is_refused() -> None:
    assert Thermal(throttled=False).start_celsius is None
    with pytest.raises(FieldError, match="is empty"):
        Thermal()


def test_the_mapping_given_to_a_value_can_change_afterwards_without_harm() -> None:
    given: dict[str, bool | int | float | str] = {"learning_rate": 0.1}
    rule = RuleSettings(name="sgd", settings=given)
    given["learning_rate"] = 99
    assert rule.settings == {"learning_rate": 0.1}


def test_a_choice_is_always_a_member() -> None:
    text: Any = "device"
    assert TELEMETRY.energy is not None
    assert dataclasses.replace(TELEMETRY.energy, scope=text).scope is Scope.DEVICE


def test_a_seed_is_a_text_in_json() -> None:
    data = edgefl.values.to_json(PLAN)
    assert data["seed"] == "18446744073709551615"
    for wrong in (7, "07", "-7", "7.0", "", "18446744073709551616", "٣", None):
        with pytest.raises(FieldError, match="field 'seed' must be a whole number from 0 to 2"):
            edgefl.values.from_json(ClientPlan, data | {"seed": wrong})


def test_a_budget_names_the_limits_that_a_use_exceeds() -> None:
    limits = Budget(round_seconds=30, peak_bytes=100, joules=5)
    assert limits.exceeded_by(Budget(round_seconds=30, peak_bytes=100)) == ()
    assert limits.exceeded_by(Budget(joules=5.5, trainable_parameters=10**9, round_seconds=31)) == (
        "round_seconds",
        "joules",
    )
    assert Budget().exceeded_by(Budget(kept_fraction=1, joules=1e9)) == ()
    assert Budget(joules=0).exceeded_by(Budget(joules=1)) == ("joules",)


def test_two_budgets_combine_to_the_lower_limits() -> None:
    combined = Budget(round_seconds=30, joules=5).tightened_by(Budget(round_seconds=20, peak_bytes=0))
    assert combined == Budget(round_seconds=20, peak_bytes=0, joules=5)


def test_a_cost_fit_predicts_by_its_line() -> None:
    step = PROFILE.cost.step_seconds(
        forward_multiply_adds=10**7, backward_multiply_adds=2 * 10**7, activation_bytes=10**6, trained_parameters=10**5
    )
    assert step == pytest.approx(0.002 + 0.002 + 0.006 + 0.002 + 0.0004)
    peak = PROFILE.cost.peak_bytes(activation_bytes=100, parameter_bytes=40, trained_parameters=8)
    assert peak == 48 * 2**20 + 250 + 50 + 100


def test_digests_are_checked_in_one_form() -> None:
    known = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of nothing
    assert digest_of(b"") == known == check_digest(known)
    for wrong in (known.upper(), known[:-1], known + "\n", "md5:0", ""):
        with pytest.raises(SchemaError, match="is not a digest"):
            check_digest(wrong)


def test_a_timestamp_is_in_utc() -> None:
    moment = datetime(2026, 1, 31, 14, 0, 0, 999, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp_of(moment) == "2026-01-31T12:00:00Z"
    assert dataclasses.replace(PROFILE, measured_at=timestamp_of(datetime.now(UTC)))
    with pytest.raises(SchemaError, match="has no time zone"):
        timestamp_of(moment.replace(tzinfo=None))


def test_an_error_survives_the_way_between_processes() -> None:
    with pytest.raises(FieldError) as caught:
        Budget(joules=-1)
    again = copy.copy(caught.value)  # by the same protocol
    assert str(again) == str(caught.value)
    assert again.path == ("joules",)


def test_paths_are_written_as_a_person_would() -> None:
    assert path_text(("telemetry", "energy", "joules")) == "telemetry.energy.joules"
    assert path_text(("layers", 3, "a b")) == "layers[3]['a b']"


def test_whatever_is_shown_in_a_message_is_short() -> None:
    assert shown("x" * 1000) == repr("x" * 60) + "..."
    assert shown(10**5000) == "an integer of 16610 bits"
    assert [shown(item) for item in (None, True, [1], {}, object())] == [
        "null",
        "true",
        "a list of 1",
        "an object",
        "a object",
    ]


@pytest.mark.parametrize("name", EVERY_PART)
def test_every_field_is_documented(name: str) -> None:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(type(EVERY_PART[name])))).body
    assert isinstance(body, ast.ClassDef)
    for field, after in itertools.pairwise(body.body):
        if isinstance(field, ast.AnnAssign):
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            assert documented, ast.unparse(field)


def test_time_memory_and_energy_cannot_be_made_without_their_labels() -> None:
    for part in (TELEMETRY.latency, TELEMETRY.memory, TELEMETRY.energy):
        assert part is not None
        fields = {field.name: field for field in dataclasses.fields(part)}
        for label in ("source", "scope", "provenance"):
            assert fields[label].default is dataclasses.MISSING


def test_all_names_exist_and_are_told_once() -> None:
    assert len(set(edgefl.values.__all__)) == len(edgefl.values.__all__)
    for name in edgefl.values.__all__:
        assert hasattr(edgefl.values, name)
    assert Telemetry.__name__ in edgefl.values.__all__


def test_telemetry_of_before_thermal_states_can_be_read() -> None:
    said = json.loads(dumps(TELEMETRY))
    assert not {"start_status", "end_status"} & said["thermal"].keys()  # nor does one without them look different
    assert "provenance" not in said["transfer"]
    assert loads(Telemetry, json.dumps(said)) == TELEMETRY


def test_a_thermal_state_alone_is_enough_and_states_are_ordered() -> None:
    assert Thermal(end_status="severe").end_status is ThermalStatus.SEVERE  # type: ignore[arg-type]
    assert [status.severity for status in ThermalStatus] == list(range(7))
    with pytest.raises(SchemaError, match="start_status and end_status are all null"):
        Thermal()


@pytest.mark.parametrize(
    ("field", "name"), [("tensors", "norm1.num_batches_tracked"), ("payloads", "conv1.weight:scale")]
)
def test_a_submodel_names_each_tensor_and_each_payload_once(field: str, name: str) -> None:
    entries = getattr(SUBMODEL, field)
    with pytest.raises(SchemaError, match=f"{field}' names '{name}' twice"):
        dataclasses.replace(SUBMODEL, **{field: (*entries, entries[-1])})
