"""Documents: schema tags, kinds, and the fields of JSON objects."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgefl.errors import SchemaError
from edgefl.values import (
    Budget,
    DeviceProfile,
    FieldError,
    LocalResult,
    RuleSettings,
    dumps,
    from_json,
    kinds,
    loads,
    read,
    to_json,
)
from tests.values.samples import BUDGET, PROFILE, RESULT, SAMPLES


def changed(value: Any, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(dumps(value))
    change(data)
    return data


@pytest.mark.parametrize("kind", SAMPLES)
def test_read_picks_the_class_by_the_tag(kind: str) -> None:
    assert type(read(dumps(SAMPLES[kind]))) is type(SAMPLES[kind]) is kinds()[kind].cls


def test_a_document_without_a_tag_is_refused() -> None:
    with pytest.raises(FieldError, match=r"field 'schema' is missing\. Add \"schema\": 'edgefl.budget/1'"):
        from_json(Budget, {"round_seconds": 3})


@pytest.mark.parametrize("tag", [None, 1, "", "budget", "edgefl.budget", "edgefl.budget/0", "edgefl.budget/1 "])
def test_a_malformed_tag_is_refused(tag: object) -> None:
    with pytest.raises(FieldError, match="field 'schema' is not a schema tag"):
        read(json.dumps({"schema": tag}))


def test_another_kind_than_asked_for_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match=r"is a 'budget' .* but a 'device_profile' is needed"):
        loads(DeviceProfile, dumps(BUDGET))


def test_an_unknown_kind_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(SchemaError, match=r"'bugdet' .* not a known kind of document. Did you mean 'budget'"):
        read('{"schema": "edgefl.bugdet/1"}')


def test_a_newer_version_asks_for_an_upgrade() -> None:
    with pytest.raises(SchemaError, match=r"made by a newer EdgeFL .*Upgrade EdgeFL"):
        read('{"schema": "edgefl.budget/2"}')


@pytest.mark.parametrize("text", ["[]", "null", "3", '"edgefl.budget/1"'])
def test_a_document_is_an_object(text: str) -> None:
    with pytest.raises(FieldError, match="the document must be a JSON object"):
        read(text)


def test_a_missing_field_is_named_with_its_path_and_what_to_write() -> None:
    data = changed(RESULT, lambda data: data["telemetry"]["energy"].pop("joules"))
    with pytest.raises(FieldError) as caught:
        from_json(LocalResult, data)
    assert "field 'telemetry.energy.joules' is missing" in caught.value.problem
    assert "an energy in joules" in caught.value.fix


def test_a_field_with_a_default_may_be_missing() -> None:
    assert from_json(Budget, {"schema": "edgefl.budget/1"}) == Budget()


@pytest.mark.parametrize(
    ("path", "wrong", "expected"),
    [
        (["machine"], "aarch64", "field 'machine' must be an object with the fields of Machine, got 'aarch64'"),
        (["machine", "cores"], "4", "field 'machine.cores' must be a count.*got the string '4'"),
        (["machine", "cores"], 4.5, "field 'machine.cores' .* got 4.5, which is not whole"),
        (["device_name"], 3, "field 'device_name' must be a name .* got 3, which is not a string"),
        (["throttled"], 0, "field 'throttled' must be true or false, got 0"),
        (
            ["power", "scope"],
            "cpu",
            "field 'power.scope' must be one of 'process', 'package', 'device', 'heap', got 'cpu'",
        ),
        (["power", "provenance"], "mesured", "got 'mesured'. Did you mean 'measured'"),
        (["cost"], None, "field 'cost' must be an object with the fields of CostFit, got null"),
        (["measured_at"], "2026-02-30T00:00:00Z", "field 'measured_at' must be a time in UTC"),
    ],
)
def test_a_wrong_type_is_named_with_its_path(path: list[str], wrong: object, expected: str) -> None:
    def put(data: dict[str, Any]) -> None:
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = wrong

    with pytest.raises(FieldError, match=expected) as caught:
        from_json(DeviceProfile, changed(PROFILE, put))
    assert caught.value.path == tuple(path)


def test_a_check_across_fields_has_its_path_too() -> None:
    data = changed(RESULT, lambda data: data["telemetry"]["memory"].update(peak_bytes=1))
    with pytest.raises(FieldError, match=r"field 'telemetry.memory.peak_bytes' is 1, below 'baseline_bytes'"):
        from_json(LocalResult, data)


def test_a_setting_keeps_its_type_and_refuses_what_json_cannot_keep() -> None:
    rule = from_json(RuleSettings, {"name": "sgd", "settings": {"a": 1, "b": 1.0, "c": True, "d": "1"}})
    assert [type(item) for item in rule.settings.values()] == [int, float, bool, str]
    refused: list[object] = [None, [], {}, float("nan"), 2**60, "\ud800"]
    for wrong in refused:
        with pytest.raises(FieldError, match=r"field 'settings.a' "):
            from_json(RuleSettings, {"name": "sgd", "settings": {"a": wrong}})


def test_settings_take_numpy_scalars_as_plain_numbers() -> None:
    given: Any = {"a": np.int64(3), "b": np.float32(0.5)}
    assert dumps(RuleSettings(name="sgd", settings=given)) == '{"name":"sgd","settings":{"a":3,"b":0.5}}'


def test_a_mapping_refuses_an_odd_key() -> None:
    with pytest.raises(FieldError, match=r"field 'settings' has the key 'a\\nb'; a key must be a name"):
        from_json(RuleSettings, {"name": "sgd", "settings": {"a\nb": 1}})


def test_only_top_level_documents_carry_a_tag() -> None:
    data = to_json(RESULT)
    assert data["schema"] == "edgefl.local_result/1"
    assert "schema" not in data["telemetry"]
    assert "schema" not in to_json(PROFILE.machine)
