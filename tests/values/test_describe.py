"""Values in words."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgefl.values import (
    Bytes,
    BytesPerSecond,
    Celsius,
    Count,
    Fraction,
    Hertz,
    Joules,
    Ratio,
    Seconds,
    SecondsPerMultiplyAdd,
    Transfer,
    Watts,
    describe,
    format_bytes,
    format_count,
    format_fraction,
    format_quantity,
    format_seconds,
    printable,
)
from tests.values.random_values import documents
from tests.values.samples import BUDGET, PLAN, PROFILE, RESULT


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1.5 * 2**20, "1.5 MiB"),
        (2**30 - 1, "1 GiB"),
        (123.4 * 2**30, "123 GiB"),
        (2**60, "1024 PiB"),
    ],
)
def test_bytes_in_words(size: float, words: str) -> None:
    assert format_bytes(size) == words


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("größer °C", "größer °C"),
        ("a\nb\t", r"a\nb\t"),
        ("\x1b[2J\x9b", r"\x1b[2J\x9b"),
        ("\u202e\ud800", r"\u202e\ud800"),
    ],
)
def test_a_text_of_a_stranger_is_printed_on_one_line_and_moves_no_cursor(text: str, safe: str) -> None:
    assert printable(text) == safe
    assert safe.isprintable()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (2e-10, "200 ps"),
        (0.0123, "12.3 ms"),
        (0.00099999, "1 ms"),
        (0.9996, "1 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (125, "2 min 5 s"),
        (3599.6, "1 h"),
        (3600 * 3 + 1200, "3 h 20 min"),
        (86399, "1 d"),
        (86400 * 2 + 3600 * 4, "2 d 4 h"),
    ],
)
def test_seconds_in_words(seconds: float, words: str) -> None:
    assert format_seconds(seconds) == words


def test_counts_and_fractions_in_words() -> None:
    assert format_count(1234567) == "1,234,567"
    assert format_fraction(0.3) == "30 %"
    assert format_fraction(0.0012345) == "0.123 %"
    assert format_fraction(1) == "100 %"


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (Joules, 12600.0, "12.6 kJ"),
        (Watts, 0.25, "250 mW"),
        (Hertz, 10.0, "10 Hz"),
        (BytesPerSecond, 2.5e6, "2.38 MiB/s"),
        (SecondsPerMultiplyAdd, 2e-10, "200 ps/MAC"),
        (Celsius, -3.25, "-3.2 °C"),
        (Fraction, 0.07, "7 %"),
        (Ratio, 2.5, "2.5"),
    ],
)
def test_every_dimension_in_words(hint: Any, value: float, words: str) -> None:
    assert format_quantity(value, hint.__metadata__[0]) == words


def test_a_budget_says_where_there_is_no_limit() -> None:
    assert describe(BUDGET) == [
        ("trainable parameters", "no limit"),
        ("kept", "25 %"),
        ("weight density", "no limit"),
        ("round", "30 s"),
        ("peak", "512 MiB"),
        ("joules", "no limit"),
    ]


def test_parts_are_told_under_the_name_of_their_whole() -> None:
    lines = dict(describe(RESULT))
    assert lines["telemetry latency p50 step"] == "12.3 ms"
    assert lines["telemetry energy joules"] == "7.5 J"
    assert lines["telemetry energy provenance"] == "estimated"
    assert lines["telemetry energy idle"] == "not known"
    assert lines["telemetry energy sample rate"] == "not sampled"
    assert lines["metrics gradient_norm"] == "1.25"
    assert lines["telemetry memory peak"] == "96 MiB"


def test_what_is_absent_for_a_reason_is_told_with_the_reason() -> None:
    plan = dict(describe(dataclasses.replace(PLAN, graph=None, predicted=None)))
    assert plan["graph"] == "the device finds it by the model"
    assert plan["weights"] == "the device has them"
    assert plan["predicted"] == "not predicted"
    assert dict(describe(PLAN))["predicted joules"] == "not predicted"
    assert dict(describe(dataclasses.replace(RESULT, accuracy=None)))["accuracy"] == "not evaluated"
    assert dict(describe(PROFILE))["upload"] == "not measured"


def test_settings_and_flags_are_told() -> None:
    plan = dict(describe(PLAN))
    assert plan["rule settings nesterov"] == "true"
    assert plan["rule settings learning_rate"] == "0.1"
    assert plan["seed"] == "18446744073709551615"
    assert dict(describe(PROFILE))["throttled"] == "no"


def test_a_label_drops_a_unit_only_where_it_is_one() -> None:
    @dataclass(frozen=True)
    class Part:
        plan_b: Count
        wait_s: Seconds
        sizes: tuple[Bytes, ...]
        empty: tuple[Bytes, ...]
        turns: tuple[Transfer, ...]

    part = Part(plan_b=1, wait_s=2.0, sizes=(1024, 5), empty=(), turns=(Transfer(down_bytes=1, up_bytes=2),))
    assert describe(part) == [
        ("plan b", "1"),
        ("wait", "2 s"),
        ("sizes", "1 KiB, 5 B"),
        ("empty", "none"),
        ("turns 1 down", "1 B"),
        ("turns 1 up", "2 B"),
        ("turns 1 provenance", "measured"),
    ]


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(documents)
def test_any_document_can_be_told_with_a_text_for_every_line(value: Any) -> None:
    for label, text in describe(value):
        assert label == label.strip()
        assert label
        assert isinstance(text, str)


@given(st.floats(0, 1e15))
def test_words_of_a_size_never_have_a_number_past_its_prefix(size: float) -> None:
    number, unit = format_bytes(size).split()
    assert float(number) < 1024
    assert unit in {"B", "KiB", "MiB", "GiB", "TiB"}
