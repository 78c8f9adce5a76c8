"""Whatever the text, reading it gives a value or a SchemaError with advice, and never another exception."""

import json
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from edgefl.errors import SchemaError
from edgefl.values import dumps, from_json, read, to_json
from tests.values.samples import SAMPLES

thorough = settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**300, 10**301),
    st.floats(),
    st.text(max_size=20),
    st.text(alphabet="0123456789.eE+- smMiBJWh%°µ", max_size=12),
)
json_data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


def value_or_schema_error(text: str | bytes) -> Any:
    try:
        return read(text)
    except SchemaError as error:
        refusal = error
    assert refusal.problem
    assert refusal.fix
    assert len(str(refusal)) < 2_000
    assert str(refusal).encode("utf-8")  # a message that cannot be printed would hide the error
    return None


def nodes(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(deeper for part, item in inner for deeper in nodes(item, (*path, part)))]


def replaced(data: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = dict(data) if isinstance(data, dict) else list(data)
    changed[path[0]] = replaced(data[path[0]], path[1:], new)
    return changed


@thorough
@given(st.text())
@example("")
@example("\ufeff{}")
@example('{"schema": "edgefl.budget/1", "peak_bytes": ' + "9" * 10_000 + "}")
@example('{"schema": "edgefl.budget/1", "round_seconds": "1e' + "9" * 50 + ' s"}')
@example('{"schema": "edgefl.budget/1", "' + "x" * 100_000 + '": 1}')
@example('{"schema": "edgefl.budget/1", "\\ud800": 1}')
@example('{"schema": "edgefl.client_plan/1", "seed": "٣"}')
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example('"' + '\\"' * 100_000)
def test_any_text(text: str) -> None:
    value_or_schema_error(text)


@thorough
@given(st.binary())
def test_any_bytes(text: bytes) -> None:
    value_or_schema_error(text)


@thorough
@given(st.sampled_from(sorted(SAMPLES)), st.dictionaries(st.text(max_size=20), json_data, max_size=3))
def test_any_object_with_a_tag(kind: str, body: dict[str, Any]) -> None:
    value_or_schema_error(json.dumps({"schema": f"edgefl.{kind}/1", **body}))


@thorough
@given(st.data())
def test_any_document_in_which_one_thing_was_replaced(data: st.DataObject) -> None:
    original = to_json(SAMPLES[data.draw(st.sampled_from(sorted(SAMPLES)))])
    path = data.draw(st.sampled_from(nodes(original)))
    value = value_or_schema_error(json.dumps(replaced(original, path, data.draw(json_data))))
    if value is not None:
        assert read(dumps(value)) == value


@thorough
@given(st.data())
def test_any_document_with_damaged_text(data: st.DataObject) -> None:
    text = dumps(SAMPLES[data.draw(st.sampled_from(sorted(SAMPLES)))])
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    damage = data.draw(st.text(alphabet='{}[]",:0123456789.eE-+\\ntrufalsN \x00', max_size=6))
    value_or_schema_error(text[:start] + damage + text[end:])


@thorough
@given(st.sampled_from(sorted(SAMPLES)), json_data | st.dictionaries(st.integers() | st.none(), scalars))
def test_any_python_data(kind: str, data: Any) -> None:
    cls = type(SAMPLES[kind])
    try:
        value = from_json(cls, data)
    except SchemaError:
        return
    assert isinstance(value, cls)
