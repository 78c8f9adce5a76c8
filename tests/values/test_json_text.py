"""Strict JSON: what Python's json module lets through or answers with other exceptions."""

import pytest

from edgefl.errors import SchemaError
from edgefl.values import Budget, FieldError, loads, read
from edgefl.values.strict_json import DEEPEST_NESTING, parse


def test_invalid_json_is_located_by_line_and_column() -> None:
    with pytest.raises(SchemaError, match="not valid JSON at line 2, column 12: "):
        read('{\n  "schema" 1}')


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused_with_its_path(literal: str) -> None:
    with pytest.raises(FieldError, match=r"field 'joules' .* is not finite"):
        read(f'{{"schema": "edgefl.budget/1", "joules": {literal}}}')


def test_a_repeated_key_is_refused_with_its_path() -> None:
    with pytest.raises(FieldError) as caught:
        parse('{"a": [1, {"b": 1, "c": 2, "b": 1}]}')
    assert caught.value.path == ("a", 1, "b")
    assert "'a[1].b' appears more than once" in str(caught.value)


def test_a_repeated_key_inside_a_dropped_one_is_still_refused() -> None:
    with pytest.raises(FieldError) as caught:
        parse('{"a": {"b": 1, "b": 2}, "a": 3}')
    assert caught.value.path == ("a",)


def test_nesting_is_bounded() -> None:
    assert parse("[" * DEEPEST_NESTING + "]" * DEEPEST_NESTING) is not None
    with pytest.raises(SchemaError, match="nested more than 64 levels"):
        parse("[" * (DEEPEST_NESTING + 1) + "]" * (DEEPEST_NESTING + 1))


@pytest.mark.parametrize("text", ['"' + "[" * 1000 + '"', r'"\"' + "{" * 1000 + '"'])
def test_brackets_inside_a_text_nest_nothing(text: str) -> None:
    assert parse(text).strip('"[{') == ""


def test_an_integer_too_long_for_python_is_refused() -> None:
    with pytest.raises(SchemaError, match="integer of 5000 characters"):
        loads(Budget, '{"schema": "edgefl.budget/1", "peak_bytes": ' + "9" * 5000 + "}")


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(SchemaError, match="byte 1 is not UTF-8"):
        parse(b'"\xff"')


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse("\ufeff[1]") == [1]
    assert parse(b"\xef\xbb\xbf[1]") == [1]
